"""Lists of tensors, many elements at a time.

In:   a list, tensors that are cut into elements, indices and lengths.
Out:  tensors that are made of elements, and new lists.
Not:  single elements are in ``list_ops``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.core.values import Array, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import check_new, shape_text
from penstock.kernels.values.variant_elements import zero
from penstock.kernels.variant.list_ops import ELEMENTS
from penstock.kernels.variant.persistent_vector import PersistentVector
from penstock.kernels.variant.tensor_list import (
    UNSET,
    TensorList,
    element_shape_in,
    list_in,
    merged,
    merged_with_items,
    stacked,
)

# -- tensors from lists ----------------------------------------------------------------


@kernel("TensorListStack", types={"element_dtype": ELEMENTS})
def make_tensor_list_stack(attrs: Attrs) -> Kernel:
    """All elements along a new first axis."""
    dtype, wanted = attrs.dtype("element_dtype"), attrs.int("num_elements")

    def stack(handle: Value, element_shape: Value) -> Array:
        found = list_in(handle, dtype)
        size = found.items.size
        if wanted not in (-1, size):
            raise InvalidArgumentError(
                f"Operation expected a list with {wanted} elements but got a list with "
                f"{size} elements."
            )
        shape = merged(element_shape_in(element_shape), found.element_shape)
        if shape.is_fully_defined:
            check_new((size, *shape.as_tuple()), dtype.numpy)
        elif size == 0:
            raise InvalidArgumentError(
                "Tried to stack elements of an empty list with non-fully-defined "
                f"element_shape: {shape}"
            )
        items = found.listed()
        shape = merged_with_items(shape, items)
        if not shape.is_fully_defined:
            raise InvalidArgumentError(
                "Tried to stack list which only contains uninitialized tensors and has a "
                f"non-fully-defined element_shape: {shape}"
            )
        return stacked(items, shape.as_tuple(), dtype)

    return stack


@kernel("TensorListGather", types={"element_dtype": ELEMENTS})
def make_tensor_list_gather(attrs: Attrs) -> Kernel:
    """The elements at the given indices along a new first axis."""
    dtype = attrs.dtype("element_dtype")

    def gather(handle: Value, indices: Value, element_shape: Value) -> Array:
        found = list_in(handle, dtype)
        wanted: list[int] = indices.ravel().tolist()
        for at in wanted:
            if not 0 <= at < found.items.size:
                raise InvalidArgumentError(
                    f"Index {at} out o range; list only has {found.items.size} elements."
                )
        shape = merged(element_shape_in(element_shape), found.element_shape)
        items = [found.items.get(at) for at in wanted]
        shape = merged_with_items(shape, items)
        if not shape.is_fully_defined:
            raise InvalidArgumentError(
                f"Tried to gather uninitialized tensors from a list with non-fully-defined "
                f"element_shape: {shape}"
                if items
                else f"Tried to gather 0-elements from a list with non-fully-defined shape: {shape}"
            )
        return stacked(items, shape.as_tuple(), dtype)

    return gather


@kernel("TensorListConcat", types={"element_dtype": ELEMENTS})
def make_tensor_list_concat(attrs: Attrs) -> Kernel:
    """All elements, end to end along their first axis, and how long each is."""
    dtype, element_shape = attrs.dtype("element_dtype"), attrs.shape("element_shape")

    def concat(handle: Value) -> tuple[Array, Array]:
        found = list_in(handle, dtype)
        items = found.listed()
        tail = _tail_of(items, element_shape)
        lengths = {shape_of(item)[0] for item in items if item is not UNSET}
        if len(lengths) != 1 and any(item is UNSET for item in items):
            raise InvalidArgumentError(
                "Concating lists with uninitialized tensors is not supported in this version of "
                "TensorListConcat. Consider updating your GraphDef to run the newer version."
            )
        return _joined(found, items, tail, [*lengths] * len(items))

    return concat


@kernel("TensorListConcatV2", types={"element_dtype": ELEMENTS})
def make_tensor_list_concat_v2(attrs: Attrs) -> Kernel:
    """All elements, end to end along their first axis, and how long each is.

    An element that nobody set is as long as the element shape says, or its leading_dims.
    """
    dtype = attrs.dtype("element_dtype")

    def concat(handle: Value, element_shape: Value, leading_dims: Value) -> tuple[Array, Array]:
        found = list_in(handle, dtype)
        shape = merged(element_shape_in(element_shape), found.element_shape)
        items = found.listed()
        tail = _tail_of(items, shape)
        length = shape.dims[0] if shape.dims else None
        if length is None:
            return _joined(found, items, tail, leading_dims.tolist())
        for at, item in enumerate(items):
            if item is not UNSET and item.shape[0] != length:
                raise InvalidArgumentError(
                    "First entry of element_shape input does not match the first dim of list "
                    f"element at index: {at} Expected: {length} Actual: {item.shape[0]}"
                )
        return _joined(found, items, tail, [length] * len(items))

    return concat


def _tail_of(items: Sequence[Value], element_shape: TensorShape) -> tuple[int, ...]:
    """The sizes of all elements behind the first one."""
    if element_shape.dims == ():
        raise InvalidArgumentError(
            "Concat requires elements to be at least vectors, found scalars instead."
        )
    tail = UNKNOWN if element_shape.dims is None else TensorShape(element_shape.dims[1:])
    if not items and not tail.is_fully_defined:
        raise InvalidArgumentError(
            "All except the first dimension must be fully defined when concating an empty tensor "
            f"list. element_shape: {element_shape}"
        )
    for at, item in enumerate(items):
        if item is UNSET:
            continue
        if shape_of(item) == ():
            raise InvalidArgumentError(
                f"Concat saw a scalar shape at index {at} but requires at least vectors."
            )
        tail = merged(tail, TensorShape(item.shape[1:]))
    if not tail.is_fully_defined:
        raise InvalidArgumentError(
            "Trying to concat list with only uninitialized tensors but "
            f"element_shape_except_first_dim is not fully defined: {tail}"
        )
    return tail.as_tuple()


def _joined(
    source: TensorList, items: list[Value], tail: tuple[int, ...], lengths: Sequence[int]
) -> tuple[Array, Array]:
    """Elements end to end; ``lengths`` are those of the elements that nobody set."""
    for at, item in enumerate(items):
        if item is UNSET:
            if at >= len(lengths):
                raise InvalidArgumentError(
                    f"List contains uninitialized tensor at index {at} but leading_dims has only "
                    f"{len(lengths)} elements."
                )
            items[at] = zero((lengths[at], *tail), source.dtype)
    taken = np.array([len(item) for item in items], np.int64)
    if not items:
        return zero((0, *tail), source.dtype), taken
    check_new((int(taken.sum()), *tail), source.dtype.numpy)
    return np.concatenate(items), taken


# -- lists from tensors ----------------------------------------------------------------


@kernel("TensorListFromTensor")
def make_tensor_list_from_tensor(attrs: Attrs) -> Kernel:
    """A list of a tensor's rows."""
    dtype = attrs.dtype("element_dtype")

    def from_tensor(tensor: Value, element_shape: Value) -> TensorList:
        shape = element_shape_in(element_shape)
        _check_rows(tensor, shape)
        return TensorList(dtype, shape, PersistentVector.of(tensor))

    return from_tensor


