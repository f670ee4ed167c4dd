"""Triangles of matrices, least squares, and the gradient of Cholesky's decomposition.

In:   matrices as the last two dimensions of an array, in batches.
Out:  triangles and permutations; solutions; gradients.
Not:  nothing of matrices with few diagonals (band_matrix_ops).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX
from penstock.kernels.parallel.blas import keeps_alone
from penstock.kernels.values.arrays import shape_text

_REAL: Final = frozenset({dtypes.float32, dtypes.float64})
_ANY: Final = _REAL | COMPLEX


@kernel("Lu", types={"T": _ANY, "output_idx_type": {dtypes.int32, dtypes.int64}})
def make_lu(attrs: Attrs) -> Kernel:
    """A lower and an upper triangle in one matrix, and the order of rows that they give.

    The lower triangle's diagonal is 1 and not kept.
    """
    dtype = attrs.dtype("output_idx_type").numpy

    def lu(value: Value) -> tuple[Array, Array]:
        array = np.asarray(value)
        if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
            raise ValueError(f"Input matrix must be square: {shape_text(array.shape)}")
        if not array.size:
            return array, np.zeros(array.shape[:-1], dtype)
        matrices = array.reshape(-1, *array.shape[-2:]).copy()
        order = _eliminate(matrices)
        return matrices.reshape(array.shape), order.reshape(array.shape[:-1]).astype(dtype)

    return lu


def _eliminate(matrices: Array) -> Array:
    """Turn matrices into their triangles, in place; returns the order of their rows."""
    count, size = matrices.shape[:2]
    each = np.arange(count)
    order = np.tile(np.arange(size), (count, 1))
    for column in range(size):
        pivot = column + np.abs(matrices[:, column:, column]).argmax(1)
        for rows in (matrices, order):
            swapped = rows[each, pivot]
            rows[each, pivot] = rows[:, column]
            rows[:, column] = swapped
        diagonal = matrices[:, column, column]
        if (diagonal == 0).any():
            raise ValueError("Input is not invertible.")
        below = matrices[:, column + 1 :, column]
        below /= diagonal[:, None]
        rest = matrices[:, column + 1 :, column + 1 :]
        rest -= below[:, :, None] * matrices[:, column, None, column + 1 :]
    return order


@kernel("MatrixSolveLs", types={"T": _ANY})
@kernel("BatchMatrixSolveLs", types={"T": _REAL})
@keeps_alone
def make_matrix_solve_ls(attrs: Attrs) -> Kernel:
    """Least squares, small solutions preferred by a penalty; without one the smallest."""
    is_fast, dtype = attrs.bool("fast"), attrs.dtype("T")
    wide = np.complex128 if dtype.is_complex else np.float64

    def solve_ls(matrix: Value, rhs: Value, penalty: Value) -> Array:
        matrices, sides = np.asarray(matrix, wide), np.asarray(rhs, wide)
        _check_system(matrices, sides, penalty)
        shape = (*matrices.shape[:-2], matrices.shape[-1], sides.shape[-1])
        if not matrices.size or not sides.size:
            return np.zeros(shape, dtype.numpy)
        if is_fast:
            solved = _by_normal_equations(matrices, sides, float(penalty), dtype.numpy)
        else:
            solved = np.linalg.pinv(matrices) @ sides
        return solved.astype(dtype.numpy)

    return solve_ls


def _check_system(matrices: Array, sides: Array, penalty: Value) -> None:
    shapes = f"{shape_text(matrices.shape)} and {shape_text(sides.shape)}"
    if matrices.ndim < 2 or matrices.ndim != sides.ndim:
        raise ValueError(f"All input tensors must have the same rank, at least 2: {shapes}")
    if matrices.shape[:-1] != sides.shape[:-1]:
        raise ValueError(f"Input matrix and rhs are incompatible: {shapes}")
    if np.ndim(penalty):
        raise ValueError(f"l2_regularizer must be scalar: {shape_text(np.shape(penalty))}")
    if penalty < 0:
        raise ValueError(f"l2_regularizer must be >= 0: {penalty}")


def _by_normal_equations(
    matrices: Array, sides: Array, penalty: float, narrow: np.dtype[np.generic]
) -> Array:
    """(A* A + penalty)⁻¹ A* b, or for wide matrices A* (A A* + penalty)⁻¹ b."""
    adjoint = matrices.swapaxes(-1, -2).conj()
    is_tall = matrices.shape[-2] >= matrices.shape[-1]
    gram = adjoint @ matrices if is_tall else matrices @ adjoint
    gram += penalty * np.eye(gram.shape[-1])
    try:
        np.linalg.cholesky(gram.astype(narrow))
        solved = np.linalg.solve(gram, adjoint @ sides if is_tall else sides)
    except np.linalg.LinAlgError:
        raise ValueError(
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or "
            "provide an l2_regularizer > 0."
        ) from None
    return np.asarray(solved if is_tall else adjoint @ solved)


@kernel("CholeskyGrad", "BatchCholeskyGrad", types={"T": _REAL})
@keeps_alone
def make_cholesky_grad(attrs: Attrs) -> Kernel:
    """The gradient of matrices from that of their triangles; Murray, 2016, in one formula."""
    dtype = attrs.dtype("T").numpy

    def cholesky_grad(triangle: Value, grads: Value) -> Array:
        lower = np.tril(np.asarray(triangle, np.float64))
        if lower.ndim < 2 or lower.shape[-1] != lower.shape[-2] or grads.shape != lower.shape:
            raise ValueError(
                "Input matrix must be square, and its gradient have the same shape: "
                f"{shape_text(lower.shape)} and {shape_text(grads.shape)}"
            )
        if not lower.size:
            return np.zeros(lower.shape, dtype)
        product = np.tril(lower.swapaxes(-1, -2) @ np.tril(grads))
        product[..., np.arange(lower.shape[-1]), np.arange(lower.shape[-1])] /= 2
        inverse = np.linalg.inv(lower)
        inner = inverse.swapaxes(-1, -2) @ product @ inverse
        return np.asarray((inner + inner.swapaxes(-1, -2)) / 2, dtype)

    return cholesky_grad
