"""What the builder hands out: tensors and operations.

In:   a node of a graph.
Out:  ``Tensor``, one of its outputs; ``Operation``, the node itself.
Not:  hold no values; a session computes those.

Both are mere pairs of a graph and a place in it: two of them are equal if they mean the
same place, and either may be a key of a dict, a feed or a fetch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.builder.operators import Operators
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape, type_text
from penstock.dataclass import dataclass
from penstock.errors import FailedPreconditionError
from penstock.graph.graph import Node
from penstock.habits import add_hints
from penstock.state.default_session import Runs, innermost

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

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run it in a session: that of the innermost ``with`` block, unless one is given.

        Raises:
            FailedPreconditionError: there is none.
            OpError: what ``Session.run`` raises.

        """
        _session(session).run(self, feed_dict)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Operation {self.name} ({self.type})>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Nodes are joined by edges, which pickle would follow through all of the graph.
        return _operation_in, (self.graph, self.name)


def _operation_in(graph: Graph, name: str) -> Operation:
    return Operation(graph, graph.node(name))


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

    @property
    def shape(self) -> TensorShape:
        """What is known of its shape before the graph runs; see ``docs/shapes.md``."""
        with self.graph.lock:
            return self.graph.shapes.shape(self.node, self.slot)

    def get_shape(self) -> TensorShape:
        """The same as ``shape``, under TensorFlow's name."""
        return self.shape

    def consumers(self) -> list[Operation]:
        """The operations that take it."""
        edges = [edge for edge in self.node.out_edges if edge.src_slot == self.slot]
        return [Operation(self.graph, node) for node in dict.fromkeys(e.dst for e in edges)]

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Its value in a session: that of the innermost ``with`` block, unless one is given.

        Raises:
            FailedPreconditionError: there is none.
            OpError: what ``Session.run`` raises.

        """
        return _session(session).run(self, feed_dict)

    def as_tensor(self) -> Tensor:
        """The tensor itself."""
        return self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Tensor {self.name} {type_text(self.dtype, self.shape)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _tensor_in, (self.graph, self.node.name, self.slot)


def _tensor_in(graph: Graph, name: str, slot: int) -> Tensor:
    return Tensor(graph, graph.node(name), slot)


add_hints(Operation)
add_hints(Tensor)


def _session(given: Any) -> Runs:
    session = given if given is not None else innermost()
    if session is None:
        raise FailedPreconditionError(
            "Cannot evaluate: no session is open here",
            next_step="use session.run, or do it inside `with ps.Session(graph):`",
        )
    found: Runs = session
    return found


def tensors_of(graph: Graph, node: Node) -> Iterable[Tensor]:
    """The outputs of ``node``, one by one."""
    return (Tensor(graph, node, slot) for slot in range(len(node.output_types)))
