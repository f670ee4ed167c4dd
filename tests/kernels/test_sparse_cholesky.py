"""Cholesky's decomposition of sparse matrices, by what defines it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core import dtypes
from penstock.kernels.sparse.minimum_degree import minimum_degree
from support.ops import run_op


def _sparse(dense: Any) -> Any:
    return run_op("DenseToCSRSparseMatrix", dense, np.argwhere(dense != 0))


def _decomposed(dense: Any, order: Any) -> Any:
    """The triangle as a variant."""
    given = _sparse(dense), np.array(order, np.int32)
    return run_op("SparseMatrixSparseCholesky", *given, type=dtypes.float64)


def _grid(side: int) -> Any:
    """The discrete Laplacian of a square, shifted: five elements in a row."""
    line = 2 * np.eye(side) - np.eye(side, k=1) - np.eye(side, k=-1)
    return np.kron(line, np.eye(side)) + np.kron(np.eye(side), line) + 0.1 * np.eye(side**2)


@pytest.mark.parametrize("seed", range(5))
def test_the_triangle_times_itself_is_the_matrix_in_its_order(seed: int) -> None:
    """L L* = P A P*, whatever the order."""
    random = np.random.default_rng(seed)
    dense = _grid(6)
    order = random.permutation(36)
    triangle = run_op("CSRSparseMatrixToDense", _decomposed(dense, order), type=dtypes.float64)
    assert np.allclose(triangle, np.tril(triangle))
    assert np.allclose(triangle @ triangle.T, dense[np.ix_(order, order)])


def test_the_best_order_fills_little_up() -> None:
    """Of a grid far fewer elements are made than in its own order or in a random one."""
    dense = _grid(16)
    order = run_op("SparseMatrixOrderingAMD", _sparse(dense))
    assert sorted(order.tolist()) == list(range(256))
    others = (range(256), np.random.default_rng(0).permutation(256))
    best, own, some = (
        int(run_op("SparseMatrixNNZ", _decomposed(dense, one))) for one in (order, *others)
    )
    assert 1.5 * best < min(own, some)


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ([0, 0, 1], "permutation must hold each number below 3 once"),
        ([0, 1, 3], "permutation must hold each number below 3 once"),
        ([0, 1, -1], "permutation must hold each number below 3 once"),
        ([0, 1], "Expected a permutation of shape [3]"),
        ([[0, 1, 2]], "Expected a permutation of shape [3]"),
    ],
)
def test_what_is_no_order(order: Any, says: str) -> None:
    """TensorFlow would read and write elsewhere in memory."""
    with pytest.raises(errors.InvalidArgumentError) as caught:
        _decomposed(np.eye(3), order)
    assert says in caught.value.message


def test_matrices_must_be_square() -> None:
    """Others have neither an order nor a decomposition."""
    for op, rest, attrs in (
        ("SparseMatrixOrderingAMD", (), {}),
        ("SparseMatrixSparseCholesky", (np.array([0, 1], np.int32),), {"type": dtypes.float64}),
    ):
        with pytest.raises(errors.InvalidArgumentError, match="Expected square matrices"):
            run_op(op, _sparse(np.ones((2, 3))), *rest, **attrs)


def test_nothing_is_decomposed() -> None:
    """A matrix without rows has an order and a triangle without any, too."""
    none = _sparse(np.zeros((0, 0)))
    assert run_op("SparseMatrixOrderingAMD", none).shape == (0,)
    triangle = run_op(
        "SparseMatrixSparseCholesky", none, np.zeros(0, np.int32), type=dtypes.float64
    )
    assert run_op("CSRSparseMatrixToDense", triangle, type=dtypes.float64).shape == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_orders_hold_everything_once(seed: int) -> None:
    """Whatever meets whatever, with or without itself."""
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 80))
    pattern = random.random((size, size)) < random.random() ** 3
    pattern |= pattern.T
    order = minimum_degree([np.flatnonzero(row).tolist() for row in pattern])
    assert sorted(order) == list(range(size))
