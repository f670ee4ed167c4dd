"""Products of matrices and of batches of them, also on a machine that has other things to do.

In:   two arrays of float32, float64 or complex numbers whose last axes are matrices.
Out:  their product.
Not:  transposes nothing; does not complain about sizes, numpy does.

numpy's OpenBLAS shares a large product among threads that wait for each other by spinning.
If another process holds a core, they wait for its whole time slice, and a product takes ten
times as long or more.  So a product that took far too long is a sign: for a while, large ones
are then done in pieces so small that OpenBLAS keeps each of them on the thread that asks for
it.  That costs a third more where cores are free, so now and then the direct way is tried.
"""

from __future__ import annotations

import functools
import math
from time import perf_counter
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.intra_op import HELPERS, is_crowded, parallel_for

#: Up to so many multiplications OpenBLAS uses no other thread: measured, and as its default
#: thresholds say.
ALONE: Final = (1 << 19) - 1
#: The same for a product with a vector.
_ALONE_BY_VECTOR: Final = 9000
#: From so many rows on, a product with a small matrix is always done in pieces.
_TALL: Final = 4096
#: With fewer multiplications, other threads are not worth waking.
_WORTH_WAKING: Final = 1 << 21
#: From so many multiplications on, a batch of products is shared among the cores.
_SHARED: Final = 1 << 23
#: A product is suspicious if it took so many times its due, and so many seconds on top.
_TIMES, _SECONDS = 3.0, 2e-3
#: For so many seconds, at least and at most, products are done in pieces after that.
_SHORTEST, _LONGEST = 0.25, 4.0


class _Weather:
    """What is known about other users of the cores.  Races between threads do no harm."""

    __slots__ = ("busy_until", "pause", "seconds_per_multiplication")

    def __init__(self) -> None:
        #: The fastest that a large product ever was.
        self.seconds_per_multiplication = 1e-9
        #: Until when cores are taken to be busy, by ``perf_counter``.
        self.busy_until = 0.0
        #: How long they will be taken to be busy next time.
        self.pause = _SHORTEST

    def note(self, multiplications: int, start: float, end: float) -> None:
        """Learn from a product that was done directly."""
        took = end - start
        due = multiplications * self.seconds_per_multiplication
        if took > _TIMES * due + _SECONDS:
            self.busy_until = end + self.pause
            self.pause = min(2 * self.pause, _LONGEST)
        else:
            self.pause = _SHORTEST
            if took < due:
                self.seconds_per_multiplication = took / multiplications


_weather: Final = _Weather()


def matrix_product(x: Array, y: Array) -> Array:
    """``x @ y`` of two matrices."""
    if x.size * y.shape[1] > ALONE:
        return _large_product(x, y)
    # For matrices the same as matmul, in half the time when they are small.
    small: Array = np.dot(x, y)
    return small


def batch_product(x: Array, y: Array) -> Array:
    """``x @ y`` of batches of matrices, which are broadcast against each other."""
    if y.ndim == 2:
        rows = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
        return matrix_product(rows, y).reshape(*x.shape[:-1], y.shape[1])
    if x.ndim != y.ndim or x.shape[:-2] != y.shape[:-2] or x.size * y.shape[-1] < _SHARED:
        stacked: Array = np.matmul(x, y)
        return stacked
    count = math.prod(x.shape[:-2])
    left, right = x.reshape(count, *x.shape[-2:]), y.reshape(count, *y.shape[-2:])
    if x.shape[-2] * x.shape[-1] * y.shape[-1] > ALONE:
        result = np.stack([_large_product(*pair) for pair in zip(left, right, strict=True)])
    else:
        result = _shared_batch(left, right)
    return result.reshape(*x.shape[:-1], y.shape[-1])


