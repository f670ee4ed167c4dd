"""A sparse and a dense tensor together: element by element, products; and counting.

In:   sparse tensors, as places, values and sizes; dense tensors.
Out:  dense tensors, or new values for the sparse one's elements.
Not:  does not broadcast the sparse tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.c.segments import sum_segments
from penstock.kernels.narrow.precision import NARROW
from penstock.kernels.parallel.products import matrix_product
from penstock.kernels.sparse.sparse_tensor import (
    Sparse,
    first_outside,
    sparse,
)
from penstock.kernels.values.arrays import as_array, check_new, number_in, shape_text


@kernel("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv", types={"T": NUMBERS})
def make_sparse_dense_cwise(attrs: Attrs) -> Kernel:
    """New values for the elements, from the old ones and the dense elements in their places."""
    name = attrs.op.name
    dtype = attrs.dtype("T")
    function: Callable[[Array, Array], Array] = {
        "SparseDenseCwiseAdd": np.add,
        "SparseDenseCwiseMul": np.multiply,
        "SparseDenseCwiseDiv": _quotient if dtype.is_integer else np.divide,
    }[name]

    def compute(indices: Value, values: Value, shape: Value, dense: Value) -> Array:
        tensor = sparse(indices, values, shape)
        beside = as_array(dense)
        try:
            wide = np.broadcast_to(beside, tensor.shape)
        except ValueError:
            raise InvalidArgumentError(
                "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible "
                f"shapes: {shape_text(tensor.shape)} vs. {shape_text(beside.shape)}"
            ) from None
        if first_outside(tensor.indices, tensor.shape) is not None:
            raise InvalidArgumentError(
                "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape"
            )
        if function is _quotient and not beside.all():
            raise InvalidArgumentError(
                f"{name} cannot divide by zero,but input dense tensor contains zero "
            )
        result: Array = function(tensor.values, wide[tuple(tensor.indices.T)])
        return result

    return compute


def _quotient(a: Array, b: Array) -> Array:
    """Integer quotients, rounded towards zero."""
    quotient: Array = (a - np.fmod(a, b)) // b
    return quotient


@kernel("SparseTensorDenseAdd", types={"T": NUMBERS})
def make_sparse_tensor_dense_add(_attrs: Attrs) -> Kernel:
    """The dense tensor plus the sparse one's elements."""

    def add(indices: Value, values: Value, shape: Value, b: Value) -> Value:
        tensor, dense = sparse(indices, values, shape), as_array(b)
        if tensor.rank != dense.ndim:
            raise InvalidArgumentError(
                f"Two operands have different ranks; received: {tensor.rank} and {dense.ndim}"
            )
        for axis, (x, y) in enumerate(zip(tensor.shape, dense.shape, strict=True)):
            if x != y:
                raise InvalidArgumentError(
                    f"Dimension {axis} does not equal (no broadcasting is supported): "
                    f"sparse side {x} vs dense side {y}"
                )
        bad = first_outside(tensor.indices, dense.shape)
        if bad is not None:
            row = tensor.indices[bad]
            axis = int(((row < 0) | (row >= dense.shape)).argmax())
            raise InvalidArgumentError(
                f"Sparse tensor has an invalid index on dimension {axis}: "
                f"a_indices({bad},{axis}) = {row[axis]}, dense tensor shape: "
                f"{' '.join(map(str, dense.shape))}"
            )
        total = dense.copy()
        np.add.at(total, tuple(tensor.indices.T), tensor.values)
        return as_value(total)

    return add


@kernel("SparseTensorDenseMatMul", types={"T": NUMBERS})
def make_sparse_tensor_dense_mat_mul(attrs: Attrs) -> Kernel:
    """The product of a sparse and a dense matrix."""
    adjoint_a, adjoint_b = attrs.bool("adjoint_a"), attrs.bool("adjoint_b")
    dtype = attrs.dtype("T")
    narrow = dtype.numpy
    wide: np.dtype[Any] = np.dtype(np.float32) if dtype in NARROW else narrow
    is_in_c = attrs.accelerate and dtype is dtypes.float32

    def multiply(indices: Value, values: Value, shape: Value, b: Value) -> Array:
        tensor = sparse(indices, values, shape)
        if tensor.rank != 2 or len(shape_of(b)) != 2:
            raise InvalidArgumentError(
                f"Tensor 'b' and the sparse tensor must be matrices, got ranks "
                f"{len(shape_of(b))} and {tensor.rank}"
            )
        right = b.conj().T if adjoint_b else b
        elements = tensor.values.conj() if adjoint_a else tensor.values
        rows, inner = (1, 0) if adjoint_a else (0, 1)
        if tensor.shape[inner] != len(right):
            raise InvalidArgumentError(
                "Cannot multiply A and B because inner dimension does not match: "
                f"{tensor.shape[inner]} vs. {len(right)}.  Did you forget a transpose?  "
                f"Dimensions of A: [{tensor.shape[rows]}, {tensor.shape[inner]}).  "
                f"Dimensions of B: {shape_text(right.shape)}"
            )
        _check_matrix(tensor, rows, inner)
        check_new((tensor.shape[rows], right.shape[1]), wide)
        in_c = _product_in_c(tensor, right, rows) if is_in_c else None
        if in_c is not None:
            return in_c
        product = np.zeros((tensor.shape[rows], right.shape[1]), wide)
        scaled = elements.astype(wide)[:, None] * right[tensor.indices[:, inner]].astype(wide)
        np.add.at(product, tensor.indices[:, rows], scaled)
        return product.astype(narrow, copy=False)

    return multiply


