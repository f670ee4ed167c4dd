"""Conversion of elements from one type to another.

In:   an array or a scalar.
Out:  the same numbers as another type, rounded or cut to what it can hold; or one boolean.
Not:  no bits reinterpreted as another type, no text parsed.

Floats go to the nearest float and towards zero to integers; integers keep their lowest
bits; complex numbers lose their imaginary part; anything but zero is true.  A number that
an integer type cannot hold has no defined result, in TensorFlow as in C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value, as_value
from penstock.errors import UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.types import COMPLEX, FLOATS, INTEGERS, NUMBERS, QUANTIZED
from penstock.kernels.narrow.conversions import narrowing, widening

_PLAIN: Final = NUMBERS | QUANTIZED | {dtypes.bool_}
_FLOAT8: Final = frozenset({dtypes.as_dtype("float8_e5m2"), dtypes.as_dtype("float8_e4m3fn")})
_INT4: Final = frozenset({dtypes.as_dtype("int4"), dtypes.as_dtype("uint4")})
#: Sources, and the targets that each of them can become.
_PAIRS: Final = (
    (_PLAIN, _PLAIN),
    (FLOATS, _FLOAT8),
    (_FLOAT8, _PLAIN | _FLOAT8),
    (INTEGERS | QUANTIZED | _INT4, _INT4),
    (_INT4, INTEGERS | QUANTIZED),
)
#: Bits of the fraction by type, and the width of the unsigned integer that shows them.
_FRACTION_BITS: Final = {
    "float64": 52,
    "float32": 23,
    "float16": 10,
    "bfloat16": 7,
    "float8_e4m3fn": 3,
    "float8_e5m2": 2,
    "complex128": 52,
    "complex64": 23,
}
#: Where the attribute ``Truncate`` has an effect: targets by source.
_TRUNCATED: Final = {
    "float64": {"float32", "float16", "float8_e4m3fn", "float8_e5m2", "complex64"},
    "float32": {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"},
    "float16": {"float8_e4m3fn", "float8_e5m2"},
    "bfloat16": {"float8_e4m3fn", "float8_e5m2"},
    "float8_e4m3fn": {"float8_e5m2"},
    "complex128": {"complex64", "float32", "float16"},
    "complex64": {"float16"},
}
#: What there is a faster way for than numpy's, by source and target.
_FASTER: Final[dict[tuple[DType, DType], Kernel]] = {
    (dtypes.float32, dtypes.float16): narrowing(dtypes.float16),
    (dtypes.float16, dtypes.float32): widening(dtypes.float16),
    (dtypes.float32, dtypes.bfloat16): narrowing(dtypes.bfloat16),
}


def _identity(x: Value) -> Value:
    return x


@kernel("Cast")
def make_cast(attrs: Attrs) -> Kernel:
    """The same numbers as another type."""
    source, target = attrs.dtype("SrcT"), attrs.dtype("DstT")
    if source is target:
        return _identity
    if not any(source in sources and target in targets for sources, targets in _PAIRS):
        raise UnimplementedError(f"Cast {_word(source)} to {_word(target)} is not supported")
    if attrs.bool("Truncate") and target.name in _TRUNCATED.get(source.name, ()):
        return _truncating(source, target)
    return _cast(source, target)


def _word(dtype: DType) -> str:
    """The name that TensorFlow's messages have for a type."""
    return {"float16": "half", "float32": "float", "float64": "double"}.get(dtype.name, dtype.name)


def _cast(source: DType, target: DType) -> Kernel:
    """From any type to any, by way of one that numpy can convert where it must be."""
    if source.is_quantized:
        return _by_way_of(source.numpy[0], source, target)
    if target.is_quantized:
        return _to_quantized(source, target)
    if source in COMPLEX and target not in COMPLEX:
        return _of_real_part(source, target)
    if source in _FLOAT8 and target not in FLOATS | _FLOAT8:
        # Directly, what does not fit would be clipped to the limits of an integer.
        return _by_way_of(np.dtype(np.float32), source, target)
    if source in _INT4 and target in _INT4:
        return _by_way_of(np.dtype(np.int8), source, target)
    return _direct(source, target)


def _direct(source: DType, target: DType) -> Kernel:
    source_kind: Any = source.numpy.type
    target_kind: Any = target.numpy.type
    numpy = target.numpy
    of_many: Kernel = _FASTER.get((source, target), lambda x: x.astype(numpy))
    if source.numpy.isbuiltin != 1 or numpy.isbuiltin != 1:
        return of_many

    def cast(x: Value) -> Value:
        # Half the time of astype, for scalars.
        return target_kind(x) if type(x) is source_kind else of_many(x)

    return cast


def _by_way_of(between: np.dtype[Any], source: DType, target: DType) -> Kernel:
    middle = dtypes.of_numpy(between)
    if middle is target:
        finish: Callable[[Value], Value] = _identity
    else:
        finish = _cast(middle, target)
    if source.is_quantized:
        return lambda x: finish(as_value(x.view(between)))
    return lambda x: finish(x.astype(between))


def _to_quantized(source: DType, target: DType) -> Kernel:
    plain = dtypes.of_numpy(target.numpy[0])
    convert = _identity if source is plain else _cast(source, plain)
    numpy = target.numpy
    return lambda x: as_value(convert(x).view(numpy))


def _of_real_part(source: DType, target: DType) -> Kernel:
    real = dtypes.float32 if source is dtypes.complex64 else dtypes.float64
    convert = _identity if real is target else _cast(real, target)
    return lambda x: convert(x.real)


def _truncating(source: DType, target: DType) -> Kernel:
    """The cast after the bits of the fraction that the target has no room for are cleared."""
    convert = _cast(source, target)
    excess = _FRACTION_BITS[source.name] - _FRACTION_BITS[target.name]
    width = source.numpy.itemsize // (2 if source.is_complex else 1)
    bits = np.dtype(f"u{width}")
    mask = bits.type((1 << 8 * width) - (1 << excess))

    def truncating(x: Value) -> Value:
        array = np.atleast_1d(np.ascontiguousarray(x))
        cleared = (array.view(bits) & mask).view(array.dtype)
        return as_value(convert(cleared.reshape(np.shape(x))))

    return truncating


@kernel("ToBool", cost=Cost.CHEAP)
def make_to_bool(attrs: Attrs) -> Kernel:
    """Whether a scalar is not zero or empty; whether anything else has elements."""
    dtype = attrs.dtype("T")
    if dtype.is_object or dtype.is_quantized:
        return _to_bool
    kind: Any = dtype.numpy.type
    zero = kind(0)
    return lambda value: value != zero if type(value) is kind else _to_bool(value)


def _to_bool(value: Value) -> Value:
    if isinstance(value, np.ndarray) and value.ndim:
        return np.bool_(value.size > 0)
    if isinstance(value, (np.ndarray, np.void)):
        value = value.item()
    return np.bool_(bool(value[0] if isinstance(value, tuple) else value))
