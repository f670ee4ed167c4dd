"""The kind of step that suits a request and its options.

In:   a prepared request, and how this run is to be watched.
Out:  a ``CompiledStep`` if the request is one function, or a walk before it is compiled, and nobody
      traces it, or else a ``Step``; or a ``PartialRun``.  Each gets its ``StepState`` here.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from penstock.config import NO_OPTIONS, RunOptions, Tier, TraceLevel
from penstock.graph.graph import Graph
from penstock.runtime.compiled_step import CompiledStep, CompiledStepFacts, RecordedCompiledStep
from penstock.runtime.partial_run import PartialRun
from penstock.runtime.prepare import PreparedRequest
from penstock.runtime.stats import StatsCollector
from penstock.runtime.step import Step
from penstock.runtime.workers import EndableStep
from penstock.state.interrupt import Interrupt
from penstock.state.rendezvous import Rendezvous
from penstock.state.session_state import SessionState
from penstock.state.step_state import Runner, StepState
from penstock.tracing.recorder import Recording

AnyStep: TypeAlias = Step | CompiledStep | EndableStep


class StepFactory:
    """Makes the steps of one request."""

    __slots__ = (
        "_facts", "_is_exchanged", "_is_watched", "_may_be_whole", "_new_rendezvous", "_options",
        "_pool", "_prepared", "_session_state",
    )  # fmt: skip

    def __init__(
        self,
        prepared: PreparedRequest,
        options: RunOptions,
        session_state: SessionState,
        pool: Runner | None,
        new_rendezvous: Callable[[], Rendezvous] | None = None,
    ) -> None:
        """Say how steps are run.

        Args:
            prepared: what they run.
            options: how they are watched.
            session_state: where they keep tensors.
            pool: where slow kernels run; None keeps them on the step's own thread.
            new_rendezvous: where a step meets others; the request's own way if none is given.

        """
        self._prepared = prepared
        self._new_rendezvous = new_rendezvous or prepared.new_rendezvous
        self._session_state = session_state
        self._pool = pool
        self._options = options
        #: Whether somebody may want to look; hardly any step is watched.
        self._is_watched = options is not NO_OPTIONS or prepared.is_bounded
        #: Whether a step may be one function: it meets no part in another task.
        self._may_be_whole = not prepared.meets_others
        self._is_exchanged = prepared.is_exchanged
        self._facts = CompiledStepFacts(
            prepared.params,
            self._compiled_state,
            prepared.flushing.on_pool(options.inter_op_thread_pool),
            prepared.runnable.note,
            has_pool=pool is not None,
        )

    def new(self) -> AnyStep:
        """One run of the request, ready to start."""
        if self._is_watched:
            own = self._new_watched()
        else:
            runnable = self._prepared.runnable
            whole = runnable.take() or runnable.walk() if self._may_be_whole else None
            own = CompiledStep(whole, self._facts) if whole is not None else self._new_step()
        return self._prepared.exchanged(own) if self._is_exchanged else own

    def _new_step(self) -> Step:
        """One run by executors, at which nobody looks."""
        return Step(self._prepared, self._state(), self._facts.flushes)

    def _new_watched(self) -> Step | CompiledStep:
        """The same, if somebody may want to look."""
        prepared, options = self._prepared, self._options
        recording = options.recorder
        if recording is None and options.trace_level > TraceLevel.NO_TRACE:
            recording = Recording()
        is_by_node = options.is_by_node or prepared.is_bounded
        is_close = is_by_node or (recording is not None and recording.detail.is_by_node)
        may_be_whole = self._may_be_whole and not is_close
        region = prepared.runnable.take() if may_be_whole else None
        if region is not None:
            if recording is None:
                return CompiledStep(region, self._facts)
            return RecordedCompiledStep(region, self._facts, recording)
        state = self._state()
        state.recorder, state.order = recording, options.order
        state.hook = prepared.hook(options.node_hook)
        return Step(
            prepared,
            state,
            self._facts.flushes,
            tier=Tier.DATAFLOW if is_close else Tier.COMPILED,
            stats=None if recording is None else StatsCollector(recording),
            node_outputs=options.node_outputs,
        )

    def _state(self) -> StepState:
        """What a step of executors has of its own."""
        return StepState(
            rendezvous=self._new_rendezvous() if self._meets() else None,
            session_state=self._session_state,
            container=self._prepared.new_container(),
            pool=self._pool,
        )

    def new_partial(self, graph: Graph) -> PartialRun:
        """One run of a request whose feeds and fetches come one by one."""
        rendezvous = self._new_rendezvous()
        state = StepState(
            rendezvous=rendezvous,
            session_state=self._session_state,
            container=self._prepared.new_container(),
            pool=self._pool,
            flush=self._prepared.flushing.is_wanted,
        )
        return PartialRun(graph, self._prepared, state, rendezvous)

    def _compiled_state(self, interrupt: Interrupt) -> StepState:
        """The step of a compiled function with kernels that ask for more than its interrupt."""
        return StepState(
            rendezvous=self._new_rendezvous() if self._meets() else None,
            interrupt=interrupt,
            session_state=self._session_state,
            container=self._prepared.new_container(),
            pool=self._pool,
        )

    def _meets(self) -> bool:
        """Whether something in a step sends or receives."""
        return self._prepared.has_transfers or self._prepared.meets_others
