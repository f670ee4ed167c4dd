"""Lists and arrays of tensors, as plain arrays with one more axis.

In:   a list, or the flow of an array of tensors; indices, elements.
Out:  the list or flow that comes after; elements.
Not:  no elements of several shapes; lists grow in ``growing_lists``.

What a TensorArray refuses depends on what was done with it: an element is written once, and may be
read once.  Which ones were written, a program knows; where the nodes would refuse, its guard fails.
Flows stand for the array as it is, so each must have one reader, or several that change nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.core.shapes import TensorShape
from penstock.core.values import Array
from penstock.dataclass import dataclass, replace
from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.parts import Known, Operand, UnsupportedError
from penstock.kernels.native.rules import TYPES, Admits, Written, rule


@dataclass(frozen=True, slots=True)
class Elements:
    """A list of tensors, or the flow of an array of tensors."""

    #: How many there are, or, in a list that grows, can be; None as long as nobody knows.
    size: int | None
    dtype: np.dtype[Any]
    #: What is known of the elements' shape from the beginning.
    element_shape: TensorShape
    #: All elements; None as long as nobody knows their shape.
    content: Operand | None
    #: Of a TensorArray: which elements were written.  None for a list.
    written: Operand | None = None
    #: Of a list that grows: how many there are, an int32.  None for all others.
    count: Operand | None = None
    #: An index and an element that is there in truth, whatever the content says.
    pending: tuple[Operand, Operand] | None = None
    #: Whether more than one node reads it.
    is_shared: bool = False
    #: Of a TensorArray whose elements are gone when they were read: its number.
    clearing: int | None = None
    #: Whether a loop only hands it in: what is written to it there would be lost.
    is_fixed: bool = False

    def with_shape(self, emitter: Emitter, shape: tuple[int, ...]) -> Elements:
        """The same, with zeros where nothing was set."""
        if self.content is not None or self.size is None:
            return self
        return replace(self, content=emitter.full(0, self.dtype, (self.size, *shape)))

    @property
    def known_size(self) -> int:
        """Its size; raises UnsupportedError if that is unknown, or 0."""
        if not self.size:
            raise UnsupportedError
        return self.size

    def like(self, emitter: Emitter, other: Elements) -> Elements:
        """The same with the room, and the elements' shape, that it has later."""
        made = self
        if made.size is None and other.size is not None:
            made = replace(made, size=other.size)
        if made.count is None and other.count is not None and made.size is not None:
            made = replace(made, count=emitter.number(made.size, other.count.dtype))
        if other.content is not None:
            made = made.with_shape(emitter, other.content.shape[1:])
        if made.pending is None and other.pending is not None and made.content is not None:
            first = emitter.number(0, other.pending[0].dtype)
            made = replace(made, pending=(first, emitter.row(made.content, first)))
        return made

    def settled(self, emitter: Emitter) -> Elements:
        """The same with its last element where it belongs."""
        if self.pending is None or self.content is None:
            return self
        return replace(self, content=emitter.with_row(self.content, *self.pending), pending=None)


@dataclass(frozen=True, slots=True)
class Handle:
    """What stands for a TensorArray itself: all that it has is in its flow."""


def element_type(name: str) -> Admits:
    """Admit nodes with elements of types that programs have; ``name`` is the attribute's."""
    return lambda attrs, _inputs, _outputs: attrs[name] in TYPES


def shape_of(node: Written, slot: int) -> TensorShape:
    """A shape as lists are told it: -1 is unknown."""
    sizes = node.known(slot)
    if sizes.ndim == 0:
        node.need(sizes == -1)
        return TensorShape(None)
    return TensorShape.of([None if size < 0 else int(size) for size in sizes.tolist()])


def _index(node: Written, elements: Elements, slot: int) -> Operand:
    index = node.array(slot)
    node.need(not index.shape)
    if elements.count is not None:
        _need_counted(node.emitter, index, elements.count)
    else:
        node.emitter.need_index(index, elements.known_size)
    return index


def _need_counted(emitter: Emitter, index: Operand, count: Operand) -> None:
    """The guard that a list that grows has got so far."""
    index = emitter.convert(index, count.dtype)
    emitter.need(emitter.compare("greater_equal", index, emitter.number(0, count.dtype)))
    emitter.need(emitter.compare("less", index, count))


# -- lists ---------------------------------------------------------------------------------------


