"""The calling thread of a step, as a place where closures run.

In:   closures, from any thread.
Out:  they run on the thread that called ``run``, until ``stop``.
Not:  knows nothing of graphs.

A step that one thread can do never leaves its caller.  When the caller has to wait, it
sleeps here, and wakes for the next closure, for a signal, or for the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Lock
from typing import Final

#: Seconds between two looks at what does not come as a closure: Ctrl-C, kernels that are silent.
POLL_SECONDS: Final = 0.05


def _nothing() -> None:
    """What is done where nobody polls."""


class StepLoop:
    """A queue of closures that one thread works off."""

    __slots__ = ("_closures", "_is_polling", "_is_stopped", "_wake")

    def __init__(self) -> None:
        #: Guards what follows.  Innermost: closures run outside of it.
        self._wake = Condition(Lock())
        self._closures: deque[Callable[[], None]] = deque()
        #: Set once; closures that come later are not run.
        self._is_stopped = False
        #: Whether to look up now and then though nothing happens.  Set once.
        self._is_polling = False

    def schedule(self, closure: Callable[[], None]) -> None:
        """Have ``closure`` run on the loop's thread."""
        with self._wake:
            self._closures.append(closure)
            self._wake.notify()

    def stop(self) -> None:
        """Make ``run`` return once it has nothing in its hands."""
        with self._wake:
            self._is_stopped = True
            self._wake.notify()

    def forget_threads(self) -> None:
        """Look up now and then: in the child of a fork nobody schedules anything."""
        self._wake = Condition(Lock())
        self._is_polling = True

    def start_polling(self) -> None:
        """Have ``run`` look up now and then from now on, if it does not yet."""
        with self._wake:
            self._is_polling = True
            self._wake.notify()

    def run(
        self, *, poll: Callable[[], None] = _nothing, period: float | None = POLL_SECONDS
    ) -> None:
        """Work until stopped; ``poll`` is called every ``period`` seconds of waiting.

        Without a period it is called only after ``start_polling``.
        """
        while True:
            with self._wake:
                while not self._closures and not self._is_stopped:
                    if period is None and self._is_polling:
                        period = POLL_SECONDS
                    if not self._wake.wait(period):
                        break
                if not self._closures:
                    if self._is_stopped:
                        return
                    closure = poll
                else:
                    closure = self._closures.popleft()
            closure()


class Trampoline:
    """Runs closures where they are scheduled, but never one inside another."""

    __slots__ = ("_closures", "_is_running", "_lock")

    def __init__(self) -> None:
        #: Guards what follows.  Innermost: closures run outside of it.
        self._lock = Lock()
        self._closures: deque[Callable[[], None]] = deque()
        #: Whether some thread is working the queue off.
        self._is_running = False

    def schedule(self, closure: Callable[[], None]) -> None:
        """Run ``closure`` now, or after the one that is running."""
        with self._lock:
            self._closures.append(closure)
            if self._is_running:
                return
            self._is_running = True
        raised: BaseException | None = None
        while True:
            with self._lock:
                if not self._closures:
                    self._is_running = False
                    break
                closure = self._closures.popleft()
            try:
                closure()
            except BaseException as error:  # noqa: BLE001  (raised below: others wait for the rest)
                raised = raised or error
        if raised is not None:
            raise raised
