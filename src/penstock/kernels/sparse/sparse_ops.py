"""Sparse tensors: made dense, put in order, reshaped, cut and put together.

In:   sparse tensors, as places, values and sizes.
Out:  others, or dense tensors.
Not:  does no arithmetic.
"""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, PLAIN
from penstock.kernels.sparse.sparse_tensor import (
    Sparse,
    check_indices,
    checked_shape,
    first_outside,
    memory_order,
    places,
    positions,
    sparse,
)
from penstock.kernels.values.arrays import as_array, check_new, full, number_in, shape_text

_ELEMENTS = PLAIN | {dtypes.string}


@kernel("SparseToDense", types={"T": _ELEMENTS})
def make_sparse_to_dense(attrs: Attrs) -> Kernel:
    """A tensor of the default with the values, or one value, in their places."""
    validates = attrs.bool("validate_indices")

    def sparse_to_dense(indices: Value, shape: Value, values: Value, default: Value) -> Value:
        rows, sizes = _rows_and_sizes(as_array(indices), as_array(shape), values)
        if shape_of(default) != ():
            raise InvalidArgumentError("default_value should be a scalar.")
        check_new(sizes, as_array(default).dtype)
        if validates:
            check_indices(rows, sizes)
        elif first_outside(rows, sizes) is not None:
            raise InvalidArgumentError(
                f"Indices are not valid (out of bounds).  Shape: {shape_text(sizes)}"
            )
        dense = full(sizes, as_value(default), as_array(default).dtype)
        dense[tuple(rows.T)] = values
        return as_value(dense)

    return sparse_to_dense


def _rows_and_sizes(indices: Array, shape: Array, values: Value) -> tuple[Array, list[int]]:
    """One row per place; a vector holds places in a vector, a scalar a single one."""
    if indices.ndim > 2:
        raise InvalidArgumentError(
            "sparse_indices should be a scalar, vector, or matrix, "
            f"got shape {shape_text(indices.shape)}"
        )
    if shape.ndim != 1:
        raise InvalidArgumentError(f"output_shape must be rank 1, got shape {_shape(shape)}")
    rows = indices if indices.ndim == 2 else indices.reshape(-1, 1)
    if rows.shape[1] != len(shape):
        raise InvalidArgumentError(
            f"output_shape has incorrect number of elements: {len(shape)} "
            f"should be: {rows.shape[1]}"
        )
    if shape_of(values) not in ((), (len(rows),)):
        raise InvalidArgumentError(
            f"sparse_values has incorrect shape {_shape(values)}, should be [] or [{len(rows)}]"
        )
    return rows, shape.tolist()


def _shape(value: Value) -> str:
    return shape_text(shape_of(value))


@kernel("SparseReorder")
def make_sparse_reorder(_attrs: Attrs) -> Kernel:
    """The same tensor with its elements in the order of memory."""

    def reorder(indices: Value, values: Value, shape: Value) -> tuple[Array, Array]:
        tensor = sparse(indices, values, shape)
        order = memory_order(tensor.indices)
        return tensor.indices[order], tensor.values[order]

    return reorder


# -- reshaping -------------------------------------------------------------------------


@kernel("SparseReshape")
def make_sparse_reshape(_attrs: Attrs) -> Kernel:
    """The places that the elements have when the dense tensor is reshaped."""

    def reshape(indices: Value, shape: Value, new_shape: Value) -> tuple[Array, Array]:
        for name, value, rank in (
            ("indices", indices, 2), ("shape", shape, 1), ("new_shape", new_shape, 1)
        ):  # fmt: skip
            if len(shape_of(value)) != rank:
                kind = "matrix" if rank == 2 else "vector"
                raise InvalidArgumentError(
                    f"Input {name} should be a {kind} but received shape {_shape(value)}"
                )
        if indices.shape[1] != len(shape):
            raise InvalidArgumentError(
                "Input tensor rank must match input shape length: "
                f"{indices.shape[1]} vs. {len(shape)}"
            )
        old = checked_shape(shape.tolist())
        new = _completed(old, new_shape.tolist())
        if old == new:
            return indices, np.array(new, np.int64)
        return places(positions(indices, old), new), np.array(new, np.int64)

    return reshape


