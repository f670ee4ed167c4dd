"""Take away nodes that only hand on their input.

In:   a Draft.
Out:  the Draft, in which their consumers read the input itself; how many were removed.
Not:  removes no Identity that means something: see ``_is_needed``.
"""

from __future__ import annotations

from typing import Final

from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.passes.draft import Draft

#: Ops whose output is their input.  What is fed has been replaced by its feed already.
_HANDS_ON: Final = frozenset(
    {"GuaranteeConst", "Identity", "PlaceholderWithDefault", "PreventGradient"}
    | {"Snapshot", "StopGradient"}
)
#: Only an Identity tells that one of several outputs of these is alive, or comes from a Recv.
_NEEDS_IDENTITY: Final = frozenset({Role.SWITCH, Role.RECV, Role.NEXT_ITERATION})
#: Sources that may be waited for in place of their Identity: they are alive when it is.
_MAY_BE_AWAITED: Final = frozenset({Role.OTHER, Role.CONSTANT, Role.IDENTITY, Role.METADATA})


def remove_identities(draft: Draft) -> int:
    """Let the consumers of Identities read their inputs; returns how many were removed."""
    moves = {
        node: [(edge.src, edge.src_slot)]
        for node in draft.graph
        if node.op.name in _HANDS_ON
        and (edge := node.inputs[0]) is not None
        and not _is_needed(draft, node, edge)
    }
    if moves:
        draft.replace(moves)
    return len(moves)


def _is_needed(draft: Draft, node: Node, edge: Edge) -> bool:
    """Whether an Identity does more than hand on a value.

    It reads a reference; it runs on another device; it is itself a target; it waits for
    something; or it is what tells that a branch was taken.
    """
    src = edge.src
    if node.control_inputs or draft.is_root(node) or src.role in _NEEDS_IDENTITY:
        return True
    if draft.reads_memory(node) or draft.device(node) != draft.device(src):
        return True
    is_awaited = any(out.is_control for out in node.out_edges)
    return is_awaited and not (src.role in _MAY_BE_AWAITED and draft.is_pure(src))
