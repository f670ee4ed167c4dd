"""Python literals as values.

In:   numbers, text, nested lists of them, numpy scalars and arrays.
Out:  a value of the literal's own type, or of the type that its surroundings ask for.
Not:  makes no nodes.

A plain literal's own type is TensorFlow's: int32 (int64 or uint64 if it does not fit),
float32, complex128, bool, string.  Numpy's types stay what they are.  A literal follows
its surroundings as long as nothing is lost that was written down: ``1`` may become 1.0,
``1.5`` never becomes 1, and truth values become nothing else.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.given import UnevenError, class_name, has_leaf, readable, shown
from penstock.core.shapes import TensorShape
from penstock.core.values import Array, Value, as_value, freeze
from penstock.errors import InvalidArgumentError, OpError, ResourceExhaustedError

_INT32: Final = np.iinfo(np.int32)


def natural(literal: Any) -> tuple[Value, DType]:
    """The value of a literal that stands alone, and its type.

    Raises:
        TypeError: the literal is nothing that a tensor can hold.
        InvalidArgumentError: its rows differ in length.

    """
    array = _as_array(literal)
    dtype = dtypes.of_numpy(array.dtype)
    if is_plain(literal):
        dtype = _type_of_plain(array, dtype)
        array = array.astype(dtype.numpy, copy=False)
    return freeze(as_value(array)), dtype


def convert(literal: Any, dtype: DType) -> Value:
    """The value of a literal as a ``dtype``.

    Raises:
        TypeError: the literal is nothing that a tensor can hold.
        InvalidArgumentError: it cannot become a ``dtype`` without loss.

    """
    value, own = natural(literal)
    wanted = dtype.base
    if own is wanted:
        return value
    array = np.asarray(value)
    if array.size and not may_become(own, wanted):
        raise _loss(literal, own, wanted)
    with np.errstate(all="ignore"):
        converted = np.asarray(array.astype(wanted.numpy))
        if wanted.is_integer and not np.array_equal(converted.astype(array.dtype), array):
            raise _loss(literal, own, wanted)
    return freeze(as_value(converted))


def is_plain(literal: Any) -> bool:
    """Whether a literal is made of Python's own numbers only, whose type may yet change."""
    if isinstance(literal, (list, tuple)):
        return not has_leaf(literal, (np.generic, np.ndarray))
    return not isinstance(literal, (np.generic, np.ndarray)) and not hasattr(literal, "__array__")


def _as_array(literal: Any) -> Array:
    if isinstance(literal, TensorShape):
        return np.array(literal.as_tuple(), np.int32)
    if isinstance(literal, (str, bytes)):
        return _strings(literal)
    if literal is None:
        raise TypeError("None is not a value that a tensor can hold")
    try:
        given, kinds = readable(literal)
        has_text = any(issubclass(kind, (str, bytes)) for kind in kinds)
        array = (
            np.array(given, object) if has_text else np.array(given)
        )  # a copy: the caller's array is the caller's
    except OpError:
        raise
    except MemoryError as cause:
        raise ResourceExhaustedError(f"There is no memory for {shown(literal)}") from cause
    except UnevenError as cause:
        raise InvalidArgumentError(
            f"{shown(literal)} has rows of different lengths",
            next_step="a tensor is rectangular; pad the rows, or use several tensors",
        ) from cause
    except Exception as cause:  # whatever the literal's class raises
        raise InvalidArgumentError(
            f"A {class_name(literal)} cannot be read: {class_name(cause)}: {shown(cause)}",
            next_step="give an array, numbers, text or lists of them",
        ) from cause
    if array.dtype.kind in "OUS":
        return _strings(array)
    return array


def _strings(literal: Any) -> Array:
    """An object array of bytes."""
    array = np.empty((), object)
    array[()] = literal
    if isinstance(literal, np.ndarray):
        array = literal.astype(object)
    encoded = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        item: object = array[place]
        if not isinstance(item, (str, bytes)):
            raise TypeError(f"{shown(item)} is neither a number nor text")
        # By the methods of Python's own classes: subclasses may have others.
        encoded[place] = str.encode(item) if isinstance(item, str) else memoryview(item).tobytes()
    return encoded


def _type_of_plain(array: Array, dtype: DType) -> DType:
    if dtype is dtypes.float64 or not array.size:
        return dtypes.float32
    if dtype is dtypes.int64 and array.min() >= _INT32.min and array.max() <= _INT32.max:
        return dtypes.int32
    return dtype


def may_become(own: DType, wanted: DType) -> bool:
    """Whether numbers may rise from integer to real to complex; they never sink."""
    return own is wanted or 0 < _rank(own) <= _rank(wanted)


def _rank(dtype: DType) -> int:
    if dtype.is_integer:
        return 1
    return 2 if dtype.is_floating else 3 if dtype.is_complex else 0


def _loss(literal: Any, own: DType, wanted: DType) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{shown(literal)} is {own} and cannot become {wanted} without loss",
        next_step=f"write a literal of {wanted}, or cast the tensor beside it with ops.cast",
    )