def _completed(old: tuple[int, ...], wanted: list[int]) -> tuple[int, ...]:
    """The wanted sizes, with one that is -1 computed from the number of elements."""
    unknown = [axis for axis, size in enumerate(wanted) if size == -1]
    if len(unknown) > 1:
        raise InvalidArgumentError(
            f"only one output dimension may be -1, not both {unknown[0]} and {unknown[1]}"
        )
    for axis, size in enumerate(wanted):
        if size < -1:
            raise InvalidArgumentError(f"size {axis} must be non-negative, not {size}")
    count, known = math.prod(old), math.prod(size for size in wanted if size != -1)
    new = list(wanted)
    if unknown:
        if known == 0:
            raise InvalidArgumentError(
                "reshape cannot infer the missing input size for an empty tensor unless all "
                "specified input sizes are non-zero"
            )
        new[unknown[0]] = count // known
    shapes = f"input_shape={shape_text(old)} output_shape={shape_text(new)}"
    if unknown and count % known:
        raise InvalidArgumentError(
            f"Input to reshape is a SparseTensor with {count} dense values, but the requested "
            f"shape requires a multiple of {known}. {shapes}"
        )
    if math.prod(new) != count:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {count} dense values, but the requested shape "
            f"has {math.prod(new)}. {shapes}"
        )
    return tuple(new)


# -- empty rows ------------------------------------------------------------------------


@kernel("SparseFillEmptyRows", types={"T": _ELEMENTS})
def make_sparse_fill_empty_rows(_attrs: Attrs) -> Kernel:
    """The tensor, by rows, with the default at the start of each row that has nothing."""

    def fill(
        indices: Value, values: Value, shape: Value, default: Value
    ) -> tuple[Array, Array, Array, Array]:
        count = _rows_to_fill(as_array(indices), as_array(values), as_array(shape), default)
        rows = indices[:, 0]
        is_empty = np.ones(count, np.bool_)
        is_empty[rows] = False
        missing = np.flatnonzero(is_empty)
        if not len(missing) and (rows[1:] >= rows[:-1]).all():
            return indices, values, is_empty, np.arange(len(rows))
        fillers = np.zeros((len(missing), indices.shape[1]), np.int64)
        fillers[:, 0] = missing
        everything = np.concatenate([indices, fillers])
        order = np.argsort(everything[:, 0], kind="stable")
        filled = np.concatenate([values, np.full(len(missing), as_value(default), values.dtype)])
        where = np.empty(len(order), np.int64)
        where[order] = np.arange(len(order))
        return everything[order], filled[order], is_empty, where[: len(rows)]

    return fill


def _rows_to_fill(indices: Array, values: Array, shape: Array, default: Value) -> int:
    """How many rows there are, once all is checked."""
    if shape.ndim != 1:
        raise InvalidArgumentError(f"dense_shape must be a vector, saw: {_shape(shape)}")
    if indices.ndim != 2:
        raise InvalidArgumentError(f"indices must be a matrix, saw: {_shape(indices)}")
    if values.ndim != 1:
        raise InvalidArgumentError(f"values must be a vector, saw: {_shape(values)}")
    if len(values) != len(indices):
        raise InvalidArgumentError(
            f"The length of `values` ({len(values)}) must match the first dimension of "
            f"`indices` ({len(indices)})."
        )
    if indices.shape[1] != len(shape):
        raise InvalidArgumentError(
            f"The length of `dense_shape` ({len(shape)}) must match the second dimension of "
            f"`indices` ({indices.shape[1]})."
        )
    if shape_of(default) != ():
        raise InvalidArgumentError(f"default_value must be a scalar, saw: {_shape(default)}")
    if not len(shape):
        raise InvalidArgumentError("Dense shape cannot be empty.")
    count = int(shape[0])
    if count == 0 and len(indices):
        raise InvalidArgumentError(
            f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {len(indices)}"
        )
    check_new([count], np.dtype(np.int64))
    is_bad = (indices[:, 0] < 0) | (indices[:, 0] >= count)
    if is_bad.any():
        at = int(is_bad.argmax())
        raise InvalidArgumentError(f"indices({at}, 0) is invalid: {indices[at, 0]} >= {count}")
    return count


