"""One run of a request that is one function: no executor, no thread, no rendezvous.

The function is compiled, or a walk through the nodes as long as it is not.

In:   the values to feed.
Out:  the fetched values, or the step's error.
Not:  catches no Ctrl-C: nothing here has critical sections, so Python's own KeyboardInterrupt
      may come between any two lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import get_ident
from time import monotonic, perf_counter, perf_counter_ns
from typing import Any, Protocol

from penstock.core.denormals import flushing
from penstock.core.quiet import mute, unmute
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.errors import CancelledError, OpError
from penstock.kernels.api.bound_kernel import BRIEF
from penstock.kernels.api.long_kernel import NoProgramError
from penstock.kernels.c.blocks import keep_large_memory
from penstock.kernels.parallel.beside import Beside
from penstock.runtime.compiler.region import Region
from penstock.runtime.deadline import Alarm, timed_out
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.flushing import Flushes
from penstock.runtime.noted_region import run_noted
from penstock.runtime.stats import StatsCollector
from penstock.runtime.step_loop import POLL_SECONDS
from penstock.state.interrupt import Interrupt
from penstock.state.step_state import StepState, left_behind
from penstock.tracing.recorder import Recording


class Runs(Protocol):
    """What computes all results of a request."""

    def run(self, step: Any, *args: Value) -> tuple[Value | None, ...]:
        """The results, of which None stands for what is dead; raises OpError."""


class OneFunction(Runs, Protocol):
    """The same on the calling thread: a ``Region``, or a ``Walk`` before there is one."""

    @property
    def needs_context(self) -> bool:
        """Whether it asks for more of its step than whether to go on."""

    @property
    def is_pure(self) -> bool:
        """Whether it does nothing but compute."""

    def without_programs(self) -> Runs:
        """The same, but for nodes that stand for others."""

    def describe(self, thread: int) -> str:
        """What a thread that runs it is doing."""


@dataclass(frozen=True, slots=True)
class CompiledStepFacts:
    """What the steps of one compiled request have in common."""

    params: LocalExecutorParams
    #: Makes the state of a step whose kernels ask for more than its interrupt.
    new_state: Callable[[Interrupt], StepState]
    #: Whether a step takes denormal numbers for zeros, by its feeds.
    flushes: Flushes
    #: Told what ran, the seconds and the interrupt of each step that succeeds.
    note: Callable[[Any, float, Interrupt], None]
    #: Whether there are other threads than the caller's.
    has_pool: bool


class CompiledStep:
    """One run of a request that is one function; used once."""

    __slots__ = ("_facts", "_region", "_state", "_thread", "interrupt", "is_async")

    def __init__(self, region: OneFunction, facts: CompiledStepFacts) -> None:
        self._region = region
        self._facts = facts
        #: The thread that runs the step; that made it, before it runs.
        self._thread = get_ident()
        self.interrupt = Interrupt()
        #: None if no kernel asks for more than the interrupt: to make one takes as long as the
        #: shortest steps.
        self._state = self._new_state() if region.needs_context else None
        #: Whether somebody may go before the step is done, though no deadline is given.
        self.is_async = False

    @property
    def stats(self) -> StatsCollector | None:
        """What is recorded: nothing."""
        return None

    def cancel(self, reason: OpError | None = None) -> None:
        """End the step at the next iteration of a loop; ``run`` raises ``reason``."""
        reason = reason or CancelledError("Run call was cancelled")
        self.interrupt.end(reason.with_details([self.dump_state()]))

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
        keep_large_memory()
        complaints = mute()
        try:
            start = perf_counter()
            if self._facts.flushes(feeds):
                with flushing(True):  # noqa: FBT003  (the only thing to say)
                    results = self._run(feeds, flush=True)
            else:
                results = self._run(feeds)
            seconds = perf_counter() - start
        except OpError:
            if self.interrupt.escaping is not None:
                raise self.interrupt.escaping from None
            raise
        finally:
            unmute(complaints)
        if self.interrupt.reason is not None:
            raise self.interrupt.reason
        self._facts.note(self._region, seconds, self.interrupt)
        return results

    def keep_fetched(self, fetches: Iterable[str]) -> None:
        """Let the session keep the tensors whose handles were fetched."""
        if self._state is not None:
            self._state.keep_fetched(fetches)

    def _run_for(self, feeds: Sequence[Value], timeout_in_ms: int) -> Sequence[Value | None]:
        """Run for somebody who may have to go: beside this thread, if that does no harm."""
        self.is_async = False
        if not self._facts.has_pool or not self._region.is_pure:
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
                raise reason.with_details([left_behind(f"{self.dump_state()} and computes")])

    def _run(self, feeds: Sequence[Value], *, flush: bool = False) -> Sequence[Value | None]:
        region, state = self._region, self._state
        run: Callable[..., Sequence[Value | None]] = region.run
        if state is None:
            try:
                return run(self, *feeds)
            except NoProgramError:  # whoever knows may ask for more than the interrupt
                run = region.without_programs().run
                self._state = state = self._new_state()
        state.flush = flush
        try:
            return run(self._facts.params.context(state), *feeds)
        finally:
            state.close()

    def _new_state(self) -> StepState:
        return self._facts.new_state(self.interrupt)

    def _expire(self) -> None:
        self.cancel(timed_out())


class RecordedCompiledStep(CompiledStep):
    """The same, noted as a whole by whoever records it."""

    __slots__ = ("_recorded", "_recording")

    def __init__(self, region: Region, facts: CompiledStepFacts, recording: Recording) -> None:
        self._recorded = region
        self._recording = recording
        super().__init__(region, facts)

    def _new_state(self) -> StepState:
        state = super()._new_state()
        state.recorder = self._recording
        return state

    @property
    def stats(self) -> StatsCollector | None:
        """What is recorded."""
        return StatsCollector(self._recording)

    def _run(self, feeds: Sequence[Value], *, flush: bool = False) -> Sequence[Value | None]:
        start = perf_counter_ns()
        try:
            return run_noted(self._recording, self._recorded, super()._run, feeds, flush=flush)
        finally:
            self._recording.step_ended(start)
