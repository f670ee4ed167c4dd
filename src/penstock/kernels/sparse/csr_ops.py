"""Sparse matrices in rows: one variant holds a matrix, or a batch of them of one size.

In:   places and values, dense tensors, or variants.
Out:  variants; or places and values, dense tensors, products.
Not:  factorises nothing; looks for no duplicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.types import COMPLEX
from penstock.kernels.sparse.sparse_rows import Rows, SparseRows, matrix_in, rows_of
from penstock.kernels.values.arrays import as_array, check_new, shape_text

_TYPES: Final = COMPLEX | {dtypes.float32, dtypes.float64}
_MOST_STARTS: Final = 2**31 - 1


def _shown(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


# -- from other forms, and to them ---------------------------------------------------------------


@kernel("SparseTensorToCSRSparseMatrix", types={"T": _TYPES})
def make_from_sparse(attrs: Attrs) -> Kernel:
    """The matrix with these values at these places, which are in order of rows."""
    dtype = attrs.dtype("T")

    def from_sparse(indices: Value, values: Value, dense_shape: Value) -> SparseRows:
        shape = tuple(map(int, as_array(dense_shape).tolist()))
        if len(shape) not in (2, 3) or indices.ndim != 2 or indices.shape[1] != len(shape):
            rank = indices.shape[1] if indices.ndim == 2 else len(shape)
            raise InvalidArgumentError(
                f"SparseTensor must have rank 2 or 3; but indices has rank: {rank}"
            )
        if len(indices) != len(values):
            raise InvalidArgumentError(f"{len(indices)} places and {len(values)} values were given")
        _check_size(shape)
        _check_places(indices, shape)
        return _split(indices, values, shape, dtype)

    return from_sparse


def _check_size(shape: tuple[int, ...]) -> None:
    """Raise unless the starts of all rows could be numbers of 32 bits, and fit into memory."""
    starts = math.prod(shape[:-2]) * (shape[-2] + 1)
    if starts > _MOST_STARTS:
        raise InvalidArgumentError(
            "The csr row index size, computed based on the dense_shape, must be <= Int32Max, "
            f"but is too large. Current value is {starts}"
        )
    check_new((*shape[:-2], shape[-2]), np.dtype(np.int64))


def _check_places(indices: Array, shape: tuple[int, ...]) -> None:
    wrong = np.any((indices < 0) | (indices >= np.array(shape)), axis=1)
    if wrong.any():
        at = int(wrong.argmax())
        place = ", ".join(map(str, indices[at].tolist()))
        raise InvalidArgumentError(
            f"Sparse index tuple indices[{at}, :] = [{place}] is out of bounds"
        )


def _split(places: Array, values: Array, shape: tuple[int, ...], dtype: DType) -> SparseRows:
    """Matrices of places, whose first number is that of the matrix if there are several."""
    if len(shape) == 2:
        return SparseRows(shape, (rows_of(places, values, shape[0]),), dtype)
    ends = np.cumsum(np.bincount(places[:, 0], minlength=shape[0]))[:-1]
    parts = zip(np.split(places[:, 1:], ends), np.split(values, ends), strict=True)
    return SparseRows(shape, tuple(rows_of(*part, shape[1]) for part in parts), dtype)


@kernel("DenseToCSRSparseMatrix", types={"T": _TYPES})
def make_from_dense(attrs: Attrs) -> Kernel:
    """The matrix of a dense one's elements at these places."""
    dtype = attrs.dtype("T")

    def from_dense(dense: Value, indices: Value) -> SparseRows:
        if dense.ndim not in (2, 3) or indices.ndim != 2 or indices.shape[1] != dense.ndim:
            raise InvalidArgumentError(
                "Dense tensor must have rank 2 or 3 and as many numbers in each place, but "
                f"shapes are {shape_text(dense.shape)} and {shape_text(indices.shape)}"
            )
        _check_places(indices, dense.shape)
        return _split(indices, dense[tuple(indices.T)], dense.shape, dtype)

    return from_dense


@kernel("CSRSparseMatrixToDense", types={"type": _TYPES})
def make_to_dense(attrs: Attrs) -> Kernel:
    """All elements, those without a place as zeros."""
    dtype = attrs.dtype("type")

    def to_dense(sparse: Value) -> Array:
        matrix = of_type(sparse, dtype)
        dense = np.zeros((len(matrix.matrices), *matrix.shape[-2:]), dtype.numpy)
        for target, rows in zip(dense, matrix.matrices, strict=True):
            target[rows.numbers, rows.columns] = rows.values
        return dense.reshape(matrix.shape)

    return to_dense


