"""Boxes that no better one covers, by the library in C.

In:   boxes, [count, 4], of float32, as two opposite corners; a score of float32 for each.
Out:  the numbers of those that remain, best first; None where there is no library, or for arrays
      of another type.
Not:  complains about no shape.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import loaded

#: Bytes that the library needs for so many boxes that were chosen, and for a candidate.
_TOGETHER: Final = 16
_BOXES: Final = 5 * 4 * _TOGETHER
_CANDIDATE: Final = 8
#: A box's number has four bytes.
_MOST_BOXES: Final = 2**31 - 1


def choose_boxes(
    boxes: Array, scores: Array, least: Value, limit: int, threshold: Value
) -> Array | None:
    """Those with scores above ``least`` that no better one covers by more than a threshold."""
    choose = _function()
    if choose is None or not (boxes.dtype is scores.dtype is FLOAT):
        return None
    count = len(boxes)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or count > _MOST_BOXES:
        return None
    most = min(limit, count)
    numbers = np.empty(most, np.int32)
    seen_bytes = _BOXES * -(-most // _TOGETHER)
    room = np.empty(seen_bytes + _CANDIDATE * (2 * count + 1), np.uint8)
    seen = address(room)
    part = seen + seen_bytes
    spare = part + _CANDIDATE * (count + 1)
    boxes, scores = np.ascontiguousarray(boxes), np.ascontiguousarray(scores)
    known = choose(
        address(boxes), address(scores), count, float(least),
        float(threshold), most, address(numbers), seen, part, spare,
    )  # fmt: skip
    return numbers[:known].copy()


@functools.cache
def _function() -> Any:
    library = loaded()
    if library is None:
        return None
    choose, number, pointer = library.penstock_choose_boxes, ctypes.c_int64, ctypes.c_void_p
    choose.argtypes = (
        *(pointer, pointer, number, ctypes.c_float, ctypes.c_float),
        *(number, pointer, pointer, pointer, pointer),
    )
    choose.restype = number
    return choose
