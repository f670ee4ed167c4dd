"""A part of a graph as a graph of its own.

In:   some nodes of a graph, which stays as it is.
Out:  a new graph of their copies, and of the edges among them.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.graph.graph import Graph, Node


def extract(graph: Graph, nodes: Iterable[Node]) -> tuple[Graph, dict[Node, Node]]:
    """A new graph of copies of ``nodes`` and of the edges among them; and the copies."""
    part = Graph(graph.library)
    part.versions = graph.versions
    copies = {node: part.add_copy(node) for node in nodes}
    for node, copy in copies.items():
        for edge in node.inputs:
            if edge is not None and edge.src in copies:
                part.add_like(edge, copies[edge.src], copy)
        sources = [copies[edge.src] for edge in node.control_inputs if edge.src in copies]
        if sources:
            part.add_control_edges(sources, copy)
    return part, copies
