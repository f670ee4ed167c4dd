"""A subject while it is changed: its graph as a message, its steps, and what was done to them.

In:   a subject.
Out:  what mutations ask for: nodes, endpoints by type, which node depends on which.
Not:  changes nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuzzing.subjects import Subject
from penstock.core.dtypes import DType
from penstock.core.names import CONTROL_SLOT, parse_endpoint
from penstock.defs.schema import GraphDef, Message
from penstock.errors import OpError
from penstock.graph.graph import Graph
from penstock.graph.import_graph_def import graph_from_def


@dataclass(frozen=False, slots=True, eq=False)
class Run:
    """One step, to be changed."""

    feeds: dict[str, Any]
    fetches: list[str]
    targets: list[str]


@dataclass(frozen=False, slots=True, eq=False)
class Mutant:
    """A graph and its steps, under change."""

    graph: Message
    steps: list[Run]
    device_count: int
    #: The graph as bytes that are no message any more; None as long as it is one.
    broken: bytes | None = None
    #: What was done, in words.
    trail: list[str] = field(default_factory=list)
    #: The graph as it was when types were last asked for, and what it was then.
    _typed: tuple[bytes, Graph | None] = (b"", None)

    @classmethod
    def of(cls, subject: Subject) -> Mutant:
        """A subject that nothing was done to yet; raises DecodeError if it is no graph."""
        graph = GraphDef()
        graph.ParseFromString(subject.graph)
        steps = [Run(dict(s.feeds), list(s.fetches), list(s.targets)) for s in subject.make_steps()]
        return cls(graph, steps, subject.device_count)

    def copy(self) -> Mutant:
        """Another one that can be changed without this one."""
        graph = GraphDef()
        graph.CopyFrom(self.graph)
        steps = [Run(dict(s.feeds), list(s.fetches), list(s.targets)) for s in self.steps]
        return Mutant(graph, steps, self.device_count, self.broken, list(self.trail))

    @property
    def graph_bytes(self) -> bytes:
        """The graph as it is handed to a session."""
        return self.graph.SerializeToString() if self.broken is None else self.broken

    def typed(self) -> Graph | None:
        """The graph with the types of its endpoints; None if it is not acceptable any more."""
        now = self.graph.SerializeToString(deterministic=True)
        if self._typed[0] != now or self._typed[1] is None:
            try:
                self._typed = (now, graph_from_def(self.graph))
            except OpError:
                self._typed = (now, None)
        return self._typed[1]

    # -- nodes ---------------------------------------------------------------------------

    def all_nodes(self) -> list[Message]:
        """The graph's nodes, and those of all functions."""
        bodies = (node for f in self.graph.library.function for node in f.node_def)
        return [*self.graph.node, *bodies]

    def node(self, name: str) -> Message:
        """A node of the graph by name."""
        return next(node for node in self.graph.node if node.name == name)

    def of_op(self, *ops: str) -> list[Message]:
        """The graph's nodes of some ops."""
        return [node for node in self.graph.node if node.op in ops]

    def fresh_name(self, name: str) -> str:
        """A name that no node has."""
        taken = {node.name for node in self.graph.node}
        number = 1
        while f"{name}_{number}" in taken:
            number += 1
        return f"{name}_{number}"

    def asked_for(self) -> set[str]:
        """The names of nodes that some step fetches or runs."""
        return {parse_endpoint(text).node for s in self.steps for text in (*s.fetches, *s.targets)}

    # -- edges ---------------------------------------------------------------------------

    def uses(self) -> Iterator[tuple[Message, int, str]]:
        """All data inputs of the graph's nodes: node, place, and what stands there."""
        for node in self.graph.node:
            for place, text in enumerate(node.input):
                if not text.startswith("^"):
                    yield node, place, text

    def downstream(self, name: str) -> set[str]:
        """The nodes that depend on a node, itself included, without going around a loop."""
        users: dict[str, list[str]] = {}
        merges = {node.name for node in self.of_op("Merge", "RefMerge")}
        backwards = {node.name for node in self.of_op("NextIteration", "RefNextIteration")}
        for node in self.graph.node:
            for text in node.input:
                source = parse_endpoint(text).node
                if not (source in backwards and node.name in merges):
                    users.setdefault(source, []).append(node.name)
        found, waiting = {name}, [name]
        while waiting:
            for user in users.get(waiting.pop(), ()):
                if user not in found:
                    found.add(user)
                    waiting.append(user)
        return found

    def endpoints(self, wanted: DType | None = None) -> list[tuple[str, DType]]:
        """Endpoints as text with their types; of one type, or all."""
        graph = self.typed()
        if graph is None:
            return []
        return [
            (f"{node.name}:{slot}", dtype)
            for node in graph
            for slot, dtype in enumerate(node.output_types)
            if wanted is None or dtype.may_feed(wanted)
        ]

    def type_at(self, node: Message, place: int) -> DType | None:
        """The type that a data input takes."""
        graph = self.typed()
        found = graph.find(node.name) if graph is not None else None
        return found.input_types[place] if found is not None else None

    def type_of(self, text: str) -> DType | None:
        """The type of an endpoint; None if there is no such one."""
        graph, endpoint = self.typed(), parse_endpoint(text)
        found = graph.find(endpoint.node) if graph is not None else None
        if found is None or not 0 <= endpoint.slot < len(found.output_types):
            return None
        return found.output_types[endpoint.slot]

    def is_reference(self, text: str) -> bool:
        """Whether an endpoint is a reference, whose value is read when it is used."""
        dtype = self.type_of(text)
        return dtype is not None and dtype.is_ref


def controls_of(node: Message) -> list[int]:
    """The places of a node's control inputs."""
    return [p for p, text in enumerate(node.input) if parse_endpoint(text).slot == CONTROL_SLOT]


def set_inputs(node: Message, inputs: Sequence[str]) -> None:
    """Replace a node's inputs."""
    del node.input[:]
    node.input.extend(inputs)
