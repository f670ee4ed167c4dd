"""Operations that wait until the state of something lets them go on.

In:   attempts: functions that look at the state, and change it or find that they cannot yet.
Out:  calls of ``done``, at once or when the time has come, from whatever thread.
Not:  blocks nobody; knows nothing about the state.  How one waits is said in ``state/waits.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from penstock.errors import CancelledError
from penstock.kernels.api.context import Done
from penstock.state.cancellation import CancellationManager
from penstock.state.waits import Monitor, Wait, tell_all


class Awaited:
    """A resource that steps wait for: it has a queue of them, and can tell its state."""

    waits: WaitQueue

    def end_waits(self) -> None:
        """Cancel whoever waits: the resource is dropped."""
        self.waits.end()


class _NotYet:
    def __repr__(self) -> str:
        return "NOT_YET"


#: What an attempt returns that changed nothing and must be made again later.
NOT_YET: Final = _NotYet()
#: Returns the outputs or ``NOT_YET``, or raises; runs under the queue's lock and calls nobody.
Attempt: TypeAlias = Callable[[], object]


class WaitQueue(Monitor[Wait]):
    """Waits for one state, served in turn; those that cannot go on let others pass."""

    def __init__(self, cancelled: str) -> None:
        """``cancelled`` is what somebody is told who is cancelled while he waits."""
        super().__init__()
        self._cancelled: Final = cancelled
        # The lock guards what follows, and the state that attempts look at.
        #: Who waits, oldest first, and wants an attempt.  None of them is settled.
        self._waiting: list[Wait] = []
        #: Whether nobody can wait here any more.  Set once.
        self._has_ended = False

    def submit(self, attempt: Attempt, cancellation: CancellationManager, done: Done) -> None:
        """Make the attempt, now or when others have changed the state; then call ``done``."""
        self._submit(Wait(done, attempt), cancellation)

    def run(self, attempt: Attempt) -> Any:
        """Make an attempt that never waits, and return what it returns."""
        with self._lock:
            result = attempt()
            settled = self._serve()
        tell_all(settled)
        return result

    def end(self) -> None:
        """Cancel whoever waits, now and from now on: the state is given up."""
        self._change(self._end)

    def _add(self, wait: Wait) -> list[Wait]:
        self._waiting.append(wait)
        settled = self._serve()
        return settled + self._turn_away() if self._has_ended else settled

    def _end(self) -> list[Wait]:
        self._has_ended = True
        return self._turn_away()

    def _cancel(self, wait: Wait) -> list[Wait]:
        if wait.is_settled:
            return []
        self._waiting.remove(wait)
        wait.settle(CancelledError(self._cancelled))
        return [wait]

    def _turn_away(self) -> list[Wait]:
        """Cancel everything that waits."""
        return [settled for wait in [*self._waiting] for settled in self._cancel(wait)]

    def _serve(self) -> list[Wait]:
        """Attempt everything that waits, until nothing more changes."""
        served: list[Wait] = []
        goes_on = True
        while goes_on:
            goes_on = False
            for wait in [*self._waiting]:
                try:
                    outcome = wait.wanted()
                except BaseException as error:  # noqa: BLE001  (handed to done)
                    outcome = error
                if outcome is not NOT_YET:
                    self._waiting.remove(wait)
                    wait.settle(outcome)
                    served.append(wait)
                    goes_on = True
        return served
