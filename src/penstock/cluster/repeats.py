"""Requests that come twice, and are answered twice alike though they are done once.

In:   a request's key, which whoever sends it made up, and what answers it.
Out:  the answer; for a key that was there before, the same one again.
Not:  knows no method, and no request of those that have numbers of their own (``request_ids``).

A sender that lost its connection cannot know whether what it asked for was done.  If it asks again
under the same key, it was.  The work ends early only when nobody waits for it any more, so that a
sender may be back before it is noticed that it was gone.

All of this happens on the event loop alone.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from penstock.dataclass import dataclass
from penstock.errors import AbortedError

#: Bytes of answers that are kept, whoever asks for them.
MAX_BYTES: Final = 64 << 20
#: How many keys are remembered, with their answers or without, and for how many seconds: far longer
#: than anybody goes on asking.
MAX_KEYS: Final = 65_536
MAX_SECONDS: Final = 300.0


@dataclass(slots=True)
class _Repeatable:
    """A request that may come again."""

    #: What answers it; None when it has.  A task takes twenty times as much as a small answer.
    work: asyncio.Task[bytes] | None
    #: Its answer, or its error, if that is kept; and when that was there.
    found: bytes | BaseException | None = None
    since: float = 0.0
    #: How many wait for it.
    waiting: int = 0

    @property
    def size(self) -> int:
        """Bytes of its answer; 0 before it has one."""
        return len(self.found) if isinstance(self.found, bytes) else 0


class Repeats:
    """What lately came under a key."""

    def __init__(
        self,
        max_bytes: int = MAX_BYTES,
        max_keys: int = MAX_KEYS,
        max_seconds: float = MAX_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep so many bytes of answers, and so many keys for so long."""
        self._max_bytes: Final = max_bytes
        self._max_keys: Final = max_keys
        self._max_seconds: Final = max_seconds
        self._clock: Final = clock
        #: By key.
        self._known: Final[dict[str, _Repeatable]] = {}
        #: The keys of those that have been answered, with their answers and without, in order.
        self._kept: Final[deque[str]] = deque()
        self._unkept: Final[deque[str]] = deque()
        #: How many bytes of answers are kept.
        self.size = 0

    def __len__(self) -> int:
        return len(self._known)

    async def answer(self, key: str, answer: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """The answer of a request, by calling ``answer`` unless its key was there before.

        Raises:
            OpError: the request's error.
            AbortedError: the request was done before, and its answer is no longer kept.

        """
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Repeatable(asyncio.ensure_future(answer()))
            known.work.add_done_callback(partial(self._note, key, known))  # type: ignore[union-attr]
        if known.work is None:
            return _given(known.found)
        return await self._awaited(key, known, known.work)

    async def _awaited(self, key: str, known: _Repeatable, work: asyncio.Task[bytes]) -> bytes:
        known.waiting += 1
        try:
            await asyncio.wait({work})
        finally:
            known.waiting -= 1
            if not known.waiting and not work.done():
                work.cancel()
                del self._known[key]
        error = work.exception()
        return _given(work.result() if error is None else error)

    def _note(self, key: str, done: _Repeatable, work: asyncio.Task[bytes]) -> None:
        """Keep an answer, and forget older ones for it."""
        if work.cancelled():
            return
        error = work.exception()
        if error is not None:
            error.__traceback__ = None  # its frames hold the whole request
        done.work, done.found = None, work.result() if error is None else error
        done.since = self._clock()
        self.size += done.size
        self._kept.append(key)
        while self._kept and self.size > self._max_bytes:
            self._forget(self._kept.popleft())
        while self._is_too_much(done.since):
            oldest = (self._unkept or self._kept).popleft()
            self.size -= self._known.pop(oldest).size

    def _is_too_much(self, now: float) -> bool:
        """Whether there are too many keys, or one that is too old; answers go before keys."""
        if len(self._kept) + len(self._unkept) > self._max_keys:
            return True
        oldest = (self._unkept or self._kept)[0]
        return now - self._known[oldest].since > self._max_seconds

    def _forget(self, key: str) -> None:
        """Keep an answer no longer; that there was one is known a little longer."""
        forgotten = self._known[key]
        self.size -= forgotten.size
        forgotten.found = None
        self._unkept.append(key)


def _given(found: bytes | BaseException | None) -> bytes:
    """What was found, once more."""
    if found is None:
        raise AbortedError("The same request was received twice, and was done the first time")
    if isinstance(found, BaseException):
        raise found.with_traceback(None)
    return found
