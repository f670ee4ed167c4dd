"""Nodes and edges.

A ``Graph`` is a growing list of nodes with a library of functions.  Nodes without inputs
are its roots; there are no explicit source and sink nodes.  Edges join (node, slot) to
(node, slot); both slots of a control edge are -1.

Law: a node's id is its place in the order of creation and is never given twice; names are
unique; every edge stands in its source's ``out_edges`` and in its destination's ``inputs``
(by slot) or ``control_inputs``.  ``graph/check.py`` states the laws one by one; only
``Graph`` changes edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from threading import RLock
from typing import Final, NamedTuple

from penstock.advice import LookUpName
from penstock.catalogue.op_def import OpDef
from penstock.core.dtypes import DType
from penstock.core.names import CONTROL_SLOT, Endpoint
from penstock.dataclass import dataclass
from penstock.defs.attrs import Attr
from penstock.errors import InternalError, InvalidArgumentError, OutOfRangeError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.near_names import near_names
from penstock.graph.roles import Role, role_of
from penstock.printable import printable

#: The attribute of a node that came out of a function's body: the function's name.
INLINED_FROM: Final = "_inlined_from"
#: The graph version that this runtime speaks, and the oldest producer that it reads.
VERSION: Final = 2474
MIN_PRODUCER: Final = 0


class Edge(NamedTuple):
    """From an output to an input; both slots of a control edge are -1."""

    src: Node
    src_slot: int
    dst: Node
    dst_slot: int

    @property
    def is_control(self) -> bool:
        """Whether the edge only orders its ends."""
        return self.src_slot == CONTROL_SLOT

    def __str__(self) -> str:
        return f"{self.src.name}:{self.src_slot} -> {self.dst.name}:{self.dst_slot}"


@dataclass(frozen=False, slots=True, eq=False)
class Node:
    """One node.  Its facts never change after creation; its edges only through its graph."""

    id: int
    name: str
    op: OpDef
    attrs: Mapping[str, Attr]
    input_types: tuple[DType, ...]
    output_types: tuple[DType, ...]
    #: The device its author asked for; often partial, often empty.
    requested_device: str
    #: The device it came with from an earlier placement; usually empty.
    assigned_device: str
    #: The input strings it was made from; for error messages only.
    requested_inputs: tuple[str, ...]
    role: Role
    #: Data edges by input slot.  None where an edge is still to come (a loop's back edge).
    inputs: list[Edge | None] = field(repr=False)
    #: Control edges, sorted by the name of their source, no source twice.
    control_inputs: list[Edge] = field(default_factory=list, repr=False)
    #: Data and control edges that leave, in order of creation.
    out_edges: list[Edge] = field(default_factory=list, repr=False)

    @property
    def function(self) -> str:
        """The function that it was written in, if it is not in that one's body any more."""
        name = self.attrs.get(INLINED_FROM)  # no op declares it: it may be anything
        return name.decode("utf-8", "replace") if isinstance(name, bytes) else ""

    def in_edges(self) -> Iterator[Edge]:
        """Data edges by slot, then control edges."""
        for edge in self.inputs:
            if edge is not None:
                yield edge
        yield from self.control_inputs

    def input(self, slot: int) -> Edge:
        """The data edge at ``slot``; raises InvalidArgumentError if there is none."""
        edge = self.inputs[slot] if 0 <= slot < len(self.inputs) else None
        if edge is None:
            raise InvalidArgumentError(f"Missing edge input number: {slot} of {self.name}")
        return edge

    def let_go(self) -> None:
        """Forget its edges, when it is in no graph any more; together they hold each other."""
        self.inputs[:] = [None] * len(self.inputs)
        self.control_inputs.clear()
        self.out_edges.clear()

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.name}>"


@dataclass(frozen=True, slots=True)
class Versions:
    """Who may read the graph: the producer's version and its demands on consumers."""

    producer: int = VERSION
    min_consumer: int = 0
    bad_consumers: tuple[int, ...] = ()


