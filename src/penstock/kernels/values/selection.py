"""What the best of many elements are at least, and elements by rank.

In:   arrays of real numbers, whose last axis is a row.
Out:  bounds that thin long rows out, and elements by rank, as fast whatever the elements are.
Not:  sorts nothing that is long, and tells no positions.

NumPy's ``partition`` takes twenty times as long where the element wanted is one of many equal
ones, which is common: scores that are zero, pixels that are white.  NaN counts as larger than all
numbers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array

_HALVES: Final = (dtypes.float16.numpy, dtypes.bfloat16.numpy)
#: Rows are cut into no more columns than this, unless more are asked for.
_COLUMNS: Final = 2048
#: So many elements of a row at least share a column, unless more columns are asked for.
_HEIGHT: Final = 8
#: Shorter rows are partitioned whatever is in them; of longer ones, as many are looked at first.
_SAMPLE: Final = 256
#: If so many of those are equal, many of all are.
_MANY: Final = 16


def sortable(x: Array) -> Array:
    """The same numbers in a type that NumPy sorts fast: halves are not, and bfloat16 wrongly.

    Its NaN is, to a sort, neither less nor greater than any number.
    """
    return x.astype(np.float32) if x.dtype in _HALVES else x


def floor_of_best(rows: Array, count: int) -> Array:
    """A number for each row that at least ``count`` of its elements are not less than.

    It is the ``count``-th largest of the maxima of columns, of which there are twice as many at
    least: so no more than half of a row is larger, and of most rows little more than ``count``.

    Args:
        rows: [..., size].
        count: at least 1, and at most half of ``size``.

    Returns:
        [..., 1], of the type of ``rows``.

    """
    size = rows.shape[-1]
    columns = max(2 * count, min(size // _HEIGHT, _COLUMNS))
    height = size // columns
    cut = rows[..., : height * columns].reshape((*rows.shape[:-1], height, columns))
    maxima: Array = cut.max(axis=-2)
    maxima.sort(axis=-1)
    floors: Array = maxima[..., columns - count, np.newaxis]
    return floors


def nth_smallest(rows: Array, place: int) -> Array:
    """The element of each row that would stand at a place, were the row sorted.

    Args:
        rows: [..., size].
        place: at least 0, and less than ``size``.

    Returns:
        [...], of the type of ``rows``.

    """
    ordered = np.sort(rows, -1) if _has_many_equal(rows) else np.partition(rows, place, -1)
    found: Array = ordered[..., place]
    return found


def _has_many_equal(rows: Array) -> bool:
    """Whether many elements of long rows are equal, by a few of them."""
    size = rows.shape[-1]
    if size <= _SAMPLE or rows.itemsize == 1:
        return False
    sample = np.sort(rows[..., :: size // _SAMPLE], -1)
    return bool((sample[..., _MANY - 1 :] == sample[..., : 1 - _MANY]).any())