@rule("TensorListReserve", admits=element_type("element_dtype"))
def _reserve(node: Written) -> Elements:
    count = node.known(1)
    node.need(count.ndim == 0 and count >= 0)
    shape = shape_of(node, 0)
    made = Elements(int(count), node.attrs["element_dtype"].numpy, shape, None)
    return made.with_shape(node.emitter, shape.as_tuple()) if shape.is_fully_defined else made


@rule("TensorListFromTensor", admits=element_type("element_dtype"))
def _from_tensor(node: Written) -> Elements:
    x, shape = node.array(0), shape_of(node, 1)
    node.need(x.shape and shape.accepts(x.shape[1:]))
    return Elements(x.shape[0], x.dtype, shape, x)


@rule("TensorListLength")
def _length(node: Written) -> Operand:
    elements: Elements = node.inputs[0]
    if elements.count is not None:
        return elements.count
    node.need(elements.size is not None)
    return Known(np.asarray(elements.size, np.int32))


@rule("TensorListSetItem", admits=element_type("element_dtype"))
def _set_item(node: Written) -> Elements:
    before: Elements = node.inputs[0]
    node.need(not node.attrs.get("resize_if_index_out_of_bounds"))
    return with_element(node, before, _index(node, before, 1), node.array(2))


def with_element(node: Written, before: Elements, index: Operand, item: Operand) -> Elements:
    """The list with another element at an index that is in range."""
    node.need(item.dtype == before.dtype and before.element_shape.accepts(item.shape))
    full = before.with_shape(node.emitter, item.shape)
    node.need(full.content is not None)
    assert full.content is not None
    node.need(full.content.shape[1:] == item.shape)
    # A value that nobody reads any more is written into, and a copy of all others.  Who reads this
    # list besides does so in the same iteration of a loop; the next one begins with the writing.
    made = replace(full, pending=(index, item), is_shared=False)
    return made if before.is_shared else made.settled(node.emitter)


@rule("TensorListGetItem", admits=element_type("element_dtype"))
def _get_item(node: Written) -> Operand:
    elements: Elements = node.inputs[0]
    node.need(elements.content is not None and elements.dtype == node.types[0].numpy)
    assert elements.content is not None
    node.need(shape_of(node, 2).accepts(elements.content.shape[1:]))
    return node.emitter.row(elements.content, _index(node, elements, 1))


@rule("TensorListStack", admits=element_type("element_dtype"))
def _stack(node: Written) -> Operand:
    elements: Elements = node.inputs[0]
    size = elements.known_size
    node.need(elements.content is not None)
    assert elements.content is not None
    node.need(shape_of(node, 1).accepts(elements.content.shape[1:]))
    node.need(node.attrs["num_elements"] in (-1, size))
    if elements.count is not None:  # a program is for lists that are full at the end
        full = node.emitter.number(size, elements.count.dtype)
        node.emitter.need(node.emitter.compare("equal", elements.count, full))
    return elements.content


def zeros_like(node: Written) -> Elements:
    """As many elements, all of them zeros."""
    elements: Elements = node.inputs[0]
    node.need(elements.written is None)  # a flow is a number
    if elements.content is None:
        return elements
    zeros = node.emitter.full(0, elements.dtype, elements.content.shape)
    return replace(elements, content=zeros)


def sum_of_lists(node: Written) -> Elements:
    """The sums of elements that stand at the same place; what was never set is zero."""
    total: Elements = node.inputs[0]
    node.need(all(term.written is None for term in node.inputs))  # flows are numbers
    for term in node.inputs[1:]:
        node.need(total.size == term.size and total.dtype == term.dtype)
        node.need(total.count is None and term.count is None)
        if total.content is None or term.content is None:
            total = term if total.content is None else total
            continue
        node.need(total.content.shape == term.content.shape)
        added = node.emitter.same("add", total.content, term.content)
        total = replace(total, content=added)
    return total


# -- arrays of tensors ---------------------------------------------------------------------------


def _is_plain_array(attrs: Any, _inputs: Any, _outputs: Any) -> bool:
    return attrs["dtype"] in TYPES and not attrs["dynamic_size"]


