"""Inverses, solutions and decompositions of matrices.

In:   matrices as the last two dimensions of an array, in batches.
Out:  other matrices, vectors or numbers of the same batches.
Not:  no products of matrices, no gradients.

The work is LAPACK's, through numpy, in the type of the matrices; float16 is computed in
float32.  Where numpy would raise and TensorFlow answers with NaN, so does this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.linalg import LinAlgError

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, as_value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX
from penstock.kernels.linalg.substitution import substitute
from penstock.kernels.narrow.precision import NARROW
from penstock.kernels.parallel.blas import keeps_alone
from penstock.kernels.values.arrays import shape_text

_REAL: Final = frozenset({dtypes.float32, dtypes.float64})
_FULL: Final = _REAL | COMPLEX
_WITH_HALF: Final = _FULL | {dtypes.float16}
_NOT_SUCCESSFUL: Final = (
    "Self-adjoint eigen decomposition was not successful. The input might not be valid."
)


def _matrices(value: Value) -> Array:
    """The argument as an array, which must hold matrices."""
    array = np.asarray(value)
    if array.ndim < 2:
        raise ValueError(f"Input tensor 0 must have rank >= 2, got {array.ndim}")
    return array


def _wide(dtype: DType) -> np.dtype[Any]:
    """The type that LAPACK computes in."""
    return np.dtype(np.float32) if dtype in NARROW else dtype.numpy


def _squares(value: Value) -> Array:
    """The argument as an array, which must hold square matrices."""
    array = _matrices(value)
    if array.shape[-1] != array.shape[-2]:
        raise ValueError(f"Input matrix must be square, got shape {shape_text(array.shape)}")
    return array


def _adjoint(matrices: Array) -> Array:
    """The conjugate transposes."""
    return matrices.swapaxes(-1, -2).conj()


def _each(function: Callable[[Array], Array], failed: Callable[[Array], Array]) -> Kernel:
    """``function`` of whole batches; if it fails, one by one, ``failed`` where it does."""

    def one(matrix: Array) -> Array:
        try:
            return function(matrix)
        except LinAlgError:
            return failed(matrix)

    def each(matrices: Array) -> Array:
        try:
            return function(matrices)
        except LinAlgError:
            single = matrices.reshape(-1, *matrices.shape[-2:])
            results = np.stack([one(matrix) for matrix in single])
            return results.reshape(matrices.shape[:-2] + results.shape[1:])

    return each


@kernel("Cholesky", types={"T": _FULL})
@kernel("BatchCholesky", types={"T": _REAL})
@keeps_alone
def make_cholesky(_attrs: Attrs) -> Kernel:
    """The lower triangles whose products with their adjoints are the matrices.

    Only the lower triangle is read.  A matrix that is not positive definite gives NaN.
    """
    each = _each(np.linalg.cholesky, lambda matrix: np.tril(np.full_like(matrix, np.nan)))

    def cholesky(values: Value) -> Array:
        matrices = _squares(values)
        return each(matrices) if matrices.size else matrices

    return cholesky


@kernel("MatrixInverse", types={"T": _WITH_HALF})
@kernel("BatchMatrixInverse", types={"T": _REAL})
@keeps_alone
def make_matrix_inverse(attrs: Attrs) -> Kernel:
    """The inverses of the matrices, or of their adjoints."""
    is_adjoint, dtype = attrs.bool("adjoint"), attrs.dtype("T")
    wide = _wide(dtype)

    def matrix_inverse(values: Value) -> Array:
        matrices = _squares(values).astype(wide, copy=False)
        if not matrices.size:
            return matrices.astype(dtype.numpy, copy=False)
        if is_adjoint:
            matrices = _adjoint(matrices)
        inverse = _or_singular(np.linalg.inv, "Input is not invertible.", matrices)
        return inverse.astype(dtype.numpy, copy=False)

    return matrix_inverse


def _or_singular(
    function: Callable[..., Array], message: str, matrices: Array, *rest: Array
) -> Array:
    """The result, or the error that matrices have no inverse; those with NaN have none."""
    try:
        result = function(matrices, *rest)
    except LinAlgError:
        raise ValueError(message) from None
    if np.isnan(result).any() and np.isnan(matrices).any():
        raise ValueError(message)
    return result


@kernel("MatrixSolve", types={"T": _FULL})
@kernel("BatchMatrixSolve", types={"T": _REAL})
@keeps_alone
def make_matrix_solve(attrs: Attrs) -> Kernel:
    """What the matrices, or their adjoints, turn into the right-hand sides."""
    is_adjoint = attrs.bool("adjoint")

    def matrix_solve(matrix: Value, rhs: Value) -> Array:
        matrices, sides = _matrices(matrix), np.asarray(rhs)
        _check_system(matrices, sides)
        if not sides.size:
            return sides
        if is_adjoint:
            matrices = _adjoint(matrices)
        return _or_singular(np.linalg.solve, "Input matrix is not invertible.", matrices, sides)

    return matrix_solve


def _check_system(matrices: Array, sides: Array) -> None:
    shapes = f"{shape_text(matrices.shape)} and {shape_text(sides.shape)}"
    if matrices.ndim != sides.ndim or matrices.shape[:-2] != sides.shape[:-2]:
        raise ValueError(f"All input tensors must have the same rank and batches: {shapes}")
    if matrices.shape[-1] != matrices.shape[-2]:
        raise ValueError(f"First input (lhs) must be a square matrix: {shapes}")
    if matrices.shape[-1] != sides.shape[-2]:
        raise ValueError(f"Input matrix and rhs are incompatible: {shapes}")


@kernel("MatrixTriangularSolve", "BatchMatrixTriangularSolve", types={"T": _FULL})
@keeps_alone
def make_matrix_triangular_solve(attrs: Attrs) -> Kernel:
    """What triangles of the matrices, or their adjoints, turn into the right-hand sides.

    The other triangle is not read.  A zero on the diagonal gives infinities or NaN.
    """
    is_lower, is_adjoint = attrs.bool("lower"), attrs.bool("adjoint")

    def matrix_triangular_solve(matrix: Value, rhs: Value) -> Array:
        matrices, sides = _matrices(matrix), _matrices(rhs)
        batch = _check_triangular(matrices, sides)
        if is_adjoint:
            matrices = _adjoint(matrices)
        solved = np.empty((*batch, *sides.shape[-2:]), sides.dtype)
        solved[...] = sides
        if is_lower != is_adjoint:
            substitute(matrices, solved)
        else:  # read backwards, an upper triangle is a lower one
            substitute(matrices[..., ::-1, ::-1], solved[..., ::-1, :])
        return solved

    return matrix_triangular_solve


def _check_triangular(matrices: Array, sides: Array) -> tuple[int, ...]:
    """The batches of the solution; raises ValueError if there cannot be one."""
    shapes = f"{shape_text(matrices.shape)} vs. {shape_text(sides.shape)}"
    rows, columns = matrices.shape[-2:]
    if rows != columns:
        raise ValueError(
            f"In[0] matrices in the last dimensions must be square ({columns} =/= {rows})"
        )
    if rows != sides.shape[-2]:
        raise ValueError(f"In[0] mismatch In[1] shape: {rows} vs. {sides.shape[-2]}: {shapes}")
    try:
        return np.broadcast_shapes(matrices.shape[:-2], sides.shape[:-2])
    except ValueError:
        raise ValueError(
            f"In[0] and In[1] must have compatible batch dimensions: {shapes}"
        ) from None


@kernel("MatrixDeterminant", types={"T": _FULL})
@kernel("BatchMatrixDeterminant", types={"T": _FULL})
@keeps_alone
def make_matrix_determinant(attrs: Attrs) -> Kernel:
    """The determinants of the matrices."""
    wide, narrow = _determined_in(attrs.dtype("T")), attrs.dtype("T").numpy

    def matrix_determinant(values: Value) -> Value:
        determinant = np.linalg.det(_squares(values).astype(wide, copy=False))
        return as_value(np.asarray(determinant, narrow))

    return matrix_determinant


@kernel("LogMatrixDeterminant", types={"T": _FULL})
@keeps_alone
def make_log_matrix_determinant(attrs: Attrs) -> Kernel:
    """Sign, or direction, and logarithm of the size of the determinants."""
    wide, narrow = _determined_in(attrs.dtype("T")), attrs.dtype("T").numpy

    def log_matrix_determinant(values: Value) -> tuple[Value, Value]:
        sign, size = np.linalg.slogdet(_squares(values).astype(wide, copy=False))
        known = np.where(np.isnan(size), size, sign)  # LAPACK has a sign even for NaN
        return as_value(np.asarray(known, narrow)), as_value(np.asarray(size, narrow))

    return log_matrix_determinant


def _determined_in(dtype: DType) -> np.dtype[Any]:
    """Double precision, since numpy takes determinants through their logarithm."""
    return np.dtype(np.complex128 if dtype.is_complex else np.float64)


@kernel("Qr", types={"T": _WITH_HALF})
@keeps_alone
def make_qr(attrs: Attrs) -> Kernel:
    """Unitary matrices, and the upper triangles that they multiply to the matrices."""
    is_full, dtype = attrs.bool("full_matrices"), attrs.dtype("T")
    wide = _wide(dtype)

    def qr(values: Value) -> tuple[Array, Array]:
        matrices = _matrices(values).astype(wide, copy=False)
        unitary, triangle = np.linalg.qr(matrices, "complete" if is_full else "reduced")
        return (
            unitary.astype(dtype.numpy, copy=False),
            triangle.astype(dtype.numpy, copy=False),
        )

    return qr


@kernel("Svd", "BatchSvd", types={"T": _FULL})
@keeps_alone
def make_svd(attrs: Attrs) -> Kernel:
    """Singular values, largest first, and left and right singular vectors as columns.

    Without vectors their outputs are scalars.  NaN in a matrix makes its results NaN.
    """
    dtype, is_full = attrs.dtype("T").numpy, attrs.bool("full_matrices")
    nothing = dtype.type(0)

    def svd(value: Value) -> tuple[Value, Value, Value]:
        matrices, bad = _finite(_matrices(value))
        left, values, right = np.linalg.svd(matrices, is_full)
        left[bad] = values[bad] = right[bad] = np.nan
        return values.astype(dtype, copy=False), left, _adjoint(right)

    def singular_values(value: Value) -> tuple[Value, Value, Value]:
        matrices, bad = _finite(_matrices(value))
        values = np.linalg.svd(matrices, compute_uv=False)
        values[bad] = np.nan
        return values.astype(dtype, copy=False), nothing, nothing

    return svd if attrs.bool("compute_uv") else singular_values


def _finite(matrices: Array) -> tuple[Array, Array]:
    """The matrices, zero instead of any with infinities or NaN, and where those are."""
    bad = np.asarray(~np.isfinite(matrices).all((-2, -1)))
    if not bad.any():
        return matrices, bad
    return np.where(bad[..., None, None], matrices.dtype.type(0), matrices), bad


@kernel("SelfAdjointEigV2", types={"T": _FULL})
@kernel("BatchSelfAdjointEigV2", types={"T": _REAL})
@keeps_alone
def make_self_adjoint_eig_v2(attrs: Attrs) -> Kernel:
    """Eigenvalues of self-adjoint matrices, least first, and eigenvectors as columns.

    Only the lower triangle is read.  Without vectors their output is a scalar.
    """
    dtype, has_vectors = attrs.dtype("T"), attrs.bool("compute_v")

    def self_adjoint_eig(value: Value) -> tuple[Value, Value]:
        matrices, nothing = _squares(value), dtype.numpy.type(0)
        # Without vectors it takes a third of the time, but finds something of NaN, too.
        if not has_vectors and np.isfinite(np.tril(matrices)).all():
            values = _converged(np.linalg.eigvalsh, matrices)
            return values.astype(dtype.numpy, copy=False), nothing
        values, vectors = _eigen(matrices)
        return values.astype(dtype.numpy, copy=False), vectors if has_vectors else nothing

    return self_adjoint_eig


@kernel("SelfAdjointEig", "BatchSelfAdjointEig", types={"T": _REAL})
@keeps_alone
def make_self_adjoint_eig(_attrs: Attrs) -> Kernel:
    """The old form: eigenvalues as a row above the eigenvectors."""

    def self_adjoint_eig(value: Value) -> Array:
        values, vectors = _eigen(_squares(value))
        return np.concatenate([values[..., None, :], vectors], -2)

    return self_adjoint_eig


def _eigen(matrices: Array) -> tuple[Array, Array]:
    values, vectors = _converged(np.linalg.eigh, matrices)
    if np.isnan(vectors).any():
        raise ValueError(_NOT_SUCCESSFUL)
    return values, vectors


def _converged(decompose: Callable[[Array], Any], matrices: Array) -> Any:
    """What a function finds, unless it goes on and on."""
    try:
        return decompose(matrices)
    except LinAlgError:
        raise ValueError(_NOT_SUCCESSFUL) from None
