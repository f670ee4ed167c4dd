"""Large arrays put together on several cores.

In:   arrays of one type, and the axis along which they follow each other.
Out:  one array with copies of them all.
Not:  finds no fault: what does not fit is left to numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.parallel.intra_op import HELPERS, parallel_for
from penstock.kernels.parallel.strided_copies import put

#: Bytes from which on a copy is worth several threads: about a millisecond's.
LARGE: Final = 8 << 20
#: Portions for each thread, so that one that is late does not keep all waiting.
_PORTIONS: Final = 2
#: Bytes of a portion, at most: lines of memory that two arrays share stay in a cache from the one
#: to the other.
_NEAR: Final = 2 << 20
#: Without numpy's search for classes that override it, which takes a quarter of the time.
join: Final[Callable[..., Array]] = getattr(np.concatenate, "_implementation", np.concatenate)


def joined(values: Sequence[Value], axis: Value) -> Array:
    """Arrays of one type one after the other along an axis, on several threads if they are large.

    Raises:
        TypeError, ValueError: they do not fit, or there is no such axis.

    """
    made = joined_by_rows(values, axis)
    return made if made is not None else join(values, axis)


def joined_by_rows(
    values: Sequence[Value], axis: Value, large: int = LARGE, near: int = _NEAR
) -> Array | None:
    """The arrays one after the other along an axis, some rows of each at a time.

    A row is what follows in memory from one place of the axes before.  None if the result is not
    large, or has few rows, or the arrays do not fit.

    Args:
        values: arrays.
        axis: a number, perhaps an array.
        large: bytes from which on a result is large.
        near: bytes of rows that are put together at a time, but for one row at least.

    """
    first = values[0]
    if sum(value.nbytes for value in values) < large or not -first.ndim <= axis < first.ndim:
        return None
    before, after = first.shape[:axis], first.shape[axis:][1:]
    if any(not _fits(value, first, before, after) for value in values):
        return None
    rows, portions = prod(before), _PORTIONS * (HELPERS + 1)
    if rows < portions:
        return None
    flat = [value.reshape(rows, -1) for value in values]
    ends = [0, *accumulate(part.shape[1] for part in flat)]
    result = np.empty((rows, ends[-1]), first.dtype)
    step = max(min(-(-rows // portions), near * rows // max(result.nbytes, 1)), 1)

    def copy(number: int) -> None:
        some = slice(number * step, (number + 1) * step)
        for part, (begin, end) in zip(flat, pairwise(ends), strict=True):
            put(result[some, begin:end], part[some])

    parallel_for(-(-rows // step), copy)
    return result.reshape(*before, -1, *after)


def _fits(value: Value, first: Value, before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether an array can be cut into rows of its own that belong to those of the first."""
    place = len(before)
    return (
        value.ndim == first.ndim
        and value.dtype == first.dtype
        and not value.dtype.hasobject
        and value.shape[:place] == before
        and value.shape[place + 1 :] == after
        and bool(value.flags.c_contiguous)
    )
