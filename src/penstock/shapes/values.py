"""Compute the values that shapes depend on, as far as they are known before a graph runs.

In:   an output of a node.
Out:  its value, of which some elements may be unknown; None if nothing is known of it.
Not:  computes nothing large, nothing with effects, and nothing that takes long.

Three ways: a Const says it; the shape of a tensor is known without the tensor; and whatever
depends on these alone is computed by its kernel.  Where elements are unknown, a kernel that only
moves them is called twice, with other numbers in their places: what differs is unknown.  One that
works element by element is called once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.catalogue.op_traits import ResultSize
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, as_value, has_dtype
from penstock.defs.attrs import TensorAttr
from penstock.graph.graph import Edge, Node
from penstock.graph.roles import COMPUTES, Role
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.partial_values import PartialValue
from penstock.kernels.api.registry import Calling, Kernel, find_kernel
from penstock.kernels.api.result_elements import result_elements
from penstock.shapes.facts import KnownShapes

#: Longer values say nothing about shapes, and take time.
_MAX_ELEMENTS: Final = 1 << 12
#: Chains of more nodes than this are not followed.
_MAX_DEPTH: Final = 60
#: Ops that hand a value on, whose kernels would only copy it.
_HANDS_ON: Final = frozenset({
    "Enter", "EnsureShape", "Exit", "GuaranteeConst", "Identity", "IdentityN", "NextIteration",
    "PreventGradient", "RefIdentity", "Snapshot", "StopGradient", "Switch",
})  # fmt: skip
#: Ops that move elements, by how many of their inputs, from the front, hold what is moved; a
#: negative number counts those at the end that do not.
_MOVES: Final = {
    "ConcatV2": -1, "ExpandDims": 1, "GatherV2": 1, "Gather": 1, "Pack": 0, "Reshape": 1,
    "ReverseV2": 1, "Slice": 1, "Split": 0, "SplitV": 1, "Squeeze": 0, "StridedSlice": 1,
    "Tile": 1, "Transpose": 1, "Unpack": 0, "GatherNd": 1, "BroadcastTo": 1, "Fill": 0,
}  # fmt: skip
#: Ops that work element by element, so that what they make of an unknown one is unknown.
_ELEMENTWISE: Final = frozenset({
    "Abs", "Add", "AddN", "AddV2", "Cast", "FloorDiv", "FloorMod", "Maximum", "Minimum", "Mul",
    "Neg", "RealDiv", "Square", "Sub",
})  # fmt: skip


#: Ops whose values may be others than what they are computed from.
_MAY_BE_FED: Final = frozenset({"PlaceholderWithDefault"})


class Values:
    """The values that are known in one graph."""

    def __init__(self, shapes: KnownShapes) -> None:
        self._shapes = shapes
        #: By node and slot; None is remembered too.
        self._known: dict[tuple[int, int], PartialValue | None] = {}
        #: How many nodes a question has led through.
        self._depth = 0

    def forget(self) -> None:
        """Shapes have changed."""
        self._known.clear()

    def of(self, node: Node, slot: int) -> PartialValue | None:
        """What is known of the value of an output."""
        key = node.id, slot
        if key in self._known:
            return self._known[key]
        if self._depth > _MAX_DEPTH:
            return None
        self._depth += 1
        try:
            found = self._find(node, slot)
        finally:
            self._depth -= 1
        self._known[key] = found
        return found

    def _find(self, node: Node, slot: int) -> PartialValue | None:
        op = node.op.name
        if node.role is Role.CONSTANT:
            return _constant(node)
        if op in _HANDS_ON:
            edge = node.inputs[slot if op == "IdentityN" else 0]
            return None if edge is None else self.of(edge.src, edge.src_slot)
        if op in _OF_SHAPES:
            return self._of_shape(node, slot)
        if node.role not in COMPUTES or not node.op.only_computes or op in _MAY_BE_FED:
            return None
        facts = self._shapes.known(node)
        if facts is None or not _is_small(facts.shapes[slot]) or not node.inputs:
            return None
        return self._computed(node, slot)

    def _anything(self, edge: Edge) -> PartialValue | None:
        """A value of which only the shape is known; None if that is not, or it is no number."""
        facts = self._shapes.known(edge.src)
        dtype = edge.src.output_types[edge.src_slot]
        shape = None if facts is None else facts.shapes[edge.src_slot]
        if shape is None or not dtype.is_integer or not shape.is_fully_defined:
            return None
        if not _is_small(shape):
            return None
        zeros = np.zeros(shape.as_tuple(), dtype.numpy)
        return PartialValue(as_value(zeros), np.zeros(shape.as_tuple(), bool))

    def _of_shape(self, node: Node, slot: int) -> PartialValue | None:
        """What follows from the shape of an input alone."""
        edge = node.inputs[slot if node.op.name == "ShapeN" else 0]
        facts = None if edge is None else self._shapes.known(edge.src)
        if edge is None or facts is None:
            return None
        dtype = node.output_types[slot].numpy
        if node.op.name == "VariableShape":
            held = facts.holds.get(edge.src_slot)
            return None if held is None else PartialValue.of_shape(held.shape, dtype)
        shape = facts.shapes[edge.src_slot]
        if node.op.name in ("Shape", "ShapeN"):
            return PartialValue.of_shape(shape, dtype)
        if node.op.name == "Rank":
            return None if shape.dims is None else PartialValue(dtype.type(len(shape.dims)))
        if not shape.is_fully_defined:
            return None
        return PartialValue(np.array(shape.num_elements()).astype(dtype)[()])

    def _computed(self, node: Node, slot: int) -> PartialValue | None:
        """What the kernel makes of what is known of the inputs."""
        inputs = self._inputs(node)
        if inputs is None:
            return None
        if all(known.known is not None and not known.known.any() for known in inputs):
            return None
        try:
            return _made(node, inputs, slot)
        except Exception:  # noqa: BLE001  (the run will raise it, and name the node)
            return None

    def _inputs(self, node: Node) -> list[PartialValue] | None:
        """What is known of the inputs; None if that does not do for the kernel."""
        may_be_unknown = node.op.name in _MOVES or node.op.name in _ELEMENTWISE
        inputs = []
        for edge in node.inputs:
            known = None if edge is None else self.of(edge.src, edge.src_slot)
            if known is None and edge is not None and may_be_unknown:
                known = self._anything(edge)
            if known is None:
                return None
            inputs.append(known)
        return inputs


def _made(node: Node, inputs: Sequence[PartialValue], slot: int) -> PartialValue | None:
    """An output by the node's own kernel; None if it is none that may be asked, or too large."""
    op, values = node.op.name, [known.value for known in inputs]
    if node.op.result_size is ResultSize.UNKNOWN:
        return None
    if result_elements(node.op, node.attrs, values) > _MAX_ELEMENTS:
        return None
    compute = _kernel(node)
    if compute is None:
        return None
    if all(known.known is None for known in inputs):
        return PartialValue(_output(node, compute, values, slot))
    if op in _ELEMENTWISE:
        return _elementwise(node, compute, inputs)
    return _moved(node, compute, inputs, slot) if op in _MOVES else None


