"""Requests that come twice.

In:   the numbers that senders give their requests, any time; 0 where they give none.
Out:  an error for a number that was there before.
Not:  answers no request: a sender that repeats one has not got the answer, and must know.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

from penstock.errors import AbortedError

#: How many numbers are remembered, and for how many seconds: far longer than anybody repeats one.
_MAX_KNOWN: Final = 100_000
_MAX_SECONDS: Final = 300.0


class RequestIds:
    """The newest numbers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        #: When each came, in this order.
        self._known: OrderedDict[int, float] = OrderedDict()

    def track(self, request_id: int, method: str) -> None:
        """Note a number; raises AbortedError if it was there before."""
        if request_id == 0:
            return
        with self._lock:
            if request_id in self._known:
                raise AbortedError(
                    f"The same {method} request was received twice. (request_id: {request_id})"
                )
            now = self._known[request_id] = self._clock()
            while len(self._known) > _MAX_KNOWN or now - self._oldest() > _MAX_SECONDS:
                self._known.popitem(last=False)

    def _oldest(self) -> float:
        return next(iter(self._known.values()))