@kernel("SparseFillEmptyRowsGrad", types={"T": NUMBERS})
def make_sparse_fill_empty_rows_grad(attrs: Attrs) -> Kernel:
    """Gradients of the values that were there, and the sum of those that were filled in."""
    dtype = attrs.dtype("T").numpy

    def gradient(reverse_index_map: Value, grad_values: Value) -> tuple[Array, Value]:
        if len(shape_of(reverse_index_map)) != 1 or len(shape_of(grad_values)) != 1:
            raise InvalidArgumentError("reverse_index_map and grad_values must be vectors")
        count = len(grad_values)
        is_bad = (reverse_index_map < 0) | (reverse_index_map >= count)
        if is_bad.any():
            raise InvalidArgumentError(
                f"Elements in reverse index must be in [0, {count}) but got "
                f"{reverse_index_map[is_bad.argmax()]}"
            )
        is_filled = np.ones(count, np.bool_)
        is_filled[reverse_index_map] = False
        return grad_values[reverse_index_map], dtype.type(grad_values[is_filled].sum(dtype=dtype))

    return gradient


# -- cutting and putting together ------------------------------------------------------


@kernel("SparseSlice", types={"T": _ELEMENTS})
def make_sparse_slice(_attrs: Attrs) -> Kernel:
    """The part of the tensor that begins at a place and has at most some sizes."""

    def cut(
        indices: Value, values: Value, shape: Value, start: Value, size: Value
    ) -> tuple[Array, Array, Array]:
        tensor = sparse(indices, values, shape)
        for name, value in (("start", start), ("size", size)):
            if len(shape_of(value)) != 1:
                raise InvalidArgumentError(
                    f"Expected {name} to be a vector but received shape {_shape(value)}"
                )
            if len(value) != tensor.rank:
                raise InvalidArgumentError(
                    f"Expected {name} to be a vector of length {tensor.rank} "
                    f"but got length {len(value)}"
                )
        if tensor.rank and size.min() < 0:
            raise InvalidArgumentError(f"Expected a non-negative size, got {size.min()}")
        return _part(tensor, start, size).parts

    return cut


def _part(tensor: Sparse, start: Array, size: Array) -> Sparse:
    """The elements from ``start``, ``size`` of them along each axis, with new places."""
    first, extent = start.tolist(), size.tolist()
    ends = [a + n for a, n in zip(first, extent, strict=True)]
    # A negative start keeps its size, as far as the tensor's own allows.
    sizes = [
        max(min(n, whole - a, whole), 0)
        for a, n, whole in zip(first, extent, tensor.shape, strict=True)
    ]
    is_in = (tensor.indices >= start).all(axis=1)
    for axis, end in enumerate(ends):
        is_in &= tensor.indices[:, axis] < end
    return Sparse(tensor.indices[is_in] - start, tensor.values[is_in], tuple(sizes))


