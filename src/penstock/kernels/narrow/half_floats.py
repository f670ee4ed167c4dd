"""Many numbers, from float32 to float16 and back.

In:   arrays of float32; or of float16.
Out:  the nearest numbers of float16; or the same numbers as float32: bit by bit as numpy gives
      them.
Not:  no other types.

numpy converts one number after the other.  Here a number is added to one that is so large that
the sum has no room for what float16 has none for, so that the sum is rounded as is wished; the
rest is arithmetic with whole numbers, many at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.parallel.intra_op import parallel_for

#: Fewer numbers than these are left to numpy, and so are portions with a NaN.
_MANY: Final = 1 << 14
_PORTION: Final = 1 << 18
_HALF: Final = np.dtype(np.float16)
_SINGLE: Final = np.dtype(np.float32)
_WHOLE: Final = np.dtype(np.uint32)

#: The smallest normal number of float16, the first that is infinite when rounded, and infinity
#: itself, were it a number.
_SMALLEST: Final = np.float32(2**-14)
_LARGEST: Final = np.float32(65520)
_BEYOND: Final = np.float32(65536)
#: float32's exponent; fewer bits of a fraction; exponents of both as they are written, and one
#: bit, since a fraction's leading one is not.
_EXPONENT: Final = np.uint32(0x7F80_0000)
_FEWER: Final = np.uint32(23 - 10)
_RAISED: Final = np.float32(2**13)
_OFFSET: Final = np.uint16((127 + 13 - 15 + 1) << 10 & 0xFFFF)
_SIGN_PLACE: Final = np.uint16(15)
#: float16's bits but the sign, and what its exponent stands for if read as float32's.
_SIZE: Final = np.uint16(0x7FFF)
_RAISED_EXPONENT: Final = np.float32(2.0 ** (127 - 15))
_HALF_BITS: Final = np.uint32(16)


def to_half(x: Value) -> Value:
    """The number, or the numbers, as float16."""
    return _converted(x, _SINGLE, _HALF, _round_into)


def from_half(x: Value) -> Value:
    """The number, or the numbers, as float32."""
    return _converted(x, _HALF, _SINGLE, _widen_into)


def _converted(
    x: Value,
    source: np.dtype[Any],
    dtype: np.dtype[Any],
    convert_into: Callable[[Array, Array], None],
) -> Value:
    if x.size < _MANY or x.dtype != source or not x.flags.c_contiguous:
        return x.astype(dtype)
    result, flat = np.empty(x.shape, dtype), x.reshape(-1)
    whole = result.reshape(-1)

    def some(number: int) -> None:
        part = slice(number * _PORTION, (number + 1) * _PORTION)
        convert_into(flat[part], whole[part])

    parallel_for(-(-x.size // _PORTION), some)
    return result


def _round_into(x: Array, result: Array) -> None:
    sizes = np.abs(x)
    largest = sizes.max()
    if not largest < _BEYOND:
        if np.isnan(largest):
            result[...] = x
            return
        np.clip(sizes, 0, _BEYOND, out=sizes)
    raised: Any = np.clip(sizes, _SMALLEST, _LARGEST)
    exponents, bits = raised.view(_WHOLE), sizes.view(_WHOLE)
    exponents &= _EXPONENT
    raised *= _RAISED
    sizes += raised  # rounds
    bits -= exponents
    exponents >>= _FEWER
    bits += exponents
    halves = bits.astype(np.uint16)
    halves -= _OFFSET
    signs = np.signbit(x).astype(np.uint16)
    signs <<= _SIGN_PLACE
    np.bitwise_or(halves, signs, out=result.view(np.uint16))


def _widen_into(x: Array, result: Array) -> None:
    halves = x.view(np.uint16)
    bits = result.view(_WHOLE)
    np.bitwise_and(halves, _SIZE, out=bits)
    bits <<= _FEWER
    result *= _RAISED_EXPONENT
    if not result.max() < _BEYOND:  # infinite, or no number
        result[...] = x
        return
    signs = (halves & ~_SIZE).astype(_WHOLE)
    signs <<= _HALF_BITS
    bits |= signs
