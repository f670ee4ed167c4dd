"""Who takes part in a collective operation, and whether all mean the same one.

In:   members as they come: each with the group and the instance that it means.
Out:  when all have come, each member's ``Place``; or an error for all of them.
Not:  exchanges no values; see ``collectives``.

A group is a set of devices, an instance one exchange among them.  A group begins with the first
member that names its key and is full when it has as many as that one said; ranks are in the order
of devices' names.  A device that takes part in an instance twice means a second exchange.  One
process decides for all members: for those of other processes somebody enters on their behalf.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from dataclasses import field
from typing import Final, Protocol

from penstock.core.dtypes import DType
from penstock.dataclass import dataclass
from penstock.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
)
from penstock.state.cancellation import CancellationManager
from penstock.state.waits import Monitor, Wait

_NUMBERS: Final = re.compile(r"(\d+)")


class CollectiveKind(enum.IntEnum):
    """What is exchanged; the numbers are TensorFlow's, and stand in its errors."""

    REDUCE = 0
    BROADCAST = 1
    GATHER = 2
    ALL_TO_ALL = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """What one member wants to take part in."""

    group_key: int
    group_size: int
    instance_key: int
    kind: CollectiveKind
    dtype: DType
    #: What must be equal for all members: of a gathering, the result's shape.
    shape: tuple[int, ...]
    #: The member: the full name of a device.
    device: str
    #: Whether it has the value that is broadcast.
    is_source: bool = False
    #: That of the device, which keys have if several processes take part.
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a member stands in one exchange."""

    #: The members' devices by rank.
    devices: tuple[str, ...]
    rank: int
    #: The rank of who has the value that is broadcast; of other kinds, 0.
    source: int
    #: What no other exchange of the step has; a part of the keys of its values.
    name: str
    #: Those of the devices.
    incarnations: tuple[int, ...] = ()
    #: The number under which processes meet for this exchange; 0 if there is only one.
    step_id: int = 0

    @property
    def size(self) -> int:
        """How many members there are."""
        return len(self.devices)


@dataclass(slots=True)
class _KnownGroupMembers:
    size: int
    devices: list[str] = field(default_factory=list)
    #: How often each device has entered each instance.
    entered: Counter[tuple[str, int]] = field(default_factory=Counter)


class Groups(Protocol):
    """Who decides about the members of exchanges."""

    def enter(self, wait: Wait, cancellation: CancellationManager | None) -> None:
        """Have a wait settled with (error, None), or (None, place) when all have come."""

    def expire(self, wait: Wait) -> None:
        """The time of a member is up; if it still waits, all is over."""

    def abort(self, reason: OpError) -> None:
        """End the waits of all members, and of those that come later."""

    def failed(self, place: Place) -> None:
        """A member has failed in an exchange: nobody need wait for it there."""

    def finished(self, place: Place) -> None:
        """A member has sent and got all there is for it in an exchange."""


class CollectiveGroups(Monitor[Wait]):
    """The groups of one step, and who waits in them; a wait wants a ``Collective``."""

    def __init__(self) -> None:
        super().__init__()
        # All that follows is guarded by the monitor's lock.
        #: Groups by key; they only grow.
        self._groups: Final[dict[int, _KnownGroupMembers]] = {}
        #: Exchanges for which not all have come, by group, instance and the number of the use.
        self._instances: Final[dict[tuple[int, int, int], list[Wait]]] = {}
        #: Why nobody can take part in anything any more.  Set once.
        self._aborted: OpError | None = None

    def enter(self, wait: Wait, cancellation: CancellationManager | None) -> None:
        """Have a wait settled with (error, None), or (None, place) when all have come."""
        self._submit(wait, cancellation)

    def expire(self, wait: Wait) -> None:
        """The time of a member is up; if it still waits, all is over."""
        late = DeadlineExceededError("Collective has timed out waiting for other workers.")
        self._change(lambda: [] if wait.is_settled else self._abort(late))

    def abort(self, reason: OpError) -> None:
        """End the waits of all members, and of those that come later."""
        self._change(lambda: self._abort(reason))

    def failed(self, place: Place) -> None:
        """A member has failed in an exchange: its step ends, and so do the others' waits."""

    def finished(self, place: Place) -> None:
        """A member needs an exchange no longer; nothing is kept of one."""

    @property
    def is_aborted(self) -> bool:
        """Whether nobody can take part in anything any more."""
        return self._aborted is not None

    # -- under the lock ----------------------------------------------------------------------

    def _add(self, wait: Wait) -> list[Wait]:
        if self._aborted is not None:
            wait.settle(self._aborted.copy(), None)
            return [wait]
        member: Collective = wait.wanted
        try:
            group = self._joined(member)
            group.entered[member.device, member.instance_key] += 1
            use = group.entered[member.device, member.instance_key]
            key = member.group_key, member.instance_key, use
            waiting = self._instances.setdefault(key, [])
            if waiting:
                _check_alike(member, waiting[0].wanted)
            waiting.append(wait)
            if len(waiting) < group.size:
                return []
            _settle(waiting, key)
            return self._instances.pop(key)
        except OpError as error:
            settled = self._abort(error)
            if not wait.is_settled:
                wait.settle(self._reason(), None)
                settled.append(wait)
            return settled

    def _joined(self, member: Collective) -> _KnownGroupMembers:
        """The group of a member, with the member in it."""
        group = self._groups.setdefault(member.group_key, _KnownGroupMembers(member.group_size))
        where = f"(group_key={member.group_key})"
        if group.size != member.group_size:
            raise InternalError(
                f"Device {member.device} is joining a group with size {member.group_size}, but "
                f"that group has size {group.size} {where}"
            )
        if member.device not in group.devices:
            if len(group.devices) == group.size:
                raise InternalError(
                    f"Device {member.device} is joining a group that is already full {where}"
                )
            group.devices.append(member.device)
        return group

    def _abort(self, reason: OpError) -> list[Wait]:
        if self._aborted is not None:
            return []
        self._aborted = type(reason)(
            f"Collective ops is aborted by: {reason.reason}", derived=reason.derived
        )
        waiting = [wait for waits in self._instances.values() for wait in waits]
        self._instances.clear()
        for wait in waiting:
            wait.settle(self._reason(), None)
        return waiting

    def _reason(self) -> OpError:
        assert self._aborted is not None
        return self._aborted.copy()

    def _cancel(self, wait: Wait) -> list[Wait]:
        if wait.is_settled:
            return []
        return self._abort(CancelledError("the step was cancelled", derived=True))


