"""How a step is ended before its work is done, whoever ends it.

In:   a reason, from any thread.
Out:  everything that goes on in the step has been told; who does not answer is left behind.
Not:  waits for nothing itself; whoever waits asks now and then whether somebody is to be left.

What is left behind is named in the step's error.  It may be a kernel that nobody can tell to
stop, but that does nothing but compute; or one that was told and does not answer.  Kernels
with effects are always waited for: a variable must not change when ``run`` has returned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from time import monotonic
from typing import Final

from penstock.errors import OpError
from penstock.printable import printable
from penstock.state.cancellation import CancellationManager
from penstock.state.interrupt import Interrupt
from penstock.state.rendezvous import Rendezvous

#: What more activities than this do helps nobody.
_MAX_REPORTED: Final = 10


class Ending:
    """The end of one step, as long as it has not come by itself."""

    def __init__(self, rendezvous: Rendezvous | None) -> None:
        self.rendezvous: Final = rendezvous
        self.interrupt: Final = Interrupt()
        self.cancellation: Final = CancellationManager()
        #: When everything was told, by ``monotonic``; None before.  Set by any thread; a
        #: second one that sets it does no harm.
        self._told_at: float | None = None
        #: What was left behind, and what it does.  Only grows.
        self._left: list[str] = []

    def end(self, reason: OpError) -> None:
        """End the step, from any thread; the first reason counts, and says what went on."""
        self.interrupt.end(with_details(reason, self.report().split("\n")))
        self.tell()

    def tell(self) -> None:
        """Wake whatever waits, when the interrupt has its reason."""
        reason = self.interrupt.reason
        assert reason is not None
        if self._told_at is None:
            self._told_at = monotonic()
        # Those who are told may fail in turn; the others must be told all the same.
        if self.rendezvous is not None:
            with contextlib.suppress(Exception):
                self.rendezvous.start_abort(reason)
        with contextlib.suppress(Exception):
            self.cancellation.start_cancel()

    def report(self) -> str:
        """What every unfinished node waits for."""
        activities = list(self.interrupt.activities.values())
        parts = [activity.dump_state() for activity in activities[:_MAX_REPORTED]]
        if len(activities) > _MAX_REPORTED:
            parts.append(f"… and {len(activities) - _MAX_REPORTED} more functions")
        return "\n".join(parts)

    def leave_silent(self) -> None:
        """Go without whatever was told, and has not answered when its time is up."""
        if self._told_at is None:
            return
        seconds = monotonic() - self._told_at
        # Inner functions come last: when they are left, the nodes that called them are done.
        for activity in reversed(list(self.interrupt.activities.values())):
            self._left += activity.leave(seconds)

    def let_escape(self) -> None:
        """Raise what the main thread met, if that was no error."""
        escaping = self.interrupt.escaping
        if escaping is not None:
            for line in self._left:
                escaping.add_note(printable(left_behind(line)))
            raise escaping

    def told(self, error: OpError) -> OpError:
        """The step's error, which also says what was left behind."""
        return with_details(error, map(left_behind, self._left)) if self._left else error


def left_behind(what: str) -> str:
    """A line that says what becomes of something for which nobody waits any more."""
    return f"  left     {what}: whatever it gives will be dropped"


def with_details(error: OpError, lines: Iterable[str]) -> OpError:
    """The same error, which says more."""
    made = error.copy()
    made.details = (*error.details, *lines)
    made.__cause__ = error.__cause__
    return made
