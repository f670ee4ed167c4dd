"""Copies of arrays that are large, or whose elements follow each other in short runs only.

In:   arrays, often views, such as of every other pixel.
Out:  the same numbers, copied run by run where runs are short, and by threads where there are many.
Not:  computes nothing.

numpy starts anew for each run, which for a few numbers takes several times as long as the work.
A run that is copied as if it were one large element costs a fifth of that.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.parallel.intra_op import parallel_equal

#: Bytes from which on a run is long enough.
_LONG: Final = 256
#: With fewer elements it is not worthwhile.
ENOUGH: Final = 4096
#: Bytes that are worth a piece for a thread, some 100 microseconds; and pieces, at most.
_WORTH_A_PIECE: Final = 1 << 20
_MOST: Final = 16


def has_short_runs(array: Array, enough: int = ENOUGH) -> bool:
    """Whether the last axis is all that follows in memory, and it is short."""
    if array.size < enough or array.ndim < 2 or array.dtype.hasobject:
        return False
    size, step = array.shape[-1] * array.itemsize, array.strides[-1]
    if size >= _LONG or step != array.itemsize or array.shape[-1] < 2:
        return False
    return bool(array.shape[-2] > 1 and array.strides[-2] != size)


def gathered(array: Array, enough: int = ENOUGH) -> Array:
    """The array, or a copy without gaps if it has short runs."""
    if not has_short_runs(array, enough):
        return array
    result = np.empty(array.shape, array.dtype)
    _copy(result, array)
    return result


def put(target: Array, source: Array, enough: int = ENOUGH) -> None:
    """Copy what is without gaps into an array of the same shape and type."""
    if has_short_runs(target, enough):
        _copy(target, source)
    else:
        target[...] = source


def copy_apart(array: Array) -> Array:
    """A copy without gaps in the order of indices, of which threads make parts if it is large."""
    if _pieces(array) < 2 or array.dtype.hasobject:
        return array.copy()
    result = np.empty(array.shape, array.dtype)
    _copy_in_pieces(result, array)
    return result


def _copy(target: Array, source: Array) -> None:
    run = np.dtype((np.void, source.shape[-1] * source.itemsize))
    to, from_ = target.view(run), source.view(run)
    if _pieces(source) < 2:
        to[...] = from_
    else:
        _copy_in_pieces(to, from_)


def _pieces(array: Array) -> int:
    return min(array.nbytes // _WORTH_A_PIECE, _MOST)


def _copy_in_pieces(target: Array, source: Array) -> None:
    """Copy pieces of the first dimension that has as many entries, or of the longest one."""
    count, shape = _pieces(source), source.shape
    axis = next((at for at, size in enumerate(shape) if size >= count), int(np.argmax(shape)))
    step = -(-shape[axis] // count)

    def copy_some(number: int) -> None:
        part = (*[slice(None)] * axis, slice(number * step, (number + 1) * step))
        target[part] = source[part]

    parallel_equal(-(-shape[axis] // step), copy_some)
