"""Collective operations among the tasks of a cluster, and the one task that decides about groups.

In:   members, from the steps of all tasks; which steps these are does not matter.
Out:  to each member its place, from the leader; values, from each task to the next.
Not:  does no arithmetic; ``state/collectives.py`` does.

The leader is the first task of the cluster.  A member enters by a call of it, which is answered
when all have come.  If a member's call ends before, so do those of the others, and who comes later
is told the same, once; then all may begin anew.  Each exchange has a number of its own, by which
tasks ask each other for its values as they do in steps.  A member that fails has all other tasks
give that number up, so that nobody waits for what it would have sent.

What a task has sent may be asked for when its own step is long over; so it stays until all members
in the task have finished and it has been taken.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any, Final

from penstock.cluster.bounds import check_room
from penstock.cluster.cluster_spec import task_of
from penstock.cluster.rendezvous import TaskRendezvous
from penstock.cluster.services import EXCHANGE, WORKER, request_class, response_class
from penstock.cluster.task import Task
from penstock.core import dtypes
from penstock.core.hash64 import hash64
from penstock.dataclass import dataclass
from penstock.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
)
from penstock.kernels.data_flow.collective_ops import COLLECTIVES
from penstock.state.cancellation import CancellationManager
from penstock.state.collective_groups import Collective, CollectiveGroups, CollectiveKind, Place
from penstock.state.collectives import CollectiveExecutor
from penstock.state.resources import StepContainer
from penstock.state.waits import Wait

_EnterRequest: Final = request_class("EnterCollective")
_AbortRequest: Final = request_class("AbortCollectives")
_ASIDE_SECONDS: Final = 10.0
#: So many exchanges that were given up are remembered.
_MAX_TOLD: Final = 1_000
#: Exchanges have numbers like steps.
_STEP_MASK: Final = (1 << 56) - 1


def leader_of(task: Task) -> str:
    """The task that decides about groups."""
    return next(iter(task.peers.cluster))


@dataclass(slots=True)
class _KnownExchange:
    """An exchange that members in this task are in, or that others may still ask for."""

    rendezvous: TaskRendezvous
    #: How many of this task's members have not finished in it.
    members: int


class TaskCollectives:
    """The collective operations of one task's steps."""

    def __init__(self, task: Task) -> None:
        self._task: Final = task
        #: Guards what follows.  A rendezvous' own is taken under it.
        self._lock = Lock()
        #: Exchanges by number, from the first of this task's members on.
        self._known: dict[int, _KnownExchange] = {}

    def new_container(self) -> StepContainer:
        """A container for a step, whose collective operations are those of the cluster."""
        container = StepContainer()
        executor = CollectiveExecutor(self._peers_of, _RemoteGroups(self._task, self))
        container.create(*COLLECTIVES, executor)
        return container

    def _peers_of(self, place: Place) -> TaskRendezvous:
        found = self._task.steps.find_or_make(place.step_id)
        members = sum(task_of(device) == self._task.name for device in place.devices)
        with self._lock:
            self._known.setdefault(place.step_id, _KnownExchange(found, members))
        return found

    def finished(self, place: Place) -> None:
        """A member has finished in an exchange; those that nobody needs are forgotten."""
        with self._lock:
            known = self._known.get(place.step_id)
            if known is not None:
                known.members -= 1
            # Before its member has finished, one that looks taken may only just have begun.
            over = [
                number
                for number, known in self._known.items()
                if known.members <= 0 and known.rendezvous.is_taken
            ]
            for number in over:
                del self._known[number]
        for number in over:
            self._task.steps.remove_if_known(number)

    def give_up(self, place: Place) -> None:
        """A member failed in an exchange: nobody need wait for more of it."""
        with self._lock:
            self._known.pop(place.step_id, None)
        self._task.steps.remove(place.step_id)
        cleanup = request_class("CleanupGraph")(step_id=place.step_id)
        for task in sorted({task_of(device) for device in place.devices} - {self._task.name}):
            _tell(self._task.peers.stub(WORKER, task), "CleanupGraph", cleanup)
        leader = self._task.peers.stub(EXCHANGE, leader_of(self._task))
        abort = _AbortRequest(step_id=place.step_id, name=place.name)
        _tell(leader, "AbortCollectives", abort)


def _tell(stub: Any, method: str, request: Any) -> None:
    """Tell a task something; whether it hears that does not matter."""
    stub.start(method, request, lambda _error, _answer: None, timeout=_ASIDE_SECONDS)


