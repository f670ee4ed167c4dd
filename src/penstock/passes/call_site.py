"""The place of a call in a graph, where nodes take its place.

In:   a graph, the node that stands for the call, bodies of functions.
Out:  new nodes beside that node, and copies of a body's nodes.
Not:  takes no node away; looks into no function that a body calls.

Two laws hold for what is put there; where it lies is told in ``places.py``.

What a body computes must be alive exactly when its call is, and run in its frame.  A node that
reads an argument is; one that reads nothing waits for the call's *gate*, a node that is alive
exactly then.  So does one that reads nothing but constants of an enclosing loop, which are alive
in its last iteration as well, when the body is not.

What a call does is all that has effects in its function.  What a branch or an iteration of a loop
does, where no call is around it, is what its function names as having to run (``control_ret``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from penstock.catalogue.op_def import OpDef
from penstock.catalogue.registry import get_op
from penstock.defs.attrs import Attr
from penstock.graph.graph import INLINED_FROM, Edge, Graph, Node
from penstock.graph.instantiate import FunctionBody
from penstock.graph.roles import Role
from penstock.passes.places import Places, group_of

Endpoint: TypeAlias = tuple[Node, int]


class Inlined(NamedTuple):
    """What has become of a body."""

    nodes: list[Node]
    #: Alive exactly when these nodes may run; None if that is always.
    gate: Node | None
    results: list[Endpoint]
    #: What the function does beside its results.
    effects: list[Node]

    def ends(self) -> list[Node]:
        """All that must be done before a call of the function is over."""
        own = set(self.nodes)
        return [*self.effects, *(src for src, _ in self.results if src in own)]


class Replacement(NamedTuple):
    """What takes the place of a call."""

    outputs: Sequence[Endpoint]
    inlined: Sequence[Inlined]
    #: Adds a node that is done when the call is over, for what waits for that.
    add_end: Callable[[], Node]


class CallSite:
    """The place of a call in a graph."""

    def __init__(
        self,
        graph: Graph,
        device_of: Mapping[int, str],
        loop_constants: set[Node],
        node: Node,
        gate: Node | None,
        *,
        keeps_effects: bool = True,
    ) -> None:
        self.graph = graph
        #: Whether all that has effects counts, or only what functions name.
        self.keeps_effects = keeps_effects
        #: The node that stands for the call; what is added is named after it.
        self.node = node
        #: Alive exactly when the node may run, in its frame; None if that is always.
        self.gate = gate
        edges = (node.input(slot) for slot in range(len(node.inputs)))
        #: What the call is given.
        self.inputs: list[Endpoint] = [(edge.src, edge.src_slot) for edge in edges]
        #: What must be done before the call.
        self.waits = [edge.src for edge in node.control_inputs]
        self._device_of = device_of
        self._places = Places(self.device(node), is_one=node.op.is_function)
        #: All nodes that were put here.
        self.added: list[Node] = []
        #: Nodes that bring constants into loops.
        self._loop_constants = loop_constants
        #: How many nodes were named after each part of the call.
        self._named: Counter[str] = Counter()

    def seal(self) -> None:
        """Make all inputs alive only if they all are, as they are for a node that reads them."""
        if not self.inputs and not self.waits:
            return
        args = [self.identity("arg", value) for value in self.inputs]
        self.gate = self.add("input_control_node", "NoOp", {}, (), [*args, *self.waits])
        self.inputs = [(self.identity("input", (node, 0), [self.gate]), 0) for node in args]

    def add(
        self,
        name: str,
        op: str,
        attrs: Mapping[str, Attr],
        inputs: Iterable[Endpoint] = (),
        controls: Iterable[Node] = (),
        *,
        beside: Node | None = None,
    ) -> Node:
        """A new node for the call's device, or for that of the node that it is to lie beside."""
        new = self._add(name, get_op(op), attrs, self.device(beside or self.node))
        for slot, (src, src_slot) in enumerate(inputs):
            self.graph.add_edge(src, src_slot, new, slot)
        self.graph.add_control_edges(controls, new)
        return new

    def device(self, node: Node) -> str:
        """The device that a node has, or asks for."""
        return self._device_of.get(node.id) or node.requested_device

    def add_joined(
        self,
        name: str,
        op: str,
        attrs: Mapping[str, Attr],
        inputs: Sequence[Endpoint],
        controls: Iterable[Node] = (),
    ) -> Node:
        """A new node that lies where its first input does, wherever that will be."""
        beside = inputs[0][0]
        if beside.id not in self._device_of:
            attrs = {**attrs, "_class": (group_of(beside.name),)}
        return self.add(name, op, attrs, inputs, controls, beside=beside)

    def identity(self, name: str, endpoint: Endpoint, controls: Iterable[Node] = ()) -> Node:
        """A new node that hands a value on."""
        return self.add_joined(name, "Identity", {"T": type_of(endpoint)}, [endpoint], controls)

    def token(self, name: str, endpoint: Endpoint, controls: Iterable[Node] = ()) -> Node:
        """The same on the call's device, for what is only waited for."""
        return self.add(name, "Identity", {"T": type_of(endpoint)}, [endpoint], controls)

    @staticmethod
    def as_bool(value: Endpoint) -> Endpoint:
        """A value that decides, and must be a bool, as of nodes that ask to be lowered."""
        return value

    def truth(self, value: Endpoint) -> Endpoint:
        """Whether a value of any type counts as true, as of nodes that do not ask."""
        return self.add("truth", "ToBool", {"T": type_of(value)}, [value]), 0

    def add_loop_constant(self, name: str, attrs: Mapping[str, Attr], value: Endpoint) -> Endpoint:
        """A new Enter that brings the same value into all iterations of a loop."""
        facts = {**attrs, "T": type_of(value), "is_constant": True}
        enter = self.add(name, "Enter", facts, [value], beside=value[0])
        self._loop_constants.add(enter)
        return enter, 0

    def is_loop_constant(self, endpoint: Endpoint) -> bool:
        """Whether a value is alive in the last iteration of a loop, too."""
        return endpoint[0] in self._loop_constants

    def gated(self, endpoint: Endpoint) -> Endpoint:
        """The value, alive no oftener than the call is."""
        return self.behind(self.gate, endpoint)

    def behind(self, gate: Node | None, endpoint: Endpoint) -> Endpoint:
        """The value, alive no oftener than a gate."""
        if gate is None or not self.is_loop_constant(endpoint):
            return endpoint
        return self.identity("gated", endpoint, [gate]), 0

    def owned(self, values: Sequence[Endpoint], start: int) -> list[Endpoint]:
        """Values that nobody else has: a feed of one changes nothing but what reads the call."""
        owned: list[Endpoint] = []
        for value in values:
            is_own = value[0].id >= start and value not in owned
            owned.append(value if is_own else (self.identity("output", value), 0))
        return owned

    def inline(
        self, part: str, body: FunctionBody, args: Mapping[int, Endpoint], gate: Node | None
    ) -> Inlined:
        """Copy a body, whose nodes wait for the gate where nothing else makes them wait.

        If the call waits for something, effects wait as well, whatever they read.
        """
        origin = {INLINED_FROM: body.name.encode()}
        copies = {
            node: self._add(
                f"{part}{node.name}", node.op, {**node.attrs, **origin}, self._places.device(node)
            )
            for node in body.graph
            if node.role not in (Role.ARG, Role.RETVAL)
        }
        find = _Finder(self, gate, args, copies)
        holds_effects = gate is not None and bool(self.waits)
        for node, copy in copies.items():
            endpoints = [find.endpoint(edge) for edge in node.inputs if edge is not None]
            for slot, (src, src_slot) in enumerate(endpoints):
                self.graph.add_edge(src, src_slot, copy, slot)
            waits = [find.awaited(edge.src) for edge in node.control_inputs]
            is_free = not waits and all(map(self.is_loop_constant, endpoints))
            if gate is not None and (is_free or (holds_effects and node.op.is_stateful)):
                waits.append(gate)
            self.graph.add_control_edges(waits, copy)
        self._places.join(body.graph, copies, args)
        results = {
            node.attrs["index"]: find.endpoint(node.input(0))
            for node in body.graph
            if node.role is Role.RETVAL
        }
        effects = {find.awaited(node): None for node in body.controls}
        if self.keeps_effects:
            effects |= {copy: None for copy in copies.values() if copy.op.is_stateful}
        in_order = [results[index] for index in sorted(results)]
        return Inlined(list(copies.values()), gate, in_order, list(effects))

    def _add(self, name: str, op: OpDef, attrs: Mapping[str, Attr], device: str) -> Node:
        like, free = self.node, f"{self.node.name}/{name}"
        while free in self.graph:
            self._named[name] += 1
            free = f"{like.name}/{name}_{self._named[name]}"
        new = self.graph.add_node(
            free, op, attrs, device=device, assigned_device=like.assigned_device
        )
        self.added.append(new)
        return new


