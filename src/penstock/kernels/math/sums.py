"""Sums of few floats as products with ones, and reductions of many by the library in C.

In:   which axes of which shape are added up, or joined in another way.
Out:  a function of an array of that shape; None where there is no such way, or no gain.
Not:  registers no kernel; checks no axes.

A product of a matrix and a vector takes a third of the time of numpy's reduction.  It is as
exact as long as the numbers are few: it has many running sums, where numpy's has a tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import Array, Value, freeze
from penstock.kernels.c.moments import sums
from penstock.kernels.c.short_rows import LONG, reduced
from penstock.kernels.parallel.blas import ALONE_BY_DOT, ALONE_BY_VECTOR

Sum: TypeAlias = Callable[[Array], Value]
#: None for an array that does not lie as it should.
ReductionInC: TypeAlias = Callable[[Array], Value | None]

#: At most so many numbers are added up to one: for more, OpenBLAS may wake its threads.
_FEW: Final = ALONE_BY_DOT
#: In arrays of at most so many elements, for the same reason.
_SMALL: Final = min(1 << 16, ALONE_BY_VECTOR)
#: Arrays of so many elements are worth being added up in C.
_MANY: Final = 1 << 14


def sum_of_few(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: np.dtype[Any], *, keep: bool
) -> Sum | None:
    """The sum along some axes, which must be the first ones or the last ones.

    Args:
        shape: of the array.
        axes: what is summed up; numbers may count from the end.
        dtype: of the array and of the sum.
        keep: whether sizes of 1 stand in the result for the axes.

    """
    rank, count = len(shape), len(axes)
    if math.prod(shape) > _SMALL or not _are_sane(axes, rank):
        return None
    summed, rest = _summed_and_rest(shape, axes, keep=keep)
    if summed == list(range(count)):
        rows = math.prod(shape[:count])
        return _of_rows(_ones(rows, dtype), rest, rank) if 0 < rows <= _FEW else None
    if summed == list(range(rank - count, rank)):
        columns = math.prod(shape[rank - count :])
        return _of_columns(_ones(columns, dtype), rest, rank) if 0 < columns <= _FEW else None
    return None


def in_c(
    shape: tuple[int, ...], axes: tuple[int, ...], way: str, *, keep: bool
) -> ReductionInC | None:
    """One of ``WAYS`` of many numbers of float32 along the last axes, or all of them; as above.

    Sums are of rows of any length, the others of short ones: numpy has vectors for long ones.
    """
    rank, count = len(shape), len(axes)
    if math.prod(shape) < _MANY or not _are_sane(axes, rank):
        return None
    summed, rest = _summed_and_rest(shape, axes, keep=keep)
    length = math.prod(shape[rank - count :])
    is_long = length >= LONG
    if summed != list(range(rank - count, rank)) or (is_long and way != "sum"):
        return None

    def of_rows(x: Array) -> Value | None:
        found = sums(x, length) if is_long else reduced(x, length, way)
        return None if found is None else found.reshape(rest)[()]

    return of_rows


def _are_sane(axes: tuple[int, ...], rank: int) -> bool:
    return bool(axes) and all(-rank <= axis < rank for axis in axes)


def _summed_and_rest(
    shape: tuple[int, ...], axes: tuple[int, ...], *, keep: bool
) -> tuple[list[int], tuple[int, ...]]:
    """The axes that are added up in order, and the shape of what is left."""
    summed = sorted(axis % len(shape) for axis in axes)
    if keep:
        return summed, tuple(1 if axis in summed else size for axis, size in enumerate(shape))
    return summed, tuple(size for axis, size in enumerate(shape) if axis not in summed)


def _of_rows(ones: Array, rest: tuple[int, ...], rank: int) -> Sum:
    if not rest:
        return ones.dot if rank == 1 else lambda x: ones.dot(x.ravel())
    if rank == 2 and len(rest) == 1:
        return ones.dot
    return lambda x: ones.dot(x.reshape((len(ones), -1))).reshape(rest)


def _of_columns(ones: Array, rest: tuple[int, ...], rank: int) -> Sum:
    if rank > 2:
        return lambda x: x.reshape((-1, len(ones))).dot(ones).reshape(rest)
    if len(rest) == 1:
        return lambda x: x.dot(ones)
    return lambda x: x.dot(ones).reshape(rest)


@lru_cache(maxsize=64)
def _ones(count: int, dtype: np.dtype[Any]) -> Array:
    ones: Array = freeze(np.ones(count, dtype))
    return ones
