"""The kind of step that suits a request and its options.

In:   a prepared request, and how this run is to be watched.
Out:  a ``WholeStep`` if the request is one compiled function and nobody traces it, or else a
      ``Step``.
"""

from __future__ import annotations

from typing import TypeAlias

from penstock.config import RunOptions, TraceLevel
from penstock.kernels.context import Runner
from penstock.runtime.prepare import PreparedStep
from penstock.runtime.step import Step
from penstock.runtime.whole_step import WholeStep, WholeStepFacts
from penstock.state.session_state import SessionState

AnyStep: TypeAlias = Step | WholeStep


class StepMaker:
    """Makes the steps of one request."""

    __slots__ = ("_facts", "_options", "_pool", "_prepared", "_session_state")

    def __init__(
        self,
        prepared: PreparedStep,
        options: RunOptions,
        session_state: SessionState,
        pool: Runner | None,
    ) -> None:
        self._prepared = prepared
        self._options = options
        self._session_state = session_state
        self._pool = pool
        is_traced = options.trace_level > TraceLevel.NO_TRACE
        #: None if each node is to be seen.
        self._facts = (
            None
            if is_traced
            else WholeStepFacts(
                prepared.params,
                session_state,
                pool,
                prepared.flushing.on_pool(options.inter_op_thread_pool),
                prepared.note,
            )
        )

    def new(self) -> AnyStep:
        """One run of the request, ready to start."""
        region = self._prepared.take() if self._facts is not None else None
        if region is None or self._facts is None:
            return Step(self._prepared, self._options, self._session_state, self._pool)
        return WholeStep(region, self._facts)