@kernel("TensorListScatter")
def make_tensor_list_scatter(attrs: Attrs) -> Kernel:
    """A list with a tensor's rows at the given indices."""
    dtype = attrs.dtype("element_dtype")

    def scatter(tensor: Value, indices: Value, element_shape: Value) -> TensorList:
        empty = TensorList(dtype, element_shape_in(element_shape), PersistentVector())
        return _scattered(empty, tensor, indices)

    return scatter


@kernel("TensorListScatterV2")
def make_tensor_list_scatter_v2(attrs: Attrs) -> Kernel:
    """A list of so many elements, or -1 for enough, with a tensor's rows at given indices."""
    dtype = attrs.dtype("element_dtype")

    def scatter(
        tensor: Value, indices: Value, element_shape: Value, num_elements: Value
    ) -> TensorList:
        size = int(num_elements)
        if size < -1:
            raise InvalidArgumentError(
                f"TensorListScatter expects num_elements >= -1, found: {size}"
            )
        last = int(indices.max()) if size >= 0 and indices.size else -1
        if last >= size >= 0:
            raise InvalidArgumentError(
                f"TensorListScatter: Trying to scatter at index {last} in list with size {size}"
            )
        items: PersistentVector[Value] = PersistentVector()
        items = items.resize(max(size, 0), UNSET)
        empty = TensorList(dtype, element_shape_in(element_shape), items)
        return _scattered(empty, tensor, indices)

    return scatter


