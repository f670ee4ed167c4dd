"""Linear algebra, against definitions and answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.ops import run_op

NAN = np.float32("nan")
POSITIVE = np.float32([[4, 2], [2, 3]])
INDEFINITE = np.float32([[1, 2], [2, 1]])
SINGULAR = np.float32([[1, 2], [2, 4]])
UNKNOWN = np.float32([[NAN, 1], [1, 2]])
TRIANGLE = np.float32([[2, 7], [1, 4]])
SIDE = np.float32([[1], [2]])
TYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random(dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    """Matrices that are well conditioned, if square."""
    rng = np.random.default_rng(sum(shape))
    matrices = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind != "c":
        matrices = matrices.real
    return (matrices / shape[-1] + np.eye(*shape[-2:])).astype(dtype)


def adjoint(matrices: Any) -> Any:
    """The conjugate transposes."""
    return matrices.swapaxes(-1, -2).conj()


def close(got: Any, expected: Any) -> bool:
    """Equal but for rounding, in shape and type too."""
    narrow = got.dtype in (np.float32, np.complex64)
    tolerance = 1e-4 if narrow else 1e-10
    return (
        got.dtype == expected.dtype
        and got.shape == expected.shape
        and np.allclose(got, expected, tolerance, tolerance)
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_cholesky_is_a_root(dtype: Any) -> None:
    """Of the matrix that its lower triangle describes; the upper one is not read."""
    root = random(dtype, 2, 3, 5, 5)
    matrices = root @ adjoint(root)
    spoilt = np.where(np.tri(5, dtype=bool), matrices, dtype(99))

    got = run_op("Cholesky", spoilt)

    assert close(got @ adjoint(got), matrices)
    assert np.array_equal(got, np.tril(got))


def test_cholesky_of_what_is_not_positive_is_nan() -> None:
    """In its own place of a batch only; nothing is no error."""
    got = run_op("Cholesky", np.stack([POSITIVE, INDEFINITE, POSITIVE]))

    assert got[0] == pytest.approx(np.float32([[2, 0], [1, 1.4142135]]))
    assert np.isnan(got[1]).tolist() == [[True, False], [True, True]]
    assert np.array_equal(got[2], got[0])
    assert np.isnan(run_op("BatchCholesky", UNKNOWN)).any()
    assert run_op("Cholesky", np.zeros((2, 0, 0), np.float32)).shape == (2, 0, 0)


@pytest.mark.parametrize("is_adjoint", [False, True])
@pytest.mark.parametrize("dtype", [*TYPES, np.float16])
def test_inverses_invert(dtype: Any, is_adjoint: bool) -> None:
    """The matrices or their adjoints."""
    matrices = random(dtype, 2, 4, 4)
    wide = matrices.astype(np.complex128)

    got = run_op("MatrixInverse", matrices, adjoint=is_adjoint)

    assert got.dtype == dtype
    product = got.astype(np.complex128) @ (adjoint(wide) if is_adjoint else wide)
    assert np.abs(product - np.eye(4)).max() < (1e-2 if dtype is np.float16 else 1e-5)


@pytest.mark.parametrize("matrix", [SINGULAR, UNKNOWN, np.stack([POSITIVE, SINGULAR])])
def test_some_matrices_have_no_inverse(matrix: Any) -> None:
    """One in a batch is enough; NaN counts as one."""
    with pytest.raises(ValueError, match="Input is not invertible"):
        run_op("MatrixInverse", matrix)
    with pytest.raises(ValueError, match="Input matrix is not invertible"):
        run_op("MatrixSolve", matrix, np.ones_like(matrix))


@pytest.mark.parametrize(
    "op", ["Cholesky", "MatrixInverse", "MatrixDeterminant", "SelfAdjointEigV2"]
)
@pytest.mark.parametrize(
    ("shape", "message"),
    [((2, 3), r"Input matrix must be square.*\[2,3\]"), ((3,), "must have rank >= 2, got 1")],
)
def test_matrices_must_be_square(op: str, shape: tuple[int, ...], message: str) -> None:
    """And matrices."""
    with pytest.raises(ValueError, match=message):
        run_op(op, np.ones(shape, np.float32))


@pytest.mark.parametrize("is_adjoint", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_solutions_solve(dtype: Any, is_adjoint: bool) -> None:
    """Batch by batch."""
    matrices, sides = random(dtype, 3, 4, 4), random(dtype, 3, 4, 2)

    got = run_op("MatrixSolve", matrices, sides, adjoint=is_adjoint)

    assert close((adjoint(matrices) if is_adjoint else matrices) @ got, sides)


@pytest.mark.parametrize(
    ("matrix", "rhs", "message"),
    [
        (POSITIVE, np.ones((3, 1), np.float32), "Input matrix and rhs are incompatible"),
        (POSITIVE, np.ones(2, np.float32), "must have the same rank"),
        (np.stack([POSITIVE] * 2), SIDE, "must have the same rank"),
        (np.ones((2, 3), np.float32), SIDE, "must be a square matrix"),
    ],
)
def test_solve_refuses(matrix: Any, rhs: Any, message: str) -> None:
    """Sides of another size, or of other batches."""
    with pytest.raises(ValueError, match=message):
        run_op("MatrixSolve", matrix, rhs)


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({}, [0.5, 0.375]),
        ({"lower": False}, [-1.25, 0.5]),
        ({"adjoint": True}, [0.25, 0.5]),
        ({"adjoint": True, "lower": False}, [0.5, -0.375]),
    ],
)
def test_triangles_are_solved_by_the_half_that_counts(attrs: Any, expected: list[float]) -> None:
    """The other half is not zero here, and not read."""
    got = run_op("MatrixTriangularSolve", TRIANGLE, SIDE, **attrs)

    assert got[:, 0].tolist() == expected


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("is_adjoint", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_large_triangles_are_cut_in_two(dtype: Any, is_adjoint: bool, lower: bool) -> None:
    """And batches are broadcast."""
    matrices, sides = random(dtype, 3, 1, 50, 50), random(dtype, 2, 50, 3)
    triangle = np.tril(matrices) if lower else np.triu(matrices)

    got = run_op("MatrixTriangularSolve", matrices, sides, adjoint=is_adjoint, lower=lower)

    product = (adjoint(triangle) if is_adjoint else triangle) @ got
    assert close(product, np.broadcast_to(sides, (3, 2, 50, 3)))


def test_zeros_on_the_diagonal_divide() -> None:
    """To infinities or NaN, by floating-point rules."""
    triangle = np.float32([[0, 0], [1, 1]])

    assert run_op("MatrixTriangularSolve", triangle, SIDE)[:, 0].tolist() == [np.inf, -np.inf]
    assert np.isnan(run_op("MatrixTriangularSolve", triangle, 0 * SIDE)).all()


@pytest.mark.parametrize(
    ("matrix", "rhs", "message"),
    [
        (TRIANGLE, np.ones((3, 1), np.float32), r"In\[0\] mismatch In\[1\] shape: 2 vs. 3"),
        (np.ones((2, 3), np.float32), SIDE, r"must be square \(3 =/= 2\)"),
        (np.stack([TRIANGLE] * 3), np.stack([SIDE] * 2), "must have compatible batch dimensions"),
    ],
)
def test_triangular_solve_refuses(matrix: Any, rhs: Any, message: str) -> None:
    """Sides of another size, or of batches that cannot be broadcast."""
    with pytest.raises(ValueError, match=message):
        run_op("MatrixTriangularSolve", matrix, rhs)


def test_determinants() -> None:
    """Of each matrix of a batch; of nothing it is 1, of singular matrices 0."""
    assert run_op("MatrixDeterminant", POSITIVE) == pytest.approx(8)
    assert run_op("MatrixDeterminant", np.zeros((2, 0, 0), np.float32)).tolist() == [1, 1]
    assert run_op("MatrixDeterminant", np.stack([SINGULAR, INDEFINITE])) == pytest.approx([0, -3])
    assert np.isnan(run_op("MatrixDeterminant", UNKNOWN))
    assert isinstance(run_op("MatrixDeterminant", POSITIVE), np.float32)


@pytest.mark.parametrize(
    ("matrix", "sign", "size"),
    [
        (POSITIVE, 1, 2.0794415),
        (INDEFINITE, -1, 1.0986123),
        (SINGULAR, 0, -np.inf),
        (UNKNOWN, NAN, NAN),
        (np.complex64([[1j, 2], [3, 4]]), -0.83205 + 0.5547j, 1.9756219),
        (np.zeros((0, 0), np.float32), 1, 0),
    ],
)
def test_log_determinants(matrix: Any, sign: complex, size: float) -> None:
    """Sign and logarithm of the size, both of the matrix's type."""
    got_sign, got_size = run_op("LogMatrixDeterminant", matrix)

    assert got_sign == pytest.approx(sign, rel=1e-5, nan_ok=True)
    assert got_size == pytest.approx(size, rel=1e-5, nan_ok=True)
    assert got_sign.dtype == got_size.dtype == matrix.dtype


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (4, 3, 3), (0, 2), (2, 0), (0, 2, 2)])
@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_decompositions_multiply_back(dtype: Any, is_full: bool, shape: tuple[int, ...]) -> None:
    """Shapes as TensorFlow has them, and products that are the matrix again."""
    matrices = random(dtype, *shape) if 0 not in shape else np.zeros(shape, dtype)
    *batch, rows, columns = shape
    least = min(rows, columns)

    unitary, triangle = run_op("Qr", matrices, full_matrices=is_full)
    values, left, right = run_op("Svd", matrices, full_matrices=is_full)

    assert unitary.shape == (*batch, rows, rows if is_full else least)
    assert left.shape == (*batch, rows, rows if is_full else least)
    assert right.shape == (*batch, columns, columns if is_full else least)
    assert close(unitary @ triangle, matrices)
    some = left[..., :least] * values[..., None, :]
    assert close(some @ adjoint(right[..., :least]), matrices)
    assert values.dtype == dtype


