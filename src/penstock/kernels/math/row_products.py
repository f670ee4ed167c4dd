"""Products of long rows of floats.

In:   what numpy's ``multiply.reduce`` takes.
Out:  what it gives, apart from the order in which it multiplies.
Not:  checks no axes.

numpy multiplies the elements of a row one after the other, and whole rows many elements at a
time.  So a long row is cut into short ones, which are multiplied with each other, and then
their halves are.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.parallel.tiles import by_images

_reduce: Final[Any] = np.multiply.reduce
#: Arrays of fewer elements are not worthwhile, and neither are shorter rows.
_LARGE: Final = 1 << 13
_LONG: Final = 512
#: Short rows of usual rows, and of very long ones.
_WIDTH: Final = 128
_VERY_LONG: Final = 1 << 15
_LARGE_WIDTH: Final = 1024
#: So few elements are left to numpy.
_FEW: Final = 32


def product(x: Value, axes: Any, dtype: np.dtype[Any], _out: None, keep: Any) -> Value:
    """The products along some axes."""
    if x.size < _LARGE or x.dtype != dtype or dtype.char not in "fd" or not x.flags.c_contiguous:
        return _reduce(x, axes, dtype, None, keep)
    rank = x.ndim
    wanted = (axes,) if isinstance(axes, int) else axes
    first = rank - len(wanted)
    if sorted(axis + rank if axis < 0 else axis for axis in wanted) != list(range(first, rank)):
        return _reduce(x, axes, dtype, None, keep)
    length = math.prod(x.shape[first:])
    if length < _LONG:
        return _reduce(x, axes, dtype, None, keep)
    rows = x.reshape(-1, length)
    found = by_images(_of_rows, rows.shape[:1], dtype, rows)
    return found.reshape(x.shape[:first] + (1,) * (rank - first) * keep)[()]


def _of_rows(rows: Array) -> Array:
    """The product of each row."""
    count, length = rows.shape
    width = _WIDTH if length < _VERY_LONG else _LARGE_WIDTH
    whole = length // width * width
    short = _reduce(rows[:, :whole].reshape(count, -1, width), 1)
    short[:, : length - whole] *= rows[:, whole:]
    while width > _FEW:
        width //= 2
        half = short[:, :width]
        half *= short[:, width : 2 * width]
    return np.asarray(_reduce(short[:, :width], 1))
