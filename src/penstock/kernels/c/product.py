"""Products of matrices, by the library in C.

In:   [rows, depth] and [depth, count] of float32, or batches of them; perhaps a number for each
      column.
Out:  their product, plus these numbers, between limits; None where there is no library, or another
      way is faster.
Not:  complains about no shape.

A product is a convolution by windows of one pixel.  What is constant is packed once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.api.constants import is_constant
from penstock.kernels.c.address import address
from penstock.kernels.c.convolution import NO_LIMITS, Limits
from penstock.kernels.c.filters import FLOAT, factors_for, factors_of
from penstock.kernels.c.library import Convolution, Library, library
from penstock.kernels.c.spare import spare_numbers
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: With fewer multiplications, or rows, BLAS is as fast, and needs no second copy of the constant.
_LEAST: Final = 1 << 20
_FEWEST_ROWS: Final = 8
#: What is packed for one product alone is worth it for so many rows.
_FEWEST_ROWS_PACKED: Final = 32
#: Elements that a turned matrix is multiplied by where they are: as many as the second cache has.
_MOST_TURNED: Final = 1 << 18
#: Matrices of fewer elements are never worth a look; loops are full of them.
FEWEST: Final = 2_048


class Multiplier:
    """What multiplies for one node."""

    __slots__ = ("_is_turned", "_limits")

    def __init__(self, limits: Limits = NO_LIMITS, *, is_turned: bool = False) -> None:
        """Say between which limits results are kept; and whether y is [count, depth]."""
        self._limits: Final = limits
        self._is_turned: Final = is_turned

    def __call__(self, x: Array, y: Array, bias: Array | None = None) -> Array | None:
        """Multiply; None if that is for others to do, or to complain about."""
        if (
            x.size < FEWEST
            or x.dtype is not FLOAT
            or y.dtype is not FLOAT
            or x.ndim != 2
            or y.ndim != 2
        ):
            return None
        rows, depth = x.shape
        same, count = y.shape[::-1] if self._is_turned else y.shape
        if rows < _FEWEST_ROWS or x.size * count < _LEAST or depth != same or not is_constant(y):
            return None
        with_c = library()
        if with_c is None or (bias is not None and not _suits(bias, count)):
            return None
        result, factors = np.empty((rows, count), FLOAT), factors_of(y, is_turned=self._is_turned)
        work = Convolution(out=address(result), bias=None if bias is None else address(bias))
        work.low, work.high = self._limits
        factors.give_to(work)
        _multiply(with_c, work, x[np.newaxis], count)
        return result


def batch_product(x: Array, y: Array) -> Array | None:
    """``x @ y`` of batches of matrices; None if that is for others to do, or to complain about."""
    if x.size < FEWEST or x.dtype is not FLOAT or y.dtype is not FLOAT:
        return None
    if y.ndim == 2 < x.ndim:
        rows = batch_product(x.reshape(-1, x.shape[-1]), y)
        return None if rows is None else rows.reshape(*x.shape[:-1], y.shape[1])
    if x.ndim != y.ndim or x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2]:
        return None
    if x.ndim == 2 and is_constant(y):
        return _BY_CONSTANT(x, y)
    *batch, rows, depth = x.shape
    count = y.shape[-1]
    if rows < _FEWEST_ROWS_PACKED or x.size * count < _LEAST:
        return None
    with_c = library()
    if with_c is None:
        return None
    if x.ndim == 2 and x.strides[0] == FLOAT.itemsize and y.size <= _MOST_TURNED:
        return _product_of_turned(with_c, x.T, y)
    factors = factors_for(y.reshape(-1, depth, count), depth)
    result = np.empty((*batch, rows, count), FLOAT)
    work = Convolution(out=address(result), filters_step=factors.numbers.strides[0])
    work.low, work.high = NO_LIMITS
    factors.give_to(work)
    _multiply(with_c, work, x.reshape(-1, rows, depth), count)
    return result


def _multiply(with_c: Library, work: Convolution, x: Array, count: int) -> None:
    """Do some work with rows, [batch, rows, depth], and as many columns of factors."""
    if x.strides[2] != FLOAT.itemsize:
        x = np.ascontiguousarray(x)
    work.images = address(x)
    work.batch, work.columns, work.depth = x.shape
    work.rows, work.count = 1, count
    work.out_image_step, work.out_column_step = work.columns * count, count
    work.window_planes, work.window_rows, work.window_columns = 1, 1, 1
    seen, spare = x, spare_numbers(x.strides[1], min(work.columns, with_c.widest), count)
    if spare:
        seen = np.empty((*x.shape[:2], work.depth + spare), FLOAT)
        work.framed, work.framed_column_step = address(seen), seen.strides[1]
        # Each row is one of an image whose rows have one pixel: threads copy whole rows.
        work.planes = work.framed_planes = work.batch
        work.image_rows = work.framed_rows = work.columns
        work.image_columns = work.framed_columns = 1
        work.image_step, work.row_step = x.strides[:2]
    work.seen_image_step, work.seen_column_step = seen.strides[:2]
    with_c.convolve(work, contention.helpers(HELPERS))


def _product_of_turned(with_c: Library, x: Array, y: Array) -> Array:
    """``x.T @ y``: the gradient of filters of one pixel, which needs no other order of either."""
    (places, depth), count = x.shape, y.shape[1]
    y, result = np.ascontiguousarray(y), np.empty((depth, count), FLOAT)
    work = Convolution(
        images=address(x), filters=address(y), out=address(result),
        batch=1, rows=1, columns=places, depth=depth, count=count,
        window_rows=1, window_columns=1, seen_column_step=x.strides[0],
    )  # fmt: skip
    with_c.correlate(work, contention.helpers(HELPERS))
    return result


_BY_CONSTANT: Final = Multiplier()


def _suits(bias: Array, count: int) -> bool:
    return bias.dtype is FLOAT and bias.shape == (count,) and bias.flags.c_contiguous
