"""Whether the nodes of a graph could be made one after the other.

In:   a graph.
Out:  nothing; or an error that names nodes of a cycle.
Not:  orders nothing: who needs an order, makes one.

A loop closes by an edge from a NextIteration to a Merge, which may be made when one of its inputs
is there.  GraphDefs are read in such an order, so that only the bodies of functions need a check.
"""

from __future__ import annotations

from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role


def check_cycles(graph: Graph) -> None:
    """Raise InvalidArgumentError if nodes wait for each other."""
    waiting = {node: _inputs_awaited(node) for node in graph}
    ready = [node for node, count in waiting.items() if not count]
    for node in ready:  # which grows
        for edge in node.out_edges:
            if not _is_back_edge(edge.src, edge.dst):
                waiting[edge.dst] -= 1
                if not waiting[edge.dst]:
                    ready.append(edge.dst)
    if len(ready) < len(waiting):
        stuck = [node.name for node, count in waiting.items() if count > 0]
        raise InvalidArgumentError(
            f"{len(waiting) - len(ready)} nodes in a cycle, including: {', '.join(stuck[:3])}",
            next_step="only an edge from a NextIteration to a Merge may close a cycle",
        )


def _is_back_edge(src: Node, dst: Node) -> bool:
    return src.role is Role.NEXT_ITERATION and dst.role is Role.MERGE


def _inputs_awaited(node: Node) -> int:
    """How many edges a node waits for; a Merge that closes a loop, for one of its data edges."""
    if any(edge is not None and _is_back_edge(edge.src, node) for edge in node.inputs):
        return 1 + sum(not _is_back_edge(edge.src, node) for edge in node.control_inputs)
    return sum(not _is_back_edge(edge.src, node) for edge in node.in_edges())
