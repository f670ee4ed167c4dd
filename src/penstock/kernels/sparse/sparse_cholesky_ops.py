"""Cholesky's decomposition of sparse matrices, and an order in which little of it fills up.

In:   variants; for the decomposition, an order of the rows and columns, too.
Out:  orders; variants.
Not:  knows how to choose an order (``minimum_degree`` does).

Of a symmetric or Hermitian matrix only the lower part is looked at.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.sparse.csr_ops import of_type
from penstock.kernels.sparse.minimum_degree import minimum_degree
from penstock.kernels.sparse.sparse_rows import Rows, SparseRows, matrix_in, rows_of
from penstock.kernels.values.arrays import as_array, shape_text

_TYPES: Final = {dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128}


@kernel("SparseMatrixOrderingAMD")
def make_sparse_matrix_ordering_amd(_attrs: Attrs) -> Kernel:
    """For each matrix its rows in the order in which to eliminate them."""

    def order(sparse: Value) -> Array:
        matrix = _square(matrix_in(sparse))
        orders = [minimum_degree(_meets(rows)) for rows in matrix.matrices]
        return np.array(orders, np.int32).reshape(matrix.shape[:-1])

    return order


def _square(matrix: SparseRows) -> SparseRows:
    if matrix.shape[-2] != matrix.shape[-1]:
        raise InvalidArgumentError(
            f"Expected square matrices, got a CSRSparseMatrix of shape {shape_text(matrix.shape)}"
        )
    return matrix


def _meets(rows: Rows) -> list[list[int]]:
    """With which rows each row has an element in common; the lower part stands for both."""
    lower = rows.columns <= rows.numbers
    high, low = rows.numbers[lower], rows.columns[lower]
    apart = high != low
    firsts, seconds = np.append(high, low[apart]), np.append(low, high[apart])
    order = np.lexsort((seconds, firsts))
    ends = np.cumsum(np.bincount(firsts, minlength=len(rows.starts) - 1)).tolist()
    sorted_seconds = seconds[order].tolist()
    return [sorted_seconds[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@kernel("SparseMatrixSparseCholesky", types={"type": _TYPES})
def make_sparse_matrix_sparse_cholesky(attrs: Attrs) -> Kernel:
    """Lower triangles L with L L* = P A P*, where P puts rows and columns into an order."""
    dtype = attrs.dtype("type")

    def cholesky(sparse: Value, permutation: Value) -> SparseRows:
        matrix = _square(of_type(sparse, dtype))
        orders = _orders(as_array(permutation), matrix.shape)
        found = []
        for number, (rows, order) in enumerate(zip(matrix.matrices, orders, strict=True)):
            triangle = _factor(*_columns(rows, order), len(order))
            if triangle is None:
                raise InvalidArgumentError(
                    f"Sparse Cholesky factorization failed for batch index {number}. The input "
                    "might not be valid."
                )
            found.append(triangle)
        return SparseRows(matrix.shape, tuple(found), dtype)

    return cholesky


def _orders(given: Array, shape: tuple[int, ...]) -> Array:
    """An order for each matrix; raises InvalidArgumentError if there is none."""
    if given.shape != shape[:-1]:
        raise InvalidArgumentError(
            f"Expected a permutation of shape {shape_text(shape[:-1])} for a CSRSparseMatrix of "
            f"shape {shape_text(shape)}, got {shape_text(given.shape)}"
        )
    orders = given.reshape(math.prod(shape[:-2]), shape[-1])
    if not np.array_equal(np.sort(orders), np.broadcast_to(np.arange(shape[-1]), orders.shape)):
        raise InvalidArgumentError(f"permutation must hold each number below {shape[-1]} once")
    return orders


def _columns(rows: Rows, order: Array) -> tuple[list[Array], list[Array]]:
    """The lower part in an order: the rows of each column's elements, sorted, and the elements."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    lower = rows.columns <= rows.numbers
    high, low, values = place[rows.numbers[lower]], place[rows.columns[lower]], rows.values[lower]
    is_over = high < low
    values = np.where(is_over, values.conj(), values)
    high, low = np.maximum(high, low), np.minimum(high, low)
    sort = np.lexsort((high, low))
    cuts = np.cumsum(np.bincount(low, minlength=len(order)))[:-1]
    return np.split(high[sort], cuts), np.split(values[sort], cuts)


def _factor(numbers: list[Array], values: list[Array], size: int) -> Rows | None:
    """The triangle of a matrix in columns; None if the matrix is not positive definite.

    Column by column: what earlier columns contribute is subtracted, and the rest is scaled.
    """
    work = np.zeros(size, values[0].dtype)
    #: Columns that contribute next to each column, and from which of their elements on.
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    places: list[Array] = []
    triangle: list[Array] = []
    for column in range(size):
        above = waiting[column]
        # What a column fills up is in the first one that it contributes to, and so on from there.
        fills = (places[k][1:] for k, at in above if at == 1)
        rows = np.unique(np.concatenate([[column], numbers[column], *fills])).astype(np.int64)
        work[numbers[column]] = values[column]
        for k, at in above:
            work[places[k][at:]] -= triangle[k][at:] * triangle[k][at].conj()
            if at + 1 < len(places[k]):
                waiting[places[k][at + 1]].append((k, at + 1))
        pivot = work[column].real
        if pivot <= 0:
            return None
        found = work[rows] / np.sqrt(pivot)
        found[0] = np.sqrt(pivot)
        work[rows] = 0
        places.append(rows)
        triangle.append(found)
        if len(rows) > 1:
            waiting[rows[1]].append((column, 1))
    return _in_rows(places, triangle, size, work.dtype)


def _in_rows(places: list[Array], values: list[Array], size: int, dtype: np.dtype[Any]) -> Rows:
    if not size:
        return Rows(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, dtype))
    lows = np.repeat(np.arange(size), [len(rows) for rows in places])
    highs, every = np.concatenate(places), np.concatenate(values)
    sort = np.lexsort((lows, highs))
    return rows_of(np.stack([highs[sort], lows[sort]], 1), every[sort], size)
