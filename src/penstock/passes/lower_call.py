"""A call as the nodes of what it calls.

In:   the CallSite of a call, and the function's body.
Out:  what takes the call's place.
Not:  decides nothing about whether it may.
"""

from __future__ import annotations

from penstock.graph.graph import Node
from penstock.graph.instantiate import FunctionBody
from penstock.passes.call_site import CallSite, Replacement


def lower_call(site: CallSite, body: FunctionBody) -> Replacement:
    """What takes the place of a call of this function."""
    gate = site.gate
    if site.waits:
        gate = site.add(
            "input_control_node", "NoOp", {}, (), [*site.waits, *([gate] if gate else [])]
        )
    inlined = site.inline("", body, dict(enumerate(site.inputs)), gate)

    def add_end() -> Node:
        ends = [*inlined.ends(), *([gate] if gate else [])]
        if site.node.op.is_stateful:
            # As in TensorFlow, who waits for a call waits for more than the call does if it stays.
            ends += (node for node in inlined.nodes if node.op.is_stateful)
        return site.add("control_exit", "NoOp", {}, (), dict.fromkeys(ends))

    return Replacement([site.gated(value) for value in inlined.results], [inlined], add_end)
