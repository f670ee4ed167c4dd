"""Where the parts of one step meet, though they run in several tasks.

In:   values that this task's part of a step sends; requests for them, of this task and of others.
Out:  the same, to whoever asks; what comes from another task is pulled from there.
Not:  speaks no protocol: ``Pull`` does.

A key says which device sends.  What this task's devices send waits here until it is asked for.
What other tasks' devices send is asked for there, when somebody here wants it, and never stays.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, TypeAlias

from penstock.cluster.bounds import check_room
from penstock.core.values import Value
from penstock.errors import AbortedError, OpError
from penstock.state.cancellation import CancellationManager
from penstock.state.rendezvous import RecvDone, Rendezvous

#: Asks another task for the value of a key in a step; returns what gives up waiting for it.
Pull: TypeAlias = Callable[[int, str, RecvDone], Callable[[], object]]
#: How many steps that are over are remembered: who asks for what they sent is told so.
_MAX_OVER: Final = 10_000


class TaskRendezvous(Rendezvous):
    """One task's part of a step's meeting place."""

    def __init__(
        self, step_id: int, task: str, pull: Pull, client_device: str, client_incarnation: int
    ) -> None:
        """Begin empty.

        Args:
            step_id: the number that all tasks know the step by.
            task: this task's name.
            pull: asks other tasks.
            client_device: where this task's client feeds and fetches.
            client_incarnation: that of the device.

        """
        super().__init__(client_device, client_incarnation)
        self.step_id: Final = step_id
        self._prefix = f"{task}/"
        self._pull = pull
        #: Whether anybody here runs the step; if not, others only ask.  Set under the table's lock.
        self.is_begun = False
        #: The session that runs a part of it for another task's master.  Set before it runs.
        self.session = ""
        #: What is done when the step that made it is over.  Set before the step begins.
        self.on_leave: Callable[[], object] = _nothing
        # What follows is guarded by the monitor's lock.
        #: What gives up each pull under way.
        self._pulls: dict[object, Callable[[], object]] = {}
        #: Keys of others' values that come by ``send`` nevertheless.
        self._expected: set[str] = set()
        #: What is sent in pieces, by the number of the request that asked for it.
        self._aside: dict[int, memoryview] = {}
        #: How many requests of other tasks are being answered.  Guarded by the table's lock.
        self.askers = 0
        #: The tasks that have forgotten the step already.
        self.over_at: Final[set[str]] = set()

    def recv_async(
        self, key: str, done: RecvDone, cancellation_manager: CancellationManager | None = None
    ) -> None:
        """Call ``done`` with the next value of ``key``, wherever it comes from."""
        key = self._full(key)
        if key.startswith(self._prefix) or key in self._expected:
            super().recv_async(key, done, cancellation_manager)
        else:
            self._pull_async(key, done)

    def expect(self, keys: Iterable[str]) -> None:
        """Ask nobody for the values of some keys: they come along with something else.

        Must be said before anybody asks here; then each of them comes by ``send``, or is to be
        asked for after all.
        """
        with self._lock:
            self._expected.update(keys)

    def ask_for(self, key: str) -> None:
        """Have the other task asked for a value that was expected and did not come along."""

        def arrived(error: OpError | None, value: Value, is_dead: bool) -> None:  # noqa: FBT001
            if error is not None:
                self.start_abort(error)
            elif self._aborted is None:
                self.send(key, value, is_dead=is_dead)

        self._pull_async(key, arrived)

    def _pull_async(self, key: str, done: RecvDone) -> None:
        token = object()

        def arrived(error: OpError | None, value: Value, is_dead: bool) -> None:  # noqa: FBT001
            with self._lock:
                self._pulls.pop(token, None)
                reason = self._aborted
            done(
                reason.copy() if error is not None and reason is not None else error, value, is_dead
            )

        with self._lock:
            if self._aborted is None:
                # Noted before it begins: its answer may come at once.
                self._pulls[token] = _nothing
            reason = self._aborted
        if reason is not None:
            done(reason.copy(), None, False)  # noqa: FBT003
            return
        give_up = self._pull(self.step_id, key, arrived)
        with self._lock:
            if token in self._pulls:
                self._pulls[token] = give_up
            reason = self._aborted
        if reason is not None:
            give_up()

    def set_aside(self, request_id: int, content: memoryview) -> None:
        """Keep what is sent in pieces, until somebody takes it or the step is over."""
        with self._lock:
            if self._aborted is None:
                self._aside[request_id] = content

    def take_aside(self, request_id: int) -> memoryview | None:
        """What was set aside for a request; None if there is nothing."""
        with self._lock:
            return self._aside.pop(request_id, None)

    @property
    def is_taken(self) -> bool:
        """Whether all that was sent here has been taken, and nobody waits for anything."""
        with self._lock:
            waits = self._receivers or self._pulls or self.askers
            return not (waits or self._values or self._aside)

    @property
    def aborted(self) -> OpError | None:
        """Why the step ended early; None as long as it did not."""
        return self._aborted

    def leave(self) -> None:
        """The step that made it is over."""
        self.on_leave()

    def start_abort(self, reason: OpError) -> None:
        """End this task's part of the step, and ask no other task any more."""
        super().start_abort(reason)
        with self._lock:
            pulls = list(self._pulls.values())
            self._aside.clear()
        for give_up in pulls:
            give_up()


