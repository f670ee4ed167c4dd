"""Sets, as the last dimension of tensors.

In:   sets: rows of a dense tensor, or of a sparse one.
Out:  sets, as a sparse tensor with their elements in ascending order; or sizes.
Not:  an element that occurs twice counts once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.sparse.sparse_tensor import Sparse, check_indices, places, positions, sparse
from penstock.kernels.values.arrays import as_array, check_new, shape_text

#: Sets by the number of their group.
_Sets = dict[int, set[Any]]
_OPERATIONS: Final[dict[str, Callable[[set[Any], set[Any]], set[Any]]]] = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


def _of_dense(array: Array) -> tuple[_Sets, tuple[int, ...]]:
    """All sets of a dense tensor, and the shape of the groups."""
    if array.ndim < 2:
        raise InvalidArgumentError(
            f"Invalid shape {shape_text(array.shape)}: a set needs at least 2 dimensions"
        )
    shape = array.shape[:-1]
    rows = array.reshape(math.prod(shape), array.shape[-1]).tolist()
    return dict(enumerate(map(set, rows))), shape


def _of_sparse(tensor: Sparse, *, validates: bool) -> tuple[_Sets, tuple[int, ...]]:
    """The sets of a sparse tensor that are not empty, and the shape of the groups."""
    if tensor.rank < 2 and validates:
        raise InvalidArgumentError(f"Invalid shape {shape_text(tensor.shape)}: rank is too small")
    if validates:
        check_indices(tensor.indices, tensor.shape)
    shape = tensor.shape[:-1]
    sets: _Sets = {}
    groups = positions(tensor.indices[:, :-1], shape).tolist()
    for group, value in zip(groups, tensor.values.tolist(), strict=True):
        sets.setdefault(group, set()).add(value)
    if any(not 0 <= group < math.prod(shape) for group in sets):
        raise InvalidArgumentError(
            f"indices are out of bounds for shape {shape_text(tensor.shape)}"
        )
    return sets, shape


def _operation(attrs: Attrs) -> Callable[..., tuple[Array, Array, Array]]:
    name = attrs.str("set_operation").lower()
    if name not in _OPERATIONS:
        raise InvalidArgumentError(f"Invalid set_operation {name}.")
    combine, dtype = _OPERATIONS[name], attrs.dtype("T").numpy

    def operate(
        a: tuple[_Sets, tuple[int, ...]], b: tuple[_Sets, tuple[int, ...]]
    ) -> tuple[Array, Array, Array]:
        (left, shape), (right, other) = a, b
        if shape != other:
            raise InvalidArgumentError(
                f"Mismatched group shapes {shape_text(shape)} vs {shape_text(other)}"
            )
        nothing: set[Any] = set()
        groups = sorted(left.keys() | right.keys())
        results = [sorted(combine(left.get(g, nothing), right.get(g, nothing))) for g in groups]
        return _as_sparse(groups, results, shape, dtype)

    return operate


def _as_sparse(
    groups: list[int], results: list[list[Any]], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    lengths = [len(row) for row in results]
    outer = places(np.repeat(np.array(groups, np.int64), lengths), shape)
    inner = np.array([at for size in lengths for at in range(size)], np.int64)
    values = np.empty(len(inner), dtype)
    values[:] = [value for row in results for value in row]
    sizes = np.array((*shape, max(lengths, default=0)), np.int64)
    return np.concatenate([outer, inner[:, None]], axis=1), values, sizes


@kernel("DenseToDenseSetOperation")
def make_dense_to_dense_set_operation(attrs: Attrs) -> Kernel:
    """The operation on the sets of two dense tensors."""
    operate = _operation(attrs)
    return lambda a, b: operate(_of_dense(as_array(a)), _of_dense(as_array(b)))


@kernel("DenseToSparseSetOperation")
def make_dense_to_sparse_set_operation(attrs: Attrs) -> Kernel:
    """The operation on the sets of a dense and a sparse tensor."""
    operate, validates = _operation(attrs), attrs.bool("validate_indices")

    def compute(a: Value, *b: Value) -> tuple[Array, Array, Array]:
        return operate(_of_dense(as_array(a)), _of_sparse(sparse(*b), validates=validates))

    return compute


@kernel("SparseToSparseSetOperation")
def make_sparse_to_sparse_set_operation(attrs: Attrs) -> Kernel:
    """The operation on the sets of two sparse tensors."""
    operate, validates = _operation(attrs), attrs.bool("validate_indices")

    def compute(*parts: Value) -> tuple[Array, Array, Array]:
        a, b = sparse(*parts[:3]), sparse(*parts[3:])
        return operate(_of_sparse(a, validates=validates), _of_sparse(b, validates=validates))

    return compute


@kernel("SetSize")
def make_set_size(attrs: Attrs) -> Kernel:
    """Number of different elements in each set."""
    validates = attrs.bool("validate_indices")

    def set_size(*parts: Value) -> Value:
        sets, shape = _of_sparse(sparse(*parts), validates=validates)
        check_new(shape, np.dtype(np.int32))
        sizes = np.zeros(math.prod(shape), np.int32)
        for group, elements in sets.items():
            sizes[group] = len(elements)
        return as_value(sizes.reshape(shape))

    return set_size
