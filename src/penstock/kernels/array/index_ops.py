"""Ops that find places in an array: where it is true, where an index lies, its diagonal.

In:   an array in which to look for what is true; flat indices; a diagonal or what has one.
Out:  indices as int64, or per dimension; an array with a diagonal, or the diagonal.
Not:  picks nothing by index (gather_ops); knows no diagonals of matrices (matrix_ops).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import PLAIN
from penstock.kernels.values.arrays import shape_text

_DIAGONAL: Final = frozenset(
    {
        dtypes.float16,
        dtypes.float32,
        dtypes.float64,
        dtypes.int32,
        dtypes.int64,
        dtypes.complex64,
        dtypes.complex128,
    }
)


#: In arrays of so many elements places are found first, and split into indices then.
_MANY: Final = 1 << 10


@kernel("Where", types={"T": PLAIN})
def make_where(_attrs: Attrs) -> Kernel:
    """The places, in order, of all elements that are true or not zero; NaN is not zero."""

    def where(condition: Value) -> Array:
        if condition.ndim == 0:
            raise InvalidArgumentError("WhereOp : Unhandled input dimensions: 0")
        if condition.size < _MANY or condition.dtype.hasobject:
            return np.array(condition.nonzero(), np.int64).T
        return _unraveled(np.flatnonzero(condition), condition.shape)

    return where


def _unraveled(places: Array, shape: tuple[int, ...]) -> Array:
    """Indices of all dimensions, one row for each place in an array laid out in a row."""
    result = np.empty((len(places), len(shape)), np.int64)
    for axis in range(len(shape) - 1, 0, -1):
        outer = places // shape[axis]
        np.subtract(places, outer * shape[axis], result[:, axis])
        places = outer
    result[:, 0] = places
    return result


@kernel("UnravelIndex")
def make_unravel_index(attrs: Attrs) -> Kernel:
    """For each flat index, its index along each of the dimensions of an array."""
    dtype = attrs.dtype("Tidx").numpy

    def unravel_index(indices: Value, dims: Value) -> Array:
        if indices.ndim > 1:
            raise InvalidArgumentError(
                f'The indices can only be scalar or vector, got "{shape_text(indices.shape)}"'
            )
        if dims.ndim != 1:
            raise InvalidArgumentError(f'The dims can only be 1-D, got "{shape_text(dims.shape)}"')
        if indices.size == 0:
            raise InvalidArgumentError("received empty tensor indices")
        sizes: list[int] = dims.tolist()
        _check_dims(sizes, int(np.iinfo(dtype).max))
        if indices.max() >= math.prod(sizes):
            raise InvalidArgumentError("index is out of bound as with dims")
        unraveled = np.empty((len(sizes), *indices.shape), dtype)
        stride = math.prod(sizes)
        for axis, size in enumerate(sizes):
            stride //= size
            # Towards zero, as in C: TensorFlow lets negative indices through.
            unraveled[axis] = np.fmod(_truncated(indices, stride), size)
        return unraveled

    return unravel_index


def _check_dims(sizes: list[int], limit: int) -> None:
    for i, size in enumerate(sizes):
        if size < 0:
            raise InvalidArgumentError(
                f"Input dims cannot be negative. Got dim = {size} at index {i}"
            )
        if size == 0:
            raise InvalidArgumentError(
                f"Input dims cannot contain a dim of zero, but dims contains zero at index {i}"
            )
    if math.prod(sizes) > limit:
        raise InvalidArgumentError(
            f"Input dims product is causing integer overflow: ({' '.join(map(str, sizes))})"
        )


def _truncated(values: Value, divisor: int) -> Value:
    """The quotient rounded towards zero."""
    return (values - np.fmod(values, divisor)) // divisor


@kernel("Diag", types={"T": _DIAGONAL})
def make_diag(_attrs: Attrs) -> Kernel:
    """Zeros, but the input on the diagonal, of twice its rank."""

    def diag(values: Value) -> Array:
        if values.ndim == 0:
            raise InvalidArgumentError("Input must be at least rank 1, got 0")
        matrix = np.zeros((values.size, values.size), values.dtype)
        np.fill_diagonal(matrix, values.reshape(-1))
        return matrix.reshape(values.shape * 2)

    return diag


@kernel("DiagPart", types={"T": _DIAGONAL})
def make_diag_part(_attrs: Attrs) -> Kernel:
    """The diagonal of an array whose shape is the same shape twice."""

    def diag_part(values: Value) -> Value:
        rank = values.ndim
        if rank % 2:
            raise InvalidArgumentError(
                "The rank of the tensor should be even and positive, "
                f"got shape {shape_text(values.shape)}"
            )
        half = values.shape[: rank // 2]
        for axis in range(rank // 2):
            if values.shape[axis] != values.shape[axis + rank // 2]:
                raise InvalidArgumentError(
                    f"Invalid shape {shape_text(values.shape)}: dimensions {axis} and "
                    f"{axis + rank // 2} do not match."
                )
        size = math.prod(half)
        return as_value(values.reshape((size, size)).diagonal().reshape(half))

    return diag_part
