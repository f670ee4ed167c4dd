"""Cholesky's decomposition of sparse matrices, and orders of their rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from cases_src.casebook import graph


def _positive(size: int, density: float, seed: int, dtype: str = "float64") -> Any:
    """A positive definite matrix with zeros."""
    random = np.random.default_rng(seed)
    half = np.where(random.random((size, size)) < density, random.normal(size=(size, size)), 0)
    if dtype.startswith("complex"):
        half = half * (1 + 1j * random.normal(size=(size, size)))
    return (half @ half.conj().T + size * np.eye(size)).astype(dtype)


def _sparse(tf: Any, dense: Any) -> Any:
    return tf.raw_ops.DenseToCSRSparseMatrix(
        dense_input=tf.constant(dense), indices=tf.constant(np.argwhere(dense != 0))
    )


def decomposed(tf: Any, dense: Any, permutation: Any) -> Any:
    """A triangle as a dense matrix, and where its elements stand; in the best order if in none."""
    raw, dtype = tf.raw_ops, str(dense.dtype)
    matrix = _sparse(tf, dense)
    if permutation is None:
        permutation = raw.SparseMatrixOrderingAMD(input=matrix)
    triangle = raw.SparseMatrixSparseCholesky(
        input=matrix, permutation=tf.cast(permutation, tf.int32), type=dtype
    )
    parts = [
        raw.CSRSparseMatrixComponents(csr_sparse_matrix=triangle, index=at, type=dtype)
        for at in range(dense.shape[0] if dense.ndim == 3 else 1)
    ]
    return [raw.CSRSparseMatrixToDense(sparse_input=triangle, type=dtype), parts]


def ordered(tf: Any, dense: Any) -> Any:
    return tf.raw_ops.SparseMatrixOrderingAMD(input=_sparse(tf, dense))


def other_type(tf: Any) -> Any:
    matrix = _sparse(tf, np.eye(2, dtype=np.float32))
    return tf.raw_ops.CSRSparseMatrixToDense(
        sparse_input=tf.raw_ops.SparseMatrixSparseCholesky(
            input=matrix, permutation=[0, 1], type=tf.float64
        ),
        type=tf.float64,
    )


_FOUR = _positive(4, 0.4, 1)
_ARROW = np.diag([20.0, 10, 10, 10, 10, 10])
_ARROW[0, 1:] = _ARROW[1:, 0] = 1
_LINE = 4 * np.eye(7) + np.eye(7, k=1) + np.eye(7, k=-1)
_FAILS = "Sparse Cholesky factorization failed for batch index"
CASES = [
    *(graph(decomposed, _positive(5, 0.4, 2, dtype), permutation)
      for dtype, permutation in product(
          ("float32", "float64", "complex64", "complex128"), ([0, 1, 2, 3, 4], [2, 0, 4, 1, 3]))),
    *(graph(decomposed, half(_FOUR), [2, 0, 3, 1]) for half in (np.tril, np.triu)),
    graph(decomposed, np.tril(_positive(4, 0.9, 3, "complex128")), [3, 1, 0, 2]),
    graph(decomposed, np.stack([_positive(3, 0.5, 4), np.eye(3)]), [[0, 1, 2], [2, 1, 0]]),
    *(graph(decomposed, matrix, None) for matrix in (
        _ARROW, _LINE, np.eye(1), _positive(12, 0.1, 5), np.stack([_ARROW, _ARROW[::-1, ::-1]]))),
    graph(decomposed, -np.eye(3), [0, 1, 2], says=f"{_FAILS} 0. The input might not be valid."),
    graph(decomposed, np.array([[1.0, 2], [2, 1]]), [0, 1], says=f"{_FAILS} 0."),
    graph(decomposed, np.stack([np.eye(2), 0 * np.eye(2)]), [[0, 1], [1, 0]], says=f"{_FAILS} 1"),
    graph(other_type, says="Asked for a CSRSparseMatrix of type double but saw dtype: float"),
    *(graph(ordered, _positive(size, density / size, size))
      for size, density in product((3, 5, 8, 13, 21, 34, 55, 89), (0.6, 1.2, 2.5))),
    *(graph(ordered, matrix) for matrix in (_ARROW, _LINE, np.ones((4, 4)), np.eye(5))),
    *(graph(ordered, half(_positive(8, 0.2, 6))) for half in (np.tril, np.triu)),
    # Without an element in the diagonal; and with rows that meet many others.
    graph(ordered, np.array([[1.0, 0, 1], [0, 0, 0], [1, 0, 1]])),
    graph(ordered, np.zeros((3, 3))),
    *(graph(ordered, _positive(60, 0.01, seed) + np.fromfunction(
        lambda i, j: (i % 29 == 0) | (j % 29 == 0), (60, 60)))
      for seed in range(2)),
]  # fmt: skip
