"""What the optimiser made of the nodes of a graph.

In:   the graph before the first pass, and after each.
Out:  a ``Fate`` for each node that is not run as it was written.
Not:  runs no pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.explanations.changes import Changes, Snapshot, snapshot
from penstock.graph.graph import Graph
from penstock.passes.graph_pass import GraphPass
from penstock.reporting.facts import Fate


class FateFinder:
    """All nodes of a graph on their way through the passes."""

    def __init__(self) -> None:
        self._before: Snapshot = {}
        self._first: Snapshot = {}
        #: Nodes of which nothing is left that could become something else.
        self._over: Final[set[str]] = set()
        self.fates: Final[list[Fate]] = []

    def begin(self, graph: Graph) -> None:
        """The graph before all passes."""
        self._first = self._before = snapshot(graph)

    def passed(self, one: GraphPass, graph: Graph) -> None:
        """A pass has changed something."""
        after = snapshot(graph)
        for name, change in Changes(self._before, after).changed():
            if name in self._first and name not in self._over:
                text = f"{change.text} ({one.does})"
                self._add(name, one.name, text, change.instead)
                if change.is_over:
                    self._over.add(name)
        self._before = after

    def end(self, graph: Graph) -> None:
        """What is run in the end."""
        for name in self._first:
            if name not in graph and name not in self._over:
                self._add(name, "drop_unused", "nobody needs it any more", ())

    def _add(self, name: str, by: str, text: str, instead: tuple[str, ...]) -> None:
        self.fates.append(Fate(name, self._first[name].op, by, text, instead))

    def shown(self, shown: Callable[[str], str]) -> list[Fate]:
        """The same with names as the report shows them."""
        return [
            fate._replace(name=shown(fate.name), instead=tuple(map(shown, fate.instead)))
            for fate in self.fates
        ]
