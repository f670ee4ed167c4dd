"""Keyed hand-over of values between the partitions of one step, and with the client.

In:   ``send`` from whoever has a value, ``recv`` from whoever needs it, in either order and
      from any thread.
Out:  every value reaches exactly one receiver; one key's values keep their order.
Not:  never blocks in ``send``; knows no graph.  How one waits is said in ``waits``.

Whichever side comes first waits in the queue of its key.  So a key never has both a value
and a receiver waiting: every method leans on that law, and ``check`` states it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from penstock.core.device_names import DeviceName
from penstock.core.values import DEAD, Value
from penstock.dataclass import dataclass
from penstock.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
)
from penstock.state.cancellation import CancellationManager
from penstock.state.frame_and_iter import FrameAndIter
from penstock.state.waits import Monitor, Notification, Wait, tell_all

#: Called once with (error or None, value, whether the value is dead).
RecvDone: TypeAlias = Callable[[OpError | None, Value, bool], None]
_Entry = TypeVar("_Entry")

#: Where a client without a cluster meets its session.
LOCAL_CLIENT: Final = "/job:localhost/replica:0/task:0/device:CPU:0"
#: Where most transfers are.
OUTSIDE_OF_LOOPS: Final = FrameAndIter()
_KEY: Final = re.compile(r"([^;]+);([0-9a-fA-F]{1,16});([^;]+);([^;]+);(\d+):(\d+)", re.ASCII)
_MASK64: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class RendezvousKey:
    """One hand-over: which value, from and to which device, in which iteration of which loop."""

    src_device: str
    src_incarnation: int
    dst_device: str
    tensor_name: str
    frame_id: int = 0
    iteration: int = 0

    def __str__(self) -> str:
        prefix = key_prefix(
            self.src_device, self.src_incarnation, self.dst_device, self.tensor_name
        )
        return f"{prefix}{self.frame_id}:{self.iteration}"


def key_prefix(src_device: str, src_incarnation: int, dst_device: str, tensor_name: str) -> str:
    """What all keys of one transfer begin with; ``frame:iteration`` follows."""
    # Attributes hold incarnations as signed numbers, keys as the same 64 bits unsigned.
    return f"{src_device};{src_incarnation & _MASK64:016x};{dst_device};{tensor_name};"


def parse_key(text: str) -> RendezvousKey:
    """Read a key; raises InvalidArgumentError unless it has all its parts, devices in full."""
    match = _KEY.fullmatch(text)
    if match is None or not (_is_full_device(match[1]) and _is_full_device(match[3])):
        raise InvalidArgumentError(
            f"Invalid  rendezvous key: {text}",
            next_step="write it as source;16 hex digits;destination;name;frame:iteration",
        )
    src, incarnation, dst, name, frame, iteration = match.groups()
    return RendezvousKey(src, int(incarnation, 16), dst, name, int(frame), int(iteration))


def _is_full_device(text: str) -> bool:
    name = DeviceName.try_parse(text)
    return name is not None and None not in (name.job, name.replica, name.task, name.type, name.id)


class Rendezvous(Monitor[Wait]):
    """The meeting place of one step.

    Keys are made by ``create_key``.  One without ``;`` is a client's short form: it stands for
    the transfer of that name from and to the client's own device, in the root frame.
    """

    @staticmethod
    def create_key(
        src_device: str,
        src_incarnation: int,
        dst_device: str,
        name: str,
        frame_iter: FrameAndIter = OUTSIDE_OF_LOOPS,
    ) -> str:
        """The key of one transfer, as the ``_Send`` and ``_Recv`` of the same attributes make it.

        Args:
            src_device: full name of the sending device, the nodes' ``send_device``.
            src_incarnation: their ``send_device_incarnation``.
            dst_device: full name of the receiving device, their ``recv_device``.
            name: their ``tensor_name``.
            frame_iter: the loops' iteration in which they run.

        Raises:
            InvalidArgumentError: a device is not named in full, or the name has a ``;``.

        """
        prefix = key_prefix(src_device, src_incarnation, dst_device, name)
        key = f"{prefix}{FrameAndIter(*frame_iter)}"
        parse_key(key)
        return key

    @staticmethod
    def parse_key(key: str) -> RendezvousKey:
        """The parts of a key; raises InvalidArgumentError if it is none."""
        return parse_key(key)

    def __init__(self, client_device: str = LOCAL_CLIENT, client_incarnation: int = 1) -> None:
        super().__init__()
        self._client = (client_device, client_incarnation)
        # All that follows is guarded by the monitor's lock.
        #: Values nobody has asked for, with their deadness, oldest first.  No empty queue;
        #: nothing at all after an abort.
        self._values: dict[str, deque[tuple[Value, bool]]] = {}
        #: Receivers no value has come for; what they want is the key.  Shares no key with
        #: ``_values``; else like it.
        self._receivers: dict[str, deque[Wait]] = {}
        #: Why the step ended early.  Set at most once, never cleared.
        self._aborted: OpError | None = None

    def send(self, key: str, value: Value, *, is_dead: bool = False) -> None:
        """Hand ``value`` over, now or when someone asks.

        Raises:
            OpError: the reason of an abort that came before.

        """
        key = self._full(key)
        with self._lock:
            if self._aborted is not None:
                raise self._aborted.copy()
            if key not in self._receivers:
                self._values.setdefault(key, deque()).append((value, is_dead))
                return
            receiver = _take(self._receivers, key)
            receiver.settle(None, value, is_dead)
        receiver.tell()  # outside the lock: it may well send again

    def recv_async(
        self, key: str, done: RecvDone, cancellation_manager: CancellationManager | None = None
    ) -> None:
        """Call ``done`` with the next value of ``key``, or with an error.

        It is called exactly once, on this thread if the value is here, else on the thread
        that sends, aborts or cancels.
        """
        key = self._full(key)
        with self._lock:
            sent = _take(self._values, key) if key in self._values else None
        if sent is None:
            self._submit(Wait(done, key), cancellation_manager)
        else:
            done(None, *sent)

    def recv(self, key: str, timeout: float | None = None) -> Value:
        """Wait for the next value of ``key``; DEAD for a dead one.

        A receiver whose time is up stays in the queue: the value that it waited for, should
        it still come, is lost.

        Raises:
            DeadlineExceededError: nothing came within ``timeout`` seconds.
            OpError: the step was aborted.

        """
        arrival = Notification()
        self.recv_async(key, arrival)
        if not arrival.wait(timeout):
            raise DeadlineExceededError(
                f"Timed out waiting for notification of '{key}'",
                next_step="feed what it depends on, or allow more time",
            )
        error, value, is_dead = arrival.outcome
        if error is not None:
            raise error.copy()
        return DEAD if is_dead else value

    def start_abort(self, reason: OpError) -> None:
        """End the step: fail everyone who waits, and everyone who comes later.

        Values that nobody asked for are dropped.
        """
        with self._lock:
            if self._aborted is not None:
                return  # the first reason is the one worth reporting
            self._aborted = reason
            waiting = [receiver for queue in self._receivers.values() for receiver in queue]
            for receiver in waiting:
                _fail(receiver, reason)
            self._receivers.clear()
            self._values.clear()
        tell_all(waiting)

    def leave(self) -> None:
        """The step that made it is over; one that others meet in as well may tell them so."""

    def close(self) -> None:
        """Give up the meeting place: whoever still waits is told so."""
        self.start_abort(CancelledError("LocalRendezvous deleted", derived=True))

    def waiting(self) -> list[str]:
        """The keys that someone waits for, each once."""
        with self._lock:
            return list(self._receivers)

    def check(self) -> None:
        """Raise InternalError unless the laws of this class hold."""
        with self._lock:
            both = self._values.keys() & self._receivers.keys()
            if both:
                raise InternalError(f"both a value and a receiver wait for {min(both)}")
            if self._aborted is not None and (self._values or self._receivers):
                raise InternalError("aborted, yet values or receivers still wait")
            if not all((*self._values.values(), *self._receivers.values())):
                raise InternalError("an empty queue was kept")

    def _full(self, key: str) -> str:
        if ";" in key:
            return key
        device, incarnation = self._client
        return f"{key_prefix(device, incarnation, device, key)}0:0"

    def _add(self, wait: Wait) -> list[Wait]:
        """Serve a receiver, or let it stand in the queue of its key."""
        key = wait.wanted
        if self._aborted is not None:
            _fail(wait, self._aborted)
        elif key in self._values:
            wait.settle(None, *_take(self._values, key))
        else:
            self._receivers.setdefault(key, deque()).append(wait)
            return []
        return [wait]

    def _cancel(self, wait: Wait) -> list[Wait]:
        """Take one receiver out of its queue; if it is still there, it learns why."""
        if wait.is_settled:
            return []
        key = wait.wanted
        self._receivers[key].remove(wait)
        if not self._receivers[key]:
            del self._receivers[key]
        _fail(wait, CancelledError("RecvAsync is cancelled.", derived=True))
        return [wait]


def _fail(receiver: Wait, reason: OpError) -> None:
    """Settle with the news that no value will come."""
    receiver.settle(reason, None, False)  # noqa: FBT003  (a message's third part)


def _take(queues: dict[str, deque[_Entry]], key: str) -> _Entry:
    """Remove and return the oldest entry of ``key``, leaving no empty queue."""
    queue = queues[key]
    entry = queue.popleft()
    if not queue:
        del queues[key]
    return entry