@kernel("TensorListScatterIntoExistingList")
def make_tensor_list_scatter_into_existing_list(attrs: Attrs) -> Kernel:
    """The list with a tensor's rows at the given indices, longer if need be."""
    dtype = attrs.dtype("element_dtype")

    def scatter(handle: Value, tensor: Value, indices: Value) -> TensorList:
        found = list_in(handle)
        if found.dtype is not dtype:
            raise InvalidArgumentError(
                f"Invalid data types; input tensor type: {type_text(dtype)} "
                f"list element_type: {type_text(found.dtype)}"
            )
        if indices.ndim != 1:
            raise InvalidArgumentError(
                f"Expected indices to be a vector, but received shape: {shape_text(indices.shape)}"
            )
        rows = shape_of(tensor)[:1]
        if rows and len(indices) != rows[0]:
            raise InvalidArgumentError(
                f"Expected len(indices) == tensor.shape[0], but saw: {len(indices)} vs. {rows[0]}"
            )
        return _scattered(found, tensor, indices)

    return scatter


def _scattered(target: TensorList, tensor: Value, indices: Value) -> TensorList:
    """The list with rows at indices, and as long as the largest of them wants it."""
    _check_rows(tensor, target.element_shape)
    wanted: list[int] = indices.ravel().tolist()
    if len(wanted) != len(tensor):
        raise InvalidArgumentError(
            f"Invalid number of rows in input tensor. Expected: {len(wanted)} Actual: {len(tensor)}"
        )
    if not wanted:
        return target
    if min(wanted) < 0:
        raise InvalidArgumentError("Indices in TensorListScatter must all be non-negative.")
    items = target.items
    if max(wanted) >= items.size:
        items = items.resize(max(wanted) + 1, UNSET)
    return target.with_items(items.put_many(wanted, tensor))


def _check_rows(tensor: Value, element_shape: TensorShape) -> None:
    shape = shape_of(tensor)
    if shape == ():
        raise InvalidArgumentError(
            f"Tensor must be at least a vector, but saw shape: {shape_text(shape)}"
        )
    if not element_shape.accepts(shape[1:]):
        raise InvalidArgumentError(
            f"Specified a list with shape {element_shape} from a tensor with shape "
            f"{shape_text(shape[1:])}"
        )


@kernel("TensorListSplit")
def make_tensor_list_split(attrs: Attrs) -> Kernel:
    """A list of a tensor's pieces, of the given lengths along the first axis."""
    dtype = attrs.dtype("element_dtype")

    def split(tensor: Value, element_shape: Value, lengths: Value) -> TensorList:
        shape = element_shape_in(element_shape)
        _check_pieces(shape_of(tensor), shape)
        if lengths.ndim != 1:
            raise InvalidArgumentError(
                f"Expected lengths to be a vector, received shape: {shape_text(lengths.shape)}"
            )
        pieces, start = [], 0
        for length in lengths.tolist():
            if length < 0:
                raise InvalidArgumentError(f"Invalid value in lengths: {length}")
            if start + length > len(tensor):
                raise InvalidArgumentError(
                    f"Attempting to slice [{start}, {start + length}] from tensor with length "
                    f"{len(tensor)}"
                )
            pieces.append(tensor[start : start + length])
            start += length
        if start != len(tensor):
            raise InvalidArgumentError(
                f"Unused values in tensor. Length of tensor: {len(tensor)} Values used: {start}"
            )
        return TensorList(dtype, shape, PersistentVector.of(pieces))

    return split


def _check_pieces(shape: tuple[int, ...], element_shape: TensorShape) -> None:
    """Raise unless pieces of a tensor, whatever their length, can be elements."""
    dims = element_shape.dims
    if dims == ():
        raise InvalidArgumentError(
            "TensorListSplit requires element_shape to be at least of rank 1, but saw: "
            f"{element_shape}"
        )
    if shape == ():
        raise InvalidArgumentError(
            f"Tensor must be at least a vector, but saw shape: {shape_text(shape)}"
        )
    if dims is not None and not TensorShape((None, *dims[1:])).accepts(shape):
        raise InvalidArgumentError(
            f"tensor shape {shape_text(shape)} is not compatible with element_shape "
            f"{TensorShape((None, *dims[1:]))}"
        )
