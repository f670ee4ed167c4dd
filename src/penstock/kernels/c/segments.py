"""Sums of rows that are gathered out of a table, by the library in C.

In:   a table of float32, the numbers of rows, and how many of them make each segment.
Out:  a row per segment; None where there is no library, or for a table of another type.
Not:  checks no number: one outside is a wrong place in memory.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Segments, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: With fewer elements no other thread is asked to help.
_SHARED: Final = 1 << 16


def sum_segments(
    table: Array, gathered: Array | None, sizes: Array, weights: Array | None = None
) -> Array | None:
    """The sums of gathered rows; None if that is for others to do.

    Args:
        table: [rows, ...] of float32.
        gathered: the numbers of rows, segment by segment, in int64; nobody else writes to them.
            None for all rows in their order.
        sizes: how many of them each segment has; where there are none, the sum is 0.
        weights: what each gathered row is multiplied by, in float32; these are then added up first
            to last.

    """
    with_c = library()
    if with_c is None or table.dtype is not FLOAT or not table.flags.c_contiguous:
        return None
    result = np.empty((len(sizes), *table.shape[1:]), FLOAT)
    if not result.size:
        return result
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    length = result.size // len(sizes)
    segments = Segments(
        rows=address(table), end=address(table) + table.nbytes, starts=address(starts),
        sums=address(result), count=len(sizes), length=length,
    )  # fmt: skip
    if gathered is not None:
        segments.gathered = address(gathered)
    if weights is not None:
        segments.weights = address(weights)
    helps = int(starts[-1]) * length >= _SHARED
    with_c.sum_segments(segments, contention.helpers(HELPERS) if helps else 0)
    return result
