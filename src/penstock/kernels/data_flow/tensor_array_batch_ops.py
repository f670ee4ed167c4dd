"""Arrays of tensors, many elements at a time.

In:   a handle, tensors that are cut into elements, indices and lengths, and a flow.
Out:  tensors that are made of elements, and the flow for whoever comes next.
Not:  makes no arrays; these and single elements stand in ``tensor_array_ops``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Array, Value, shape_of
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, context_kernel
from penstock.kernels.api.types import PLAIN
from penstock.kernels.data_flow.tensor_array import TensorArray
from penstock.kernels.data_flow.tensor_array_ops import ELEMENTS, array_of
from penstock.kernels.values.arrays import shape_text, zeros
from penstock.kernels.values.batches import stack

#: Types that TensorFlow's kernels can join end to end, and those that they can stack.
_JOINED: Final = PLAIN | {dtypes.string, dtypes.qint8, dtypes.quint8, dtypes.qint32}
_STACKED: Final = _JOINED | {dtypes.variant}


# -- writing ---------------------------------------------------------------------------


@context_kernel(
    "TensorArrayScatter",
    "TensorArrayScatterV2",
    "TensorArrayScatterV3",
    types={"T": ELEMENTS},
)
def make_tensor_array_scatter(attrs: Attrs) -> Kernel:
    """The flow; rows of a tensor became the elements at the given indices."""
    dtype = attrs.dtype("T")

    def scatter(
        context: OpKernelContext, handle: Value, indices: Value, value: Value, flow: Value
    ) -> Value:
        _scatter(array_of(context, handle), dtype, _indices_in(indices), value)
        return flow

    return scatter


@context_kernel("TensorArrayUnpack", types={"T": ELEMENTS})
def make_tensor_array_unpack(attrs: Attrs) -> Kernel:
    """The flow; rows of a tensor became the array's elements."""
    dtype = attrs.dtype("T")

    def unpack(context: OpKernelContext, handle: Value, value: Value, flow: Value) -> Value:
        array = array_of(context, handle)
        rows = shape_of(value)[:1] or (0,)
        if not array.may_grow and rows[0] != array.size:
            raise InvalidArgumentError(
                f"Input value must have first dimension equal to the array size "
                f"({rows[0]} vs. {array.size})"
            )
        _scatter(array, dtype, list(range(rows[0])), value)
        return flow

    return unpack


def _indices_in(indices: Value) -> list[int]:
    if shape_of(indices) == () or indices.ndim != 1:
        raise InvalidArgumentError(
            f"Expected indices to be a vector, but received shape: {shape_text(shape_of(indices))}"
        )
    listed: list[int] = indices.tolist()
    return listed


def _scatter(array: TensorArray, dtype: DType, indices: list[int], value: Value) -> None:
    array.check_type(dtype, "is trying to write")
    shape = shape_of(value)
    if shape == ():
        raise InvalidArgumentError(
            "Input value for unpack must be at least a vector but received shape: []"
        )
    if len(indices) != shape[0]:
        raise InvalidArgumentError(
            f"Expected len(indices) == values.shape[0], but saw: {len(indices)} vs. {shape[0]}"
        )
    last, size = max(indices, default=-1), array.size
    if last >= size and not array.may_grow:
        raise InvalidArgumentError(f"Max scatter index must be < array size ({last} vs. {size})")
    array.write_many(indices, value)


@context_kernel(
    "TensorArraySplit",
    "TensorArraySplitV2",
    "TensorArraySplitV3",
    types={"T": ELEMENTS},
)
def make_tensor_array_split(attrs: Attrs) -> Kernel:
    """The flow; pieces of a tensor, cut along its first axis, became the array's elements."""
    dtype = attrs.dtype("T")

    def split(
        context: OpKernelContext, handle: Value, value: Value, lengths: Value, flow: Value
    ) -> Value:
        array = array_of(context, handle)
        array.check_type(dtype, "is trying to write")
        pieces = _pieces(value, lengths)
        size = array.size
        if size != len(pieces) and not (array.may_grow and size < len(pieces)):
            raise InvalidArgumentError(
                "TensorArray's size is not equal to the size of lengths "
                f"({size} vs. {len(pieces)}), and the TensorArray is not marked as "
                "dynamically resizeable"
            )
        array.write_many(range(len(pieces)), pieces)
        return flow

    return split


def _pieces(value: Value, lengths: Value) -> list[Array]:
    """Parts of ``value`` of these lengths along the first axis."""
    if shape_of(lengths) == () or lengths.ndim != 1:
        raise InvalidArgumentError(
            f"Expected lengths to be a vector, received shape: {shape_text(shape_of(lengths))}"
        )
    shape = shape_of(value)
    if shape == ():
        raise InvalidArgumentError("Expected value to be at least a vector, but received shape: []")
    ends: list[int] = np.cumsum(lengths).tolist()
    total = ends[-1] if ends else 0
    if total != shape[0]:
        raise InvalidArgumentError(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
            f"{total} and value's shape is: {shape_text(shape)}"
        )
    if len(ends) and lengths.min() < 0:
        raise InvalidArgumentError(f"Expected lengths >= 0, but saw {lengths.min()}")
    return [value[start:end] for start, end in zip([0, *ends], ends, strict=False)]