#: Ops whose result follows from the shape of an input.
_OF_SHAPES: Final = frozenset({"Rank", "Shape", "ShapeN", "Size", "VariableShape"})


def _constant(node: Node) -> PartialValue | None:
    value = node.attrs.get("value")
    if not isinstance(value, TensorAttr) or not _is_small(value.shape):
        return None
    try:
        return PartialValue(value.value)
    except Exception:  # noqa: BLE001  (the run will raise it, and name the node)
        return None


def _is_small(shape: TensorShape) -> bool:
    if shape.dims is None:
        return False
    return math.prod(size or 1 for size in shape.dims) <= _MAX_ELEMENTS


def _kernel(node: Node) -> Kernel | None:
    """The node's kernel, if it is a plain function of ours."""
    kernel = find_kernel(node.op.name, "CPU", node.attrs)
    if kernel is None or kernel.calling is not Calling.PLAIN or not kernel.is_builtin:
        return None
    facts = Attrs(node.op, node.attrs, node.input_types, node.output_types, node.name)
    return kernel.made(facts)


def _output(node: Node, compute: Kernel, inputs: Sequence[Value], slot: int) -> Any:
    """One output of a kernel; raises TypeError if it is not what the node declares."""
    with np.errstate(all="ignore"):
        result = compute(*inputs)
    output = as_value(result if node.op.has_bare_output else result[slot])
    if not has_dtype(output, node.output_types[slot]):
        raise TypeError(f"{node.name} gave another type")
    return output


def _elementwise(
    node: Node, compute: Kernel, inputs: Sequence[PartialValue]
) -> PartialValue | None:
    """Unknown wherever one of the operands is."""
    # Ones where elements are unknown, so that nothing is divided by zero.
    values = [_with(known, 1) for known in inputs]
    result = _output(node, compute, values, 0)
    masks = [True if known.known is None else known.known for known in inputs]
    known = np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*masks)), np.shape(result))
    return PartialValue.of(result, known)


def _moved(
    node: Node, compute: Kernel, inputs: Sequence[PartialValue], slot: int
) -> PartialValue | None:
    """Unknown where other numbers in the places of unknown elements make another result."""
    count = _MOVES[node.op.name]
    moved = inputs[:count] if count else inputs
    if any(known.known is not None for known in inputs[len(moved) :]):
        return None
    one, other = (
        _output(node, compute, [_with(known, number) for known in inputs], slot)
        for number in (1, 2)
    )
    return PartialValue.of(one, np.asarray(one == other))


def _with(known: PartialValue, number: int) -> Value:
    """The value with a number in all unknown places."""
    if known.known is None:
        return known.value
    filled = np.where(known.known, known.value, number).astype(np.asarray(known.value).dtype)
    return as_value(filled)
