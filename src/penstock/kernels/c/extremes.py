"""Where the greatest or the least numbers along an axis are, by the library in C.

In:   an array of float32, and an axis.
Out:  positions, of equal numbers the first, and that of the first number where all are NaN; None
      where there is no library, or numpy is as fast.
Not:  complains about no axis.

numpy has vectors for long rows whose numbers follow each other, and for nothing else.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Extremes, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: Of fewer elements numpy has found them before the library is called; and from how many on other
#: threads are asked to help.
_MANY: Final = 1 << 13
_SHARED: Final = 1 << 16
#: From this length on numpy has vectors; and positions are counted with 32 bits.
_LONG: Final = 32
_LONGEST: Final = 1 << 31


def extremes(x: Value, axis: Value, *, least: bool = False) -> Array | None:
    """Positions along an axis, int64; of the shape without it, which has a rank."""
    if x.size < _MANY or x.dtype is not FLOAT or x.ndim < 2 or np.ndim(axis):
        return None
    with_c, rank = library(), x.ndim
    if with_c is None or not -rank <= axis < rank or not x.flags.c_contiguous:
        return None
    place = int(axis) % rank
    before, length, after = x.shape[:place], x.shape[place], x.shape[place + 1 :]
    outer, inner = math.prod(before), math.prod(after)
    if length >= (_LONG if inner == 1 else _LONGEST):
        return None
    result: Array = np.empty((*before, *after), np.int64)
    work = Extremes(
        from_=address(x), to=address(result), outer=outer, length=length, inner=inner,
        is_least=least,
    )  # fmt: skip
    with_c.find_extremes(work, contention.helpers(HELPERS) if x.size >= _SHARED else 0)
    return result
