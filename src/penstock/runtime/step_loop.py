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
from threading import TIMEOUT_MAX, Condition, Lock, Timer


class StepLoop:
    """A queue of closures that one thread works off."""

    __slots__ = ("_closures", "_is_stopped", "_wake")

    def __init__(self) -> None:
        #: Guards what follows.  Innermost: closures run outside of it.
        self._wake = Condition(Lock())
        self._closures: deque[Callable[[], None]] = deque()
        #: Set once; closures that come later are not run.
        self._is_stopped = False

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

    def run(self, *, poll: Callable[[], None] | None = None, period: float = 0.05) -> None:
        """Work until stopped; ``poll`` is called every ``period`` seconds of waiting."""
        while True:
            with self._wake:
                while not self._closures and not self._is_stopped:
                    if not self._wake.wait(None if poll is None else period):
                        break
                if not self._closures:
                    if self._is_stopped:
                        return
                    closure = poll
                else:
                    closure = self._closures.popleft()
            if closure is not None:
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
        while True:
            with self._lock:
                if not self._closures:
                    self._is_running = False
                    return
                closure = self._closures.popleft()
            closure()


def start_timer(timeout_in_ms: int, expire: Callable[[], None]) -> Timer | None:
    """Have ``expire`` called after a time, unless the timer is cancelled before; 0 is never."""
    if timeout_in_ms <= 0:
        return None
    timer = Timer(min(timeout_in_ms / 1000, TIMEOUT_MAX), expire)
    timer.daemon = True
    timer.start()
    return timer
