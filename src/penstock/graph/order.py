"""Nodes in an order in which each comes after those that it depends on.

In:   some nodes of a graph.
Out:  the same in such an order; without those that depend on a circle.
Not:  knows no frames: what makes a loop go on closes a circle like any other edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.graph.graph import Node


def are_in_order(nodes: Iterable[Node]) -> bool:
    """Whether each node stands after all that it depends on."""
    seen: set[Node] = set()
    for node in nodes:
        for edge in node.in_edges():
            if edge.src not in seen:
                return False
        seen.add(node)
    return True


def sources_first(nodes: Sequence[Node]) -> list[Node]:
    """Nodes, each after those of them that it depends on."""
    left = dict.fromkeys(nodes, 0)
    for node in nodes:
        for edge in node.out_edges:
            if edge.dst in left:
                left[edge.dst] += 1
    order = [node for node in nodes if not left[node]]
    for node in order:  # grows
        for edge in node.out_edges:
            dst = edge.dst
            if dst in left:
                left[dst] -= 1
                if not left[dst]:
                    order.append(dst)
    return order
