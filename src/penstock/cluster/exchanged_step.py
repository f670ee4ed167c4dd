"""A step in which other tasks run their parts first, and the master's own part follows.

In:   the request's feeds.
Out:  the fetched values, or the step's error.
Not:  knows nothing of rendezvous: all values go along with calls.

Whoever has an event loop awaits ``ask``, and then calls ``run``, on the loop or elsewhere; whoever
has none just calls ``run``.  Calls are made on the server's loop in either case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from time import perf_counter
from typing import Any, Final, Protocol

from penstock.core.values import Value
from penstock.defs.schema import Message
from penstock.errors import CancelledError, OpError
from penstock.runtime.deadline import timed_out
from penstock.runtime.stats import StatsCollector
from penstock.runtime.workers import EndableStep


class Askable(Protocol):
    """A part that another task runs, all of whose values go along with its calls."""

    @property
    def task(self) -> str:
        """The task's name."""

    async def ask(
        self,
        feeds: Sequence[Value],
        stats: list[Message] | None,
        lost: Callable[[OpError], None],
    ) -> list[Value]:
        """Have it run; its results in order.

        Args:
            feeds: the request's.
            stats: gets what the task recorded; None if nobody asks.
            lost: told if the task does not answer any more; whoever is told ends the call.

        Raises:
            OpError: the part's error.

        """


class ExchangedStep:
    """One run of one request; used once."""

    def __init__(
        self, parts: Sequence[Askable], own: EndableStep, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Get ready.

        Args:
            parts: what other tasks run.
            own: takes the feeds, and after them what the parts answer.
            loop: the server's.

        """
        self._parts: Final = parts
        self._own: Final = own
        self._loop: Final = loop
        #: What the parts answered; None before they have.
        self._answers: list[Value] | None = None
        #: The calls under way.  Set and read on the loop alone.
        self._asking: asyncio.Task[list[Value]] | None = None
        #: How long the parts were waited for.
        self.seconds = 0.0
        #: Why the step is to end.  Set before the loop is told.
        self._reason: OpError | None = None

    @property
    def stats(self) -> StatsCollector | None:
        """What is recorded; None if nothing is."""
        return self._own.stats

    @property
    def is_async(self) -> bool:
        """Whether somebody may go before the step is done."""
        return self._own.is_async

    @is_async.setter
    def is_async(self, value: bool) -> None:
        self._own.is_async = value

    def cancel(self, reason: OpError | None = None) -> None:
        """End the step early, for a reason."""
        self._reason = self._reason or reason or CancelledError("Run call was cancelled")
        self._loop.call_soon_threadsafe(self._stop_asking)
        self._own.cancel(self._reason)

    def _stop_asking(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    def dump_state(self) -> str:
        """Who runs what."""
        if self._answers is not None:
            return self._own.dump_state()
        return "\n".join(f"  running  a part of the graph on {part.task}" for part in self._parts)

    def keep_fetched(self, fetches: Iterable[str]) -> None:
        """Let the session keep the tensors whose handles were fetched."""
        self._own.keep_fetched(fetches)

    def run(self, feeds: Sequence[Value], timeout_in_ms: int) -> Sequence[Value | None]:
        """Run to the end; returns fetched values.

        Raises:
            OpError: the step's error, or why it was ended.

        """
        if self._answers is None:
            asking: Coroutine[Any, Any, None] = self.ask(feeds, timeout_in_ms)
            asyncio.run_coroutine_threadsafe(asking, self._loop).result()
        assert self._answers is not None
        return self._own.run([*feeds, *self._answers], timeout_in_ms)

    async def ask(self, feeds: Sequence[Value], timeout_in_ms: int) -> None:
        """Have the parts run, and keep their answers for ``run``.  On the loop.

        Raises:
            OpError: a part's error, or why the step was ended.

        """
        seconds, start = timeout_in_ms / 1000 if timeout_in_ms > 0 else None, perf_counter()
        self._asking = asyncio.ensure_future(self._asked(feeds))
        try:
            if self._reason is not None:
                self._asking.cancel()
            self._answers = await asyncio.wait_for(self._asking, seconds)
        except asyncio.CancelledError:
            if self._reason is None:  # the caller's caller is gone
                raise
            raise self._reason from None
        except TimeoutError:
            late = timed_out(instead="feed what is missing")
            raise late.with_details([self.dump_state()]) from None
        finally:
            self.seconds = perf_counter() - start

    async def _asked(self, feeds: Sequence[Value]) -> list[Value]:
        noted = self.stats.remote if self.stats is not None else None
        calls = [part.ask(feeds, noted, self.cancel) for part in self._parts]
        if len(calls) == 1:
            return await calls[0]
        tasks = [asyncio.ensure_future(call) for call in calls]
        try:
            return [value for answer in await asyncio.gather(*tasks) for value in answer]
        finally:
            for task in tasks:
                task.cancel()