def _shared_batch(x: Array, y: Array) -> Array:
    """Products of many small matrices, shared among the cores."""
    result = np.empty((len(x), x.shape[1], y.shape[2]), np.result_type(x, y))
    step = -(-len(x) // 8)

    def some(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        np.matmul(x[part], y[part], out=result[part])

    parallel_for(-(-len(x) // step), some)
    return result


def multiply_into(x: Array, y: Array, out: Array) -> None:
    """Put ``x @ y`` into an array, on this thread; one of the two may be a single matrix."""
    each = x.shape[-2] * x.shape[-1] * y.shape[-1]
    if each <= ALONE or not out.size:
        np.matmul(x, y, out=out)
    else:
        _sum_of_depths(x, y, out, _block(x.shape[-2], x.shape[-1], y.shape[-1]))


def _large_product(x: Array, y: Array) -> Array:
    start = perf_counter()
    if HELPERS and (start < _weather.busy_until or is_crowded() or _is_tall(x, y)):
        return in_pieces(x, y)
    result: Array = np.dot(x, y)
    _weather.note(x.size * y.shape[1], start, perf_counter())
    return result


def in_pieces(x: Array, y: Array) -> Array:
    """``x @ y`` by products that OpenBLAS does on the thread that asks for them."""
    if x.shape[1] != y.shape[0]:
        raise ValueError(f"matrices do not fit: {x.shape} and {y.shape}")
    if x.shape[0] == 1:
        return _row_times(x, y)
    if y.shape[1] == 1:
        return _times_column(x, y)
    rows, columns, depth = _block(x.shape[0], x.shape[1], y.shape[1])
    result = np.empty((x.shape[0], y.shape[1]), np.result_type(x, y))
    step = -(-max(x.shape[0] // 8, 1) // rows) * rows

    def some_rows(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        _sum_of_depths(x[part], y, result[part], (rows, columns, depth))

    parts = -(-x.shape[0] // step)
    if result.size * x.shape[1] < _WORTH_WAKING:
        for number in range(parts):
            some_rows(number)
    else:
        parallel_for(parts, some_rows)
    return result


def _is_tall(x: Array, y: Array) -> bool:
    """Whether pieces are as fast as the whole, since each is most of a small matrix."""
    return bool(x.shape[0] >= _TALL and x.shape[1] <= 256 and y.shape[1] <= 128)


def _row_times(x: Array, y: Array) -> Array:
    """A row times a matrix: a few rows of the matrix at a time, added up."""
    deep, count = y.shape
    depth = max(_ALONE_BY_VECTOR // max(count, 1), 1)
    whole = deep - deep % depth
    parts = np.matmul(x[:, :whole].reshape(-1, 1, depth), y[:whole].reshape(-1, depth, count))
    total: Array = np.add.reduce(parts, 0)
    return total + np.dot(x[:, whole:], y[whole:]) if whole < deep else total


def _times_column(x: Array, y: Array) -> Array:
    """A matrix times a column: a few rows of the matrix at a time."""
    height, deep = x.shape
    rows = max(_ALONE_BY_VECTOR // deep, 1)
    whole = height - height % rows
    result = np.empty((height, 1), np.result_type(x, y))
    parts = result[:whole].reshape(-1, rows, 1)
    np.matmul(x[:whole].reshape(-1, rows, deep), y, out=parts)
    if whole < height:
        np.dot(x[whole:], y, out=result[whole:])
    return result


@functools.lru_cache(maxsize=1024)
def _block(height: int, deep: int, width: int) -> tuple[int, int, int]:
    """Rows, columns and depth of the pieces: few numbers, but enough to be worth a call."""
    columns = _even(width, 64)
    depth = _even(deep, max(ALONE // (columns * min(height, 32)), 1))
    rows = ALONE // (columns * depth)
    return min(rows - rows % 16 or rows, height), columns, depth


def _even(size: int, limit: int) -> int:
    """The size of parts of nearly equal size, none above the limit."""
    return -(-size // -(-size // limit))


def _sum_of_depths(x: Array, y: Array, result: Array, block: tuple[int, int, int]) -> None:
    """The products of matrices, or of batches of them, from parts of their depth."""
    rows, columns, depth = block
    _blocks(x[..., :depth], y[..., :depth, :], result, rows, columns)
    if x.shape[-1] <= depth:
        return
    term = np.empty_like(result)
    for first in range(depth, x.shape[-1], depth):
        part = slice(first, first + depth)
        _blocks(x[..., part], y[..., part, :], term, rows, columns)
        np.add(result, term, out=result)


def _blocks(x: Array, y: Array, result: Array, rows: int, columns: int) -> None:
    """The products, block by block; rows and columns that are left over are blocks too."""
    deep = x.shape[-1]
    for some_rows, height in _split(x.shape[-2], rows):
        left: Any = x[..., some_rows, :].reshape(*x.shape[:-2], -1, 1, height, deep)
        for some_columns, width in _split(y.shape[-1], columns):
            right: Any = y[..., some_columns].reshape(*y.shape[:-2], 1, deep, -1, width)
            block = result[..., some_rows, some_columns]
            across = block.shape[-1] // width
            out = block.reshape(*result.shape[:-2], -1, height, across, width)
            np.matmul(left, right.swapaxes(-3, -2), out=out.swapaxes(-3, -2))


def _split(size: int, step: int) -> list[tuple[slice, int]]:
    """What is divisible by the step, and the rest; each with the step to be taken in it."""
    whole = size - size % step
    parts = [(slice(0, whole), step), (slice(whole, size), size - whole)]
    return [(part, width) for part, width in parts if part.start < part.stop]
