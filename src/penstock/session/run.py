"""``Run``: a run under way on a thread of its own; ``Call``: one on whichever thread.

In:   what works it off, and whatever that is at: a preparation first, then a step.
Out:  the result or the error, to whoever waits for it; a way to end it early.
Not:  knows neither graph nor session.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from penstock.errors import CancelledError, FailedPreconditionError, OpError


class Endable(Protocol):
    """What can be ended from any thread: a preparation, a step."""

    def cancel(self, reason: OpError | None = None) -> None:
        """End it early, for that reason."""

    def dump_state(self) -> str:
        """What it is doing, or waits for."""


class Call:
    """A run under way, and a way to end it from another thread."""

    def __init__(self) -> None:
        #: What goes on; None before anything does.
        self._current: Endable | None = None
        #: Why the run is to end.  Set before ``_current`` is looked at, which is set before
        #: this is: so one of two threads sees both.
        self._reason: OpError | None = None

    def turn_to(self, current: Endable) -> None:
        """Note what goes on from now on, and end it if the run was cancelled before."""
        self._current = current
        if self._reason is not None:
            current.cancel(self._reason)

    def cancel(self, reason: OpError | None = None) -> None:
        """End the run early: it raises ``reason``, or CancelledError, unless it is done already."""
        self._reason = reason or CancelledError("Run call was cancelled")
        if self._current is not None:
            self._current.cancel(self._reason)

    def dump_state(self) -> str:
        """What every unfinished node waits for; or how far the graph is prepared."""
        return self._current.dump_state() if self._current is not None else ""


class Run(Call):
    """A run under way on a thread of its own."""

    def __init__(self, work: Callable[[Run], Any]) -> None:
        """Have ``work`` done; it tells by ``turn_to`` what it is at."""
        super().__init__()
        self._do = work
        self._is_over = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="penstock-run", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._result = self._do(self)
        except BaseException as error:  # noqa: BLE001  (raised again by ``result``)
            self._error = error
        self._is_over = True

    def __repr__(self) -> str:
        if not self.is_done():
            return "<Run: under way>"
        failed = self._error is not None
        return f"<Run: failed with {type(self._error).__name__}>" if failed else "<Run: done>"

    def is_done(self) -> bool:
        """Whether ``result`` returns at once."""
        return not self._thread.is_alive()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the values; raises the run's error, or TimeoutError after so many seconds."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the run is not done after {timeout} seconds")
        if not self._is_over:
            raise FailedPreconditionError(
                "The run goes on in the process of which this one is a child, which has no "
                "thread for it",
                next_step="open a session of its own in the child, and run there",
            )
        if self._error is not None:
            raise self._error
        return self._result