class _Finder:
    """What stands for the nodes of one body in the graph."""

    def __init__(
        self,
        site: CallSite,
        gate: Node | None,
        args: Mapping[int, Endpoint],
        copies: Mapping[Node, Node],
    ) -> None:
        self._site = site
        self._gate = gate
        self._args = args
        self._copies = copies
        #: Identities of arguments that something waits for, by the argument's node.
        self._awaited: dict[Node, Node] = {}

    def endpoint(self, edge: Edge) -> Endpoint:
        """Where the value of an edge of the body comes from."""
        if edge.src.role is Role.ARG:
            return self._args[edge.src.attrs["index"]]
        return self._copies[edge.src], edge.src_slot

    def awaited(self, src: Node) -> Node:
        """What to wait for instead of a node of the body."""
        if src.role is not Role.ARG:
            return self._copies[src]
        if src not in self._awaited:
            arg = self._site.behind(self._gate, self._args[src.attrs["index"]])
            self._awaited[src] = self._site.identity("awaited", arg)
        return self._awaited[src]


def used_args(body: FunctionBody) -> list[int]:
    """Which of its arguments a body reads."""
    return sorted(node.attrs["index"] for node in body.graph if node.role is Role.ARG)


def type_of(endpoint: Endpoint) -> Attr:
    """The element type of a value."""
    node, slot = endpoint
    return node.output_types[slot]