@kernel("SparseSliceGrad", types={"T": NUMBERS})
def make_sparse_slice_grad(_attrs: Attrs) -> Kernel:
    """Gradients of the elements that are in the slice; zero for the others."""

    def gradient(
        backprop: Value, indices: Value, input_start: Value, output_indices: Value
    ) -> Array:
        if len(shape_of(backprop)) != 1 or len(backprop) != len(output_indices):
            raise InvalidArgumentError(
                "Number of elements in backprop_val_grad and output_indices must match, got "
                f"{_shape(backprop)} and {_shape(output_indices)}"
            )
        if indices.shape[1:] != output_indices.shape[1:]:
            raise InvalidArgumentError(
                "The input and output should have the same ndims: "
                f"got: {indices.shape[1]} and {output_indices.shape[1]}"
            )
        grad = np.zeros(len(indices), backprop.dtype)
        wanted = (row.tobytes() for row in np.ascontiguousarray(output_indices + input_start))
        pairs = list(wanted)
        at = 0
        for row, place in enumerate(np.ascontiguousarray(indices)):
            if at < len(pairs) and place.tobytes() == pairs[at]:
                grad[row] = backprop[at]
                at += 1
        if at != len(pairs):
            raise InvalidArgumentError(
                "Elements of backprop_val_grad aren't all propagated. "
                f"Num elements: {len(pairs)}, used: {at}"
            )
        return grad

    return gradient


@kernel("SparseConcat", types={"T": _ELEMENTS})
def make_sparse_concat(attrs: Attrs) -> Kernel:
    """Sparse tensors one behind the other along an axis; in the order of memory."""
    count, wanted = attrs.int("N"), attrs.int("concat_dim")

    def concat(*inputs: Value) -> tuple[Array, Array, Array]:
        groups = (inputs[at * count : (at + 1) * count] for at in range(3))
        tensors = [sparse(*parts) for parts in zip(*groups, strict=True)]
        rank = tensors[0].rank
        if not -rank <= wanted < rank:
            raise InvalidArgumentError(
                f"Concat dimension must be in range [{-rank}, {rank}), got {wanted}"
            )
        axis = wanted % rank
        _check_concat(tensors, axis)
        sizes = [tensor.shape[axis] for tensor in tensors]
        indices = np.concatenate([tensor.indices for tensor in tensors])
        lengths = [len(tensor.values) for tensor in tensors]
        indices[:, axis] += np.repeat([0, *accumulate(sizes[:-1])], lengths)
        values = np.concatenate([tensor.values for tensor in tensors])
        order = memory_order(indices)
        shape = list(tensors[0].shape)
        shape[axis] = sum(sizes)
        return Sparse(indices[order], values[order], checked_shape(shape)).parts

    return concat


def _check_concat(tensors: list[Sparse], axis: int) -> None:
    first = tensors[0]
    for at, tensor in enumerate(tensors):
        if tensor.rank != first.rank:
            raise InvalidArgumentError(
                f"Ranks of all input tensors must match: expected {first.rank} but got "
                f"{tensor.rank} at position {at}"
            )
        for other, (have, want) in enumerate(zip(tensor.shape, first.shape, strict=True)):
            if other != axis and have != want:
                raise InvalidArgumentError(
                    f"Input shapes must match: expected {want} for dimension {other} but got "
                    f"{have} at position {at}"
                )


@kernel("SparseSplit", types={"T": _ELEMENTS})
def make_sparse_split(attrs: Attrs) -> Kernel:
    """Parts of the tensor along an axis; the first ones are longer if it does not divide."""
    count = attrs.int("num_split")

    def split(split_dim: Value, indices: Value, values: Value, shape: Value) -> tuple[Array, ...]:
        tensor, wanted = sparse(indices, values, shape), number_in(split_dim)
        if not -tensor.rank <= wanted < tensor.rank:
            raise InvalidArgumentError(
                f"Input axis should be in range [{-tensor.rank}, {tensor.rank}), got {wanted}"
            )
        axis = wanted % tensor.rank
        size = tensor.shape[axis]
        if not 1 <= count <= size:
            raise InvalidArgumentError(
                "Input num_split should be between 1 and the splitting dimension size "
                f"({size}), got {count}"
            )
        least, longer = divmod(size, count)
        start, extent = np.zeros(tensor.rank, np.int64), np.array(tensor.shape, np.int64)
        pieces: list[tuple[Array, Array, Array]] = []
        for at in range(count):
            extent[axis] = least + (at < longer)
            pieces.append(_part(tensor, start, extent).parts)
            start[axis] += extent[axis]
        return tuple(part for column in zip(*pieces, strict=True) for part in column)

    return split
