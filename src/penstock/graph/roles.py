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


#: What makes branches and loops.
CONTROL_FLOW: Final = frozenset(
    {Role.SWITCH, Role.MERGE, Role.ENTER, Role.EXIT, Role.NEXT_ITERATION, Role.LOOP_COND}
)


def role_of(op: str) -> Role:
    """The role of nodes of ``op``."""
    return _ROLE_OF.get(op, Role.OTHER)
