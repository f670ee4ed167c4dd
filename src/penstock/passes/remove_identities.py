"""Take away nodes that only hand on their input.

In:   a Draft.
Out:  the Draft, in which their consumers read the input itself; how many were removed.
Not:  removes no Identity that means something: see ``Draft.may_bypass``.
"""

from __future__ import annotations

from typing import Final

from penstock.passes.draft import Draft

#: Ops whose output is their input.  What is fed has been replaced by its feed already.
_HANDS_ON: Final = frozenset(
    {"GuaranteeConst", "Identity", "PlaceholderWithDefault", "PreventGradient"}
    | {"Snapshot", "StopGradient"}
)


def remove_identities(draft: Draft) -> int:
    """Let the consumers of Identities read their inputs; returns how many were removed."""
    moves = {
        node: [(edge.src, edge.src_slot)]
        for node in draft.graph
        if node.op.name in _HANDS_ON
        and (edge := node.inputs[0]) is not None
        and draft.may_bypass(node, edge)
    }
    if moves:
        draft.replace(moves)
    return len(moves)
