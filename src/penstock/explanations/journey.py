"""What the optimiser made of a node.

In:   a question.
Out:  which pass folded, merged, fused or replaced it, and by what.
Not:  knows no pass by name: it compares the graph before each of them with the one after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from penstock.errors import OpError
from penstock.explanations.explanation import Fact, Topic
from penstock.explanations.request import Question
from penstock.graph.graph import Graph, Node
from penstock.graph.stages import Pruned
from penstock.passes.graph_pass import GraphPass
from penstock.runtime.optimize_request import optimize_request
from penstock.runtime.prepare import place_and_prune

_SHOWN: Final = 3


class _NodeSeen(NamedTuple):
    """A node as it was between two passes."""

    op: str
    #: Names and slots of what it reads; slot -1 of what it waits for.
    inputs: tuple[tuple[str, int], ...]


class Journey:
    """A node on its way through the passes."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._before: dict[str, _NodeSeen] = {}
        self.facts: Final[list[Fact]] = []
        self._is_over = False

    def begin(self, graph: Graph) -> None:
        """The graph before all passes."""
        self._before = _snapshot(graph)
        self._is_over = self._name not in self._before

    def passed(self, one: GraphPass, graph: Graph) -> None:
        """A pass has changed something."""
        after = _snapshot(graph)
        if not self._is_over:
            text = self._change(after)
            if text:
                self.facts.append(Fact(Topic.OPTIMISED, f"{one.name}: {text} ({one.does})"))
        self._before = after

    def _change(self, after: Mapping[str, _NodeSeen]) -> str:
        old, new = self._before[self._name], after.get(self._name)
        if new is not None and new.op != old.op:
            return f"it is a {new.op} now"
        readers = {name for name, seen in self._before.items() if _reads(seen, self._name)}
        left = {name for name in readers & after.keys() if _reads(after[name], self._name)}
        if new is not None and (left or not readers):
            return ""
        self._is_over = True
        added = sorted(after.keys() - self._before.keys())
        instead = sorted(set(self._read_instead(readers, after)))
        if instead:
            return f"who read it reads {_listed(instead, after)} instead"
        own = [name for name in added if name.startswith(f"{self._name}/")]
        if own:
            return f"{len(own)} nodes stand in its place: {_listed(own, after)}"
        if added:
            return f"it became part of {_listed(added, after)}"
        return "nobody needs it any more"

    def _read_instead(self, readers: set[str], after: Mapping[str, _NodeSeen]) -> Iterator[str]:
        """What those who read the node read at the same places now."""
        for name in readers & after.keys():
            places = zip(self._before[name].inputs, after[name].inputs, strict=False)
            for (old, _), (new, _) in places:
                if old == self._name != new:
                    yield new


def facts(question: Question) -> Iterator[Fact]:
    """What happened to it."""
    journey = Journey(question.node.name)

    def prune() -> Pruned:
        pruned = place_and_prune(question.request, question.environment)
        journey.begin(pruned.graph)
        return pruned

    try:
        with question.graph.lock:
            made = optimize_request(prune, question.config, question.devices, journey.passed)
    except OpError as error:
        yield Fact(
            Topic.OPTIMISED, f"the request cannot be prepared: {error.reason}", is_trouble=True
        )
        return
    yield from journey.facts
    if not journey.facts and question.node.name in made.graph:
        yield Fact(Topic.OPTIMISED, "it is run as it was written")


def _snapshot(graph: Graph) -> dict[str, _NodeSeen]:
    return {node.name: _NodeSeen(node.op.name, tuple(_inputs(node))) for node in graph}


def _inputs(node: Node) -> Iterator[tuple[str, int]]:
    for edge in node.in_edges():
        yield edge.src.name, -1 if edge.is_control else edge.src_slot


def _reads(seen: _NodeSeen, name: str) -> bool:
    return any(source == name for source, _ in seen.inputs)


def _listed(names: list[str], graph: Mapping[str, _NodeSeen]) -> str:
    shown = ", ".join(f"{name} ({graph[name].op})" for name in names[:_SHOWN] if name in graph)
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