def test_qr_leaves_signs_as_householder_does() -> None:
    """No reflection where a column is already in place: R keeps the sign."""
    unitary, triangle = run_op("Qr", np.float32([[-2]]))
    assert (unitary.item(), triangle.item()) == (1, -2)

    unitary, _ = run_op("Qr", np.float32([[1, 2], [3, 4], [5, 6]]))
    assert unitary[0] == pytest.approx(np.float32([-0.16903079, 0.897085]), rel=1e-4)


def test_singular_values_without_vectors() -> None:
    """The vectors' outputs are scalars then."""
    values, left, right = run_op("Svd", np.float32([[1, 2], [3, 4], [5, 6]]), compute_uv=False)

    assert values == pytest.approx(np.float32([9.525518, 0.5143]), rel=1e-4)
    assert left.shape == right.shape == ()


def test_nan_stays_in_its_matrix() -> None:
    """Other matrices of the batch are decomposed all the same."""
    both = np.stack([POSITIVE, UNKNOWN])

    values, left, _ = run_op("Svd", both)

    assert np.isfinite(values[0]).all()
    assert np.isnan(values[1]).all()
    assert np.isnan(left[1]).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvectors_are_stretched(dtype: Any) -> None:
    """By the eigenvalues, least first; only the lower triangle is read."""
    matrices = random(dtype, 3, 4, 4)
    matrices = matrices + adjoint(matrices)
    spoilt = np.where(np.tri(4, dtype=bool), matrices, dtype(99))

    values, vectors = run_op("SelfAdjointEigV2", spoilt)
    alone, nothing = run_op("SelfAdjointEigV2", spoilt, compute_v=False)

    assert close(matrices @ vectors, vectors * values[..., None, :])
    assert (np.diff(values.real) >= 0).all()
    assert close(alone, values)
    assert alone.dtype == values.dtype
    assert nothing.shape == ()


