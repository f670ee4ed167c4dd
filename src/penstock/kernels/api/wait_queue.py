"""Operations that wait until the state of something lets them go on.

In:   attempts: functions that look at the state, and change it or find that they cannot yet.
Out:  calls of ``done``, at once or when the time has come, from whatever thread.
Not:  blocks nobody; knows nothing about the state.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeAlias

from penstock.errors import CancelledError
from penstock.kernels.api.context import Done
from penstock.state.cancellation import CancellationManager


class Awaited:
    """A resource that steps wait for: it has a line, and can tell its state."""

    line: Line

    def end_waits(self) -> None:
        """Cancel whoever waits: the resource is dropped."""
        self.line.end_waits()


class _NotYet:
    def __repr__(self) -> str:
        return "NOT_YET"


#: What an attempt returns that changed nothing and must be made again later.
NOT_YET: Final = _NotYet()
#: Returns the outputs or ``NOT_YET``, or raises; runs under the line's lock and calls nobody.
Attempt: TypeAlias = Callable[[], object]


class _Request:
    __slots__ = ("attempt", "done", "outcome", "withdraw")

    def __init__(self, attempt: Attempt, done: Done) -> None:
        self.attempt: Final = attempt
        self.done: Final = done
        #: What ``done`` gets; ``NOT_YET`` as long as the request waits.
        self.outcome: object = NOT_YET
        #: Stops listening to cancellation; None as long as nothing listens.
        self.withdraw: Callable[[], Any] | None = None


class Line:
    """Requests on one state, served in turn; those that cannot go on let others pass."""

    def __init__(self, cancelled: str) -> None:
        """``cancelled`` is what a request is told that is cancelled while it waits."""
        self._cancelled: Final = cancelled
        #: Guards what follows, and the state that attempts look at.
        self._lock = Lock()
        #: Requests that wait, oldest first.
        self._waiting: list[_Request] = []
        #: Whether nobody can wait here any more.  Set once.
        self._has_ended = False

    def submit(self, attempt: Attempt, cancellation: CancellationManager, done: Done) -> None:
        """Make the attempt, now or when others have changed the state; then call ``done``."""
        request = _Request(attempt, done)
        with self._lock:
            self._waiting.append(request)
            settled = self._serve()
            if self._has_ended:
                settled += self._turn_away()
        _report(settled)
        if request.outcome is not NOT_YET:
            return
        token = cancellation.get_cancellation_token()
        request.withdraw = lambda: cancellation.try_deregister_callback(token)
        if not cancellation.register_callback(token, lambda: self._cancel(request)):
            self._cancel(request)
        elif _has_ended(request):
            request.withdraw()

    def run(self, attempt: Attempt) -> Any:
        """Make an attempt that never waits, and return what it returns."""
        with self._lock:
            result = attempt()
            settled = self._serve()
        _report(settled)
        return result

    def end_waits(self) -> None:
        """Cancel whoever waits, now and from now on: the state is given up."""
        with self._lock:
            self._has_ended = True
            settled = self._turn_away()
        _report(settled)

    def _turn_away(self) -> list[_Request]:
        """Cancel everything that waits."""
        turned_away, self._waiting = self._waiting, []
        for request in turned_away:
            request.outcome = CancelledError(self._cancelled)
        return turned_away

    def _serve(self) -> list[_Request]:
        """Attempt everything that waits, until nothing more changes."""
        settled: list[_Request] = []
        goes_on = True
        while goes_on:
            goes_on = False
            for request in [*self._waiting]:
                try:
                    request.outcome = request.attempt()
                except BaseException as error:  # noqa: BLE001  (handed to done)
                    request.outcome = error
                if request.outcome is not NOT_YET:
                    self._waiting.remove(request)
                    settled.append(request)
                    goes_on = True
        return settled

    def _cancel(self, request: _Request) -> None:
        with self._lock:
            if request.outcome is not NOT_YET:
                return
            self._waiting.remove(request)
            request.outcome = CancelledError(self._cancelled)
        request.done(request.outcome)


def _report(settled: list[_Request]) -> None:
    for request in settled:
        if request.withdraw is not None:
            request.withdraw()
        request.done(request.outcome)


def _has_ended(request: _Request) -> bool:
    """Ask again, after another thread may have settled the request."""
    return request.outcome is not NOT_YET
