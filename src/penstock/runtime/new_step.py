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
from penstock.runtime.whole_step import WholeStep, WholeStepMaker
from penstock.state.session_state import SessionState

AnyStep: TypeAlias = Step | WholeStep


def new_step(
    prepared: PreparedStep, options: RunOptions, session_state: SessionState, pool: Runner | None
) -> AnyStep:
    """One run of a request, ready to start."""
    maker = whole_step_maker(prepared, options, session_state, pool)
    return maker.new() if maker else Step(prepared, options, session_state, pool)


def whole_step_maker(
    prepared: PreparedStep, options: RunOptions, session_state: SessionState, pool: Runner | None
) -> WholeStepMaker | None:
    """What makes steps of a request that is one function; None if it is not to be one."""
    if prepared.whole is None or options.trace_level > TraceLevel.NO_TRACE:
        return None
    return WholeStepMaker(prepared.whole, prepared.params, session_state, pool)
