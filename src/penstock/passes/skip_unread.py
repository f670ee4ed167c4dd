"""Compute nothing that is only waited for.

In:   a GraphRewriter.
Out:  the GraphRewriter with a NoOp for each node whose outputs nobody reads, though others wait for
      it; how many there were.
Not:  skips nothing that is asked for, that has effects, or whose deadness a NoOp would not
      share.

Gradients are tied together by control edges, so that all of them are there before the first
variable changes; those that nobody reads, such as that of the images, need not be computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.graph.graph import Node
from penstock.graph.roles import NEEDS_READER, Role
from penstock.passes.graph_rewriter import GraphRewriter

#: A control edge from one of these is live where the output that was read may be dead.
_SPLITS: Final = NEEDS_READER | {Role.ENTER}


def skip_unread(draft: GraphRewriter) -> int:
    """Replace nodes that are only waited for; returns how many."""
    count = 0
    candidates: Iterable[Node] = list(draft.graph)
    while True:
        unread = [node for node in candidates if _is_unread(draft, node)]
        if not unread:
            return count
        count += len(unread)
        sources = dict.fromkeys(e.src for node in unread for e in node.inputs if e is not None)
        candidates = [node for node in sources if node not in unread]
        draft.replace({node: [(_wait_instead(draft, node), 0)] for node in unread})


def _is_unread(draft: GraphRewriter, node: Node) -> bool:
    return (
        bool(node.out_edges)
        and bool(node.inputs)
        and all(edge.is_control for edge in node.out_edges)
        and not draft.is_root(node)
        and draft.has_no_effects(node)
        and not any(edge is None or edge.src.role in _SPLITS for edge in node.inputs)
    )


def _wait_instead(draft: GraphRewriter, node: Node) -> Node:
    """A node that waits for all that ``node`` waits for."""
    waiting = draft.take_name(node, "NoOp", {})
    draft.graph.add_control_edges([edge.src for edge in node.in_edges()], waiting)
    return waiting
