"""Products of matrices and of batches of them, as fast on a machine that has other things to do.

In:   two arrays of float32, float64 or complex numbers whose last axes are matrices.
Out:  their product, to the last bit the same for matrices of the same shapes.
Not:  transposes nothing; does not complain about sizes, numpy does.

Large products are cut into parts for the threads of ``intra_op``, which do not spin.  How they
are cut follows from their shapes and from the number of cores, since the last bits may follow from
that: neither the time that a product took nor who else uses the cores has a say in it.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.parallel.blas import ALONE, ALONE_BY_DOT, ALONE_BY_VECTOR, ALWAYS_ALONE, alone
from penstock.kernels.parallel.intra_op import HELPERS, parallel_equal

#: A part of a product has so many multiplications at least, or it is not worth waking a thread:
#: some 80 µs of a core with long vectors, as long as a core that sleeps may take to wake up.
_WORTH_WAKING: Final = 1 << 23
#: A part has so many rows, or columns, at least: all of the other factor is read for each part.
_LONG: Final = 96
#: Rows and columns of parts are multiples of what OpenBLAS works on at once.
_TILE: Final = 16
#: A product has so many parts at most, and a batch of them so many.  A product never has more than
#: there are threads: OpenBLAS lays the other factor out anew for each (two parts of 512 by 512 by
#: 512 take 3 % more than the whole on one thread, four 10 %, sixteen 70 %).
_MOST: Final = 16
_FEW: Final = 8
#: Elements that are added up by one product with ones.
_SUMMED: Final = 9000


def matrix_product(x: Array, y: Array) -> Array:
    """``x @ y`` of two matrices."""
    work = x.size * y.shape[1]
    if work <= ALWAYS_ALONE or (work <= ALONE and _is_tame(x, y, work)):
        # For matrices the same as matmul, in half the time when they are small.
        small: Array = np.dot(x, y)
        return small
    return alone(_shared, x, y, work)


def _is_tame(x: Array, y: Array, work: int) -> bool:
    """Whether OpenBLAS wakes no thread for a product that is not large."""
    if x.dtype.kind != "f":
        return False
    if x.shape[0] == 1 or y.shape[1] == 1:
        return work <= ALONE_BY_VECTOR
    # The product of a matrix and its own transpose is a function of its own.
    return x.base is not y and y.base is not x and (x.base is None or x.base is not y.base)


def _shared(x: Array, y: Array, work: int) -> Array:
    """A product in parts, if it is large."""
    rows, columns = x.shape[0], y.shape[1]
    step = _step(max(rows, columns), work)
    if step == max(rows, columns):
        whole: Array = np.dot(x, y)
        return whole
    if x.shape[1] != y.shape[0]:
        raise ValueError(f"matrices do not fit: {x.shape} and {y.shape}")
    result = np.empty((rows, columns), np.result_type(x, y))

    def some_rows(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        np.matmul(x[part], y, out=result[part])

    def some_columns(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        np.matmul(x, y[:, part], out=result[:, part])

    if rows >= columns:
        parallel_equal(-(-rows // step), some_rows)
    else:
        parallel_equal(-(-columns // step), some_columns)
    return result


def _step(length: int, work: int) -> int:
    """Rows or columns of a part: one for each thread, if it is worth waking."""
    parts = min(length // _LONG, work // _WORTH_WAKING, _MOST, HELPERS + 1)
    if parts < 2:
        return length
    return -(-length // (parts * _TILE)) * _TILE


def batch_product(x: Array, y: Array) -> Array:
    """``x @ y`` of batches of matrices, which are broadcast against each other."""
    if y.ndim == 2:
        rows = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
        return matrix_product(rows, y).reshape(*x.shape[:-1], y.shape[1])
    if x.size * y.shape[-1] <= ALWAYS_ALONE:
        small: Array = np.matmul(x, y)
        return small
    return alone(_shared_batch, x, y)


def _shared_batch(x: Array, y: Array) -> Array:
    """Products of pairs, the batch in parts along its longest axis if there is much to do."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    count, each = math.prod(batch), x.shape[-2] * x.shape[-1] * y.shape[-1]
    if count * each < 2 * _WORTH_WAKING or x.shape[-1] != y.shape[-2]:
        whole: Array = np.matmul(x, y)
        return whole
    left = np.broadcast_to(x, (*batch, *x.shape[-2:]))
    right = np.broadcast_to(y, (*batch, *y.shape[-2:]))
    length = max(x.shape[-2], y.shape[-1])
    if count < _FEW and _step(length, each) < length:
        pairs = [_shared(left[place], right[place], each) for place in np.ndindex(batch)]
        return np.stack(pairs).reshape(*batch, *pairs[0].shape)
    result = np.empty((*batch, x.shape[-2], y.shape[-1]), np.result_type(x, y))
    longest = batch.index(max(batch))
    left, right, out = (np.moveaxis(a, longest, 0) for a in (left, right, result))
    step = -(-batch[longest] // _FEW)

    def some(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        np.matmul(left[part], right[part], out=out[part])

    parallel_equal(-(-batch[longest] // step), some)
    return result


def multiply_into(x: Array, y: Array, out: Array) -> None:
    """Put ``x @ y`` into an array, on this thread; one of the two may be a single matrix."""
    if x.shape[-2] * x.shape[-1] * y.shape[-1] <= ALWAYS_ALONE:
        np.matmul(x, y, out=out)
    else:
        alone(_multiply, x, y, out)


def _multiply(x: Array, y: Array, out: Array) -> None:
    np.matmul(x, y, out=out)


def sum_of_squares(x: Array) -> Value:
    """The sum of a vector's squares; of complex numbers, without a conjugate."""
    if x.size <= ALONE_BY_DOT:
        return np.dot(x, x)
    return alone(np.dot, x, x)


def sum_of_rows(x: Array) -> Array:
    """The sum of a matrix's rows: a few of them at a time by products, and then their sums.

    So many running sums are more exact than one.
    """
    height, width = x.shape
    few = max(_SUMMED // max(width, 1), 1)
    whole = height - height % few
    ones = np.ones((1, few), x.dtype)
    sums = alone(np.matmul, ones, x[:whole].reshape(-1, few, width))
    total: Array = np.add.reduce(sums, (0, 1))
    return total + np.add.reduce(x[whole:], 0) if whole < height else total