def test_old_eigen_decomposition_puts_values_above_vectors() -> None:
    """One matrix of one row more."""
    got = run_op("SelfAdjointEig", POSITIVE)

    assert got.shape == (3, 2)
    assert got[0] == pytest.approx(np.float32([1.4384472, 5.5615525]), rel=1e-5)


@pytest.mark.parametrize("with_vectors", [True, False])
@pytest.mark.parametrize("place", [0, 1])
def test_nan_has_no_eigenvalues(place: int, with_vectors: bool) -> None:
    """TensorFlow fails, other than for singular values."""
    matrices = np.stack([POSITIVE, POSITIVE])
    matrices[place] = UNKNOWN
    with pytest.raises(ValueError, match="eigen decomposition was not successful"):
        run_op("SelfAdjointEigV2", matrices, compute_v=with_vectors)


@pytest.mark.parametrize("with_vectors", [True, False])
def test_eigenvalues_of_what_is_infinite_are_unknown(with_vectors: bool) -> None:
    """Recorded from TensorFlow: no error, unlike for NaN; and nobody looks above the diagonal."""
    values, _ = run_op(
        "SelfAdjointEigV2", np.float32([[np.inf, 1], [1, 2]]), compute_v=with_vectors
    )
    assert np.isnan(values).all()
    values, _ = run_op(
        "SelfAdjointEigV2", np.float32([[1, np.inf], [1, 2]]), compute_v=with_vectors
    )
    assert close(values, np.float32([0.38196605, 2.6180344]))


