"""Many float32 numbers, rounded to float16.

In:   arrays of float32.
Out:  the nearest numbers of float16, bit by bit as numpy gives them.
Not:  widens nothing.

numpy converts one number after the other.  Here a number is added to one that is so large that
the sum has no room for what float16 has none for, so that the sum is rounded as is wished; the
rest is arithmetic with whole numbers, many at a time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.intra_op import parallel_for

#: Fewer numbers than these are left to numpy, and so are portions with a NaN.
_MANY: Final = 1 << 14
_PORTION: Final = 1 << 18
_HALF: Final = np.dtype(np.float16)
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


def to_half(x: Value) -> Value:
    """The number, or the numbers, as float16."""
    if x.size < _MANY or not x.flags.c_contiguous:
        return x.astype(_HALF)
    result, flat = np.empty(x.shape, _HALF), x.reshape(-1)
    whole = result.reshape(-1)

    def some(number: int) -> None:
        part = slice(number * _PORTION, (number + 1) * _PORTION)
        _round_into(flat[part], whole[part])

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