def _product_in_c(tensor: Sparse, right: Array, rows: int) -> Array | None:
    """The product of float32 by the library: each row is the sum of some, which are weighed."""
    if not right.size:
        return None
    numbers, inner = tensor.indices[:, rows], tensor.indices[:, 1 - rows]
    weights = tensor.values
    if (numbers[1:] < numbers[:-1]).any():
        order = numbers.argsort(kind="stable")
        inner, weights = inner[order], weights[order]
    sizes = np.bincount(numbers, minlength=tensor.shape[rows])
    gathered, weights = np.ascontiguousarray(inner, np.int64), np.ascontiguousarray(weights)
    return sum_segments(np.ascontiguousarray(right), gathered, sizes, weights)


def _check_matrix(tensor: Sparse, rows: int, inner: int) -> None:
    bad = first_outside(tensor.indices, tensor.shape)
    if bad is None:
        return
    for name, axis in (("k", inner), ("m", rows)):
        at = tensor.indices[bad, axis]
        if not 0 <= at < tensor.shape[axis]:
            raise InvalidArgumentError(
                f"{name} ({at}) from index[{bad},{axis}] out of bounds (>={tensor.shape[axis]})"
            )


@kernel(
    "SparseMatMul",
    types={
        "Ta": {dtypes.float32, dtypes.bfloat16},
        "Tb": {dtypes.float32, dtypes.bfloat16},
    },
)
def make_sparse_mat_mul(attrs: Attrs) -> Kernel:
    """The product of two dense matrices of which many elements may be zero."""
    transpose_a, transpose_b = attrs.bool("transpose_a"), attrs.bool("transpose_b")

    def multiply(a: Value, b: Value) -> Array:
        for name, matrix in (("a", a), ("b", b)):
            if len(shape_of(matrix)) != 2:
                raise InvalidArgumentError(f"{name} is not a matrix")
        left, right = (a.T if transpose_a else a), (b.T if transpose_b else b)
        if left.shape[1] != right.shape[0]:
            raise InvalidArgumentError(
                f"Matrix size incompatible: a: {shape_text(a.shape)}, b: {shape_text(b.shape)}"
            )
        return matrix_product(left.astype(np.float32), right.astype(np.float32))

    return multiply


# -- counting --------------------------------------------------------------------------

_COUNTED: Final = {dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64}


@kernel("SparseBincount", types={"T": _COUNTED})
def make_sparse_bincount(attrs: Attrs) -> Kernel:
    """How often each small number occurs, or what it weighs: in all, or row by row."""
    dtype, is_binary = attrs.dtype("T").numpy, attrs.bool("binary_output")

    def bincount(
        indices: Value, values: Value, dense_shape: Value, size: Value, weights: Value
    ) -> Array:
        tensor, count, loads = sparse(indices, values, dense_shape), number_in(size), weights
        if count < 0:
            raise InvalidArgumentError(f"size ({count}) must be non-negative")
        if tensor.rank not in (1, 2):
            raise InvalidArgumentError(f"dense_shape must have 1 or 2 sizes, got {tensor.rank}")
        rows = tensor.shape[0] if tensor.rank == 2 else 1
        check_new((rows, count), dtype)
        bad = first_outside(tensor.indices, tensor.shape)
        if bad is not None:
            place = ", ".join(map(str, tensor.indices[bad].tolist()))
            raise InvalidArgumentError(
                f"Sparse index tuple indices[{bad}, :] = [{place}] is out of bounds: "
                f"dense_shape is {shape_text(tensor.shape)}"
            )
        if loads.size not in (0, len(tensor.values)):
            raise InvalidArgumentError(
                f"Input indices and weights must have the same size. {len(tensor.values)} values "
                f"have weights of shape {shape_text(loads.shape)}"
            )
        is_in = (tensor.values >= 0) & (tensor.values < count)
        row = tensor.indices[is_in, 0] if tensor.rank == 2 else 0
        bins = np.zeros((rows, count), dtype)
        where: Any = (row, tensor.values[is_in])
        if is_binary:
            bins[where] = 1
        else:
            np.add.at(bins, where, loads[is_in] if loads.size else dtype.type(1))
        return bins if tensor.rank == 2 else bins[0]

    return bincount