class _RemoteGroups:
    """The groups of the cluster, as the steps of one task see them."""

    def __init__(self, task: Task, exchanges: TaskCollectives) -> None:
        self._task: Final = task
        self._exchanges: Final = exchanges
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        self._entering: dict[Wait, _Entering] = {}

    def enter(self, wait: Wait, cancellation: CancellationManager | None) -> None:
        """Have the leader say when all have come."""
        entering = _Entering(wait, cancellation, self._forget)
        with self._lock:
            self._entering[wait] = entering
        entering.start(self._task)

    def expire(self, wait: Wait) -> None:
        """The time of a member is up."""
        with self._lock:
            entering = self._entering.get(wait)
        if entering is not None:
            late = "Collective has timed out waiting for other workers."
            entering.settle(DeadlineExceededError(late), None)

    def abort(self, reason: OpError) -> None:
        """End all waits of this step."""
        with self._lock:
            found = list(self._entering.values())
        for entering in found:
            entering.settle(reason.copy(), None)

    def failed(self, place: Place) -> None:
        """A member of this step has failed in an exchange."""
        self._exchanges.give_up(place)

    def finished(self, place: Place) -> None:
        """A member of this step has finished in an exchange."""
        self._exchanges.finished(place)

    def _forget(self, wait: Wait) -> None:
        with self._lock:
            self._entering.pop(wait, None)


class _Entering:
    """One member that waits for the others."""

    def __init__(
        self, wait: Wait, cancellation: CancellationManager | None, forget: Callable[[Wait], None]
    ) -> None:
        self._wait: Final = wait
        self._cancellation: Final = cancellation
        self._forget: Final = forget
        self._token = -1
        #: Guards ``is_settled`` of the wait.  Innermost.
        self._lock = Lock()
        #: Ends the call.  Set before ``is_settled`` is looked at, which is set before this is
        #: called.
        self._end_call: Callable[[], object] = lambda: None

    def start(self, task: Task) -> None:
        """Call the leader."""
        if self._cancellation is not None:
            self._token = self._cancellation.get_cancellation_token()
            if not self._cancellation.register_callback(self._token, self._cancelled):
                self._cancelled()
                return
        member: Collective = self._wait.wanted
        device = task.devices.find(member.device)
        request = _EnterRequest(
            group_key=member.group_key,
            group_size=member.group_size,
            instance_key=member.instance_key,
            kind=int(member.kind),
            dtype=member.dtype.number,
            shape=member.shape,
            device=member.device,
            incarnation=device.incarnation & (1 << 64) - 1 if device is not None else 0,
            is_source=member.is_source,
        )
        leader = task.peers.stub(EXCHANGE, leader_of(task))
        self._end_call = leader.start("EnterCollective", request, self._answered)
        if self._wait.is_settled:
            self._end_call()

    def _answered(self, error: OpError | None, answer: Any) -> None:
        if error is not None:
            self.settle(error, None)
            return
        place = Place(
            tuple(answer.device),
            answer.rank,
            answer.source,
            answer.name,
            tuple(answer.incarnation),
            answer.step_id,
        )
        self.settle(None, place)

    def _cancelled(self) -> None:
        self.settle(CancelledError("the step was cancelled", derived=True), None)

    def settle(self, error: OpError | None, place: Place | None) -> None:
        """Tell who waits, unless that was done."""
        with self._lock:
            if self._wait.is_settled:
                return
            self._wait.settle(error, place)
        self._forget(self._wait)
        if self._cancellation is not None:
            self._cancellation.try_deregister_callback(self._token)
        if error is not None:
            self._end_call()
        self._wait.tell()


