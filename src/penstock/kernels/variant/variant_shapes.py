"""Shapes of lists, maps and options, and of what is taken out of them.

In:   nodes of this folder's ops.
Out:  shape rules; what lies behind a list is one of its elements.
Not:  knows no list's length.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import concat, dim, merge, part_of, shape
from penstock.kernels.api.shape_context import Held, ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    """
    EmptyTensorMap OptionalFromValue OptionalHasValue OptionalNone TensorListLength
    TensorMapErase TensorMapHasKey TensorMapInsert TensorMapSize
    """: "-> []",
    "OptionalGetValue": "* -> @output_shapes",
})  # fmt: skip


def _element(node: ShapeContext, slot: int = 0) -> TensorShape:
    held = node.held(slot)
    return UNKNOWN if held is None else held.shape


def _asked(node: ShapeContext, slot: int) -> TensorShape:
    """The shape of an element that an input asks for; one number, or none, asks for nothing."""
    return UNKNOWN if node.input(slot).rank != 1 else node.sizes(slot)


@shape_rule("EmptyTensorList", "TensorListReserve")
def make_list(node: ShapeContext) -> TensorShape:
    """A list of elements of the shape that is asked for."""
    node.holds[0] = Held(_asked(node, 0), node.attrs.dtype("element_dtype"))
    return SCALAR


@shape_rule("TensorListFromTensor")
def from_tensor(node: ShapeContext) -> TensorShape:
    """A list of the rows."""
    element = merge(part_of(node.input(0), 1), _asked(node, 1))
    node.holds[0] = Held(element, node.attrs.dtype("element_dtype"))
    return SCALAR


@shape_rule("TensorListScatter", "TensorListScatterV2")
def scatter(node: ShapeContext) -> TensorShape:
    """A list of the rows, in another order."""
    node.holds[0] = Held(_asked(node, 2), node.attrs.dtype("element_dtype"))
    return SCALAR


@shape_rule("TensorListSplit")
def split(node: ShapeContext) -> TensorShape:
    """A list of parts, of different lengths."""
    node.holds[0] = Held(_asked(node, 1), node.attrs.dtype("element_dtype"))
    return SCALAR


@shape_rule(
    *("TensorListPushBack", "TensorListResize", "TensorListScatterIntoExistingList"),
    *("TensorListSetItem", "TensorListPushBackBatch"),
)
def changed(node: ShapeContext) -> TensorShape:
    """A list of elements of the same shape."""
    held = node.held(0)
    if held is not None:
        node.holds[0] = held
    if node.attrs.op.name == "TensorListPushBackBatch":
        return node.input(0)
    return SCALAR


@shape_rule("TensorListConcatLists")
def joined_lists(node: ShapeContext) -> TensorShape:
    """Lists of the elements of both."""
    one, other = node.held(0), node.held(1)
    if one is not None and other is not None:
        node.holds[0] = Held(merge(one.shape, other.shape), one.dtype)
    return merge(node.input(0), node.input(1))


@shape_rule("TensorListPopBack")
def pop_back(node: ShapeContext) -> Sequence[TensorShape]:
    """The list without its last element, and that."""
    changed(node)
    return SCALAR, merge(_element(node), _asked(node, 1))


@shape_rule("TensorListGetItem")
def get_item(node: ShapeContext) -> TensorShape:
    """One element."""
    return merge(_element(node), _asked(node, 2))


@shape_rule("TensorListStack")
def stack(node: ShapeContext) -> TensorShape:
    """All elements, as rows."""
    count = node.attrs.int("num_elements")
    element = merge(_element(node), _asked(node, 1))
    return concat(shape(count if count >= 0 else None), element)


@shape_rule("TensorListGather")
def gather(node: ShapeContext) -> TensorShape:
    """Some elements, as rows."""
    element = merge(_element(node), _asked(node, 2))
    return concat(shape(dim(node.input(1), 0)), element)


@shape_rule("TensorListConcat", "TensorListConcatV2")
def concatenated(node: ShapeContext) -> Sequence[TensorShape]:
    """All elements, one after the other, and how long each is."""
    is_new = node.attrs.op.name == "TensorListConcatV2"
    asked = _asked(node, 1) if is_new else node.attrs.shape("element_shape")
    rest = part_of(asked, 1)
    return concat(shape(None), rest), shape(None)


@shape_rule("TensorListElementShape")
def element_shape(node: ShapeContext) -> TensorShape:
    """A vector of sizes; a scalar if nothing is known of them."""
    held = node.held(0)
    if held is None or held.shape.rank is None:
        return UNKNOWN
    return shape(held.shape.rank)
