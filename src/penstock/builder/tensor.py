"""What the builder hands out: tensors and operations.

In:   a node of a graph.
Out:  ``Tensor``, one of its outputs; ``Operation``, the node itself.
Not:  hold no values; a session computes those.

Both are mere pairs of a graph and a place in it: two of them are equal if they mean the
same place, and either may be a key of a dict, a feed or a fetch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.builder.operators import Operators
from penstock.core.dtypes import DType
from penstock.graph.graph import Node

if TYPE_CHECKING:
    from penstock.builder.graph import Graph


@dataclass(frozen=True, slots=True)
class Operation:
    """One node of a graph."""

    graph: Graph
    node: Node

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def type(self) -> str:
        """The name of its op."""
        return self.node.op.name

    @property
    def device(self) -> str:
        """The device its author asked for, or ""."""
        return self.node.requested_device

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that it takes."""
        edges = [edge for edge in self.node.inputs if edge is not None]
        return tuple(Tensor(self.graph, edge.src, edge.src_slot) for edge in edges)

    @property
    def control_inputs(self) -> tuple[Operation, ...]:
        """The operations that it waits for without taking a value."""
        return tuple(Operation(self.graph, edge.src) for edge in self.node.control_inputs)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that it makes."""
        return tuple(tensors_of(self.graph, self.node))

    def get_attr(self, name: str) -> Any:
        """The value of an attribute; raises KeyError if it has none of that name."""
        return self.node.attrs[name]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Operation {self.name} ({self.type})>"


@dataclass(frozen=True, slots=True)
class Tensor(Operators):
    """One output of a node: a value that every step computes anew."""

    graph: Graph
    node: Node
    slot: int

    @property
    def name(self) -> str:
        """The name by which a session knows it, such as ``x:0``."""
        return f"{self.node.name}:{self.slot}"

    @property
    def dtype(self) -> DType:
        """The type of its elements; a reference type if it is a place, not a value."""
        return self.node.output_types[self.slot]

    @property
    def op(self) -> Operation:
        """The operation that makes it."""
        return Operation(self.graph, self.node)

    @property
    def device(self) -> str:
        """The device that its operation's author asked for, or ""."""
        return self.node.requested_device

    def as_tensor(self) -> Tensor:
        """The tensor itself."""
        return self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Tensor {self.name} {self.dtype}>"


def tensors_of(graph: Graph, node: Node) -> Iterable[Tensor]:
    """The outputs of ``node``, one by one."""
    return (Tensor(graph, node, slot) for slot in range(len(node.output_types)))
