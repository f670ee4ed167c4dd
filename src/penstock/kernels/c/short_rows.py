"""What rows of few numbers come to, by the library in C.

In:   an array of float32, and how many neighbouring numbers are a row.
Out:  a number for each row, joined first to last; None where there is no library.
Not:  knows no axes.

numpy begins anew with each row, which takes ten times as long as a few numbers do.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Rows, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: In the order in which ``short_rows.c`` has them.
WAYS: Final = ("sum", "product", "greatest", "least")
#: Rows of so many numbers are long, as in ``lanes.h``.
LONG: Final = 32
#: With fewer elements no other thread is asked to help.
_SHARED: Final = 1 << 17


def reduced(x: Array, length: int, way: str) -> Array | None:
    """One of ``WAYS``, of so many neighbouring numbers each; None if that is for others to do.

    Of numbers one of which is NaN, the greatest and the least are NaN.
    """
    with_c = library()
    if with_c is None or x.dtype is not FLOAT or not x.size or not x.flags.c_contiguous:
        return None
    result = np.empty(x.size // length, FLOAT)
    rows = Rows(
        from_=address(x), to=address(result), count=result.size, length=length,
        way=WAYS.index(way),
    )  # fmt: skip
    with_c.reduce(rows, contention.helpers(HELPERS) if x.size >= _SHARED else 0)
    return result
