"""Lists of tensors, one element of each at a time.

In:   lists, an index, an element.
Out:  a new list that shares all else with the old one, or an element.
Not:  stacks, cuts and joins nothing; that is in ``list_batch_ops``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.types import PLAIN, QUANTIZED
from penstock.kernels.values.arrays import as_array, number_in, shape_text
from penstock.kernels.values.variant_elements import zero
from penstock.kernels.values.variants import variant_in
from penstock.kernels.variant.persistent_vector import PersistentVector
from penstock.kernels.variant.tensor_list import (
    UNSET,
    TensorList,
    element_shape_in,
    list_in,
    merged,
    merged_with_items,
)

#: Types of the elements that can be read.
ELEMENTS: Final = PLAIN | QUANTIZED | {dtypes.string, dtypes.variant}


# -- lists as wholes -------------------------------------------------------------------


@kernel("EmptyTensorList", cost=Cost.CHEAP)
def make_empty_tensor_list(attrs: Attrs) -> Kernel:
    """A list without elements, into which so many may be pushed."""
    dtype = attrs.dtype("element_dtype")

    def empty(element_shape: Value, max_num_elements: Value) -> TensorList:
        limit = _scalar_in(
            max_num_elements, "max_num_elements expected to be a scalar but got shape: {}"
        )
        return TensorList(dtype, element_shape_in(element_shape), PersistentVector(), limit)

    return empty


@kernel("TensorListReserve", cost=Cost.CHEAP)
def make_tensor_list_reserve(attrs: Attrs) -> Kernel:
    """A list of so many elements, none of which is set."""
    dtype = attrs.dtype("element_dtype")

    def reserve(element_shape: Value, num_elements: Value) -> TensorList:
        size = _scalar_in(
            num_elements, "The num_elements to reserve must be a tensor size 1, but got {}"
        )
        if size < 0:
            raise InvalidArgumentError(
                f"The num_elements to reserve must be a non negative number, but got {size}"
            )
        items: PersistentVector[Value] = PersistentVector()
        return TensorList(dtype, element_shape_in(element_shape), items.resize(size, UNSET))

    return reserve


@kernel("TensorListLength", cost=Cost.CHEAP)
def make_tensor_list_length(_: Attrs) -> Kernel:
    """Number of elements, set or not."""
    return lambda handle: np.int32(list_in(handle).items.size)


@kernel("TensorListElementShape", cost=Cost.CHEAP)
def make_tensor_list_element_shape(attrs: Attrs) -> Kernel:
    """What every element must look like: sizes with -1 for unknown, or just -1."""
    kind = attrs.dtype("shape_type").numpy.type

    def element_shape(handle: Value) -> Value:
        dims = list_in(handle).element_shape.dims
        return kind(-1) if dims is None else np.array([-1 if d is None else d for d in dims], kind)

    return element_shape


@kernel("TensorListResize", cost=Cost.CHEAP)
def make_tensor_list_resize(_: Attrs) -> Kernel:
    """The list, cut to a size or filled up with elements that are not set."""

    def resize(handle: Value, size: Value) -> TensorList:
        found, wanted = list_in(handle), _scalar_in(size, "size must be a scalar")
        if wanted < 0:
            raise InvalidArgumentError(
                f"TensorListSlice expects size to be non-negative. Got: {wanted}"
            )
        return found.with_items(found.items.resize(wanted, UNSET))

    return resize


def _scalar_in(value: Value, complaint: str) -> int:
    if shape_of(value):
        raise InvalidArgumentError(complaint.format(shape_text(shape_of(value))))
    return int(value)


# -- one element -----------------------------------------------------------------------


@kernel("TensorListGetItem", types={"element_dtype": ELEMENTS}, cost=Cost.CHEAP)
def make_tensor_list_get_item(attrs: Attrs) -> Kernel:
    """The element at an index."""
    dtype = attrs.dtype("element_dtype")

    def get_item(handle: Value, index: Value, element_shape: Value) -> Value:
        found, at = list_in(handle, dtype), number_in(index)
        if not 0 <= at < found.items.size:
            raise InvalidArgumentError(
                f"Trying to access element {at} in a list with {found.items.size} elements."
            )
        item = found.items.get(at)
        return _unset_item(found, element_shape) if item is UNSET else item

    return get_item


def _unset_item(source: TensorList, element_shape: Value) -> Value:
    """Zeros, of the shape that the other elements have if nothing else tells it."""
    shape = merged(element_shape_in(element_shape), source.element_shape)
    if not shape.is_fully_defined:
        shape = merged_with_items(shape, source.items)
    if not shape.is_fully_defined:
        raise InvalidArgumentError(
            "Trying to read an uninitialized tensor but element_shape is not fully defined: "
            f"{shape} and no list element is set."
        )
    return zero(shape.as_tuple(), source.dtype)


@kernel("TensorListSetItem", cost=Cost.CHEAP)
def make_tensor_list_set_item(attrs: Attrs) -> Kernel:
    """The list with another element at an index, behind its end only if that is allowed."""
    dtype, may_grow = attrs.dtype("element_dtype"), attrs.bool("resize_if_index_out_of_bounds")

    def set_item(handle: Value, index: Value, item: Value) -> TensorList:
        found, at = list_in(handle, dtype), number_in(index)
        items = found.items
        if at < 0 or (at >= items.size and not may_grow):
            raise InvalidArgumentError(
                f"Trying to modify element {at} in a list with {items.size} elements."
            )
        shape = shape_of(item)
        if shape != found.element_shape.dims and not found.element_shape.accepts(shape):
            raise InvalidArgumentError(
                "Tried to set a tensor with incompatible shape at a list index. "
                f"Item element shape: {shape_text(shape)} "
                f"list shape: {found.element_shape}"
            )
        if at > items.size:
            items = items.resize(at, UNSET)
        return found.with_items(items.put(at, item))

    return set_item


@kernel("TensorListPushBack", cost=Cost.CHEAP)
def make_tensor_list_push_back(attrs: Attrs) -> Kernel:
    """The list with one more element at its end."""
    dtype = attrs.dtype("element_dtype")
    return lambda handle, tensor: list_in(handle, dtype).pushed(tensor)


@kernel("TensorListPopBack", types={"element_dtype": ELEMENTS}, cost=Cost.CHEAP)
def make_tensor_list_pop_back(attrs: Attrs) -> Kernel:
    """The list without its last element, and that element."""
    dtype = attrs.dtype("element_dtype")

    def pop_back(handle: Value, element_shape: Value) -> tuple[TensorList, Value]:
        found = list_in(handle, dtype)
        items = found.items
        if not items.size:
            raise InvalidArgumentError("Trying to pop from an empty list.")
        item = items.last()
        if item is UNSET:
            shape = merged(element_shape_in(element_shape), found.element_shape)
            if not shape.is_fully_defined:
                raise InvalidArgumentError(
                    "Trying to read an uninitialized tensor but element_shape is not fully "
                    f"defined.{shape}"
                )
            item = zero(shape.as_tuple(), dtype)
        return found.with_items(items.popped()), item

    return pop_back


# -- several lists ---------------------------------------------------------------------


@kernel("TensorListConcatLists")
def make_tensor_list_concat_lists(attrs: Attrs) -> Kernel:
    """The elements of one list and then those of another, for each pair of lists."""
    dtype = attrs.dtype("element_dtype")

    def check(found: TensorList, what: str) -> None:
        if found.dtype is not dtype:
            raise InvalidArgumentError(
                f"{what}.dtype != element_dtype.  Saw: {type_text(found.dtype)} "
                f"vs. {type_text(dtype)}"
            )

    def join(a: Value, b: Value, at: int) -> TensorList:
        first = variant_in(a, TensorList, f"input_a[{at}] is not a TensorList")
        second = variant_in(b, TensorList, f"input_b[{at}] is not a TensorList")
        check(first, f"input_a[{at}]")
        check(second, f"input_b[{at}]")
        if first.element_shape != second.element_shape:
            raise InvalidArgumentError(
                "input_a and input_b TensorList element shapes are not identical at index "
                f"{at}.  Saw {first.element_shape} vs. {second.element_shape}"
            )
        return first.with_items(PersistentVector.of([*first.listed(), *second.listed()]))

    def concat_lists(a: Value, b: Value) -> Value:
        if shape_of(a) != shape_of(b):
            raise InvalidArgumentError(
                "Incompatible input TensorList tensor shapes: "
                f"{shape_text(shape_of(a))} vs. {shape_text(shape_of(b))}"
            )
        if not shape_of(a):
            return join(a, b, 0)
        out = np.empty(shape_of(a), object)
        out.flat[:] = [join(x, y, at) for at, (x, y) in enumerate(zip(a.flat, b.flat, strict=True))]
        return out

    return concat_lists


@kernel("TensorListPushBackBatch")
def make_tensor_list_push_back_batch(attrs: Attrs) -> Kernel:
    """Each list with one more element: a row of the tensor."""
    dtype = attrs.dtype("element_dtype")

    def push(handle: Value, item: Value, at: int) -> TensorList:
        what = f"Input handle at index {at} is not a list"
        found = variant_in(handle, TensorList, what)
        found.check_type(dtype, f"type at index {at}; op elements")
        return found.pushed(item, f" at index {at}")

    def push_back_batch(handles: Value, tensor: Value) -> Array:
        if shape_of(tensor) == ():
            raise InvalidArgumentError("Expected tensor to be at least a vector, but saw shape: []")
        listed = as_array(handles)
        if listed.ndim != 1:
            raise InvalidArgumentError(
                f"Expected input_handles to be a vector, but saw shape: {shape_text(listed.shape)}"
            )
        if len(tensor) != len(listed):
            raise InvalidArgumentError(
                "Expected tensor.shape[0] == input_handles.size, but saw "
                f"{len(tensor)} vs. {len(listed)}"
            )
        out = np.empty(len(listed), object)
        out[:] = [push(*pair, at) for at, pair in enumerate(zip(listed, tensor, strict=True))]
        return out

    return push_back_batch