def of_type(value: Value, dtype: DType) -> SparseRows:
    """The matrix on an edge, which must be of a type."""
    matrix = matrix_in(value)
    if matrix.dtype is not dtype:
        raise InvalidArgumentError(
            f"Asked for a CSRSparseMatrix of type {type_text(dtype)} but saw dtype: "
            f"{type_text(matrix.dtype)}"
        )
    return matrix


@kernel("CSRSparseMatrixToSparseTensor", types={"type": _TYPES})
def make_to_sparse(attrs: Attrs) -> Kernel:
    """Places, values and size."""
    dtype = attrs.dtype("type")

    def to_sparse(sparse: Value) -> tuple[Array, Array, Array]:
        matrix = of_type(sparse, dtype)
        columns = [np.stack([rows.numbers, rows.columns], 1) for rows in matrix.matrices]
        places = np.concatenate([np.zeros((0, 2), np.int64), *columns])
        if len(matrix.shape) == 3:
            counts = [len(rows.values) for rows in matrix.matrices]
            numbers = np.repeat(np.arange(len(counts)), counts)
            places = np.concatenate([numbers[:, None], places], 1)
        values = [rows.values for rows in matrix.matrices]
        all_values = np.concatenate([np.zeros(0, dtype.numpy), *values])
        return places.astype(np.int64), all_values, np.array(matrix.shape, np.int64)

    return to_sparse


@kernel("CSRSparseMatrixComponents", types={"type": _TYPES})
def make_components(attrs: Attrs) -> Kernel:
    """Where rows start, columns and values of one matrix of a batch."""
    dtype = attrs.dtype("type")

    def components(sparse: Value, index: Value) -> Rows:
        matrix = matrix_in(sparse)
        if matrix.dtype is not dtype:
            raise InvalidArgumentError(
                "dtype of input is not equal to 'type': "
                f"{type_text(matrix.dtype)} vs. {type_text(dtype)}"
            )
        count, at = len(matrix.matrices), int(index)
        if not 0 <= at < count:
            raise InvalidArgumentError(f"index ({at}) not in [0, {count})")
        return matrix.matrices[at]

    return components


@kernel("SparseMatrixNNZ", cost=Cost.CHEAP)
def make_count(_attrs: Attrs) -> Kernel:
    """How many elements have a place; of a batch, in each matrix."""

    def count(sparse: Value) -> Value:
        matrix = matrix_in(sparse)
        counts = np.array([len(rows.values) for rows in matrix.matrices], np.int32)
        return as_value(counts.reshape(matrix.shape[:-2]))

    return count


# -- arithmetic ----------------------------------------------------------------------------------

_Turn: TypeAlias = Callable[[SparseRows], SparseRows]


@kernel("SparseMatrixTranspose", types={"type": _TYPES})
def make_transpose(attrs: Attrs) -> Kernel:
    """Columns as rows, of complex matrices perhaps with conjugate elements."""
    dtype, turn = attrs.dtype("type"), _turned(conjugate=attrs.bool("conjugate"))
    return lambda sparse: turn(of_type(sparse, dtype))


def _turned(*, conjugate: bool) -> _Turn:
    def turn(matrix: SparseRows) -> SparseRows:
        height, width = matrix.shape[-2:]

        def change(rows: Rows) -> Rows:
            order = np.argsort(rows.columns, kind="stable")
            places = np.stack([rows.columns[order], rows.numbers[order]], 1)
            values = rows.values[order]
            return rows_of(places, values.conj() if conjugate else values, width)

        return matrix.mapped(change, width, height)

    return turn


def _prepared(attrs: Attrs, side: str) -> _Turn:
    """What is done to a factor first: nothing, or transposed, or transposed and conjugate."""
    is_turned, is_adjoint = attrs.bool(f"transpose_{side}"), attrs.bool(f"adjoint_{side}")
    if is_turned and is_adjoint:
        raise InvalidArgumentError(f"Only one of adjoint_{side} and transpose_{side} may be true.")
    return _turned(conjugate=is_adjoint) if is_turned or is_adjoint else lambda matrix: matrix


