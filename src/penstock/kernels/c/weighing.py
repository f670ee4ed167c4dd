"""Places along an axis that are sums of weighed ones, by the library in C.

In:   an array of float32; for each new place, the old ones that it takes from, and how much.
Out:  an array with the new places, rounded where numpy would round; None where there is no library.
Not:  checks no place.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Weighing, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: With fewer products no other thread is asked to help.
_SHARED: Final = 1 << 16


def weighed(x: Array, axis: int, sources: Array, weights: Array) -> Array | None:
    """Sums of weighed places, first to last; None if that is for others to do.

    Args:
        x: of float32.
        axis: counted from the first.
        sources: [places, taps], all of them places along the axis.
        weights: the same, of float32.

    """
    with_c, (places, taps) = library(), sources.shape
    if with_c is None or x.dtype is not FLOAT or weights.dtype != FLOAT or not taps:
        return None
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    result = np.empty((*before, places, *after), FLOAT)
    if not result.size:
        return result
    x, sources = np.ascontiguousarray(x), np.ascontiguousarray(sources, np.int64)
    weights = np.ascontiguousarray(weights)
    work = Weighing(
        from_=address(x), to=address(result), sources=address(sources), weights=address(weights),
        outer=math.prod(before), before=x.shape[axis], after=places, taps=taps,
        length=math.prod(after),
    )  # fmt: skip
    with_c.weigh(work, contention.helpers(HELPERS) if result.size * taps >= _SHARED else 0)
    return result
