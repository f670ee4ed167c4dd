"""The sum of rows, and their mean and variance, by the library in C.

In:   an array of float32.
Out:  sums along the last axis, or both of the others; None where there is no library, or nothing to
      compute.
Not:  no other axis, no running statistics.
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

#: With fewer elements no other thread is asked to help.
_SHARED: Final = 1 << 17


def moments(x: Array) -> tuple[Array, Array] | None:
    """Means and mean squares of distances from them, [..., 1]; None if that is for others to do."""
    with_c = library()
    if with_c is None or x.dtype is not FLOAT or not x.ndim or not x.size:
        return None
    x = np.ascontiguousarray(x)
    mean, variance = np.empty((2, *x.shape[:-1], 1), FLOAT)
    rows = Rows(
        from_=address(x), to=address(mean), also_to=address(variance),
        count=mean.size, length=x.shape[-1],
    )  # fmt: skip
    with_c.moments(rows, contention.helpers(HELPERS) if x.size >= _SHARED else 0)
    return mean, variance


def sums(x: Array, length: int) -> Array | None:
    """The sums of so many neighbouring numbers each; None if that is for others to do."""
    with_c = library()
    if with_c is None or x.dtype is not FLOAT or not x.size or not x.flags.c_contiguous:
        return None
    result = np.empty(x.size // length, FLOAT)
    rows = Rows(from_=address(x), to=address(result), count=result.size, length=length)
    with_c.sums(rows, contention.helpers(HELPERS) if x.size >= _SHARED else 0)
    return result