@kernel("SparseMatrixMatMul", types={"T": _TYPES})
def make_matmul(attrs: Attrs) -> Kernel:
    """The product with a dense matrix, as a dense one, in the end perhaps transposed."""
    prepared, dtype = _prepared(attrs, "a"), attrs.dtype("T")
    is_turned, is_adjoint = attrs.bool("transpose_b"), attrs.bool("adjoint_b")
    if is_turned and is_adjoint:
        raise InvalidArgumentError("Only one of adjoint_b and transpose_b may be true.")
    turns, conjugates = attrs.bool("transpose_output"), attrs.bool("conjugate_output")

    def matmul(a: Value, b: Value) -> Array:
        left = matrix_in(a)
        _check_factors(left, b.ndim, dtype)
        left, right = prepared(left), b.swapaxes(-1, -2) if is_turned or is_adjoint else b
        right = right.conj() if is_adjoint else right
        _check_inner(left.shape, right.shape, "")
        dense = right.reshape(-1, *right.shape[-2:])
        parts = [_times(rows, one) for rows, one in zip(left.matrices, dense, strict=True)]
        product = np.stack(parts).reshape(*left.shape[:-1], right.shape[-1])
        product = product.swapaxes(-1, -2) if turns else product
        return product.conj() if conjugates else product

    return matmul


def _check_factors(left: SparseRows, rank: int, dtype: DType) -> None:
    if left.dtype is not dtype:
        raise InvalidArgumentError(
            "Input types don't match.  a.dtype == "
            f"{type_text(left.dtype)} vs. b.dtype == {type_text(dtype)}"
        )
    if len(left.shape) != rank:
        raise InvalidArgumentError(
            f"Ranks of a and b must match, saw: {len(left.shape)} vs. {rank}."
        )


def _check_inner(left: tuple[int, ...], right: tuple[int, ...], space: str) -> None:
    if left[-1] != right[-2]:
        raise InvalidArgumentError(
            f"Inner product dimensions of A and B do not agree. {space}Shapes are: "
            f"{_shown(left)} vs. {_shown(right)}"
        )
    if left[:-2] != right[:-2]:
        raise InvalidArgumentError(
            f"Batch sizes of A and B do not agree: {_shown(left)} vs. {_shown(right)}"
        )


def _times(rows: Rows, dense: Array) -> Array:
    """One matrix times a dense one: of each row that has elements, the sum of what they give."""
    product = np.zeros((len(rows.starts) - 1, dense.shape[1]), dense.dtype)
    used = np.flatnonzero(np.diff(rows.starts))
    if len(used):
        terms = rows.values[:, None] * dense[rows.columns]
        product[used] = np.add.reduceat(terms, rows.starts[used], axis=0)
    return product


@kernel("SparseMatrixSparseMatMul", types={"type": _TYPES})
def make_sparse_matmul(attrs: Attrs) -> Kernel:
    """The product with a sparse matrix, as a sparse one."""
    a_prepared, b_prepared = _prepared(attrs, "a"), _prepared(attrs, "b")
    dtype = attrs.dtype("type")

    def sparse_matmul(a: Value, b: Value) -> SparseRows:
        left, right = of_type(a, dtype), of_type(b, dtype)
        _check_factors(left, len(right.shape), dtype)
        left, right = a_prepared(left), b_prepared(right)
        _check_inner(left.shape, right.shape, " ")
        size = (left.shape[-2], right.shape[-1])
        pairs = zip(left.matrices, right.matrices, strict=True)
        products = tuple(_sparse_times(one, other, *size) for one, other in pairs)
        return SparseRows((*left.shape[:-2], *size), products, dtype)

    return sparse_matmul


def _sparse_times(left: Rows, right: Rows, height: int, width: int) -> Rows:
    """One matrix times another: each element meets the row of its column; equal places add up."""
    counts = np.diff(right.starts)[left.columns]
    source = np.repeat(np.arange(len(left.values)), counts)
    firsts = np.repeat(right.starts[left.columns] - np.cumsum(counts) + counts, counts)
    partner = firsts + np.arange(len(source))
    keys = left.numbers[source] * np.int64(width) + right.columns[partner]
    terms = left.values[source] * right.values[partner]
    order = np.argsort(keys, kind="stable")
    places, starts = np.unique(keys[order], return_index=True)
    sums = np.add.reduceat(terms[order], starts) if len(starts) else terms
    return rows_of(np.stack(np.divmod(places, max(width, 1)), 1), sums, height)
