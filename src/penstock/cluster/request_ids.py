"""Requests that come twice.

In:   the numbers that senders give their requests, any time; 0 where they give none.
Out:  an error for a number that was there before.
Not:  answers no request: a sender that repeats one has not got the answer, and must know.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

from penstock.errors import AbortedError

#: How many numbers are remembered.
_MAX_KNOWN: Final = 100_000


class RequestIds:
    """The newest numbers."""

    def __init__(self) -> None:
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        self._known: OrderedDict[int, None] = OrderedDict()

    def track(self, request_id: int, method: str) -> None:
        """Note a number; raises AbortedError if it was there before."""
        if request_id == 0:
            return
        with self._lock:
            if request_id in self._known:
                raise AbortedError(
                    f"The same {method} request was received twice. (request_id: {request_id})"
                )
            self._known[request_id] = None
            if len(self._known) > _MAX_KNOWN:
                self._known.popitem(last=False)
