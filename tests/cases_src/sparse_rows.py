"""Sparse matrices in rows, as variants: made, read, counted, turned, multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import graph, i32, i64, normal

#: Places in matrices of 3 x 4, in two of 3 x 4, and with empty rows at both ends.
_PLACES = {
    "one": ([[0, 1], [2, 0], [2, 2]], [3, 4]),
    "two": ([[0, 0, 1], [0, 2, 3], [1, 1, 0], [1, 1, 1]], [2, 3, 4]),
    "gap": ([[0, 0, 0], [2, 1, 1], [2, 2, 0]], [4, 3, 4]),
    "thin": ([[1, 3], [1, 0]], [3, 4]),
    "none": (np.zeros((0, 2)), [3, 4]),
}


def _made(tf: Any, which: str, dtype: str, seed: int = 1) -> Any:
    places, shape = _PLACES[which]
    values = normal(len(places), seed=seed).astype(dtype)
    if dtype.startswith("complex"):
        values = (values * (1 + 0.5j)).astype(dtype)
    return tf.raw_ops.SparseTensorToCSRSparseMatrix(
        indices=i64(places), values=values, dense_shape=i64(shape)
    )


def _seen(tf: Any, matrix: Any, dtype: str) -> list[Any]:
    """Everything that can be fetched of a matrix."""
    raw = tf.raw_ops
    return [
        *raw.CSRSparseMatrixComponents(csr_sparse_matrix=matrix, index=0, type=dtype),
        *raw.CSRSparseMatrixToSparseTensor(sparse_matrix=matrix, type=dtype),
        raw.CSRSparseMatrixToDense(sparse_input=matrix, type=dtype),
        raw.SparseMatrixNNZ(sparse_matrix=matrix),
    ]


def from_sparse(tf: Any, which: str, dtype: str) -> Any:
    """A matrix, as it was given."""
    return _seen(tf, _made(tf, which, dtype), dtype)


def from_dense(tf: Any, which: str, dtype: str) -> Any:
    """Some elements of a dense matrix."""
    places, shape = _PLACES[which]
    dense = normal(*shape).astype(dtype)
    made = tf.raw_ops.DenseToCSRSparseMatrix(dense_input=dense, indices=i64(places))
    return _seen(tf, made, dtype)


def transposed(tf: Any, which: str, dtype: str, conjugate: int = 0) -> Any:
    """Columns as rows."""
    made = tf.raw_ops.SparseMatrixTranspose(
        input=_made(tf, which, dtype), type=dtype, conjugate=bool(conjugate)
    )
    return _seen(tf, made, dtype)


def times_dense(tf: Any, which: str, dtype: str, *flags: str) -> Any:
    """Times a dense matrix."""
    *batch, height, width = _PLACES[which][1]
    inner = height if {"transpose_a", "adjoint_a"} & {*flags} else width
    size = (2, inner) if {"transpose_b", "adjoint_b"} & {*flags} else (inner, 2)
    dense = normal(*batch, *size, seed=3).astype(dtype)
    if dtype.startswith("complex"):
        dense = (dense * (1 - 2j)).astype(dtype)
    return tf.raw_ops.SparseMatrixMatMul(
        a=_made(tf, which, dtype), b=dense, **dict.fromkeys(flags, True)
    )


def times_sparse(tf: Any, which: str, dtype: str, *flags: str) -> Any:
    """Times itself, one of the two turned."""
    made = tf.raw_ops.SparseMatrixSparseMatMul(
        a=_made(tf, which, dtype),
        b=_made(tf, which, dtype, 2),
        type=dtype,
        **dict.fromkeys(flags, True),
    )
    return _seen(tf, made, dtype)


def wrong(tf: Any, what: str) -> Any:
    """What does not fit."""
    raw, made = tf.raw_ops, _made(tf, "one", "float32")
    if what == "place":
        return raw.SparseMatrixNNZ(
            sparse_matrix=raw.SparseTensorToCSRSparseMatrix(
                indices=i64([[0, 0], [3, 1]]), values=normal(2), dense_shape=i64([3, 4])
            )
        )
    if what == "index":
        return raw.CSRSparseMatrixComponents(
            csr_sparse_matrix=made, index=i32(1), type="float32"
        ).values
    if what == "type":
        return raw.CSRSparseMatrixToDense(sparse_input=made, type="float64")
    if what == "inner":
        return raw.SparseMatrixMatMul(a=made, b=tf.placeholder_with_default(normal(3, 2), None))
    if what == "rank":
        return raw.SparseMatrixMatMul(a=made, b=tf.placeholder_with_default(normal(1, 4, 2), None))
    if what == "zeros":
        return raw.SparseMatrixNNZ(sparse_matrix=raw.ZerosLike(x=made))
    hidden = raw.SparseTensorToCSRSparseMatrix(
        indices=i64([[0, 0]]),
        values=normal(1),
        dense_shape=tf.placeholder_with_default(i64([3, 4]), [2]),
    )
    other = raw.SparseMatrixSparseMatMul(a=hidden, b=hidden, type="float32")
    return raw.SparseMatrixNNZ(sparse_matrix=other)


_SAYS = {
    "place": "indices[1, :] = [3, 1] is out of bounds",
    "index": "index (1) not in [0, 1)",
    "type": "Asked for a CSRSparseMatrix of type double but saw dtype: float",
    "inner": "Inner product dimensions of A and B do not agree",
    "rank": "Ranks of a and b must match, saw: 2 vs. 3",
    "zeros": "No unary variant unary_op function found for op ZEROS_LIKE",
    "sparse_inner": "Shapes are: [3,4] vs. [3,4]",
}

CASES = [
    *(graph(from_sparse, which, "float32") for which in _PLACES),
    graph(from_sparse, "two", "complex64"),
    *(graph(from_dense, which, "float64") for which in ("one", "two", "none")),
    *(graph(transposed, which, "float32") for which in ("one", "gap", "none")),
    graph(transposed, "two", "complex128", 1),
    *(graph(times_dense, which, "float32") for which in ("one", "two", "gap", "none")),
    graph(times_dense, "one", "float64", "transpose_a", "transpose_output"),
    graph(times_dense, "two", "float32", "transpose_a", "transpose_b"),
    graph(times_dense, "one", "complex64", "adjoint_a", "adjoint_b"),
    graph(times_dense, "one", "complex64", "conjugate_output"),
    *(graph(times_sparse, which, "float32", "transpose_b") for which in ("one", "gap", "none")),
    graph(times_sparse, "two", "complex64", "adjoint_a"),
    *(graph(wrong, what, says=says) for what, says in _SAYS.items()),
]
