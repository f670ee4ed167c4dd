"""Why a step ends before its work is done, and what is to blame when something fails.

In:   the reason, from whoever ends the step; failures, from whatever goes on in it.
Out:  the reason, to whoever asks whether to go on; for each failure, what is to be reported.
Not:  wakes nobody: what waits is told by the step's cancellation manager and rendezvous.

A step that is ended fails in many ways: its variables are gone, its queues closed, its pool is
shut down.  None of that is why it ended.  What counts is what came first, and that is decided
here, for all tiers, when it comes up and not when somebody gets round to looking at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from penstock.errors import CancelledError, OpError

#: The reason, and whichever came first: the reason or a failure.
_REASON: Final = "the reason"
_FIRST: Final = "the first"
_ACTIVITIES: Final = "activities"


class Activity(Protocol):
    """Something that goes on in a step: the nodes of one device, or of a function's body."""

    def dump_state(self) -> str:
        """What every unfinished node waits for, as text; from any thread, best effort."""

    def forget_threads(self) -> None:
        """Let the thread that forked go on in the child, where no other one holds a lock."""

    def leave(self, seconds: float) -> Sequence[str]:
        """Wait no longer for kernels that have not answered so long after they were told to end.

        Returns:
            What is left behind, for people; whatever it gives later is dropped.  Nothing if
            something goes on that must be waited for.

        """


class Interrupt:
    """Ends all that goes on in one step, once its reason is set."""

    # How a step was ended, and what goes on in it, is in a dictionary that is made when somebody
    # asks for it: the shortest steps never do.
    __slots__ = (
        "__dict__", "ctrl_c_raises", "doing", "escaping", "loops_end", "may_be_left", "reason",
    )  # fmt: skip

    def __init__(self) -> None:
        #: Whether loops must end: with ``reason``, or since the step has failed elsewhere.  Set
        #: once, by any thread; compiled code asks it in every iteration of a loop.
        self.loops_end = False
        #: Why the step must end; None as long as it may go on.  Set once, by any thread.
        self.reason: OpError | None = None
        #: What the main thread met that is no error, such as SystemExit: ``run`` raises it when
        #: everything has ended.  None if there is no such thing.
        self.escaping: BaseException | None = None
        #: Whether who called need not wait for a kernel that runs on another thread and does
        #: nothing but compute.
        self.may_be_left = False
        #: Whether Ctrl-C may come between any two lines just now, as nothing would be left half
        #: done.  Changed and read on the main thread only.
        self.ctrl_c_raises = False
        #: What is being prepared, for people; empty if nothing is.
        self.doing = ""

    @property
    def activities(self) -> dict[int, Activity]:
        """What goes on in the step, by identity.  Changed and read by any thread."""
        going_on: dict[int, Activity] = vars(self).setdefault(_ACTIVITIES, {})
        return going_on

    def end(self, reason: OpError) -> None:
        """End the step; the first reason counts.  Signal handlers may call it."""
        # Set once, by ``setdefault``: that is atomic without a lock, which a signal handler must
        # not take.
        given: OpError = vars(self).setdefault(_REASON, reason)
        vars(self).setdefault(_FIRST, given)
        self.reason = given
        self.loops_end = True

    def escape(self, cause: BaseException, reason: OpError) -> None:
        """End the step, and have ``run`` raise ``cause``.  Signal handlers may call it."""
        self.escaping = cause
        self.end(reason)

    def blame(self, failure: BaseException) -> BaseException:
        """What to report when something has failed: that, or the reason if it came before."""
        first: BaseException = vars(self).setdefault(_FIRST, failure)
        return first if first is vars(self).get(_REASON) else failure

    def verdict(self) -> OpError:
        """The error of work that is dropped: the reason, derived if a failure came before it."""
        reason = self.reason
        assert reason is not None
        came_first: bool = vars(self).get(_FIRST, reason) is reason
        if came_first:
            return reason
        dropped = reason.copy()
        dropped.derived = True
        return dropped

    def check(self) -> None:
        """Raise the reason, if there is one."""
        if self.reason is not None:
            raise self.reason


#: The interrupt of what nobody ever ends.
NEVER: Final = Interrupt()


class Interruptible(Protocol):
    """What long work may ask of its step."""

    @property
    def interrupt(self) -> Interrupt:
        """Whether, and why, the step must end."""


def end_loop(interrupt: Interrupt) -> None:
    """Leave a loop whose step must end; raises why."""
    reason: OpError | None = interrupt.reason
    if reason is None:
        reason = CancelledError("Loop execution was cancelled.", derived=True)
    raise reason
