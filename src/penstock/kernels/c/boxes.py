"""Boxes that no better one covers, by the library in C.

In:   boxes, [count, 4], of float32, as two opposite corners; numbers of candidates in parts, best
      first.
Out:  the numbers of those that remain; None where there is no library, or for boxes of another
      type.
Not:  sorts nothing; complains about no shape.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.c.filters import FLOAT, address
from penstock.kernels.c.library import loaded

#: Numbers that the library keeps of a box: its corners and its area.
_KEPT: Final = 5


def choose_boxes(
    boxes: Array, orders: Iterable[Array], limit: int, threshold: Value
) -> Array | None:
    """Candidates, in this order, unless they overlap one that was chosen before."""
    choose = _function()
    if choose is None or boxes.dtype is not FLOAT or boxes.ndim != 2 or boxes.shape[1] != 4:
        return None
    most = min(limit, len(boxes))
    boxes, chosen = np.ascontiguousarray(boxes), np.empty(most, np.int32)
    seen, known = np.empty((most, _KEPT), FLOAT), 0
    for order in orders if most else ():
        candidates = np.ascontiguousarray(order, np.int64)
        known = choose(
            address(boxes), address(candidates), len(candidates),
            float(threshold), most, address(chosen), address(seen), known,
        )  # fmt: skip
        if known >= most:
            break
    return chosen[:known].copy()


@functools.cache
def _function() -> Any:
    library = loaded()
    if library is None:
        return None
    choose, number, pointer = library.penstock_choose_boxes, ctypes.c_int64, ctypes.c_void_p
    choose.argtypes = (
        *(pointer, pointer, number, ctypes.c_float),
        *(number, pointer, pointer, number),
    )
    choose.restype = number
    return choose
