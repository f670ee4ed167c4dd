"""What a node is to the executor, told from its op's name alone."""

from __future__ import annotations

import enum
from typing import Final


class Role(enum.Enum):
    """The classes of nodes that some part of the runtime treats specially."""

    #: There is one of each, so identity will do, and is faster than a hash of the name.
    __hash__ = object.__hash__

    OTHER = enum.auto()
    SWITCH = enum.auto()
    MERGE = enum.auto()
    ENTER = enum.auto()
    EXIT = enum.auto()
    NEXT_ITERATION = enum.auto()
    LOOP_COND = enum.auto()
    CONTROL_TRIGGER = enum.auto()
    SEND = enum.auto()
    RECV = enum.auto()
    CONSTANT = enum.auto()
    VARIABLE = enum.auto()
    IDENTITY = enum.auto()
    SESSION_HANDLE = enum.auto()
    METADATA = enum.auto()
    ARG = enum.auto()
    RETVAL = enum.auto()
    CALL = enum.auto()
    PLACEHOLDER = enum.auto()
    REGION = enum.auto()


_OPS: Final[dict[Role, tuple[str, ...]]] = {
    Role.SWITCH: ("Switch", "RefSwitch", "_SwitchN"),
    Role.MERGE: ("Merge", "RefMerge", "_XlaMerge"),
    Role.ENTER: ("Enter", "RefEnter"),
    Role.EXIT: ("Exit", "RefExit"),
    Role.NEXT_ITERATION: ("NextIteration", "RefNextIteration"),
    Role.LOOP_COND: ("LoopCond",),
    Role.CONTROL_TRIGGER: ("ControlTrigger",),
    Role.SEND: ("_Send", "_HostSend"),
    Role.RECV: ("_Recv", "_HostRecv"),
    Role.CONSTANT: ("Const", "HostConst"),
    Role.VARIABLE: ("Variable", "VariableV2"),
    Role.IDENTITY: ("Identity", "RefIdentity"),
    Role.SESSION_HANDLE: (
        "GetSessionHandle",
        "GetSessionHandleV2",
        "GetSessionTensor",
        "DeleteSessionTensor",
    ),
    Role.METADATA: ("Shape", "Size", "Rank"),
    Role.ARG: ("_Arg", "_DeviceArg"),
    Role.RETVAL: ("_Retval", "_DeviceRetval"),
    Role.CALL: ("PartitionedCall", "StatefulPartitionedCall"),
    Role.PLACEHOLDER: ("Placeholder", "PlaceholderV2"),
    Role.REGION: ("_Region",),
}
_ROLE_OF: Final[dict[str, Role]] = {op: role for role, ops in _OPS.items() for op in ops}


#: What leads into loops and out of them.
LOOP_BORDERS: Final = frozenset({Role.ENTER, Role.EXIT})
#: What makes loops go on, beside the Merges at their beginnings.
LOOPS: Final = LOOP_BORDERS | {Role.NEXT_ITERATION, Role.LOOP_COND}
#: What makes branches and loops.
CONTROL_FLOW: Final = LOOPS | {Role.SWITCH, Role.MERGE}
#: Nodes that compute something from their inputs, and do nothing else.
COMPUTES: Final = frozenset({Role.OTHER, Role.CONSTANT, Role.IDENTITY, Role.METADATA})
#: Only a node that reads one of the outputs of these is alive exactly when that output is, or
#: runs in the frame that it is in.
NEEDS_READER: Final = frozenset({Role.SWITCH, Role.RECV, Role.NEXT_ITERATION})
#: Nodes that hand a reference or a handle on without looking at what is behind it.
HANDS_REFERENCES_ON: Final = frozenset(
    {Role.SWITCH, Role.MERGE, Role.ENTER, Role.EXIT, Role.NEXT_ITERATION, Role.IDENTITY}
)
#: Stateful by declaration, though their values and their state are the step's.
OF_THE_STEP: Final = frozenset({Role.ARG, Role.RETVAL, Role.SEND, Role.RECV})


def role_of(op: str) -> Role:
    """The role of nodes of ``op``."""
    return _ROLE_OF.get(op, Role.OTHER)