# -- reading ---------------------------------------------------------------------------


@context_kernel(
    "TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3", types={"dtype": _STACKED}
)
def make_tensor_array_gather(attrs: Attrs) -> Kernel:
    """The elements at the given indices, stacked along a new first axis."""
    dtype, element_shape = attrs.dtype("dtype"), attrs.shape("element_shape")

    def gather(context: OpKernelContext, handle: Value, indices: Value, _flow: Value) -> Array:
        array = array_of(context, handle)
        return _gather(array, dtype, element_shape, _indices_in(indices))

    return gather


@context_kernel("TensorArrayPack", types={"dtype": _STACKED})
def make_tensor_array_pack(attrs: Attrs) -> Kernel:
    """All elements, stacked along a new first axis."""
    dtype, element_shape = attrs.dtype("dtype"), attrs.shape("element_shape")

    def pack(context: OpKernelContext, handle: Value, _flow: Value) -> Array:
        array = array_of(context, handle)
        return _gather(array, dtype, element_shape, list(range(array.size)))

    return pack


def _gather(
    array: TensorArray, dtype: DType, element_shape: TensorShape, indices: list[int]
) -> Array:
    array.check_type(dtype, "requested")
    array.check_open()
    array.merge_element_shape(element_shape)
    if not indices:
        if not element_shape.is_fully_defined:
            raise UnimplementedError(
                f"TensorArray has size zero, but element shape {element_shape} is not fully "
                "defined. Currently only static shapes are supported when packing zero-size "
                "TensorArrays."
            )
        return zeros((0, *element_shape.as_tuple()), dtype)
    values = array.read_many(indices)
    shape = shape_of(values[0])
    if not element_shape.accepts(shape):
        raise InvalidArgumentError(
            f"TensorArray was passed element_shape {element_shape} which does not match "
            f"the Tensor at index 0: {shape_text(shape)}"
        )
    if not shape or dtype.is_object:
        _check_shapes(values, shape)
        return stack(values, dtype)
    try:  # numpy compares all sizes but the first, in a fraction of the time
        if set(map(len, values)) == {shape[0]}:
            return stack(values, dtype)
    except (TypeError, ValueError):
        pass
    _check_shapes(values, shape)
    return stack(values, dtype)


def _check_shapes(values: Sequence[Value], shape: tuple[int, ...]) -> None:
    """Raise unless all values have this shape."""
    for at, value in enumerate(values):
        if shape_of(value) != shape:
            raise InvalidArgumentError(
                f"TensorArray has inconsistent shapes.  Index 0 has shape: {shape_text(shape)} "
                f"but index {at} has shape: {shape_text(shape_of(value))}"
            )


@context_kernel(
    "TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3", types={"dtype": _JOINED}
)
def make_tensor_array_concat(attrs: Attrs) -> Kernel:
    """All elements, end to end along their first axis, and how long each is."""
    dtype, tail = attrs.dtype("dtype"), attrs.shape("element_shape_except0")

    def concat(context: OpKernelContext, handle: Value, _flow: Value) -> tuple[Array, Array]:
        array = array_of(context, handle)
        array.check_type(dtype, "requested")
        values = array.read_many()
        if not values:
            if not tail.is_fully_defined:
                raise UnimplementedError(
                    f"TensorArray has size zero, but element_shape_except0 {tail} is not fully "
                    "defined. Currently only static shapes are supported when concatenating "
                    "zero-size TensorArrays."
                )
            return zeros((0, *tail.as_tuple()), dtype), np.zeros(0, np.int64)
        _check_tails(values, tail)
        return np.concatenate(values), np.array([len(value) for value in values], np.int64)

    return concat


def _check_tails(values: Sequence[Value], expected: TensorShape) -> None:
    """Raise unless all values have the same sizes behind the first one."""
    for at, value in enumerate(values):
        if shape_of(value) == ():
            raise InvalidArgumentError(
                f"Concat saw a scalar shape at index {at} but requires at least vectors.  "
                "Did you mean to call pack?"
            )
    first = values[0].shape[1:]
    if not expected.accepts(first):
        raise InvalidArgumentError(
            f"TensorArray was passed element_shape_except0 {expected} but index 0 has "
            f"(excepting dimension 0) shape: {shape_text(first)} which does not match."
        )
    for at, value in enumerate(values):
        if value.shape[1:] != first:
            raise InvalidArgumentError(
                "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) "
                f"shape: {shape_text(first)} but index {at} has (excepting dimension 0) "
                f"shape: {shape_text(value.shape[1:])}"
            )
