"""One step that is one compiled function: no executor, no thread, no rendezvous.

In:   the values to feed.
Out:  the fetched values, or the step's error.
Not:  catches no Ctrl-C: nothing here has critical sections, so Python's own KeyboardInterrupt
      may come between any two lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter

import numpy as np

from penstock.advice import MoreTime
from penstock.core.values import Value
from penstock.errors import CancelledError, DeadlineExceededError, OpError
from penstock.kernels.context import Interrupt, Runner, StepContext
from penstock.runtime.compiler.region import Region
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.stats import StatsCollector
from penstock.runtime.step import take_step_id
from penstock.runtime.step_loop import start_timer
from penstock.state.cancellation import CancellationManager
from penstock.state.resources import StepContainer
from penstock.state.session_state import SessionState, TensorStore


@dataclass(frozen=True, slots=True)
class WholeStepFacts:
    """What the steps of one compiled request have in common."""

    params: LocalExecutorParams
    session_state: SessionState
    pool: Runner | None
    #: Told the region and the seconds of each step that succeeds.
    note: Callable[[Region | None, float], None]


class WholeStep:
    """One run of one compiled request; used once."""

    __slots__ = ("_facts", "_region", "_thread", "interrupt", "tensor_store")

    #: Nothing is recorded: whoever traces a step wants to see its nodes.
    stats: StatsCollector | None = None

    def __init__(self, region: Region, facts: WholeStepFacts) -> None:
        self._region = region
        self._facts = facts
        #: The thread that runs the step; that made it, before it runs.
        self._thread = get_ident()
        self.interrupt = Interrupt()
        #: What kernels want to keep for later steps; None if none can.
        self.tensor_store = TensorStore() if region.needs_context else None

    def cancel(self, reason: OpError | None = None) -> None:
        """End the step at the next turn of a loop; ``run`` raises ``reason``."""
        if self.interrupt.reason is None:
            self.interrupt.end(reason or CancelledError("Run call was cancelled"))

    def dump_state(self) -> str:
        """What the step is doing; compiled code does not wait for anything."""
        return self._region.describe(self._thread)

    def run(self, feeds: Sequence[Value], timeout_in_ms: int) -> Sequence[Value | None]:
        """Run to the end; returns fetched values, None for dead ones.

        Raises:
            OpError: the step's error, DeadlineExceededError or CancelledError included.
            KeyboardInterrupt: Ctrl-C was pressed.

        """
        self._thread = get_ident()
        timer = start_timer(timeout_in_ms, self._expire) if timeout_in_ms else None
        try:
            with np.errstate(all="ignore"):
                start = perf_counter()
                results = self._run(feeds)
                seconds = perf_counter() - start
        finally:
            if timer is not None:
                timer.cancel()
        if self.interrupt.reason is not None:
            raise self.interrupt.reason
        self._facts.note(self._region, seconds)
        return results

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
                details=self.dump_state().split("\n"),
                next_step=MoreTime("timeout_in_ms"),
            )
        )
