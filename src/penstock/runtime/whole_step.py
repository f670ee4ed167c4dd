"""One step that is one compiled function: no executor, no thread, no rendezvous.

In:   the values to feed.
Out:  the fetched values, or the step's error.
Not:  catches no Ctrl-C: nothing here has critical sections, so Python's own KeyboardInterrupt
      may come between any two lines.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


class WholeStep:
    """One run of one compiled request; used once."""

    __slots__ = ("_params", "_pool", "_region", "_session_state", "interrupt", "tensor_store")

    #: Nothing is recorded: whoever traces a step wants to see its nodes.
    stats: StatsCollector | None = None

    def __init__(
        self,
        region: Region,
        params: LocalExecutorParams,
        session_state: SessionState,
        pool: Runner | None,
    ) -> None:
        self._region = region
        self._params = params
        self._session_state = session_state
        self._pool = pool
        self.interrupt = Interrupt()
        self.tensor_store = TensorStore()

    def cancel(self, reason: OpError | None = None) -> None:
        """End the step at the next turn of a loop; ``run`` raises ``reason``."""
        if self.interrupt.reason is None:
            self.interrupt.end(reason or CancelledError("Run call was cancelled"))

    def dump_state(self) -> str:
        """What the step is doing; compiled code does not wait for anything."""
        return f"compiled code on {self._params.device} is running"

    def run(self, feeds: Sequence[Value], timeout_in_ms: int) -> Sequence[Value | None]:
        """Run to the end; returns fetched values, None for dead ones.

        Raises:
            OpError: the step's error, DeadlineExceededError or CancelledError included.
            KeyboardInterrupt: Ctrl-C was pressed.

        """
        timer = start_timer(timeout_in_ms, self._expire)
        try:
            with np.errstate(all="ignore"):
                results = self._run(feeds)
        finally:
            if timer is not None:
                timer.cancel()
        if self.interrupt.reason is not None:
            raise self.interrupt.reason
        return results

    def _run(self, feeds: Sequence[Value]) -> Sequence[Value | None]:
        if not self._region.needs_context:
            return self._region.run(self, *feeds)
        container = StepContainer()
        try:
            return self._region.run(self._context(container), *feeds)
        finally:
            container.close()

    def _context(self, container: StepContainer) -> StepContext:
        return StepContext(
            step_id=take_step_id(),
            device=self._params.device,
            resources=self._params.resources,
            step_container=container,
            cancellation_manager=CancellationManager(),
            session_state=self._session_state,
            tensor_store=self.tensor_store,
            functions=self._params.functions,
            pool=self._pool,
            interrupt=self.interrupt,
        )

    def _expire(self) -> None:
        self.cancel(
            DeadlineExceededError(
                f"Timed out waiting for notification\n{self.dump_state()}",
                next_step="allow more time by timeout_in_ms",
            )
        )
