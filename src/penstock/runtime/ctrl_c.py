"""Ctrl-C while executors run: a note instead of an exception between any two lines.

In:   the ``Interrupt`` of a step or a preparation.
Out:  it is ended when Ctrl-C is pressed; Python's own handler is back afterwards.
Not:  wakes nobody: whoever waits on the main thread looks up now and then.

Python's own handler raises wherever the main thread happens to be, also inside a queue's
critical section.  This one only leaves a note, so that state stays whole.  A handler that the
program has set itself is left alone.
"""

from __future__ import annotations

import signal
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Final

from penstock.errors import CancelledError
from penstock.state.interrupt import Interrupt

#: What the module is made of: the same functions, but for numbers that it makes enums of, which
#: takes 10 µs of each step for a handler, which is no number.
_signals: Final[Any] = getattr(signal, "_signal", signal)


class NotingCtrlC:
    """A ``with`` block in which Ctrl-C ends a step; does nothing off the main thread."""

    __slots__ = ("_interrupt", "_previous")

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        #: The handler to put back; None if it was left in place.
        self._previous: Any = None

    def __enter__(self) -> None:
        if current_thread() is main_thread():
            handler = _signals.getsignal(signal.SIGINT)
            if handler is signal.default_int_handler:
                self._previous = handler
                _signals.signal(signal.SIGINT, self._note)

    def __exit__(self, *_raised: object) -> None:
        if self._previous is not None:
            _signals.signal(signal.SIGINT, self._previous)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self._interrupt.ctrl_c_raises:
            raise KeyboardInterrupt
        reason = CancelledError("Run call was cancelled by Ctrl-C")
        self._interrupt.escape(KeyboardInterrupt(), reason)