class Graph:
    """A list of nodes with a function library."""

    def __init__(self, library: FunctionLibrary | None = None, *, function: str = "") -> None:
        #: The function whose body this is; empty for a graph of its own.
        self.function = function
        #: Nodes by id, in order of creation; a removed node leaves no entry.
        self._nodes: dict[int, Node] = {}
        #: The same nodes by name.
        self._by_name: dict[str, Node] = {}
        #: The id of the next node; only grows.
        self._next_id = 0
        self.library = library if library is not None else FunctionLibrary()
        self.versions = Versions()
        #: Held while nodes and their edges are added, and while a pass reads the whole graph,
        #: so that several threads may build and run it.  Outermost.
        self.lock = RLock()

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        of = f" of function {printable(self.function)}" if self.function else ""
        return f"<Graph{of}: {len(self)} node{'' if len(self) == 1 else 's'}>"

    @property
    def next_id(self) -> int:
        """The id that the next node will get; changes whenever a node is added."""
        return self._next_id

    def __iter__(self) -> Iterator[Node]:
        """Nodes in order of their ids."""
        return iter(list(self._nodes.values()))

    def nodes_from(self, first: int) -> list[Node]:
        """Nodes with this id or a larger one, in order of their ids; looks at no others."""
        found = map(self._nodes.get, range(first, self._next_id))
        return [node for node in found if node is not None]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def find(self, name: str) -> Node | None:
        """The node called ``name``, or None."""
        return self._by_name.get(name)

    def node(self, name: str) -> Node:
        """The node called ``name``; raises InvalidArgumentError if there is none."""
        found = self._by_name.get(name)
        if found is None:
            raise InvalidArgumentError(f"The graph has no node called '{name}'")
        return found

    def hint(self, name: str) -> LookUpName:
        """What to do when there is no node called ``name``."""
        return near_names(name, self.names())

    def names(self) -> list[str]:
        """The names of all nodes."""
        return list(self._by_name)

    def op_def(self, op: str) -> OpDef:
        """The signature of an op or of a function of the library; NotFoundError if neither."""
        return self.library.op_def(op)

    def add_node(
        self,
        name: str,
        op: OpDef,
        attrs: Mapping[str, Attr],
        *,
        device: str = "",
        assigned_device: str = "",
        requested_inputs: Sequence[str] = (),
    ) -> Node:
        """Create a node without edges; raises InvalidArgumentError if the name is taken."""
        if name in self._by_name:
            raise InvalidArgumentError(f"Node '{name}' is not unique")
        input_types, output_types = op.types(attrs)
        node = self._nodes[self._next_id] = self._by_name[name] = Node(
            self._next_id,
            name,
            op,
            attrs,
            input_types,
            output_types,
            device,
            assigned_device,
            tuple(requested_inputs),
            role_of(op.name),
            [None] * len(input_types),
        )
        self._next_id += 1
        return node

    def add_copy(self, node: Node) -> Node:
        """Add a copy of another graph's node, without its edges."""
        if node.name in self._by_name:
            raise InvalidArgumentError(f"Node '{node.name}' is not unique")
        copy = self._nodes[self._next_id] = self._by_name[node.name] = Node(
            self._next_id,
            node.name,
            node.op,
            node.attrs,
            node.input_types,
            node.output_types,
            node.requested_device,
            node.assigned_device,
            node.requested_inputs,
            node.role,
            [None] * len(node.input_types),
        )
        self._next_id += 1
        return copy

    def add_edge(self, src: Node, src_slot: int, dst: Node, dst_slot: int) -> Edge:
        """Join an output to an input of the same type (a reference may feed a value).

        Raises:
            OutOfRangeError: a slot that its node does not have.
            InvalidArgumentError: the types do not fit.
            InternalError: the input is taken.

        """
        if not 0 <= src_slot < len(src.output_types):
            check_output(src, src_slot)
        if not 0 <= dst_slot < len(dst.inputs):
            raise OutOfRangeError(
                f"Node '{dst.name}' (type: '{dst.op.name}', num of inputs: {len(dst.inputs)}) "
                f"does not have input {dst_slot}"
            )
        given, wanted = src.output_types[src_slot], dst.input_types[dst_slot]
        if given is not wanted and not given.may_feed(wanted):
            raise InvalidArgumentError(
                f"Input {dst_slot} of node {dst.name} was passed {given} from "
                f"{src.name}:{src_slot} incompatible with expected {wanted}."
            )
        if dst.inputs[dst_slot] is not None:
            raise InternalError(f"Input {dst_slot} of node {dst.name} has two edges")
        edge = Edge(src, src_slot, dst, dst_slot)
        dst.inputs[dst_slot] = edge
        src.out_edges.append(edge)
        return edge

    def add_like(self, edge: Edge, src: Node, dst: Node) -> None:
        """Join copies of a data edge's ends as the ends are; its laws need no second check."""
        copy = Edge(src, edge.src_slot, dst, edge.dst_slot)
        dst.inputs[edge.dst_slot] = copy
        src.out_edges.append(copy)

    def add_control_edge(self, src: Node, dst: Node) -> Edge | None:
        """Make ``dst`` wait for ``src``; None if it does so already."""
        if any(edge.src is src for edge in dst.control_inputs):
            return None
        edge = Edge(src, CONTROL_SLOT, dst, CONTROL_SLOT)
        dst.control_inputs.append(edge)
        if len(dst.control_inputs) > 1:
            dst.control_inputs.sort(key=lambda e: e.src.name)
        src.out_edges.append(edge)
        return edge

    def add_control_edges(self, sources: Iterable[Node], dst: Node) -> None:
        """Make ``dst`` wait for all ``sources``; those it waits for already count once."""
        waiting = {edge.src.id for edge in dst.control_inputs}
        for src in sources:
            if src.id not in waiting:
                waiting.add(src.id)
                edge = Edge(src, CONTROL_SLOT, dst, CONTROL_SLOT)
                dst.control_inputs.append(edge)
                src.out_edges.append(edge)
        dst.control_inputs.sort(key=lambda edge: edge.src.name)

    def remove_edge(self, edge: Edge) -> None:
        """Take an edge away; its input slot becomes empty."""
        edge.src.out_edges.remove(edge)
        if edge.is_control:
            edge.dst.control_inputs.remove(edge)
        else:
            edge.dst.inputs[edge.dst_slot] = None

    def remove_node(self, node: Node) -> None:
        """Take a node and all its edges away.  Its id is not given again."""
        for edge in [*node.in_edges(), *node.out_edges]:
            if edge.src is not node or edge.dst is not node:
                self.remove_edge(edge)
        del self._nodes[node.id]
        del self._by_name[node.name]

    def clear(self) -> None:
        """Take all nodes away, and all edges from each, as if there had been none."""
        for node in self._nodes.values():
            node.let_go()
        self._nodes.clear()
        self._by_name.clear()

    def take_name(self, old: Node, op: OpDef, attrs: Mapping[str, Attr]) -> Node:
        """Create a node under the name of ``old``, which is no longer in the graph.

        The edges of ``old`` are still there, for ``redirect`` and then ``remove_nodes``.
        """
        del self._nodes[old.id], self._by_name[old.name]
        return self.add_node(
            old.name,
            op,
            attrs,
            device=old.requested_device,
            assigned_device=old.assigned_device,
            requested_inputs=old.requested_inputs,
        )

    def redirect(self, moved: Mapping[Node, Sequence[tuple[Node, int]]]) -> None:
        """Let all that reads some nodes read others instead; time goes into moved edges only.

        Output i becomes the i-th endpoint given, and what waits for a node waits for the first
        one's.  An endpoint may belong to a node that is moved too.  What was moved is good
        for nothing but ``remove_nodes``.
        """
        find = _Moves(moved).find
        waiting: set[Node] = set()
        for old, endpoints in moved.items():
            for edge in old.out_edges:
                if edge.dst in moved:
                    continue
                if edge.is_control:
                    waiting.add(edge.dst)
                    continue
                src, slot = find(endpoints[edge.src_slot])
                new = Edge(src, slot, edge.dst, edge.dst_slot)
                edge.dst.inputs[edge.dst_slot] = new
                src.out_edges.append(new)
            old.out_edges.clear()
        for dst in sorted(waiting, key=lambda node: node.id):
            lost = [edge.src for edge in dst.control_inputs if edge.src in moved]
            dst.control_inputs[:] = [edge for edge in dst.control_inputs if edge.src not in moved]
            self.add_control_edges([find(moved[src][0])[0] for src in lost], dst)

    def remove_nodes(self, nodes: Iterable[Node]) -> None:
        """Take nodes and all their edges away, in time that does not grow with their fan-out."""
        gone = set(nodes)
        for src in {edge.src for node in gone for edge in node.in_edges()} - gone:
            src.out_edges[:] = [edge for edge in src.out_edges if edge.dst not in gone]
        for dst in {edge.dst for node in gone for edge in node.out_edges} - gone:
            dst.inputs[:] = [None if edge and edge.src in gone else edge for edge in dst.inputs]
            dst.control_inputs[:] = [edge for edge in dst.control_inputs if edge.src not in gone]
        for node in gone:
            node.let_go()
            if self._nodes.pop(node.id, None) is not None:
                del self._by_name[node.name]

    def endpoint(self, endpoint: Endpoint) -> tuple[Node, int]:
        """The node and slot that an endpoint names, checked."""
        node = self.node(endpoint.node)
        if endpoint.slot != CONTROL_SLOT:
            check_output(node, endpoint.slot)
        return node, endpoint.slot


class _Moves:
    """Where endpoints end up when nodes are replaced by nodes that may be replaced as well."""

    def __init__(self, moved: Mapping[Node, Sequence[tuple[Node, int]]]) -> None:
        self._moved = moved
        #: Ends of chains that were followed before, so that long ones cost no more.
        self._known: dict[tuple[Node, int], tuple[Node, int]] = {}

    def find(self, endpoint: tuple[Node, int]) -> tuple[Node, int]:
        """The endpoint that stands for ``endpoint`` in the end."""
        followed = []
        while endpoint[0] in self._moved:
            followed.append(endpoint)
            endpoint = self._known.get(endpoint) or self._moved[endpoint[0]][endpoint[1]]
        self._known.update(dict.fromkeys(followed, endpoint))
        return endpoint


def check_output(node: Node, slot: int) -> None:
    """Raise OutOfRangeError unless ``node`` has an output ``slot``."""
    if not 0 <= slot < len(node.output_types):
        raise OutOfRangeError(
            f"Node '{node.name}' (type: '{node.op.name}', num of outputs: "
            f"{len(node.output_types)}) does not have output {slot}"
        )
