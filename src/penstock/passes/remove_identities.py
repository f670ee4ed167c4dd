"""Take away nodes that only hand on their input.

In:   a GraphRewriter.
Out:  the GraphRewriter, in which their consumers read the input itself; how many were removed.
Not:  removes no Identity that means something: see ``GraphRewriter.may_bypass``.
"""

from __future__ import annotations

from penstock.passes.graph_rewriter import GraphRewriter


def remove_identities(draft: GraphRewriter) -> int:
    """Let the consumers of Identities read their inputs; returns how many were removed."""
    moves = {
        node: [(edge.src, edge.src_slot)]
        for node in draft.graph
        if node.op.traits.hands_on  # what is fed has been replaced by its feed already
        and (edge := node.inputs[0]) is not None
        and draft.may_bypass(node, edge)
    }
    if moves:
        draft.replace(moves)
    return len(moves)
