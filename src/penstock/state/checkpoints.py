"""Places in long work where it is asked whether somebody still wants it.

In:   some work, and the ``Interrupt`` of the run that it is done for.
Out:  ``begin`` and ``checkpoint`` in that work raise the reason, once there is one.
Not:  ends nothing that does not ask.

What prepares a graph has no end of its own: functions may call each other without measure,
constants may take minutes to fold, and another thread may hold a lock for as long.  The
interrupt is a context variable and no argument: all stages below ``session`` and ``runtime``
prepare, and few of them take long.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Final, Protocol, TypeVar

from penstock.state.interrupt import Interrupt

_Result = TypeVar("_Result")

_heeded: Final[ContextVar[Interrupt | None]] = ContextVar("heeded", default=None)
#: Seconds between two looks at whether to wait on for a lock.
_PERIOD: Final = 0.05


class Holdable(Protocol):
    """A lock of any kind."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:  # noqa: FBT001
        """Take the lock, unless that takes too long."""

    def release(self) -> None:
        """Give the lock back."""


def heeding(interrupt: Interrupt, work: Callable[[], _Result]) -> _Result:
    """Do some work that asks ``interrupt``; returns what it returns."""

    def do() -> _Result:
        _heeded.set(interrupt)
        return work()

    # Not set and reset: Ctrl-C may come between any two lines, and would leave it set.
    return copy_context().run(do)


def heeded() -> Interrupt | None:
    """What is asked now; None if nobody ends what is going on."""
    return _heeded.get()


def begin(what: str) -> None:
    """Raise the reason, if there is one; otherwise the work of that name begins."""
    interrupt = _heeded.get()
    if interrupt is not None:
        interrupt.check()
        interrupt.doing = what


def checkpoint() -> None:
    """Raise the reason, if there is one; called for each of many nodes."""
    interrupt = _heeded.get()
    if interrupt is not None and interrupt.reason is not None:
        raise interrupt.reason


class holding:  # noqa: N801  (it reads as a verb, like the functions of contextlib)
    """Hold a lock in a ``with`` block; or raise the reason, if that comes while another has it.

    Only where Ctrl-C is noted: between any two lines it would leave the lock locked.
    """

    __slots__ = ("_lock", "_what")

    def __init__(self, lock: Holdable, what: str) -> None:
        self._lock = lock
        self._what = what

    def __enter__(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        begin(f"waiting for {self._what}")
        while not self._lock.acquire(timeout=_PERIOD):
            checkpoint()

    def __exit__(self, *_raised: object) -> None:
        self._lock.release()
