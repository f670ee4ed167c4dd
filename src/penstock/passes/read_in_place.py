"""Let whoever comes after an in-place op read what it wrote.

In:   the graph of one request, or of a function's body, with the devices of its nodes.
Out:  the same; how many edges read what was written from now on.
Not:  writes into no value: InplaceAdd, InplaceSub and InplaceUpdate give changed copies.

In TensorFlow these ops write into the memory of their input, so that other readers of the input
see the change if they come later.  Values never change here; instead, whoever is ordered behind
the op, or fetches its input at the end of the step, reads its output.  What the graph does not
order reads the old value, as it may in TensorFlow.

Runs first of all that changes a graph: later passes may take edges away that order nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from penstock.graph.graph import Graph, Node
from penstock.graph.roles import CONTROL_FLOW, Role

#: Where a way ends: what is behind such a node may run though what is before it does not.
_ENDS: Final = CONTROL_FLOW - {Role.SWITCH}


def read_in_place(graph: Graph, device_of: Mapping[int, str]) -> int:
    """Redirect the later readers of what in-place ops write; returns how many there were."""
    behind = {node: _behind(node) for node in graph if node.op.traits.writes_input}
    # Whoever has more writers behind it comes first.
    order = sorted(behind, key=lambda node: -len(behind.keys() & behind[node]))
    return sum(_redirect(graph, node, behind[node], device_of) for node in order)


def _redirect(graph: Graph, writer: Node, behind: set[Node], device_of: Mapping[int, str]) -> int:
    source = writer.input(0)
    is_certain = _is_certain(writer, source.src)
    later = [
        edge
        for edge in source.src.out_edges
        if edge.src_slot == source.src_slot
        and edge.dst is not writer
        and (edge.dst in behind or (is_certain and edge.dst.role is Role.RETVAL))
        and len({device_of.get(node.id) for node in (writer, source.src, edge.dst)}) == 1
    ]
    for edge in later:
        graph.remove_edge(edge)
        graph.add_edge(writer, 0, edge.dst, edge.dst_slot)
    return len(later)


def _behind(start: Node) -> set[Node]:
    """The nodes that run after a node, and only if it does."""
    return _reached(start, lambda node: (edge.dst for edge in node.out_edges), _is_end)


def _is_end(node: Node) -> bool:
    return node.role in _ENDS


def _is_certain(writer: Node, source: Node) -> bool:
    """Whether a node runs whenever one of its inputs is there."""
    before = _reached(source, _sources, _never) | {source}
    others = _reached(writer, _sources, before.__contains__)
    return not any(node.role in CONTROL_FLOW for node in others)


def _sources(node: Node) -> Iterator[Node]:
    return (edge.src for edge in node.in_edges())


def _never(_node: Node) -> bool:
    return False


def _reached(
    start: Node, following: Callable[[Node], Iterator[Node]], stops: Callable[[Node], bool]
) -> set[Node]:
    """All nodes on the ways from a node, up to where they stop."""
    reached: set[Node] = set()
    waiting = [start]
    while waiting:
        for node in following(waiting.pop()):
            if node not in reached and not stops(node):
                reached.add(node)
                waiting.append(node)
    return reached
