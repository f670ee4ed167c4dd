"""A graph that is checked, and what several rules want to know of it.

In:   a graph, and what is asked of it if anybody said.
Out:  its nodes in order, who comes before whom, which nodes run only in one branch.
Not:  judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final, TypeAlias

from penstock.checks.values import value_of
from penstock.errors import OpError
from penstock.graph.frames import ControlFlowInfo, build_control_flow_info
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import HANDS_REFERENCES_ON, Role

#: A branch: the predicate's node and slot, and which side of it.
Branch: TypeAlias = "tuple[Node, int, int]"
_NOWHERE: Final[frozenset[Branch]] = frozenset()


class Subject:
    """One graph: that of a request, of which functions are part, or the body of a function."""

    def __init__(self, graph: Graph, wanted: Iterable[Node] = ()) -> None:
        """Look at a graph.

        Args:
            graph: the graph.
            wanted: what one request fetches and runs; if nobody said, each node that nobody reads
                is taken to be a request.

        """
        self.graph: Final = graph
        self._wanted: Final = tuple(wanted)

    @property
    def is_request(self) -> bool:
        """Whether somebody said what is asked for."""
        return bool(self._wanted)

    @cached_property
    def requests(self) -> list[list[Node]]:
        """What is fetched and run together, as far as is known."""
        if self._wanted:
            return [list(self._wanted)]
        return [[node] for node in self.order if not node.out_edges]

    @cached_property
    def flow(self) -> ControlFlowInfo | OpError:
        """The frame of every node, or what is wrong with the frames."""
        try:
            return build_control_flow_info(self.graph)
        except OpError as error:
            return error

    @cached_property
    def order(self) -> list[Node]:
        """All nodes, sources first; edges that close loops do not count.  Cycles are left out."""
        missing = {node: sum(1 for _ in forward_edges(node)) for node in self.graph}
        ready = [node for node, count in missing.items() if not count]
        for node in ready:  # which grows
            for edge in node.out_edges:
                if not closes_loop(edge):
                    missing[edge.dst] -= 1
                    if not missing[edge.dst]:
                        ready.append(edge.dst)
        return ready

    def before(self, nodes: Iterable[Node]) -> Before:
        """Which of some nodes come before which nodes."""
        return Before(self.order, nodes)

    @cached_property
    def branches(self) -> dict[Node, frozenset[Branch]]:
        """By node, the branches that must all be taken for it to run."""
        found: dict[Node, frozenset[Branch]] = {}
        for node in self.order:
            ways = [_along(edge, found) for edge in forward_edges(node)]
            if node.role is Role.MERGE and ways:
                found[node] = frozenset.intersection(*ways)
            elif node.role is Role.CONTROL_TRIGGER:
                found[node] = _NOWHERE
            elif len(ways) == 1:
                found[node] = ways[0]
            else:
                found[node] = frozenset().union(*ways) if ways else _NOWHERE
        return found

    def excludes(self, one: Node, other: Node) -> bool:
        """Whether two nodes never run both."""
        there = self.branches.get(other, _NOWHERE)
        return any((p, slot, 1 - side) in there for p, slot, side in self.branches.get(one, ()))


class Before:
    """Which of some nodes come before which nodes, by the graph's edges alone."""

    def __init__(self, order: list[Node], nodes: Iterable[Node]) -> None:
        self._number: Final = {node: 1 << place for place, node in enumerate(nodes)}
        #: By node, the bits of those that it comes after.
        self._bits: Final[dict[Node, int]] = {}
        for node in order:
            bits = 0
            for edge in forward_edges(node):
                bits |= self._bits.get(edge.src, 0) | self._number.get(edge.src, 0)
            self._bits[node] = bits

    def comes(self, first: Node, second: Node) -> bool:
        """Whether ``first``, one of the nodes, comes before ``second``."""
        return bool(self._bits.get(second, 0) & self._number[first])

    def of(self, nodes: Iterable[Node]) -> list[Node]:
        """Those that some nodes come after, or are."""
        bits = 0
        for node in nodes:
            bits |= self._bits.get(node, 0) | self._number.get(node, 0)
        return [node for node, bit in self._number.items() if bits & bit]


def closes_loop(edge: Edge) -> bool:
    """Whether an edge leads from one iteration to the next."""
    return edge.src.role is Role.NEXT_ITERATION and edge.dst.role is Role.MERGE


def forward_edges(node: Node) -> Iterator[Edge]:
    """What a node waits for in its own iteration."""
    return (edge for edge in node.in_edges() if not closes_loop(edge))


def _along(edge: Edge, found: dict[Node, frozenset[Branch]]) -> frozenset[Branch]:
    """The branches that lead along an edge."""
    src = edge.src
    known = found.get(src, _NOWHERE)
    if src.role is not Role.SWITCH or edge.is_control or src.inputs[1] is None:
        return known
    predicate = origin(src.inputs[1], lambda node: node.role is Role.IDENTITY)
    if predicate.src.role is Role.LOOP_COND or edge.src_slot > 1:
        return known
    return known | {(predicate.src, predicate.src_slot, edge.src_slot)}


def origin(edge: Edge, hands_on: Callable[[Node], bool]) -> Edge:
    """Where a value comes from, behind nodes that only hand it on."""
    seen = {edge.src}
    while hands_on(edge.src) and edge.src.inputs and edge.src.inputs[0] is not None:
        edge = edge.src.inputs[0]
        if edge.src in seen:
            break
        seen.add(edge.src)
    return edge


def hands_references_on(node: Node) -> bool:
    """Whether what is behind a node's reference or handle is what is behind its first input's."""
    return node.role in HANDS_REFERENCES_ON


def is_dead_for_sure(branch: Branch) -> bool:
    """Whether a branch is never taken, since its predicate is a constant."""
    predicate, slot, side = branch
    value = value_of(Edge(predicate, slot, predicate, 0))
    return value is not None and value.size == 1 and bool(value.reshape(())) != bool(side)
