"""What goes on in one session, as long as that is open.

In:   steps and preparations as they begin and end, and partial runs.
Out:  all of it is told when the session closes; nothing begins after that.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from penstock.errors import CancelledError, FailedPreconditionError, OpError
from penstock.runtime.partial_run import PartialRun
from penstock.runtime.step import Step
from penstock.session.partial_runs import PartialRuns
from penstock.session.run import Endable


class UnderWay:
    """Steps, preparations and partial runs that have not ended."""

    def __init__(self) -> None:
        #: Guards what follows.  Not held while a request is prepared or run.
        self._lock = Lock()
        self.steps: set[Endable] = set()
        self.partial_runs = PartialRuns()
        self.is_closed = False
        #: Whether something went on when it closed, which may go on for a while.
        self.was_busy = False
        #: Whether the session is that of a process of which this one is the child, where threads
        #: were at work in it.
        self._is_lost = False

    def add_step(self, step: Endable) -> None:
        """Note what begins, so that it can be ended; raises CancelledError if all has been."""
        with self._lock:
            if self.is_closed or self._is_lost:
                self.check_open()
            self.steps.add(step)

    def remove_step(self, step: Endable) -> None:
        """Forget what has ended."""
        with self._lock:
            self.steps.discard(step)

    @contextmanager
    def still(self, what: str) -> Iterator[None]:
        """Let nothing go on meanwhile: what would begin waits; see ``Session.snapshot``.

        Raises:
            FailedPreconditionError: something goes on already.

        """
        with self._lock:
            self.check_open()
            count = len(self.steps) + len(self.partial_runs)
            if count:
                raise FailedPreconditionError(
                    f"The session cannot be {what} while {count} of its steps are under way",
                    next_step="wait for them, or cancel them",
                )
            yield

    def running(self) -> list[Endable]:
        """What goes on at this moment."""
        with self._lock:
            return list(self.steps)

    def add_partial_run(self, run: PartialRun) -> str:
        """Note a run that is to be started; returns its handle."""
        with self._lock:
            self.check_open()
            return self.partial_runs.add(run)

    def partial_run(self, handle: str) -> PartialRun:
        """The run with a handle; raises CancelledError if all has been ended, and it with all."""
        with self._lock:
            self.check_open()
            return self.partial_runs.get(handle)

    def check_open(self) -> None:
        """Raise OpError unless something may begin."""
        if self._is_lost:
            raise FailedPreconditionError(
                "The session was at work in another thread, or in this one, when this process "
                "was forked",
                next_step="open a session of its own in the child",
            )
        if self.is_closed:
            raise CancelledError("Session has been closed.")

    def close(self, reason: OpError) -> bool:
        """Let nothing begin any more, and end what goes on; whether that had yet to be done."""
        with self._lock:
            if self.is_closed:
                return False
            self.is_closed = True
            steps, runs = list(self.steps), self.partial_runs.take_all()
            self.was_busy = bool(steps or runs)
        for step in steps:
            step.cancel(reason)
        for run in runs:
            run.cancel(CancelledError("PRun cancellation"))
        return True

    def forget_threads(self, *, is_usable: bool) -> bool:
        """Start anew in the child of a fork; whether something may begin there.

        Nothing may if something went on, in this thread or in one that only the parent has: what
        that has begun nobody would end.
        """
        self._lock = Lock()
        self._is_lost = self.is_closed = bool(self.steps or self.partial_runs) or not is_usable
        for step in self.steps:
            if isinstance(step, Step):
                step.forget_threads()
        return not self._is_lost
