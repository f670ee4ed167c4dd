"""Where a node stands: in which loop, in which call; and which nodes somebody means to see.

In:   activations.
Out:  names for people, and the ends of loops and calls.
Not:  knows no step.

A function whose body was put where it is called has nodes ``CALL/NODE``, CALL being the node that
called it.  One that is really called has nodes of their own names, and a depth of calls.
"""

from __future__ import annotations

from typing import Final

from penstock.core.names import Endpoint
from penstock.graph.functions import FunctionLibrary
from penstock.passes.prune import fed_by
from penstock.state.node_hook import Activation

#: What a request adds to its graph: what is fed and fetched, and what travels between devices.
_HIDDEN: Final = frozenset({
    "_Arg", "_DeviceArg", "_DeviceRetval", "_HostRecv", "_HostSend", "_Recv", "_Retval", "_Send",
})  # fmt: skip
_EXITS: Final = frozenset({"Exit", "RefExit"})


def is_hidden(at: Activation) -> bool:
    """Whether a node is none of the graph's, nor of a function's."""
    return at.op in _HIDDEN


def is_exit(at: Activation) -> bool:
    """Whether a node brings a value out of a loop."""
    return at.op in _EXITS


def endpoint_of(at: Activation, slot: int) -> Endpoint:
    """The tensor that an output is: of what is fed, the one that it is fed for."""
    fed = None if at.call_depth else fed_by(at.node, at.op)
    return fed or Endpoint(at.node, slot)


def call_of(at: Activation, library: FunctionLibrary) -> str:
    """The node that called the function whose body a node is from; empty if none did."""
    if not at.function or at.function not in library:
        return ""
    own = {node.name for node in library.get(at.function).node_def}
    parts = at.node.split("/")
    for count in range(1, len(parts)):
        if "/".join(parts[count:]) in own:
            return "/".join(parts[:count])
    return ""


def is_within(node: str, call: str) -> bool:
    """Whether a node is from the body that a call was replaced by."""
    return node.startswith(f"{call}/")
