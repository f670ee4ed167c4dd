"""Say whether nodes of a step that wait do so for each other.

In:   the graph, and the nodes that wait, with what for.
Out:  the circle in which they wait, for people; or nothing.
Not:  looks at no step: what another one may do, it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from penstock.graph.graph import Graph, Node
from penstock.kernels.api.context import Waiting
from penstock.passes.prune import needed_nodes
from penstock.runtime.explain_wait import enders

#: Of more waiting nodes, only so many are looked at.
_MAX_LOOKED_AT: Final = 100


class _Link(NamedTuple):
    """A node that could end a wait, and one that it waits for itself."""

    ender: Node
    waits_for: Node


def explain_deadlock(graph: Graph, waits: Sequence[tuple[str, Waiting]]) -> str:
    """A line that names a circle, if there is one; else nothing.

    A node is in one if whatever could end its wait depends on a node that waits as well.
    """
    waiting: dict[Node, Waiting] = {}
    for name, what in waits[:_MAX_LOOKED_AT]:
        node = graph.find(name)
        if node is not None and what.ended_by:
            waiting[node] = what
    links: dict[Node, _Link] = {}
    for node, what in waiting.items():
        link = _link(graph, what, waiting)
        if link is not None:
            links[node] = link
    circle = _circle(links)
    if not circle:
        return ""
    names = [name for node in circle for name in (node.name, links[node].ender.name)]
    chain = ", which waits for ".join([*names[1:], names[0]])
    return f"deadlock {names[0]} waits for {chain}; only another step could end that"


def _link(graph: Graph, what: Waiting, waiting: Mapping[Node, Waiting]) -> _Link | None:
    """Whom a wait depends on; None if something could end it without any of them."""
    found = None
    for ender in enders(graph, what):
        before = needed_nodes([ender], set())
        blocked = next((node for node in waiting if node in before), None)
        if blocked is None:
            return None
        found = found or _Link(ender, blocked)
    return found


def _circle(links: Mapping[Node, _Link]) -> list[Node]:
    """Nodes each of which waits for the next one, and the last one for the first."""
    for start in links:
        way: list[Node] = []
        at: Node | None = start
        while at is not None and at not in way:
            way.append(at)
            link = links.get(at)
            at = link.waits_for if link is not None else None
        if at is not None:
            return way[way.index(at) :]
    return []
