"""Values of a graph under construction, so that a formula makes nodes.

In:   endpoints of a graph, numbers, and the names of ops.
Out:  new nodes with all their attributes.
Not:  knows no gradients; computes nothing.

``x * y``, ``2 * x`` and ``x.to("Cos")`` are each a node; attributes that follow from the inputs
are filled in, and so are defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.catalogue.op_def import ArgDef, OpDef
from penstock.catalogue.registry import get_op
from penstock.core.dtypes import DType
from penstock.core.values import as_value
from penstock.dataclass import dataclass
from penstock.defs.attrs import Attr, TensorAttr
from penstock.graph.graph import Graph, Node

#: An input argument that is a list is given as a list.
Argument: TypeAlias = "NodeOutput | Sequence[NodeOutput]"
_SCOPE: Final = "gradient"


@dataclass(frozen=True, slots=True)
class NodeOutput:
    """One output of a node."""

    graph: Graph
    node: Node
    slot: int

    @property
    def dtype(self) -> DType:
        """The element type; that of the value for a reference."""
        return self.node.output_types[self.slot].base

    def to(self, op: str, *more: Argument, **attrs: Attr) -> NodeOutput:
        """The first output of a new node whose first input is this value."""
        return apply(self.graph, op, self, *more, **attrs)[0]

    def number(self, value: Any, dtype: DType | None = None) -> NodeOutput:
        """A constant, of the value's own type unless another is named."""
        return constant(self.graph, value, dtype or self.dtype)

    @property
    def shape(self) -> NodeOutput:
        """The sizes, as a vector of int32."""
        return self.to("Shape")

    def shaped(self, shape: NodeOutput) -> NodeOutput:
        """The same elements in another shape."""
        return self.to("Reshape", shape)

    def __neg__(self) -> NodeOutput:
        return self.to("Neg")

    def __add__(self, other: NodeOutput | float) -> NodeOutput:
        return self.to("AddV2", self._value(other))

    def __sub__(self, other: NodeOutput | float) -> NodeOutput:
        return self.to("Sub", self._value(other))

    def __rsub__(self, other: float) -> NodeOutput:
        return self._value(other) - self

    def __mul__(self, other: NodeOutput | float) -> NodeOutput:
        return self.to("Mul", self._value(other))

    __radd__ = __add__
    __rmul__ = __mul__

    def __truediv__(self, other: NodeOutput | float) -> NodeOutput:
        return self.to("RealDiv" if self.dtype.is_floating or self.dtype.is_complex else "Div",
                       self._value(other))  # fmt: skip

    def _value(self, other: NodeOutput | float) -> NodeOutput:
        return other if isinstance(other, NodeOutput) else self.number(other)


def constant(graph: Graph, value: Any, dtype: DType) -> NodeOutput:
    """A constant of a type."""
    made = TensorAttr(value=as_value(np.array(value, dtype.numpy)))
    return apply(graph, "Const", value=made, dtype=dtype)[0]


def apply(graph: Graph, op_name: str, *arguments: Argument, **given: Attr) -> list[NodeOutput]:
    """All outputs of a new node."""
    op = get_op(op_name)
    return apply_op(graph, op, arguments, given)


def apply_op(
    graph: Graph, op: OpDef, arguments: Sequence[Argument], given: Mapping[str, Attr]
) -> list[NodeOutput]:
    """All outputs of a new node of an op, or of a function of the graph's library."""
    attrs = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    inputs: list[NodeOutput] = []
    for arg, argument in zip(op.inputs, arguments, strict=True):
        values = [argument] if isinstance(argument, NodeOutput) else list(argument)
        attrs |= _inferred(arg, values)
        inputs += values
    node = graph.add_node(_new_name(graph, op.name), op, {**attrs, **given})
    for slot, value in enumerate(inputs):
        graph.add_edge(value.node, value.slot, node, slot)
    return outputs_of(graph, node)


def outputs_of(graph: Graph, node: Node) -> list[NodeOutput]:
    """A node's outputs."""
    return [NodeOutput(graph, node, slot) for slot in range(len(node.output_types))]


def _inferred(arg: ArgDef, values: Sequence[NodeOutput]) -> dict[str, Attr]:
    """The attributes that an input argument's values tell."""
    told: dict[str, Attr] = {}
    if arg.number_attr:
        told[arg.number_attr] = len(values)
    if arg.type_attr and values:
        told[arg.type_attr] = values[0].dtype
    if arg.list_attr:
        told[arg.list_attr] = tuple(value.dtype for value in values)
    return told


def _new_name(graph: Graph, op: str) -> str:
    """A name that no node has."""
    number = graph.next_id
    while f"{_SCOPE}/{op}_{number}" in graph:
        number += 1
    return f"{_SCOPE}/{op}_{number}"