class ExchangeService:
    """What the leader of a cluster's groups answers."""

    def __init__(self, task: Task, exchanges: TaskCollectives) -> None:
        self._task: Final = task
        self._exchanges: Final = exchanges
        #: What follows is looked at on the event loop alone.
        self._groups = CollectiveGroups()
        #: By group and instance, the devices that ever were in them, as the groups know them, too.
        self._members: Final[set[tuple[int, int, str]]] = set()
        #: Tells apart the exchanges before and after everything was aborted.
        self._epoch = secrets.token_hex(8)
        #: By group and instance: who was told that it was aborted.  Entries last until all members
        #: have been, and no longer than until there are too many.
        self._told: Final[OrderedDict[tuple[int, int], set[str]]] = OrderedDict()

    async def enter_collective(self, request: Any) -> Any:
        """A member comes; answered when all have come."""
        if self._task.name != leader_of(self._task):
            raise InvalidArgumentError(
                f"{self._task.name} does not lead the groups: {leader_of(self._task)} does"
            )
        self._check(request)
        self._tell_once(request)
        if self._groups.is_aborted:
            self._groups, self._epoch = CollectiveGroups(), secrets.token_hex(8)
            self._members.clear()
        groups, epoch = self._groups, self._epoch
        loop, cancellation = asyncio.get_running_loop(), CancellationManager()
        arrival: asyncio.Future[Place] = loop.create_future()

        def settle(error: OpError | None, place: Place | None) -> None:
            if arrival.done():
                return
            if error is not None or place is None:
                arrival.set_exception(error or AbortedError("The exchange has no place"))
            else:
                arrival.set_result(place)

        def come(error: OpError | None, place: Place | None) -> None:
            # At once: who comes before this one's answer is on its way is told the same.
            if error is not None:
                self._note_told(request)
            loop.call_soon_threadsafe(settle, error, place)

        wait = Wait(come, _member(request))
        groups.enter(wait, cancellation)
        try:
            place = await arrival
        except asyncio.CancelledError:
            # The member is gone, or waits no longer: the others would wait in vain.
            cancellation.start_cancel()
            self._give_up(request, wait.outcome[1], epoch)
            raise
        return response_class("EnterCollective")(
            device=place.devices,
            incarnation=place.incarnations,
            rank=place.rank,
            source=place.source,
            name=place.name,
            step_id=_number(epoch, place.name),
        )

    def _give_up(self, request: Any, place: Place | None, epoch: str) -> None:
        """A member has gone; if all had come already, the others are in the exchange by now."""
        if place is not None:
            self._note_told(request)
            self._exchanges.give_up(replace(place, step_id=_number(epoch, place.name)))

    def _check(self, request: Any) -> None:
        """Raise OpError for a member of no task of the cluster, and for one too many."""
        if task_of(request.device) not in set(self._task.peers.cluster):
            raise InvalidArgumentError(f"The cluster has no device {request.device}")
        key = request.group_key, request.instance_key, request.device
        if key not in self._members:
            advice = "use fewer groups and instances of collective operations"
            bound = self._task.bounds.members
            check_room("members of collective groups", len(self._members), bound, advice)
        self._members.add(key)

    def _tell_once(self, request: Any) -> None:
        """Raise AbortedError for a member whose exchange the others have given up meanwhile."""
        told = self._told.get((request.group_key, request.instance_key))
        if told is not None and request.device not in told:
            self._note_told(request)
            raise AbortedError(
                "Collective ops is aborted by: other members gave instance "
                f"{request.instance_key} of group {request.group_key} up",
                next_step="run the step again",
            )

    def _note_told(self, request: Any) -> None:
        key = request.group_key, request.instance_key
        told = self._told.setdefault(key, set())
        told.add(request.device)
        if len(told) >= min(request.group_size, _MAX_TOLD) or len(self._told) > _MAX_TOLD:
            del self._told[key]

    async def abort_collectives(self, request: Any) -> Any:
        """A member failed in an exchange: whoever waits for another one is told, too."""
        if request.step_id == _number(self._epoch, request.name):
            reason = AbortedError(f"a member failed in exchange {request.name}", derived=True)
            self._groups.abort(reason)
        return response_class("AbortCollectives")()


def _number(epoch: str, name: str) -> int:
    """The number that all tasks know an exchange by."""
    return hash64(f"{epoch}/{name}".encode()) & _STEP_MASK


def _member(request: Any) -> Collective:
    """Who comes; raises InvalidArgumentError if it makes no sense."""
    try:
        kind = CollectiveKind(request.kind)
    except ValueError:
        raise InvalidArgumentError(f"No kind of exchange has number {request.kind}") from None
    if request.group_size < 1:
        raise InvalidArgumentError(
            f"group_size must be positive integer but got {request.group_size}"
        )
    return Collective(
        group_key=request.group_key,
        group_size=request.group_size,
        instance_key=request.instance_key,
        kind=kind,
        dtype=dtypes.of_number(request.dtype),
        shape=tuple(request.shape),
        device=request.device,
        is_source=request.is_source,
        incarnation=request.incarnation,
    )
