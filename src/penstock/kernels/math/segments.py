"""Rows of an array folded together, segment by segment.

In:   rows, the number of the segment that each belongs to, and how two rows are combined.
Out:  one row per segment.
Not:  registers no kernel; checks no shape.

Rows are combined in their order, so sums are rounded as a loop would round them; but sums in C
have eight rows added up at a time.
"""

from __future__ import annotations

import math
from typing import Final

import ml_dtypes
import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError
from penstock.kernels.array.scatter_ops import accumulating
from penstock.kernels.c.segments import sum_segments
from penstock.kernels.values.arrays import full

#: A sorted segment of this many elements on average is worth a call of numpy of its own.
_LONG_SEGMENT: Final = 500
#: So many rows take longer to be counted than the border of a segment to be found.
_LONG_ENOUGH: Final = 16
#: Of fewer elements numpy has the sums as soon.
_MANY: Final = 1 << 12
#: Types whose sums numpy's own reductions keep in float32.
_HALVES: Final = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def fold(ufunc: np.ufunc, rows: Array, ids: Array, count: int, neutral: float) -> Array:
    """One row per segment, each begun with ``neutral``."""
    folded = full((count, *rows.shape[1:]), neutral, rows.dtype)
    if rows.size:
        width = math.prod(rows.shape[1:])
        flat = folded.reshape((count, width))
        accumulating(ufunc)(flat, ids.astype(np.intp), rows.reshape((len(rows), width)))
    return folded


def fold_sorted(ufunc: np.ufunc, rows: Array, ids: Array, count: int, neutral: float) -> Array:
    """Like ``fold``, for ids that never decrease; but a single row is taken as it is."""
    starts = starts_of(ids)
    is_long = rows.size >= _LONG_SEGMENT * len(starts) and rows.dtype not in _HALVES
    if rows.size == 0 or not is_long:
        folded = fold(ufunc, rows, ids, count, neutral)
        single = starts[np.diff(starts, append=len(ids)) == 1]
        folded[ids[single]] = rows[single]
        return folded
    folded = full((count, *rows.shape[1:]), neutral, rows.dtype)
    ends = [*starts[1:].tolist(), len(rows)]
    for segment, start, end in zip(ids[starts].tolist(), starts.tolist(), ends, strict=True):
        folded[segment] = ufunc.reduce(rows[start:end], 0, rows.dtype)
    return folded


def sorted_sums(rows: Array, ids: Array, count: int) -> Array | None:
    """Sums of float32 for ids that never decrease, in C; None if that is for numpy."""
    if rows.dtype != np.float32 or rows.size < _MANY:
        return None
    return sum_segments(rows, None, sizes_of_sorted(ids, count))


def sizes_of_sorted(ids: Array, count: int) -> Array:
    """How many rows each segment has, for ids that never decrease."""
    if count * _LONG_ENOUGH > len(ids):
        return np.bincount(ids, minlength=count)
    borders = np.searchsorted(ids, np.arange(count + 1, dtype=ids.dtype))
    return np.diff(borders)


def fold_extrema(ufunc: np.ufunc, rows: Array, ids: Array, count: int, neutral: float) -> Array:
    """Like ``fold``, for extrema of floats: a NaN makes everything before it forgotten.

    It is the extremum itself if nothing comes after it.
    """
    is_nan = np.isnan(rows)
    if not is_nan.any():
        return fold(ufunc, rows, ids, count, neutral)
    numbers = np.arange(len(rows)).reshape((-1,) + (1,) * (rows.ndim - 1))
    numbers = np.broadcast_to(numbers, rows.shape)
    last_nan = fold(np.maximum, np.where(is_nan, numbers, -1), ids, count, -1)
    last = fold(np.maximum, numbers, ids, count, -2)
    kept = np.where(numbers > last_nan[ids], rows, rows.dtype.type(neutral))
    folded = fold(ufunc, kept, ids, count, neutral)
    folded[last == last_nan] = np.nan
    return folded


def starts_of(ids: Array) -> Array:
    """Where each run of equal ids starts."""
    return np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))[: len(ids)]


def check_sorted(ids: Array, count: int | None = None) -> int:
    """The number of segments; raises unless ids rise from 0 on and stay below ``count``."""
    if len(ids) == 0:
        return count or 0
    first, last = int(ids[0]), int(ids[-1])
    if last < 0 and count is None:
        raise InvalidArgumentError("segment ids must be >= 0")
    if count is not None and last >= count:
        raise InvalidArgumentError("segment ids must be < num_segments")
    if (ids[1:] < ids[:-1]).any():
        raise InvalidArgumentError("segment ids are not increasing")
    count = last + 1 if count is None else count
    if first < 0:
        raise InvalidArgumentError(
            f"Segment id {first} out of range [0, {count}), possibly because 'segment_ids' "
            "input is not sorted."
        )
    return count


def sizes_of(ids: Array, count: int, rank: int) -> Array:
    """How many rows each segment has, at least 1, shaped to divide rows of this rank."""
    return as_divisors(np.bincount(ids, minlength=count), rank)


def as_divisors(sizes: Array, rank: int) -> Array:
    """These sizes, at least 1, shaped to divide rows of this rank."""
    divisors: Array = np.maximum(sizes, 1).reshape(sizes.shape + (1,) * (rank - 1))
    return divisors
