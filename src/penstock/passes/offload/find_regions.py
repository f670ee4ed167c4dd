"""Which nodes go together.

In:   a graph under rewriting, and which of its nodes may go.
Out:  regions: sets of nodes of one device, each as large as can be.
Not:  knows neither ONNX nor what anything costs.

A region becomes one node, which runs when all of its inputs are there.  So no path may lead out
of it and back, and nothing in it may be alive without the rest: what comes after a Switch, a Merge,
a loop's border or a Recv is left alone.  Levels keep paths apart: a node's level grows by one each
time that a path to it changes between nodes that may go and others, or from one device to another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from penstock.graph.graph import Graph, Node
from penstock.graph.order import sources_first
from penstock.graph.roles import Role
from penstock.passes.graph_rewriter import GraphRewriter

#: Behind these, a value may be dead, or one of many.
_DOUBTFUL: Final = frozenset(
    {Role.SWITCH, Role.MERGE, Role.ENTER, Role.EXIT, Role.NEXT_ITERATION, Role.RECV}
)


def is_free(draft: GraphRewriter, node: Node) -> bool:
    """Whether a node only computes, and waits for nothing but its inputs."""
    is_awaited = any(edge.is_control for edge in node.out_edges)
    return draft.is_pure(node) and not (
        node.control_inputs or is_awaited or draft.is_root(node) or node.role is Role.CONSTANT
    )


def find_regions(
    draft: GraphRewriter,
    may_go: Callable[[Node], bool],
    is_free: Callable[[GraphRewriter, Node], bool] = is_free,
    *,
    late: bool = False,
) -> list[list[Node]]:
    """Regions; the nodes of each in an order in which they can run.

    Args:
        draft: the graph.
        may_go: whether a node may be in a region.
        is_free: whether a node only computes, and nobody waits for it or has it wait.
        late: whether each node is to be in the last region that it can be in, next to who reads it;
            otherwise it is in the first, but for what depends on constants only.

    """
    order = in_order(draft.graph)
    going = {node for node in order if is_free(draft, node) and may_go(node)}
    level: dict[Node, int] = {}
    for node in order:
        kind = node in going, draft.device(node)
        level[node] = max(
            (level[src] + ((src in going, draft.device(src)) != kind) for src in _sources(node)),
            default=0,
        )
    ordered = [node for node in order if node in going]
    _put_off(draft, ordered, level, [] if late else _fixed(ordered))
    return _joined(ordered, level)


def _fixed(nodes: Sequence[Node]) -> set[Node]:
    """What depends on more than constants."""
    free = set[Node]()
    for node in nodes:
        if free.issuperset(_sources(node)):
            free.add(node)
    return set(nodes) - free


def _put_off(
    draft: GraphRewriter, nodes: Sequence[Node], level: dict[Node, int], fixed: Collection[Node]
) -> None:
    """Let nodes run when they are first read, and not before all else, but for some.

    Only nodes whose readers may go, on the same device: others are on a level of their own.
    """
    going = set(nodes)
    for node in reversed(nodes):
        readers, device = [edge.dst for edge in node.out_edges], draft.device(node)
        if node in fixed or not readers:
            continue
        if all(reader in going and draft.device(reader) == device for reader in readers):
            level[node] = max(level[node], min(level[reader] for reader in readers))


def _sources(node: Node) -> list[Node]:
    """What a node depends on, but for constants, which depend on nothing."""
    return [edge.src for edge in node.in_edges() if edge.src.role is not Role.CONSTANT]


def in_order(graph: Graph) -> list[Node]:
    """The nodes that are surely alive, and run once, sources first."""
    doubtful = [node for node in graph if node.role in _DOUBTFUL]
    seen = set(doubtful)
    for node in doubtful:  # grows
        new = [edge.dst for edge in node.out_edges if edge.dst not in seen]
        seen.update(new)
        doubtful += new
    return sources_first([node for node in graph if node not in seen])


def _joined(nodes: Sequence[Node], level: Mapping[Node, int]) -> list[list[Node]]:
    """Nodes that hang together, on one level and one device."""
    parent = {node: node for node in nodes}

    def leader(node: Node) -> Node:
        while parent[node] is not node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for node in nodes:
        for src in _sources(node):
            if src in parent and level[src] == level[node]:
                parent[leader(src)] = leader(node)
    regions: dict[Node, list[Node]] = {}
    for node in nodes:
        regions.setdefault(leader(node), []).append(node)
    return list(regions.values())
