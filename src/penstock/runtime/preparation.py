"""The preparation of a request, which can be ended like a step.

In:   a reason, from any thread.
Out:  whoever prepares meets it at the next checkpoint; what was made so far is dropped.
Not:  prepares nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.errors import CancelledError, OpError
from penstock.exceptions import from_exception
from penstock.runtime.ctrl_c import NotingCtrlC
from penstock.runtime.deadline import Alarm, milliseconds_to, timed_out
from penstock.state.checkpoints import heeding
from penstock.state.interrupt import Interrupt

_Result = TypeVar("_Result")


class Preparation:
    """One preparation, for one call of ``run``."""

    def __init__(self, *, may_be_left: bool = False) -> None:
        """Begin one; whoever waits for it need not wait for a kernel if it ``may_be_left``."""
        self._interrupt = Interrupt()
        self._interrupt.may_be_left = may_be_left

    def run(self, work: Callable[[], _Result], deadline: float) -> _Result:
        """Prepare something, until a ``monotonic`` time at the latest; returns what is made.

        Raises:
            OpError: the reason if it is ended, and whatever the work raises.
            KeyboardInterrupt: Ctrl-C was pressed.

        """
        interrupt = self._interrupt
        try:
            with Alarm(milliseconds_to(deadline), self._expire), NotingCtrlC(interrupt):
                made = heeding(interrupt, work)
        except OpError:
            if interrupt.escaping is not None:
                raise interrupt.escaping from None
            raise
        except MemoryError as cause:
            raise from_exception(cause).with_details([self.dump_state()]) from cause
        if interrupt.escaping is not None:
            raise interrupt.escaping
        return made

    def cancel(self, reason: OpError | None = None) -> None:
        """End the preparation; whoever prepares raises ``reason``."""
        reason = reason or CancelledError("Run call was cancelled")
        self._interrupt.end(reason.with_details([self.dump_state()]))

    def dump_state(self) -> str:
        """What it is doing."""
        return f"  preparing  {self._interrupt.doing or 'nothing yet'}"

    def _expire(self) -> None:
        self.cancel(timed_out())
