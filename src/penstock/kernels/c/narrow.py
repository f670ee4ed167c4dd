"""Numbers of 16 bits out of those of float32, and of float16 back, by the library in C.

In:   an array of one of these types.
Out:  the nearest numbers of another one, ties to even; None where there is no library.
Not:  knows no pair but those of ``Way``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.library import Conversion, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: With fewer numbers no other thread is asked to help.
_SHARED: Final = 1 << 17


class Way(IntEnum):
    """From which type to which, as in ``narrow.h``."""

    TO_FLOAT16 = 0
    FROM_FLOAT16 = 1
    TO_BFLOAT16 = 2


def converted(x: Array, way: Way, dtype: np.dtype[Any]) -> Array | None:
    """The same numbers as ``dtype``; None if that is for others to do.

    Args:
        x: of the type that ``way`` converts from.
        way: what is to be done.
        dtype: the type that this gives.

    """
    with_c = library()
    if with_c is None:
        return None
    x, result = np.ascontiguousarray(x), np.empty(x.shape, dtype)
    conversion = Conversion(address(x), address(result), x.size, way)
    with_c.convert(conversion, contention.helpers(HELPERS) if x.size >= _SHARED else 0)
    return result
