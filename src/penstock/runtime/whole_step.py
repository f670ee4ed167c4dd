"""One step that is one compiled function: no executor, no thread, no rendezvous.

In:   the values to feed.
Out:  the fetched values, or the step's error.
Not:  catches no Ctrl-C: nothing here has critical sections, so Python's own KeyboardInterrupt
      may come between any two lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from penstock.advice import MoreTime
from penstock.core.denormals import flushing
from penstock.core.values import Value
from penstock.errors import CancelledError, DeadlineExceededError, OpError
from penstock.kernels.beside import Beside
from penstock.kernels.bound import BRIEF
from penstock.kernels.context import Runner, StepContext
from penstock.runtime.compiler.region import Region
from penstock.runtime.ending import left_behind, with_details
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.flushing import Flushes
from penstock.runtime.stats import StatsCollector
from penstock.runtime.step import take_step_id
from penstock.runtime.step_loop import POLL_SECONDS, Alarm
from penstock.state.cancellation import CancellationManager
from penstock.state.interrupt import Interrupt
from penstock.state.resources import StepContainer
from penstock.state.session_state import SessionState, TensorStore


@dataclass(frozen=True, slots=True)
class WholeStepFacts:
    """What the steps of one compiled request have in common."""

    params: LocalExecutorParams
    session_state: SessionState
    pool: Runner | None
    #: Whether a step takes denormal numbers for zeros, by its feeds.
    flushes: Flushes
    #: Told the region, the seconds and the interrupt of each step that succeeds.
    note: Callable[[Region | None, float, Interrupt], None]


class WholeStep:
    """One run of one compiled request; used once."""

    __slots__ = ("_facts", "_region", "_thread", "interrupt", "is_async", "tensor_store")

    #: Nothing is recorded: whoever traces a step wants to see its nodes.
    stats: StatsCollector | None = None

    def __init__(self, region: Region, facts: WholeStepFacts) -> None:
        self._region = region
        self._facts = facts
        #: The thread that runs the step; that made it, before it runs.
        self._thread = get_ident()
        self.interrupt = Interrupt()
        #: Whether somebody may go before the step is done, though no deadline is given.
        self.is_async = False
        #: What kernels want to keep for later steps; None if none can.
        self.tensor_store = TensorStore() if region.needs_context else None

    def cancel(self, reason: OpError | None = None) -> None:
        """End the step at the next turn of a loop; ``run`` raises ``reason``."""
        reason = reason or CancelledError("Run call was cancelled")
        self.interrupt.end(with_details(reason, [self.dump_state()]))

    def dump_state(self) -> str:
        """What the step is doing; compiled code does not wait for anything."""
        return self._region.describe(self._thread)

    def run(self, feeds: Sequence[Value], timeout_in_ms: int) -> Sequence[Value | None]:
        """Run to the end; returns fetched values, None for dead ones.

        Raises:
            OpError: the step's error, DeadlineExceededError or CancelledError included.
            KeyboardInterrupt: Ctrl-C was pressed.
            BaseException: a kernel raised it on the main thread, and it is no Exception.

        """
        if timeout_in_ms > 0 or self.is_async:
            return self._run_for(feeds, timeout_in_ms)
        self._thread = get_ident()
        try:
            with np.errstate(all="ignore"):
                start = perf_counter()
                if self._facts.flushes(feeds):
                    with flushing(True):  # noqa: FBT003  (the only thing to say)
                        results = self._run(feeds)
                else:
                    results = self._run(feeds)
                seconds = perf_counter() - start
        except OpError:
            if self.interrupt.escaping is not None:
                raise self.interrupt.escaping from None
            raise
        if self.interrupt.reason is not None:
            raise self.interrupt.reason
        self._facts.note(self._region, seconds, self.interrupt)
        return results

    def _run_for(self, feeds: Sequence[Value], timeout_in_ms: int) -> Sequence[Value | None]:
        """Run for somebody who may have to go: beside this thread, if that does no harm."""
        self.is_async = False
        if self._facts.pool is None or not self._region.source.is_pure:
            with Alarm(timeout_in_ms, self._expire):
                return self.run(feeds, 0)
        work = Beside(partial(self.run, feeds, 0))
        try:
            self._wait_for(work, timeout_in_ms)
        except BaseException:
            self.interrupt.end(CancelledError("Run call was cancelled"))
            raise
        return work.result()

    def _wait_for(self, work: Beside[Any], timeout_in_ms: int) -> None:
        """Wait until the work is done; raises the reason if it does not end when it must."""
        deadline = monotonic() + timeout_in_ms / 1000 if timeout_in_ms > 0 else math.inf
        while not work.wait(max(0.0, min(POLL_SECONDS, deadline - monotonic()))):
            if monotonic() >= deadline:
                self._expire()
            reason = self.interrupt.reason
            if reason is not None and not work.wait(BRIEF):
                raise with_details(reason, [left_behind(f"{self.dump_state()} and computes")])

    def _run(self, feeds: Sequence[Value]) -> Sequence[Value | None]:
        region = self._region
        if not region.needs_context:
            return region.run(self, *feeds)
        container = StepContainer()
        try:
            return region.run(self._context(container), *feeds)
        finally:
            container.close()

    def _context(self, container: StepContainer) -> StepContext:
        facts = self._facts
        return StepContext(
            step_id=take_step_id(),
            device=facts.params.device,
            resources=facts.params.resources,
            step_container=container,
            cancellation_manager=CancellationManager(),
            session_state=facts.session_state,
            tensor_store=self.tensor_store,
            functions=facts.params.functions,
            pool=facts.pool,
            interrupt=self.interrupt,
        )

    def _expire(self) -> None:
        self.cancel(
            DeadlineExceededError(
                "Timed out waiting for notification",
                next_step=MoreTime("timeout_in_ms"),
            )
        )
