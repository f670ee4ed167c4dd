"""Numbers and the integers that stand for them, in a range whose zero is an integer.

In:   integers, or numbers in float32, and the range that the integers of a type are spread over.
Out:  numbers in float32, or integers; those that do not fit become the nearest.
Not:  knows no ops; checks no ranges.

The lowest number is first rounded to a multiple of the distance between two numbers, so that
zero has an integer of its own.  Ops differ in whether they compute that in float32 (``Single``)
or in float64 (``double_numbers`` and ``double_integers``), and results may differ by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.values.arrays import as_array


def integers_of(value: Value) -> Array:
    """Quantised integers as plain ones."""
    array = as_array(value)
    integers: Array = array.view(array.dtype[0])
    return integers


def scalars(**values: Value) -> list[np.float32]:
    """Bounds as numbers; raises ValueError that names the one that is not of rank 0."""
    for name, value in values.items():
        if np.ndim(value):
            raise ValueError(f"`{name}` must be rank 0 but is rank {np.ndim(value)}")
    return [np.float32(value) for value in values.values()]


def round_away(numbers: Any) -> Any:
    """To whole numbers, halves away from zero."""
    whole = np.trunc(numbers)
    return whole + np.copysign(np.abs(numbers - whole) >= 0.5, numbers).astype(whole.dtype)


def limits_of(kind: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    info = np.iinfo(kind)
    return int(info.min), int(info.max)


class Single(NamedTuple):
    """A range that is computed with in float32."""

    kind: np.dtype[Any]
    low: np.float32
    high: np.float32

    def numbers(self, integers: Array) -> Array:
        """What integers stand for."""
        first, last = limits_of(self.kind)
        step = np.float32(float(self.high - self.low) / (last - first))
        start = self.low
        if self.low != self.high:
            start = round_away(self.low / step) * step
        numbers: Array = (start - np.float32(first) * step) + integers.astype(np.float32) * step
        return numbers

    def integers(self, numbers: Array) -> Array:
        """The integers that stand for numbers, as whole numbers of a wide type."""
        first, last = limits_of(self.kind)
        scale = np.float32(0)
        if self.low != self.high:
            scale = np.float32((last - first) / float(self.high - self.low))
        start = round_away(self.low * scale) - np.float32(first)
        top = np.float32(last)
        if int(top) > last:
            top = np.nextafter(top, np.float32(0))
        whole = round_away(numbers * scale) - start
        # The order decides what becomes of no number: the least integer.
        integers: Array = np.fmin(np.fmax(whole, np.float32(first)), top).astype(self.kind)
        return integers


def double_numbers(integers: Array, low: float, high: float) -> Array:
    """What integers stand for; the only number of an empty range."""
    first, last = limits_of(integers.dtype)
    if low == high:
        return np.full(integers.shape, low, np.float32)
    count = last - first + 1.0
    step = float(np.float32(high) - np.float32(low)) * (count / (count - 1)) / count
    short = np.float32(step)
    start = round_away(np.float32(low) / short) * short
    return (float(start) + (integers.astype(np.float64) - first) * step).astype(np.float32)


def double_integers(numbers: Any, low: float, high: float, kind: np.dtype[Any]) -> Array:
    """The integers that stand for numbers, in int64; 0 in an empty range."""
    first, last = limits_of(kind)
    if low == high:
        return np.zeros(np.shape(numbers), np.int64)
    count = last - first + 1.0
    # In this order: whether a half is one decides about the integer of zero.
    scale = count / (float(np.float32(high) - np.float32(low)) * (count / (count - 1)))
    start = round_away(np.float64(low) * scale)
    whole = round_away(np.asarray(numbers, np.float64) * scale) - start + first
    # What does not even fit in 64 bits, and what is no number, is the least integer.
    return np.clip(np.where(np.abs(whole) < 2.0**63, whole, first), first, last).astype(np.int64)