@rule("TensorArrayV3", admits=_is_plain_array)
def _tensor_array(node: Written) -> list[Any]:
    count, shape = node.known(0), node.attrs["element_shape"]
    node.need(count.ndim == 0 and count >= 0)
    # A shape that is not said, or half, is that of the first element, and others are refused.
    size = int(count)
    made = Elements(
        size,
        node.attrs["dtype"].numpy,
        shape,
        None,
        Known(np.zeros(size, np.bool_)),
    )
    if node.attrs["clear_after_read"]:
        number = len(node.emitter.states)
        node.emitter.states[number] = Known(np.zeros(size, np.bool_))
        made = replace(made, clearing=number)
    if shape.is_fully_defined:
        made = made.with_shape(node.emitter, shape.as_tuple())
    return [Handle(), made]


@rule("TensorArrayScatterV3", admits=lambda _a, i, _o: i[2] in TYPES)
def _scatter(node: Written) -> Elements:
    """All elements in their order, written at once."""
    before: Elements = node.inputs[3]
    x, indices = node.array(2), node.known(1)
    node.need(isinstance(before.written, Known) and not before.is_fixed)
    assert isinstance(before.written, Known)
    node.need(not before.written.value.any())
    node.need(indices.ndim == 1 and indices.tolist() == list(range(before.known_size)))
    node.need(x.shape and x.shape[0] == before.known_size and x.dtype == before.dtype)
    node.need(before.element_shape.accepts(x.shape[1:]))
    return replace(before, content=x, written=Known(np.ones(before.known_size, np.bool_)))


@rule("TensorArrayWriteV3", admits=lambda _a, i, _o: i[2] in TYPES)
def _write(node: Written) -> Elements:
    before: Elements = node.inputs[3]
    index = _index(node, before, 1)
    node.need(not before.is_fixed and before.written is not None)
    assert before.written is not None
    emitter = node.emitter
    emitter.need(emitter.same("not", emitter.row(before.written, index)))
    made = with_element(node, before, index, node.array(2))
    true = Known(np.asarray(np.True_))
    return replace(made, written=emitter.with_row(before.written, index, true))


@rule("TensorArrayReadV3", admits=lambda attrs, _i, _o: attrs["dtype"] in TYPES)
def _read(node: Written) -> Operand:
    elements: Elements = node.inputs[2]
    index = _index(node, elements, 1)
    node.need(elements.content is not None and elements.dtype == node.types[0].numpy)
    assert elements.content is not None
    assert elements.written is not None
    if not (isinstance(elements.written, Known) and elements.written.value.all()):
        node.emitter.need(node.emitter.row(elements.written, index))
    if elements.clearing is not None:
        _clear(node.emitter, elements.clearing, index)
    return node.emitter.row(elements.content, index)


def _clear(emitter: Emitter, number: int, index: Operand) -> None:
    """Take an element away, which must still be there."""
    gone = emitter.states[number]
    emitter.need(emitter.same("not", emitter.row(gone, index)))
    emitter.states[number] = emitter.with_row(gone, index, Known(np.asarray(np.True_)))


@rule("TensorArrayGatherV3", admits=lambda attrs, _i, _o: attrs["dtype"] in TYPES)
def _gather(node: Written) -> Operand:
    elements: Elements = node.inputs[2]
    indices, emitter = node.known(1), node.emitter
    node.need(indices.ndim == 1 and indices.size and elements.content is not None)
    node.need(elements.dtype == node.types[0].numpy)
    assert elements.content is not None
    assert elements.written is not None
    emitter.need_index(Known(indices), elements.known_size)
    node.need(((indices >= 0) & (indices < elements.known_size)).all())
    if elements.clearing is not None:
        _clear_all(node, elements.clearing, indices)
    node.need(node.attrs["element_shape"].accepts(elements.content.shape[1:]))
    if indices.tolist() == list(range(elements.known_size)):
        chosen, content = elements.written, elements.content
    else:
        chosen = emitter.rows(elements.written, Known(indices))
        content = emitter.rows(elements.content, Known(indices))
    emitter.need(emitter.reduce("all", chosen, [0]))
    return content


def _clear_all(node: Written, number: int, indices: Array) -> None:
    """The same for several elements."""
    emitter = node.emitter
    gone, mask = emitter.states[number], np.zeros(emitter.states[number].shape, np.bool_)
    node.need(len(set(indices.tolist())) == indices.size)
    mask[indices] = True
    both = emitter.same("and", gone, Known(mask))
    emitter.need(emitter.same("not", emitter.reduce("any", both, [0])))
    emitter.states[number] = emitter.same("or", gone, Known(mask))


@rule("TensorArraySizeV3")
def _size(node: Written) -> Known:
    return Known(np.asarray(np.int32(node.inputs[1].size)))