def _settle(waiting: list[Wait], key: tuple[int, int, int]) -> None:
    """Tell all members of an exchange that all have come; raises if that makes no sense."""
    members: list[Collective] = [wait.wanted for wait in waiting]
    incarnation_of = {member.device: member.incarnation for member in members}
    devices = tuple(sorted((member.device for member in members), key=_in_order))
    incarnations = tuple(incarnation_of[device] for device in devices)
    sources = sorted(devices.index(member.device) for member in members if member.is_source)
    if members[0].kind is CollectiveKind.BROADCAST:
        _check_sources(sources, members[0])
    source = sources[0] if sources else 0
    for wait, member in zip(waiting, members, strict=True):
        rank = devices.index(member.device)
        wait.settle(None, Place(devices, rank, source, "/".join(map(str, key)), incarnations))


def _check_sources(sources: list[int], member: Collective) -> None:
    if not sources:
        raise InternalError(
            f"Instance {member.instance_key} found no source for broadcast. This could mean that "
            f"there were group_size={member.group_size} BcastRecvs but no BcastSend."
        )
    if len(sources) > 1:
        raise InternalError(
            f"Instance {member.instance_key} already has source {sources[0]}, received second "
            f"claim from {sources[1]}"
        )


def _check_alike(member: Collective, first: Collective) -> None:
    """Raise unless two members mean the same exchange."""
    if (member.kind, member.dtype) != (first.kind, first.dtype):
        raise InternalError(
            f"Collective instance {member.instance_key} expected type {first.kind:d} and data_type "
            f"{first.dtype.number} but got type {member.kind:d} and data_type "
            f"{member.dtype.number}"
        )
    if member.shape != first.shape:
        raise InvalidArgumentError(
            f"Shape mismatch in the collective instance {member.instance_key}. Op at device "
            f"{member.device} expected shape {_text(member.shape)} but another member in the "
            f"group expected shape {_text(first.shape)}. This is likely due to different input "
            "shapes at different members of the collective op."
        )


def _text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _in_order(device: str) -> list[tuple[int, str]]:
    """Names in the order of the numbers in them: task 2 before task 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _NUMBERS.split(device)]