def test_no_matrices_have_no_eigenvalues() -> None:
    """With vectors or without."""
    for shape in ((0, 3, 3), (2, 0, 0)):
        none = np.zeros(shape, np.float32)
        assert run_op("SelfAdjointEigV2", none, compute_v=False)[0].shape == shape[:-1]
        assert run_op("SelfAdjointEigV2", none)[1].shape == shape


@pytest.mark.parametrize("kind", [np.float32, np.complex128])
@pytest.mark.parametrize("shape", [(64,), (100,), (3, 75)])
@pytest.mark.parametrize("is_adjoint", [False, True])
def test_large_triangles(kind: Any, shape: Any, is_adjoint: bool) -> None:
    """The triangle times the solution is the right-hand side."""
    size = shape[-1]
    random = np.random.default_rng(size)
    matrices = (random.normal(size=(*shape, size)) / size).astype(kind) + np.eye(size, dtype=kind)
    sides = random.normal(size=(size, 20)).astype(kind)
    for lower, triangle in ((True, np.tril(matrices)), (False, np.triu(matrices))):
        solved = run_op("MatrixTriangularSolve", matrices, sides, adjoint=is_adjoint, lower=lower)
        operand = triangle.conj().swapaxes(-1, -2) if is_adjoint else triangle
        products = operand.astype(np.complex128) @ solved
        np.testing.assert_allclose(products, np.broadcast_to(sides, products.shape), atol=1e-5)


@pytest.mark.parametrize("bad", [np.inf, NAN])
def test_large_triangles_with_zeros_and_sides_without_end(bad: float) -> None:
    """What is infinite or no number reaches the rows behind it, not those before."""
    matrix, sides = np.eye(80, dtype=np.float32), np.ones((80, 20), np.float32)
    zero_there, bad_there = matrix.copy(), sides.copy()
    zero_there[40, 40], bad_there[40] = 0, bad
    expected = sides.copy()
    for value, args in ((np.inf, (zero_there, sides)), (bad, (matrix, bad_there))):
        expected[40] = value
        solved = run_op("MatrixTriangularSolve", *args)
        np.testing.assert_array_equal(solved[:41], expected[:41])
