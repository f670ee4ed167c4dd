"""When a step, or a preparation, must be done.

In:   a time.
Out:  a function is called when it has come; and the error that says so.
Not:  ends nothing itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import TIMEOUT_MAX, Timer
from time import monotonic

from penstock.advice import MoreTime
from penstock.errors import DeadlineExceededError


class Alarm:
    """A ``with`` block after whose time ``expire`` is called, on another thread; 0 is never."""

    __slots__ = ("_timer",)

    def __init__(self, timeout_in_ms: int, expire: Callable[[], None]) -> None:
        self._timer: Timer | None = None
        if timeout_in_ms > 0:
            self._timer = Timer(min(timeout_in_ms / 1000, TIMEOUT_MAX), expire)
            self._timer.daemon = True

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.start()

    def __exit__(self, *_raised: object) -> None:
        if self._timer is not None:
            self._timer.cancel()


def timed_out(option: str = "timeout_in_ms", *, instead: str = "") -> DeadlineExceededError:
    """The error of what took longer than an option allows."""
    advice = MoreTime(option, instead=instead)
    return DeadlineExceededError("Timed out waiting for notification", next_step=advice)


def milliseconds_to(deadline: float) -> int:
    """How long it is to a ``monotonic`` time, at least 1; 0 if it never comes."""
    return 0 if deadline == math.inf else max(1, math.ceil((deadline - monotonic()) * 1000))
