"""Ops that ask for a shape or change it: no element is touched.

In:   an array of any rank, and sizes, axes or permutations.
Out:  its shape, size or rank; or a view of it in another shape.
Not:  makes no elements; knows nothing of shapes before the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from types import EllipsisType
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, as_value, freeze, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.types import FLOAT8, OBJECTS, PLAIN
from penstock.kernels.values.arrays import as_array, boxing, number_in, shape_text, sizes_in

_INDEX: Final = frozenset({dtypes.int32, dtypes.int64})
_MOVABLE: Final = PLAIN | FLOAT8 | OBJECTS


@lru_cache(maxsize=1024)
def _int32_vector(shape: tuple[int, ...]) -> Array:
    vector: Array = freeze(np.array(shape, np.int32))
    return vector


@lru_cache(maxsize=1024)
def _int64_vector(shape: tuple[int, ...]) -> Array:
    vector: Array = freeze(np.array(shape, np.int64))
    return vector


#: A shape as a vector.  Cached: in a loop it is the same in every iteration, and making the
#: vector takes 320 ns where finding it takes 90.
_VECTOR: Final[dict[DType, Callable[[tuple[int, ...]], Array]]] = {
    dtypes.int32: _int32_vector,
    dtypes.int64: _int64_vector,
}


@kernel("Shape", types={"out_type": _INDEX}, cost=Cost.CHEAP)
def make_shape(attrs: Attrs) -> Kernel:
    """The sizes of the input."""
    vector = _VECTOR[attrs.dtype("out_type")]
    if attrs.dtype("T").is_object:
        return lambda value: vector(shape_of(value))
    return lambda value: vector(value.shape)


@kernel("ShapeN", types={"out_type": _INDEX}, cost=Cost.CHEAP)
def make_shape_n(attrs: Attrs) -> Kernel:
    """The sizes of each input."""
    vector = _VECTOR[attrs.dtype("out_type")]
    return lambda *values: tuple(vector(shape_of(value)) for value in values)


@kernel("Size", types={"out_type": _INDEX}, cost=Cost.CHEAP)
def make_size(attrs: Attrs) -> Kernel:
    """The number of elements."""
    # Cached, like shapes: to make a scalar takes 240 ns.
    scalar = lru_cache(maxsize=64)(attrs.dtype("out_type").numpy.type)
    if attrs.dtype("T").is_object:
        return lambda value: scalar(math.prod(shape_of(value)))
    return lambda value: scalar(value.size)


#: No array of numpy's has a higher one.
_RANKS: Final = tuple(map(np.int32, range(65)))


@kernel("Rank", cost=Cost.CHEAP)
def make_rank(attrs: Attrs) -> Kernel:
    """The number of dimensions."""
    if attrs.dtype("T").is_object:
        return lambda value: _RANKS[len(shape_of(value))]
    return lambda value: _RANKS[value.ndim]


#: Sizes that no array can take, not even one that numpy would find a meaning for.
_IMPOSSIBLE: Final = "no sizes"


@kernel("Reshape", types={"Tshape": _INDEX}, cost=Cost.CHEAP)
def make_reshape(attrs: Attrs) -> Kernel:
    """The same elements in another shape, of which one size may be -1 for "the rest"."""
    last: tuple[Value, Any] = (make_reshape, ())

    def reshape(values: Array, shape: Value) -> Value:
        nonlocal last
        known, sizes = last
        if shape is not known:
            sizes = _usual_sizes(shape)
            if is_constant(shape):
                last = shape, sizes
        try:
            reshaped = values.reshape(sizes)
        except (TypeError, ValueError):
            return as_value(_reshape_with_care(values, shape))
        return reshaped if sizes else reshaped[()]

    return boxing(attrs, "T", reshape)


def _usual_sizes(shape: Value) -> tuple[int, ...] | str:
    """The sizes, if they are such as numpy understands; they may still not fit."""
    sizes = shape.tolist()
    try:
        return tuple(sizes) if min(sizes, default=0) >= -1 else _IMPOSSIBLE
    except TypeError:  # not a vector
        return _IMPOSSIBLE


def _reshape_with_care(values: Array, shape: Value) -> Array:
    """Reshape where numpy refuses: old scalar shapes, -1 beside 0; or say what is wrong."""
    if shape.ndim > 1:
        raise InvalidArgumentError(f"sizes input must be 1-D, not {shape_text(shape.shape)}")
    sizes = sizes_in(shape)
    unknown = [axis for axis, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1:
        raise InvalidArgumentError(
            f"Only one input size may be -1, not both {unknown[0]} and {unknown[1]}"
        )
    if values.size == 0 and unknown and 0 in sizes:
        # There is no rest to be found, so TensorFlow leaves the zeros out on both sides.
        rest = math.prod(size for size in sizes if size > 0)
        sizes[unknown[0]] = math.prod(size for size in values.shape if size) // rest
    try:
        if min(sizes, default=0) < -1:
            raise _unfit(values, shape)
        return values.reshape(sizes)
    except ValueError:
        raise _unfit(values, shape) from None


def _unfit(values: Array, shape: Value) -> InvalidArgumentError:
    """Why the elements do not fit."""
    sizes = sizes_in(shape)
    for axis, size in enumerate(sizes):
        if size < -1:
            return InvalidArgumentError(f"Size {axis} must be non-negative, not {size}")
    count = math.prod(size for size in sizes if size != -1)
    if count >= 2**63:
        return InvalidArgumentError(f"Shape {sizes} has too many elements")
    wanted = f"requires a multiple of {count}" if -1 in sizes and count else f"has {count}"
    return InvalidArgumentError(
        f"Input to reshape is a tensor with {values.size} values, but the requested shape {wanted}"
    )


@kernel("ExpandDims", types={"Tdim": _INDEX}, cost=Cost.CHEAP)
def make_expand_dims(attrs: Attrs) -> Kernel:
    """The input with a dimension of size 1 more."""
    last: tuple[Value, Any] = (make_expand_dims, ())

    def expand_dims(values: Array, dim: Value) -> Value:
        nonlocal last
        known, index = last
        if dim is not known:
            index = _new_axis(number_in(dim, "'dim' must be a tensor with a single value"))
            if is_constant(dim):
                last = dim, index
        try:
            return values[index]
        except IndexError:
            raise InvalidArgumentError(
                f"Tried to expand dim index {number_in(dim)} for tensor with {values.ndim} "
                "dimensions."
            ) from None

    return boxing(attrs, "T", expand_dims)


@lru_cache(maxsize=64)
def _new_axis(axis: int) -> tuple[slice | EllipsisType | None, ...]:
    """The index that inserts a dimension; negative numbers count from behind the last."""
    if axis >= 0:
        return (*(slice(None),) * axis, None)
    return (..., None, *(slice(None),) * (-1 - axis))


@kernel("Squeeze", cost=Cost.CHEAP)
def make_squeeze(attrs: Attrs) -> Kernel:
    """The input without some dimensions of size 1, or without all of them."""
    dims: tuple[int, ...] = attrs.list("squeeze_dims")

    def squeeze_all(values: Array) -> Value:
        return as_value(values.squeeze())

    def squeeze(values: Array) -> Value:
        try:
            squeezed = values.squeeze(dims)
            return squeezed if squeezed.ndim else as_value(squeezed)
        except ValueError:
            return as_value(values.squeeze(_squeezable(values.shape, dims)))

    return boxing(attrs, "T", squeeze if dims else squeeze_all)


def _squeezable(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions without repetitions; raises if one is absent or larger than 1."""
    rank = len(shape)
    for dim in dims:
        if not -rank <= dim < rank:
            raise InvalidArgumentError(
                f"Tried to squeeze dim index {dim} for tensor with {rank} dimensions."
            )
        if shape[dim] != 1:
            raise InvalidArgumentError(
                f"Can not squeeze dim[{dim % rank}], expected a dimension of 1, got {shape[dim]}"
            )
    return tuple({dim % rank for dim in dims})


