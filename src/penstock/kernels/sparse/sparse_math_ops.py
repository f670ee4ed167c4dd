"""Arithmetic with sparse tensors.

In:   sparse tensors, as places, values and sizes; some ops take a dense one beside.
Out:  sparse tensors, or dense ones.
Not:  elements that are missing count as zero where two tensors meet, and as nothing where
      one is reduced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, REALS
from penstock.kernels.narrow.precision import NARROW
from penstock.kernels.sparse.sparse_tensor import (
    Sparse,
    first_outside,
    memory_order,
    positions,
    sparse,
)
from penstock.kernels.values.arrays import as_array, check_new, shape_text


def _group_starts(indices: Array) -> Array:
    """Where runs of equal places begin."""
    is_new = np.ones(len(indices), np.bool_)
    is_new[1:] = (indices[1:] != indices[:-1]).any(axis=1)
    return np.flatnonzero(is_new)


def _reduce_runs(values: Array, starts: Array, function: np.ufunc) -> Array:
    """One value for each run; narrow floats are added up in float32."""
    if not len(starts):
        return values[:0]
    wide = values.dtype
    if dtypes.of_numpy(wide) in NARROW:
        return function.reduceat(values.astype(np.float32), starts).astype(wide)
    reduced: Array = function.reduceat(values, starts, dtype=wide)
    return reduced


# -- two sparse tensors ----------------------------------------------------------------


def _check_same_shape(a: Sparse, b: Sparse) -> None:
    if a.rank != b.rank:
        raise InvalidArgumentError(f"Operands' ranks do not match: got {a.rank} and {b.rank}")
    for axis, (x, y) in enumerate(zip(a.shape, b.shape, strict=True)):
        if x != y:
            raise InvalidArgumentError(
                f"Operands' shapes do not match: got {x} and {y} for dimension {axis}"
            )


def _merge(a: Sparse, b: Sparse) -> list[tuple[int, int]]:
    """Pairs of element numbers with the same place, -1 for none; both are run through once.

    Like TensorFlow's merge it goes by order and looks at no element twice, so tensors that
    are not in order give what they give there.
    """
    left, right = map(tuple, (a.indices.tolist(), b.indices.tolist()))
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif left[i] < right[j]:
            pairs.append((i, -1))
            i += 1
        else:
            pairs.append((-1, j))
            j += 1
    pairs += [(at, -1) for at in range(i, len(left))]
    pairs += [(-1, at) for at in range(j, len(right))]
    return pairs


def _aligned(a: Sparse, b: Sparse) -> tuple[Array, Array, Array]:
    """All places of both, and what each tensor has there, or zero."""
    pairs = np.array(_merge(a, b), np.int64).reshape(-1, 2)
    indices = np.empty((len(pairs), a.rank), np.int64)
    sides = []
    for column, tensor in ((0, a), (1, b)):
        has = pairs[:, column] >= 0
        which = pairs[has, column]
        indices[has] = tensor.indices[which]
        side = np.zeros(len(pairs), tensor.values.dtype)
        side[has] = tensor.values[which]
        sides.append(side)
    return indices, sides[0], sides[1]


@kernel("SparseAdd", types={"T": NUMBERS})
def make_sparse_add(attrs: Attrs) -> Kernel:
    """Sums, without those elements that are smaller than the threshold."""
    is_complex = attrs.dtype("T").is_complex

    def add(
        a_indices: Value, a_values: Value, a_shape: Value,
        b_indices: Value, b_values: Value, b_shape: Value, thresh: Value,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        _check_counts(a_indices, a_values, b_indices, b_values)
        a, b = sparse(a_indices, a_values, a_shape), sparse(b_indices, b_values, b_shape)
        _check_same_shape(a, b)
        indices, left, right = _aligned(a, b)
        total = left + right
        size = np.abs(total) if is_complex or total.dtype.kind != "u" else total
        is_kept = thresh <= size
        return Sparse(indices[is_kept], total[is_kept], a.shape).parts

    return add


def _check_counts(a_indices: Value, a_values: Value, b_indices: Value, b_values: Value) -> None:
    if len(shape_of(a_indices)) != 2 or len(shape_of(b_indices)) != 2:
        raise InvalidArgumentError(
            "Input indices should be matrices but received shapes: "
            f"{shape_text(shape_of(a_indices))} and {shape_text(shape_of(b_indices))}"
        )
    counts, lengths = (len(a_indices), len(b_indices)), (a_values.size, b_values.size)
    if counts != lengths:
        raise InvalidArgumentError(
            f"Expected {counts[0]} and {counts[1]} non-empty input values, "
            f"got {lengths[0]} and {lengths[1]}"
        )


@kernel("SparseAddGrad", types={"T": NUMBERS})
def make_sparse_add_grad(_attrs: Attrs) -> Kernel:
    """For each element of both tensors the gradient of the sum in its place."""

    def gradient(
        backprop: Value, a_indices: Value, b_indices: Value, sum_indices: Value
    ) -> tuple[Array, Array]:
        if len(shape_of(backprop)) != 1 or len(backprop) != len(sum_indices):
            raise InvalidArgumentError(
                "# elements in backprop_val_grad and # rows in sum_indices should match, got "
                f"{shape_text(shape_of(backprop))} and {shape_text(shape_of(sum_indices))}"
            )
        at = {tuple(row): number for number, row in enumerate(sum_indices.tolist())}

        def side(indices: Array) -> Array:
            grad = np.zeros(len(indices), backprop.dtype)
            for number, row in enumerate(indices.tolist()):
                found = at.get(tuple(row))
                if found is not None:
                    grad[number] = backprop[found]
            return grad

        return side(a_indices), side(b_indices)

    return gradient


def _elementwise(function: Callable[[Array, Array], Array]) -> Kernel:
    def compute(*parts: Value) -> tuple[Array, Array]:
        a, b = sparse(*parts[:3]), sparse(*parts[3:])
        _check_same_shape(a, b)
        indices, left, right = _aligned(a, b)
        return indices, function(left, right)

    return compute


@kernel("SparseSparseMaximum", types={"T": REALS})
def make_sparse_sparse_maximum(_attrs: Attrs) -> Kernel:
    """The larger element where either tensor has one."""
    return _elementwise(np.maximum)


@kernel("SparseSparseMinimum", types={"T": REALS})
def make_sparse_sparse_minimum(_attrs: Attrs) -> Kernel:
    """The smaller element where either tensor has one."""
    return _elementwise(np.minimum)


# -- reductions ------------------------------------------------------------------------


def _reduction(attrs: Attrs, function: np.ufunc) -> Callable[..., Sparse]:
    """What is left of a tensor along the axes that are kept, in the order of memory."""
    keep_dims = attrs.bool("keep_dims")

    def reduce(indices: Value, values: Value, shape: Value, axes: Value) -> Sparse:
        tensor = sparse(indices, values, shape)
        reduced = _axes(as_array(axes), tensor.rank)
        kept = [axis for axis in range(tensor.rank) if axis not in reduced]
        rows = tensor.indices[:, kept]
        order = memory_order(rows)
        rows = rows[order]
        starts = _group_starts(rows)
        sums = _reduce_runs(tensor.values[order], starts, function)
        groups = rows[starts]
        if not keep_dims:
            return Sparse(groups, sums, tuple(tensor.shape[axis] for axis in kept))
        full = np.zeros((len(groups), tensor.rank), np.int64)
        full[:, kept] = groups
        sizes = tuple(1 if axis in reduced else n for axis, n in enumerate(tensor.shape))
        return Sparse(full, sums, sizes)

    return reduce


def _axes(axes: Array, rank: int) -> set[int]:
    for axis in axes.ravel().tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                f"Invalid reduction dimension {axis}, for input with {rank} dimensions."
            )
    return {axis % rank for axis in axes.ravel().tolist()}


def _dense_reduction(attrs: Attrs, function: np.ufunc) -> Kernel:
    reduce = _reduction(attrs, function)

    def compute(*inputs: Value) -> Value:
        left = reduce(*inputs)
        check_new(left.shape, left.values.dtype)
        bad = first_outside(left.indices, left.shape)
        if bad is not None:
            raise InternalError(
                f"Obtained a write index of {positions(left.indices, left.shape)[bad]} which is "
                f"outside of bounds of [0, {math.prod(left.shape)})"
            )
        dense = np.zeros(left.shape, left.values.dtype)
        dense[tuple(left.indices.T)] = left.values if left.rank else left.values.sum()
        return as_value(dense)

    return compute


@kernel("SparseReduceSum", types={"T": NUMBERS})
def make_sparse_reduce_sum(attrs: Attrs) -> Kernel:
    """Sums along axes, as a dense tensor."""
    return _dense_reduction(attrs, np.add)


@kernel("SparseReduceMax", types={"T": REALS})
def make_sparse_reduce_max(attrs: Attrs) -> Kernel:
    """Largest elements along axes, as a dense tensor; zero where there is none."""
    return _dense_reduction(attrs, np.maximum)


@kernel("SparseReduceSumSparse", types={"T": NUMBERS})
def make_sparse_reduce_sum_sparse(attrs: Attrs) -> Kernel:
    """Sums along axes, where there is something to add."""
    reduce = _reduction(attrs, np.add)
    return lambda *inputs: reduce(*inputs).parts


@kernel("SparseReduceMaxSparse", types={"T": REALS})
def make_sparse_reduce_max_sparse(attrs: Attrs) -> Kernel:
    """Largest elements along axes, where there are any."""
    reduce = _reduction(attrs, np.maximum)
    return lambda *inputs: reduce(*inputs).parts


@kernel("SparseSoftmax", types={"T": {dtypes.float16, dtypes.float32, dtypes.float64}})
def make_sparse_softmax(attrs: Attrs) -> Kernel:
    """Softmax of each row's elements; what is missing takes no part.

    The values come in the order of memory.
    """
    narrow = attrs.dtype("T").numpy
    wide: np.dtype[Any] = np.dtype(np.float32) if narrow == np.float16 else narrow

    def softmax(indices: Value, values: Value, shape: Value) -> Array:
        tensor = sparse(indices, values, shape)
        if tensor.rank < 2:
            raise InvalidArgumentError(
                "Input should have rank >= 2, but received shape: "
                f"{', '.join(map(str, tensor.shape))}"
            )
        order = memory_order(tensor.indices)
        logits = tensor.values[order].astype(wide)
        starts = _group_starts(tensor.indices[order][:, :-1])
        lengths = np.diff(starts, append=len(logits))
        powers = np.exp(logits - np.repeat(_reduce_runs(logits, starts, np.maximum), lengths))
        sums = np.repeat(_reduce_runs(powers, starts, np.add), lengths)
        result: Array = (powers / sums).astype(narrow)
        return result

    return softmax
