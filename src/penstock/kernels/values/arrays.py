"""Values as arrays, and new arrays that fit into memory.

In:   values of any rank; sizes that may come from the graph's data and be absurd.
Out:  arrays; or ResourceExhaustedError and InvalidArgumentError before harm is done.
Not:  registers no kernel; computes nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.memory import fits_memory
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError, ResourceExhaustedError
from penstock.exceptions import no_memory_for
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel

_MAX_ELEMENTS: Final = 2**63 - 1
#: Of arrays of at most so many bytes, parts that are not contiguous are copied: that is
#: cheap, and whoever computes with the part then needs half the time.
SMALL: Final = 1 << 15
#: Of more bytes than these, zeros come from the system, or byte by byte, in a third of the time.
_LARGE: Final = 1 << 16


def as_array(value: Value) -> Array:
    """A value as an array; an object at rank 0 goes into an array of its own."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    boxed = np.empty((), object)
    boxed[()] = value
    return boxed


def boxing(attrs: Attrs, type_attr: str, compute: Kernel) -> Kernel:
    """``compute``, but bare objects in its first argument become arrays.

    numpy's scalars have the methods of arrays, so only strings, resources and variants
    need it; for all other types this is ``compute`` itself.
    """
    if not attrs.dtype(type_attr).is_object:
        return compute

    def boxed(value: Value, *rest: Value) -> Any:
        return compute(as_array(value), *rest)

    return boxed


def shape_text(shape: Sequence[int]) -> str:
    """A shape as error messages show it: ``[2,3]``."""
    return f"[{','.join(map(str, shape))}]"


def sizes_in(dims: Value) -> list[int]:
    """Sizes given as a vector; a single one may be a scalar, as old graphs have it."""
    sizes: Any = dims.tolist()
    if not isinstance(sizes, list):
        return [sizes]
    if sizes and isinstance(sizes[0], list):
        raise InvalidArgumentError(f"dims must be a vector, got shape {shape_text(dims.shape)}")
    return sizes


def check_new(shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Raise unless an array of this shape can be made here."""
    if shape and min(shape) < 0:
        raise InvalidArgumentError(f"Dimension {min(shape)} must be >= 0")
    count = math.prod(shape)
    if fits_memory(count * dtype.itemsize):
        if not count and math.prod(filter(None, shape)) * dtype.itemsize > _MAX_ELEMENTS:
            raise InvalidArgumentError(
                f"Shape {shape_text(shape)} has no elements, but sizes that numpy cannot hold"
            )
        return
    if count > _MAX_ELEMENTS:
        raise InvalidArgumentError(
            f"Shape {shape_text(shape)} would have more than 2**63 - 1 elements"
        )
    raise no_memory_for(shape, dtype)


def check_room(count: int, size: int, what: str) -> None:
    """Raise unless so many things of so many bytes each fit into memory."""
    if not fits_memory(count * size):
        raise ResourceExhaustedError(f"OOM when allocating {count} {what}")


def full(shape: Sequence[int], value: Value, dtype: np.dtype[Any]) -> Array:
    """A new array with ``value`` everywhere."""
    check_new(shape, dtype)
    filled = np.empty(shape, dtype)
    is_large = filled.nbytes > _LARGE and not dtype.hasobject
    if is_large and not any(np.asarray(value, dtype).tobytes()):
        return np.zeros(shape, dtype)
    filled.fill(value)
    return filled


def zeros(shape: Sequence[int], dtype: DType) -> Array:
    """A new array of zeros, or of empty strings."""
    if dtype.name == "string":
        return full(shape, b"", dtype.numpy)
    check_new(shape, dtype.numpy)
    return np.zeros(shape, dtype.numpy)


def number_in(value: Value, complaint: str = "a single value is wanted") -> int:
    """The integer in a scalar, or in an array that has just one element."""
    try:
        return operator.index(value)
    except TypeError:  # an array of rank 1 or more
        if value.size != 1:
            raise InvalidArgumentError(
                f"{complaint}, but got shape {shape_text(value.shape)}"
            ) from None
        return operator.index(value.reshape(())[()])