@kernel("Transpose", types={"T": _MOVABLE}, cost=Cost.CHEAP)
def make_transpose(attrs: Attrs) -> Kernel:
    """The input with its dimensions in another order."""
    return boxing(attrs, "T", _transposing())


@kernel("ConjugateTranspose", types={"T": _MOVABLE})
def make_conjugate_transpose(attrs: Attrs) -> Kernel:
    """The complex conjugate with the dimensions in another order."""
    if attrs.dtype("T").is_complex:
        transpose = _transposing()
        return lambda values, perm: np.conjugate(transpose(values, perm))
    return boxing(attrs, "T", _transposing())


def _transposing() -> Kernel:
    last: tuple[Value, Any] = (_transposing, ())

    def transpose(values: Array, perm: Value) -> Value:
        nonlocal last
        known, axes = last
        try:
            if perm is not known:
                axes = tuple(perm.tolist())
                if is_constant(perm):
                    last = perm, axes
            transposed = values.transpose(axes)
        except (TypeError, ValueError):
            raise _no_permutation(values, perm) from None
        return transposed if axes else as_value(transposed)

    return transpose


def _no_permutation(values: Array, perm: Value) -> InvalidArgumentError:
    rank = len(values.shape)
    if perm.ndim != 1:
        return InvalidArgumentError(f"perm must be rank 1, got shape {shape_text(perm.shape)}")
    if perm.size != rank:
        return InvalidArgumentError(
            f"transpose expects a vector of size {rank}. "
            f"But input(1) is a vector of size {perm.size}"
        )
    axes: list[int] = perm.tolist()
    for axis in axes:
        if not -rank <= axis < rank:
            return InvalidArgumentError(f"{axis} is out of range [0 .. {rank})")
    missing = min(set(range(rank)) - {axis % rank for axis in axes})
    return InvalidArgumentError(f"{missing} is missing from {{{','.join(map(str, axes))}}}.")


@kernel("Bitcast", cost=Cost.CHEAP)
def make_bitcast(attrs: Attrs) -> Kernel:
    """The same bytes read as another type; the last dimension makes up for its size."""
    before, after = attrs.dtype("T").numpy, attrs.dtype("type").numpy

    def same_size(values: Value) -> Value:
        return as_value(as_array(values).view(after))

    def smaller(values: Value) -> Value:
        parts = (*values.shape, before.itemsize // after.itemsize)
        return np.ascontiguousarray(values).reshape(-1).view(after).reshape(parts)

    def larger(values: Value) -> Value:
        ratio = after.itemsize // before.itemsize
        if values.ndim == 0 or values.shape[-1] != ratio:
            last = values.shape[-1] if values.ndim else 1
            raise InvalidArgumentError(
                f"Cannot bitcast from {last} to {ratio}: the last dimension of shape "
                f"{shape_text(values.shape)} must be {ratio}"
            )
        whole = np.ascontiguousarray(values).reshape(-1).view(after)
        return as_value(whole.reshape(values.shape[:-1]))

    if before.itemsize == after.itemsize:
        return same_size
    return smaller if before.itemsize > after.itemsize else larger
