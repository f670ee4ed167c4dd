"""Numbers made of random bits: uniform, normal, cut normal, whole.

In:   a stream of bits, and how many numbers.
Out:  a vector of them; the same bits give the same numbers as in TensorFlow.
Not:  distributions whose samples reject candidates one by one (random_samplers), except
      the cut normal one; no state.

One counter gives four numbers, of 64-bit types two.  Fractions are the low bits of a word
taken as the mantissa of a number between 1 and 2, less 1; float64 takes its upper bits from
the first of two words.  Normal numbers come in pairs (Box and Muller, 1958).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array
from penstock.kernels.c.philox import Way
from penstock.kernels.random.philox import Philox

#: From a stream and a count to so many numbers.
Draw: TypeAlias = Callable[[Philox, int], Array]
#: From words (uint32, a multiple of four) to numbers.
_Convert: TypeAlias = Callable[[Array], Array]

#: A cut normal number is nearer to 0 than this.
_CUT: Final = 2.0
#: Cut normal numbers come in groups, as many as a counter gives; for each number of a
#: group so many counters are kept free, so that there is always one more candidate.
_RESERVED: Final = 64
#: So many counters lie between those with which groups of four float32 begin.
FOR_EACH_CUT: Final = 4 * _RESERVED
#: The smallest fraction whose logarithm is taken.
_EPSILON: Final = 1e-7


def _mantissa(bits: Array, fraction: int, one: int, word: Any, number: Any) -> Array:
    """Fractions: the low bits as the mantissa of numbers from 1 on, less 1."""
    words = bits & bits.dtype.type(fraction) | bits.dtype.type(one)
    numbers: Array = words.astype(word, copy=False).view(number)
    numbers -= numbers.dtype.type(1)
    return numbers


def uniform_float32(bits: Array) -> Array:
    """Fractions of 23 bits."""
    return _mantissa(bits, 0x7FFFFF, 0x3F800000, np.uint32, np.float32)


def uniform_float64(bits: Array) -> Array:
    """Fractions of 52 bits, of two words each."""
    words = bits[0::2].astype(np.uint64) << np.uint64(32) | bits[1::2]
    return _mantissa(words, 0xFFFFFFFFFFFFF, 0x3FF0000000000000, np.uint64, np.float64)


def _uniform_float16(bits: Array) -> Array:
    return _mantissa(bits, 0x3FF, 0x3C00, np.uint16, np.float16)


def _uniform_bfloat16(bits: Array) -> Array:
    return _mantissa(bits, 0x7F, 0x3F80, np.uint16, ml_dtypes.bfloat16)


def normal_float32(bits: Array) -> Array:
    """Normal numbers; each function is exact to the last digit and rounded once."""
    fractions = uniform_float32(bits)
    angles = (2 * math.pi * fractions[1::2].astype(np.float64)).astype(np.float32)
    logs = np.log(np.maximum(fractions[0::2], np.float32(_EPSILON)).astype(np.float64))
    radii = np.sqrt(np.float32(-2) * logs.astype(np.float32))
    wide = angles.astype(np.float64)
    return _pairs(np.sin(wide).astype(np.float32), np.cos(wide).astype(np.float32), radii)


def normal_float64(bits: Array) -> Array:
    """Normal numbers."""
    fractions = uniform_float64(bits)
    angles = 2 * math.pi * fractions[1::2]
    radii = np.sqrt(-2 * np.log(np.maximum(fractions[0::2], _EPSILON)))
    return _pairs(np.sin(angles), np.cos(angles), radii)


def _pairs(sines: Array, cosines: Array, radii: Array) -> Array:
    numbers = np.empty((len(radii), 2), radii.dtype)
    np.multiply(sines, radii, out=numbers[:, 0])
    np.multiply(cosines, radii, out=numbers[:, 1])
    return numbers.reshape(-1)


_UNIFORM: Final[dict[DType, _Convert]] = {
    dtypes.float16: _uniform_float16,
    dtypes.bfloat16: _uniform_bfloat16,
    dtypes.float32: uniform_float32,
    dtypes.float64: uniform_float64,
}


def _per_counter(dtype: np.dtype[Any]) -> int:
    """How many numbers the words of one counter give."""
    return 2 if dtype.itemsize == 8 else 4


class Drawing:
    """Numbers that follow from the words of a counter each, whatever the other counters give."""

    def __init__(self, convert: _Convert, dtype: DType, way: Way | None = None) -> None:
        """Draw numbers of a type; a ``way`` makes the same ones of float32 in C."""
        self._convert = convert
        self._dtype = dtype.numpy
        self._per_counter = _per_counter(dtype.numpy)
        self._way = way

    def __call__(self, stream: Philox, count: int) -> Array:
        """The next ``count`` numbers of a stream."""
        counters = -(-count // self._per_counter)
        numbers = None if self._way is None else stream.numbers(self._way, counters)
        if numbers is None:
            numbers = self._convert(stream.blocks(counters).reshape(-1))
        return numbers[:count].astype(self._dtype, copy=False)


def uniform(dtype: DType) -> Drawing:
    """Fractions from 0 on, below 1."""
    way = Way.FRACTIONS if dtype is dtypes.float32 else None
    return Drawing(_UNIFORM[dtype], dtype, way)


def normal(dtype: DType) -> Drawing:
    """Normal numbers around 0 with deviation 1."""
    way = None if dtype is dtypes.float64 else Way.NORMAL
    return Drawing(normal_float64 if way is None else normal_float32, dtype, way)


def whole(dtype: DType) -> Draw:
    """Integers of all values that the type has."""
    return Drawing(lambda bits: bits.view(dtype.numpy), dtype)


def whole_between(dtype: DType, low: int, high: int) -> Draw:
    """Integers from ``low`` on, below ``high``."""
    unsigned = np.dtype(f"u{dtype.numpy.itemsize}")
    start, span = unsigned.type(low % (1 << 8 * unsigned.itemsize)), unsigned.type(high - low)
    return Drawing(lambda bits: (bits.view(unsigned) % span + start).view(dtype.numpy), dtype)


def truncated_normal(dtype: DType) -> Draw:
    """Normal numbers that are nearer to 0 than 2."""
    is_wide = dtype is dtypes.float64
    convert = normal_float64 if is_wide else normal_float32
    size = _per_counter(dtype.numpy)

    def draw(stream: Philox, count: int) -> Array:
        groups, step = -(-count // size), _RESERVED * size
        numbers = None if is_wide else stream.numbers(Way.CUT_NORMAL, groups, step)
        if numbers is None:
            numbers = _first_near_ones(stream, convert, groups, size).reshape(-1)
        return numbers[:count].astype(dtype.numpy, copy=False)

    return draw


def _first_near_ones(stream: Philox, convert: _Convert, groups: int, size: int) -> Array:
    """Of each group's own normal numbers the first ``size`` that are near enough to 0."""
    offsets = np.arange(groups, dtype=np.uint64) * np.uint64(_RESERVED * size)
    found: Array = np.empty((groups, size), convert(np.zeros(4, np.uint32)).dtype)
    have = np.zeros(groups, np.intp)
    active = np.arange(groups)
    while active.size:
        words = stream.blocks_at(offsets[active]).reshape(-1)
        candidates = convert(words).reshape((len(active), size))
        is_near = np.abs(candidates) < _CUT
        place = have[active][:, None] + np.cumsum(is_near, axis=1) - 1
        rows, columns = np.nonzero(is_near & (place < size))
        found[active[rows], place[rows, columns]] = candidates[rows, columns]
        have[active] += np.count_nonzero(is_near, axis=1)
        offsets[active] += np.uint64(1)
        active = active[have[active] < size]
    return found
