"""Functions of matrices, triangles, least squares and band matrices, against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core.dtypes import as_dtype
from support.ops import run_op

RNG = np.random.default_rng(7)
TYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random(dtype: Any, *shape: int) -> Any:
    """Numbers around zero."""
    values = RNG.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RNG.uniform(-1, 1, shape)
    return values.astype(dtype)


def close(got: Any, expected: Any) -> None:
    """Equal but for rounding."""
    tolerance = 2e-3 if got.dtype in (np.float32, np.complex64) else 1e-8
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 5, 5)])
def test_triangles_multiply_to_the_rows_in_order(dtype: Any, shape: tuple[int, ...]) -> None:
    """L U is the matrix with its rows in the order that comes with it."""
    matrices = random(dtype, *shape)
    lu, order = run_op("Lu", matrices)
    size = shape[-1]
    lower, upper = np.tril(lu, -1) + np.eye(size), np.triu(lu)
    close(lower.astype(dtype) @ upper, np.take_along_axis(matrices, order[..., None], -2))
    assert order.dtype == np.int32


def test_singular_matrices_have_no_triangles() -> None:
    """A zero pivot is an error; an empty matrix is not."""
    with pytest.raises(ValueError, match="Input is not invertible"):
        run_op("Lu", np.float32([[1, 2], [2, 4]]))
    lu, order = run_op("Lu", np.zeros((2, 0, 0), np.float32))
    assert lu.shape == (2, 0, 0)
    assert order.shape == (2, 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_square_roots_multiply_to_the_matrix(dtype: Any) -> None:
    """Also where eigenvectors are too close to each other."""
    matrices = random(dtype, 3, 4, 4)
    matrices = (matrices @ matrices.swapaxes(1, 2).conj() + np.eye(4)).astype(dtype)
    roots = run_op("MatrixSquareRoot", matrices)
    close(roots @ roots, matrices)
    jordan = np.array([[1, 1], [0, 1]], dtype)
    close(run_op("MatrixSquareRoot", jordan), [[1, 0.5], [0, 1]])


def test_real_matrices_without_real_roots() -> None:
    """Recorded from TensorFlow: NaN."""
    assert np.isnan(run_op("MatrixSquareRoot", np.float32([[-4, 0], [0, 9]]))).all()


def test_logarithms() -> None:
    """Known ones, and the exponential of the logarithm."""
    close(run_op("MatrixLogarithm", np.complex64([[1, 1], [0, 1]])), [[0, 1], [0, 0]])
    close(run_op("MatrixLogarithm", np.complex64([[-1, 0], [0, 1]])), [[1j * np.pi, 0], [0, 0]])
    matrix = random(np.complex128, 4, 4)
    close(run_op("MatrixExponential", run_op("MatrixLogarithm", matrix)), matrix)
    jordan = np.complex128([[2, 1, 0], [0, 2, 1], [0, 0, 2]])
    close(run_op("MatrixExponential", run_op("MatrixLogarithm", jordan)), jordan)


@pytest.mark.parametrize("scale", [0.01, 1.0, 20.0])
def test_exponential_of_a_rotation(scale: float) -> None:
    """The exponential of [[0, -x], [x, 0]] turns by x."""
    matrix = np.array([[0, -scale], [scale, 0]])
    cos, sin = np.cos(scale), np.sin(scale)
    close(run_op("MatrixExponential", matrix), [[cos, -sin], [sin, cos]])


@pytest.mark.parametrize(("dtype", "out"), [(np.float32, "complex64"), (np.float64, "complex128")])
def test_eigenvectors_are_stretched_by_eigenvalues(dtype: Any, out: str) -> None:
    """A v = v diag(e)."""
    matrices = random(dtype, 2, 4, 4)
    values, vectors = run_op("Eig", matrices, Tout=as_dtype(out))
    assert values.dtype == out
    close(matrices @ vectors, vectors * values[:, None, :])
    with pytest.raises(ValueError, match="Eigen decomposition was not successful"):
        run_op("Eig", matrices * dtype(np.nan), Tout=as_dtype(out))


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 5, 3)])
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_least_squares(shape: tuple[int, ...], penalty: float) -> None:
    """The gradient of squares and penalty is zero at the solution."""
    matrices, sides = random(np.float64, *shape), random(np.float64, *shape[:-1], 2)
    x = run_op("MatrixSolveLs", matrices, sides, np.float64(penalty))
    rest = matrices @ x - sides
    close(matrices.swapaxes(-1, -2) @ rest + penalty * x, np.zeros_like(x))
    if not penalty:
        close(x, run_op("MatrixSolveLs", matrices, sides, np.float64(0), fast=False))


def test_rank_deficient_least_squares() -> None:
    """The fast way fails, the other gives the smallest solution."""
    matrix, side = np.zeros((2, 3), np.float32), np.ones((2, 1), np.float32)
    with pytest.raises(ValueError, match="rank deficient"):
        run_op("MatrixSolveLs", matrix, side, np.float64(0))
    assert not run_op("MatrixSolveLs", matrix, side, np.float64(0), fast=False).any()


def test_cholesky_gradient_is_a_difference() -> None:
    """Along a symmetric direction the loss changes as the gradient says."""
    root = random(np.float64, 4, 4)
    matrix, back = root @ root.T + np.eye(4), random(np.float64, 4, 4)
    gradient = run_op("CholeskyGrad", np.linalg.cholesky(matrix), back)
    way = random(np.float64, 4, 4)
    way = 1e-5 * (way + way.T)
    change = np.linalg.cholesky(matrix + way) - np.linalg.cholesky(matrix - way)
    np.testing.assert_allclose((gradient * way).sum(), (change * back).sum() / 2, rtol=1e-5)


def whole(diagonals: Any) -> Any:
    """The matrix that three diagonals stand for."""
    above, main, below = diagonals
    return np.diag(main) + np.diag(above[:-1], 1) + np.diag(below[1:], -1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_tridiagonal_matrices(dtype: Any, size: int) -> None:
    """Products and solutions are those of the whole matrix, in batches."""
    diagonals, sides = random(dtype, 2, 3, size), random(dtype, 2, size, 2)
    matrices = np.stack([whole(d) for d in diagonals])
    close(run_op("TridiagonalSolve", diagonals, sides), np.linalg.solve(matrices, sides))
    diagonals[:, 1] += 3  # no pivoting is needed then
    matrices = np.stack([whole(d) for d in diagonals])
    solved = run_op("TridiagonalSolve", diagonals, sides, partial_pivoting=False)
    close(solved, np.linalg.solve(matrices, sides))
    parts = (diagonals[:, n : n + 1] for n in range(3))
    close(run_op("TridiagonalMatMul", *parts, sides), matrices @ sides)


def test_singular_and_bad_tridiagonals() -> None:
    """Without an inverse all is NaN; sizes must fit."""
    sides = np.ones((3, 1), np.float32)
    assert np.isnan(run_op("TridiagonalSolve", np.zeros((3, 3), np.float32), sides)).all()
    with pytest.raises(ValueError, match="matrix with 3 rows"):
        run_op("TridiagonalSolve", np.zeros((2, 3), np.float32), sides)
    with pytest.raises(ValueError, match="same number of left-hand sides"):
        run_op("TridiagonalSolve", np.zeros((3, 2), np.float32), sides)


@pytest.mark.parametrize("is_lower", [True, False])
@pytest.mark.parametrize("is_adjoint", [True, False])
def test_banded_triangles(is_lower: bool, is_adjoint: bool) -> None:
    """Solutions are those of the whole triangle, or of its adjoint."""
    bands, sides = random(np.complex128, 3, 5), random(np.complex128, 5, 2)
    bands[0 if is_lower else 2] += 3
    triangle = np.zeros((5, 5), np.complex128)
    for away in range(3):
        for row in range(away if is_lower else 0, 5 if is_lower else 5 - away):
            column = row - away if is_lower else row + away
            triangle[row, column] = bands[away if is_lower else 2 - away, row]
    got = run_op("BandedTriangularSolve", bands, sides, lower=is_lower, adjoint=is_adjoint)
    close(got, np.linalg.solve(triangle.conj().T if is_adjoint else triangle, sides))
