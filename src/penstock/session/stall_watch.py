"""``watch_stalls``: what steps wait for, said when they have not moved for a while, or when asked.

In:   the sessions of this process; a number of seconds; a signal.
Out:  a report for each step in which nothing has moved for so long, once for each such time.
Not:  ends nothing, and asks the steps nothing that they would not tell a deadline.

Whether a step moves is seen from outside: what it says of itself is compared with what it said
before.  A kernel that computes for so long is told of as well: nobody can know whether it hangs.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic
from types import FrameType
from typing import Any, Final

from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.session.registry import all_under_way
from penstock.session.run import Endable

_log: Final = logging.getLogger("penstock.stalls")
#: So often steps are looked at while they need not move, and at most so many seconds apart.
_LOOKS, _MAX_PAUSE = 4, 1.0


def watch_stalls(
    seconds: float = 60.0,
    report: Callable[[str], object] | None = None,
    *,
    signal_number: int | None = None,
) -> StallWatch:
    """Say what each step of this process waits for when nothing in it has moved for a while.

    Args:
        seconds: for how long.
        report: is called with the text, on a thread of its own; None has it logged as a warning of
            ``penstock.stalls``.
        signal_number: a signal, such as ``signal.SIGUSR1``, at which all steps are told of at once;
            then this must be called by the main thread.

    Returns:
        What watches, until its ``with`` block or ``close`` ends it.

    Raises:
        InvalidArgumentError: the time is not above zero.
        ValueError: a signal is given, and this is not the main thread.

    """
    if not seconds > 0:
        raise InvalidArgumentError(f"A stall of {seconds} seconds is none")
    return StallWatch(seconds, report or _log.warning, signal_number)


@dataclass(slots=True)
class _StepSeen:
    """A step as it was when it last moved."""

    state: str
    since: float
    is_told: bool = False


class StallWatch:
    """Watches the steps of this process; made by ``watch_stalls``."""

    def __init__(
        self, seconds: float, report: Callable[[str], object], signal_number: int | None
    ) -> None:
        self._seconds: Final = seconds
        self._report: Final = report
        self._signal: Final = signal_number
        self._is_closed = False
        #: Wakes the thread: somebody has asked, or it is over.
        self._wake: Final = Event()
        #: Whether somebody has asked.  Set before ``_wake`` is.
        self._is_asked = False
        #: Known to the thread alone.
        self._seen: dict[Endable, _StepSeen] = {}
        self._handler_before: Any = None
        if signal_number is not None:
            self._handler_before = signal.signal(signal_number, self._asked)
        self._thread: Final = Thread(target=self._watch, name="penstock-stalls", daemon=True)
        self._thread.start()

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        # What the interrupted thread holds, this one may need: so the other one answers.
        self._is_asked = True
        self._wake.set()

    def close(self) -> None:
        """Watch no longer.  May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._wake.set()
        self._thread.join()
        if self._signal is not None:
            signal.signal(self._signal, self._handler_before)

    def __enter__(self) -> StallWatch:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    # -- on its own thread -----------------------------------------------------------------

    def _watch(self) -> None:
        pause = min(self._seconds / _LOOKS, _MAX_PAUSE)
        while not self._is_closed:
            self._wake.wait(pause)
            self._wake.clear()
            self._look()
            if self._is_asked:
                self._is_asked = False
                self._tell_all()

    def _look(self) -> None:
        """Compare all steps with what they were, and tell of those that have not moved."""
        now, before = monotonic(), self._seen
        self._seen = {}
        for step in all_under_way():
            state = step.dump_state()
            seen = before.get(step)
            if seen is None or seen.state != state:
                seen = _StepSeen(state, now)
            self._seen[step] = seen
            if not seen.is_told and now - seen.since >= self._seconds:
                seen.is_told = True
                self._report(f"A step has not moved for {now - seen.since:.3g} s:\n{state}")

    def _tell_all(self) -> None:
        states = [seen.state for seen in self._seen.values()]
        self._report("\n".join([f"{len(states)} steps under way", *states]))
