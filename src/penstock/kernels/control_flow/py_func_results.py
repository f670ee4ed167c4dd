"""What a Python function returned, as values of the declared types.

In:   whatever a function returned, and the types that a node declares.
Out:  one value per output, in memory of its own; or an error that names what is wrong.
Not:  calls no function.

A PyFunc's function must return exactly the declared types.  That of an EagerPyFunc may return
what TensorFlow would make a tensor of: arrays are cast whatever they hold, while Python's own
numbers only become what can hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value, as_value, dtype_of
from penstock.errors import InternalError, InvalidArgumentError, UnknownError
from penstock.kernels.api.signatures import type_text

#: Kinds of numpy's types that no tensor has, by numpy's own names.
_UNSUPPORTED: Final = {"M": "NPY_DATETIME", "m": "NPY_TIMEDELTA", "V": "NPY_VOID"}
_INTEGERS: Final = frozenset("iu")
#: What Python's own numbers may become, by kinds of numpy's types.
_WIDENS: Final = {"b": "bf", "i": "iufc", "u": "iufc", "f": "fc", "c": "c"}


def exact_results(result: Any, types: Sequence[DType], token: str) -> tuple[Value, ...]:
    """The values that a PyFunc gives; raises OpError unless number and types are declared."""
    results = _listed(result)
    _check_count(results, types, token)
    values = tuple(map(_value_of, results))
    for slot, (value, dtype) in enumerate(zip(values, types, strict=True)):
        if dtype_of(value) is not dtype:
            raise InvalidArgumentError(
                f"{slot}-th value returned by {token} is {type_text(dtype_of(value))}, "
                f"but expects {type_text(dtype)}"
            )
    return values


def converted_results(result: Any, types: Sequence[DType], token: str) -> tuple[Value, ...]:
    """The values that an EagerPyFunc gives; raises OpError where one cannot be converted.

    Of a list that is too long, the first ones count.
    """
    results = _listed(result)
    if results and not types and not isinstance(result, (list, tuple)):
        raise UnknownError(
            "IndexError: list index out of range",
            next_step=f"{token} must return nothing, since its node has no outputs",
        )
    results = results[: len(types)]
    _check_count(results, types, token)
    return tuple(_converted(item, dtype) for item, dtype in zip(results, types, strict=True))


def _listed(result: Any) -> Sequence[Any]:
    if result is None:
        return ()
    return result if isinstance(result, (list, tuple)) else (result,)


def _check_count(results: Sequence[Any], types: Sequence[DType], token: str) -> None:
    if len(results) != len(types):
        raise InvalidArgumentError(
            f"{token} returns {len(results)} values, but expects to see {len(types)} values."
        )


def _value_of(result: Any) -> Value:
    """A value of the executor's own: the function may keep its array and change it."""
    array = np.array(result)
    if array.dtype.kind in "USO":
        return as_value(_texts(array if array.dtype.kind == "O" else array.astype(object)))
    if array.dtype.kind in _UNSUPPORTED and array.dtype.names is None:
        raise InternalError(f"Unsupported numpy type: {_UNSUPPORTED[array.dtype.kind]}")
    if array.dtype.char in "gG" and array.dtype.itemsize > 8 * (1 + (array.dtype.char == "G")):
        name = "NPY_LONGDOUBLE" if array.dtype.char == "g" else "NPY_CLONGDOUBLE"
        raise InternalError(f"Unsupported numpy type: {name}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return as_value(array)


def _converted(result: Any, dtype: DType) -> Value:
    array = np.array(result)
    kind = array.dtype.kind
    if dtype is dtypes.string or kind in "USO":
        if dtype is not dtypes.string or kind not in "USO":
            raise _no_conversion(result, dtype)
        try:
            return as_value(_texts(array.astype(object)))
        except InternalError as error:
            raise InvalidArgumentError(
                f"ValueError: Failed to convert a NumPy array to a Tensor ({error.reason})."
            ) from None
    if not isinstance(result, (np.ndarray, np.generic)) and not _widens(kind, dtype):
        raise _no_conversion(result, dtype)
    with np.errstate(all="ignore"):
        return as_value(array.astype(dtype.numpy))


def _widens(kind: str, dtype: DType) -> bool:
    """Whether Python's numbers of a kind may become a type, as TensorFlow has it."""
    if kind == "b" and dtype in (dtypes.int32, dtypes.int64):
        return True
    wanted = "f" if dtype.is_floating else dtype.numpy.kind
    return wanted in _WIDENS.get(kind, "")


def _no_conversion(result: Any, dtype: DType) -> InvalidArgumentError:
    kind = type(result).__name__
    return InvalidArgumentError(
        f"TypeError: Cannot convert {kind} to EagerTensor of dtype {type_text(dtype)}"
    )


def _texts(array: Any) -> Any:
    """An array of bytes; text is encoded."""
    out = np.empty(array.shape, object)
    for place, item in np.ndenumerate(array):
        if not isinstance(item, (bytes, str)):
            raise InternalError(f"Unsupported object type {type(item).__name__}")
        out[place] = item if isinstance(item, bytes) else item.encode()
    return out