def _nothing() -> None:
    """Gives up what has not begun."""


class StepTable:
    """The steps that a task knows, by number."""

    def __init__(self, new: Callable[[int], TaskRendezvous], max_steps: int) -> None:
        """``new`` makes the meeting place of a step; so many are known at a time."""
        self._new: Final = new
        self._max_steps: Final = max_steps
        #: Guards what follows.  Taken before a rendezvous' own.
        self._lock = Lock()
        self._steps: dict[int, TaskRendezvous] = {}
        #: Numbers of steps that are over, oldest first.
        self._over: OrderedDict[int, None] = OrderedDict()

    def find_or_make(self, step_id: int) -> TaskRendezvous:
        """The meeting place of a step that is run here; whoever comes first makes it.

        Raises:
            AbortedError: the step is over.
            ResourceExhaustedError: there are too many steps.

        """
        with self._lock:
            found = self._found_or_made(step_id)
            found.is_begun = True
            return found

    @contextmanager
    def asked(self, step_id: int) -> Iterator[TaskRendezvous]:
        """The same for another task, which asks for a value of a step that may yet begin.

        A step that nobody has begun is forgotten when nobody asks for it any more.
        """
        with self._lock:
            found = self._found_or_made(step_id)
            found.askers += 1
        try:
            yield found
        finally:
            with self._lock:
                found.askers -= 1
                is_unused = not found.askers and not found.is_begun
                if is_unused and self._steps.get(step_id) is found:
                    del self._steps[step_id]

    def _found_or_made(self, step_id: int) -> TaskRendezvous:
        if step_id in self._over:
            raise AbortedError(f"Cleanup {step_id}", derived=True)
        found = self._steps.get(step_id)
        if found is None:
            advice = "look which master does not say that its steps are over"
            check_room("steps", len(self._steps), self._max_steps, advice)
            found = self._steps[step_id] = self._new(step_id)
        return found

    def remove_of(self, session: str) -> None:
        """All steps of a session are over."""
        with self._lock:
            over = [step.step_id for step in self._steps.values() if step.session == session]
        for step_id in over:
            self.remove(step_id)

    def remove_if_known(self, step_id: int) -> None:
        """The step is over, if anything of it was here."""
        if step_id in self._steps:
            self.remove(step_id)

    def remove(self, step_id: int) -> None:
        """The step is over: whoever still waits is told, and whoever still comes."""
        with self._lock:
            found = self._steps.pop(step_id, None)
            self._over[step_id] = None
            while len(self._over) > _MAX_OVER:
                self._over.popitem(last=False)
        if found is not None:
            found.start_abort(AbortedError(f"Cleanup {step_id}", derived=True))

    def abort_all(self, reason: OpError) -> None:
        """End all steps."""
        with self._lock:
            steps = list(self._steps.values())
            self._steps.clear()
        for step in steps:
            step.start_abort(reason)

    def __len__(self) -> int:
        return len(self._steps)
