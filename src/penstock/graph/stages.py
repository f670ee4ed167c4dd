"""What a graph becomes on its way to the executor; one type per stage.

In:   a graph, and what a pass found out about it.
Out:  a type that the next stage asks for, so that none can be skipped.

``graph/check.py`` states the laws of each.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.dtypes import DType
from penstock.dataclass import dataclass
from penstock.graph.graph import Graph


@dataclass(frozen=True, slots=True)
class Placed:
    """A graph with a device for every node that can run here."""

    graph: Graph
    #: Full device name by node id; a node that no kernel supports, or nobody needs, has none.
    device_of: Mapping[int, str]
    #: The names of nodes that stand for functional control flow, which became dataflow: what
    #: read its outputs reads the inputs of such a node.
    stand_ins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pruned:
    """Only what one request needs, with its feeds and fetches wired in as nodes."""

    graph: Graph
    #: Full device name by node id; has every node of the graph.
    device_of: Mapping[int, str]
    #: Element types of the feeds and of the fetches, in the request's order.
    feed_types: tuple[DType, ...]
    fetch_types: tuple[DType, ...]
    #: The names of the nodes that are to run, though others may need them as well; and of those
    #: of which some output is fetched.
    targets: frozenset[str] = frozenset()
    fetched: frozenset[str] = frozenset()

    def with_devices(self, device_of: Mapping[int, str]) -> Pruned:
        """The same, whose nodes lie where they are said to lie now."""
        types = self.feed_types, self.fetch_types
        return Pruned(self.graph, device_of, *types, self.targets, self.fetched)


@dataclass(frozen=True, slots=True)
class Partition:
    """The part of a pruned graph that runs on one device; Send and Recv at its borders."""

    device: str
    graph: Graph
