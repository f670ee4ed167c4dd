"""Ops that call Python functions which this process has registered.

In:   arrays, and the token of a function.
Out:  what the function returns, with exactly the declared types.
Not:  finds no code in a graph; knows no sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock import errors
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value, as_value, dtype_of
from penstock.errors import InvalidArgumentError, OpError
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.signatures import type_text

#: What exceptions of a function become; all others are UNKNOWN.
_CODES: Final[tuple[tuple[type[Exception], type[OpError]], ...]] = (
    (StopIteration, errors.OutOfRangeError),
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
    (ValueError, InvalidArgumentError),
    (TypeError, InvalidArgumentError),
)
_Convert: TypeAlias = Callable[[Any, DType, int], Value]


@kernel("PyFunc", "PyFuncStateless")
def make_py_func(attrs: Attrs) -> Kernel:
    """What a function of arrays returns; its types must be the declared ones."""
    token = attrs.str("token")

    def exactly(result: Any, dtype: DType, slot: int) -> Value:
        value = _array(result, dtypes.string if dtype is dtypes.string else None)
        if dtype_of(value) is not dtype:
            raise InvalidArgumentError(
                f"{slot}-th value returned by {token} is {type_text(dtype_of(value))}, "
                f"but expects {type_text(dtype)}"
            )
        return value

    return _caller(attrs, token, exactly)


@kernel("EagerPyFunc")
def make_eager_py_func(attrs: Attrs) -> Kernel:
    """What a function returns, converted to the declared types; it gets arrays, not tensors."""
    return _caller(attrs, attrs.str("token"), lambda result, dtype, _slot: _array(result, dtype))


def _caller(attrs: Attrs, token: str, convert: _Convert) -> Kernel:
    types: tuple[DType, ...] = attrs.list("Tout")
    find = attrs.host.find_function

    def call(*inputs: Value) -> tuple[Value, ...]:
        results = _results(_call(find(token), inputs))
        if len(results) != len(types):
            raise InvalidArgumentError(
                f"{token} returns {len(results)} values, but expects to see {len(types)} values."
            )
        triples = zip(results, types, range(len(types)), strict=True)
        return tuple(convert(result, dtype, slot) for result, dtype, slot in triples)

    return call


def _call(function: Callable[..., Any], inputs: Sequence[Value]) -> Any:
    try:
        return function(*map(_shown, inputs))
    except Exception as cause:
        code = next((code for kind, code in _CODES if isinstance(cause, kind)), errors.UnknownError)
        raise code(f"{type(cause).__name__}: {cause}") from cause


def _shown(value: Value) -> Value:
    """A view into which the function cannot write: the array may have other readers."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _results(result: Any) -> Sequence[Any]:
    if result is None:
        return ()
    return result if isinstance(result, (list, tuple)) else (result,)


def _array(result: Any, dtype: DType | None) -> Value:
    """A value of the executor's own: the function may keep its array and change it."""
    if dtype is dtypes.string:
        return as_value(_texts(np.array(result, object)))
    array = np.array(result) if dtype is None else np.array(result, dtype.numpy)
    if array.dtype.kind in "US":
        return as_value(_texts(array.astype(object)))
    return as_value(array)


def _texts(array: Any) -> Any:
    """An array of bytes; text is encoded."""
    out = np.empty(array.shape, object)
    for place, item in np.ndenumerate(array):
        if not isinstance(item, (bytes, str)):
            raise InvalidArgumentError(f"{item!r} is neither bytes nor text")
        out[place] = item if isinstance(item, bytes) else item.encode()
    return out
