"""What the optimiser made of a node.

In:   a question.
Out:  which pass folded, merged, fused or replaced it, and by what.
Not:  knows no pass by name: ``changes`` compares the graph before each with the one after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.errors import OpError
from penstock.explanations.changes import Changes, Snapshot, snapshot
from penstock.explanations.explanation import Fact, Topic
from penstock.explanations.request import Question
from penstock.graph.graph import Graph
from penstock.graph.stages import Pruned
from penstock.passes.graph_pass import GraphPass
from penstock.runtime.optimize_request import Watch, optimize_request
from penstock.runtime.prepare import place_and_prune


class Journey:
    """A node on its way through the passes."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._before: Snapshot = {}
        self.facts: Final[list[Fact]] = []
        self._is_over = False

    def begin(self, graph: Graph) -> None:
        """The graph before all passes."""
        self._before = snapshot(graph)
        self._is_over = self._name not in self._before

    def passed(self, one: GraphPass, graph: Graph) -> None:
        """A pass has changed something."""
        after = snapshot(graph)
        change = None if self._is_over else Changes(self._before, after).of(self._name)
        if change is not None:
            self._is_over = change.is_over
            self.facts.append(Fact(Topic.OPTIMISED, f"{one.name}: {change.text} ({one.does})"))
        self._before = after


def facts(question: Question) -> Iterator[Fact]:
    """What happened to it."""
    journey = Journey(question.node.name)

    def prune() -> Pruned:
        pruned = place_and_prune(question.request, question.environment)
        journey.begin(pruned.graph)
        return pruned

    watch = Watch(on_pass=journey.passed)
    try:
        with question.graph.lock:
            made = optimize_request(prune, question.config, question.devices, watch)
    except OpError as error:
        yield Fact(
            Topic.OPTIMISED, f"the request cannot be prepared: {error.reason}", is_trouble=True
        )
        return
    yield from journey.facts
    if not journey.facts and question.node.name in made.graph:
        yield Fact(Topic.OPTIMISED, "it is run as it was written")
