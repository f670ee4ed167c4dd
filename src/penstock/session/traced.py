"""Run a request and keep what it did: ``penstock.trace``.

In:   a session or a graph, fetches and feeds, and how closely to look.
Out:  ``TracedRun``: the values, a ``Trace``, TensorFlow's messages, files of them.
Not:  records nothing itself; a session elsewhere sends what its tasks recorded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

from penstock.config import RunMetadata, RunOptions, TraceLevel
from penstock.dataclass import dataclass
from penstock.defs import schema
from penstock.errors import InvalidArgumentError, OpError
from penstock.graph.export import graph_to_def
from penstock.graph.graph import Graph
from penstock.printable import printable
from penstock.runtime.compiler.source import place_of_thread
from penstock.session.session import Session
from penstock.tracing.from_step_stats import trace_of_step_stats
from penstock.tracing.recorder import Detail, Recording
from penstock.tracing.replay import trace_of
from penstock.tracing.sampler import DEFAULT_INTERVAL, Sampler
from penstock.tracing.save import DEFAULT_TAG, Messages, save
from penstock.tracing.step_stats import step_stats_of
from penstock.tracing.trace import Trace


@dataclass(frozen=True, slots=True)
class TracedRun:
    """What ``trace`` gives."""

    #: What was recorded, as facts.
    trace: Trace
    #: The last step's messages; its ``step_stats`` are of all steps.
    metadata: RunMetadata
    #: What ended the last step early; None if nothing did.
    error: OpError | None
    #: The seconds of each step, as the caller saw them.
    seconds: tuple[float, ...]
    _value: Any
    _graph: Graph

    @property
    def value(self) -> Any:
        """What was fetched, by the last step.

        Raises:
            OpError: the error that the step ended with.

        """
        if self.error is not None:
            raise self.error
        return self._value

    def save(self, path: str | os.PathLike[str], *, tag: str = DEFAULT_TAG, step: int = 0) -> str:
        """Write a file in the format that its name asks for; returns its path.

        Args:
            path: ``.json`` for Chrome's format, ``.pftrace`` for Perfetto's, ``.pb`` for a
                RunMetadata message, ``events.out.tfevents.NAME`` or a folder for TensorBoard.
            tag: what TensorBoard calls it.
            step: the step that it is of, for TensorBoard.

        Raises:
            InvalidArgumentError: the name says no format.
            OpError: the file system refuses.

        """
        messages = Messages(self.metadata.to_proto, lambda: graph_to_def(self._graph))
        return save(self.trace, messages, path, tag=tag, step=step)

    def __repr__(self) -> str:
        return f"<TracedRun: {self.trace!r}>"


def trace(
    session: Any,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    detail: Detail | str = Detail.LINES,
    steps: int = 1,
    interval: float = DEFAULT_INTERVAL,
    options: RunOptions | None = None,
) -> TracedRun:
    """Run what ``fetches`` need, and record it; a step that fails is recorded as well.

    Args:
        session: a ``Session``; or a graph in any form that one takes, for a session of its own.
        fetches: like ``Session.run``'s.
        feed_dict: like ``Session.run``'s.
        detail: how closely compiled regions are looked at: as one thing each (``regions``), with
            a look now and then which node they are at (``lines``), not compiled at all (``nodes``),
            and without ONNX Runtime and XLA either (``inside``).
        steps: how many steps are run and recorded; the first that fails is the last.
        interval: seconds between two looks.
        options: of each step; its ``trace_level`` and ``recorder`` do not count.

    Returns:
        What was recorded.  A session of a cluster has what its tasks record of nodes, whatever
        ``detail`` says.

    Raises:
        InvalidArgumentError: what is asked for makes no sense.

    """
    close = _detail(detail)
    if steps < 1 or interval <= 0:
        raise InvalidArgumentError(f"{steps} steps, looked at every {interval} s, are none")
    given = options or RunOptions()
    with ExitStack() as stack:
        opened = session if isinstance(session, Session) else stack.enter_context(Session(session))
        asked = _Asked(opened, fetches, feed_dict, steps)
        if opened.target:
            return asked.elsewhere(given)
        sampler = Sampler(_place_now, interval) if close is Detail.LINES else None
        if sampler is not None:
            stack.enter_context(sampler)
        return asked.here(given, Recording(close, sampler, _title(fetches)))


def _detail(given: Detail | str) -> Detail:
    if isinstance(given, Detail):
        return given
    try:
        return Detail(given)
    except ValueError:
        ways = ", ".join(one.value for one in Detail)
        raise InvalidArgumentError(
            f"There is no detail {given!r}", next_step=f"write one of {ways}"
        ) from None


def _title(fetches: Any) -> str:
    return printable(str(fetches))[:200]


def _place_now(thread: int) -> tuple[str, str, str, int] | None:
    place = place_of_thread(thread)
    if place is None:
        return None
    return place.node.name, place.node.op.name, place.frame, place.iteration


class _OneRun(NamedTuple):
    """One step, as the caller saw it."""

    metadata: RunMetadata
    value: Any
    error: OpError | None
    #: When it began and ended, in nanoseconds since 1970.
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be run, how often."""

    session: Session
    fetches: Any
    feed_dict: Mapping[Any, Any] | None
    steps: int

    def here(self, options: RunOptions, recording: Recording) -> TracedRun:
        """Run it in this process."""
        given = replace(options, trace_level=TraceLevel.NO_TRACE, recorder=recording)
        runs = self._runs(given)
        found = trace_of(recording)
        last = runs[-1]
        last.metadata.step_stats_later(lambda: step_stats_of(found))
        return self._traced(found, runs)

    def elsewhere(self, options: RunOptions) -> TracedRun:
        """Run it at a server, whose tasks record it."""
        runs = self._runs(replace(options, trace_level=TraceLevel.FULL_TRACE, recorder=None))
        stats = schema.StepStats()
        for run in runs:
            stats.MergeFrom(run.metadata.step_stats)
        found = trace_of_step_stats(stats, _title(self.fetches))
        runs[-1].metadata.step_stats = stats
        return self._traced(replace(found, steps=[run.span for run in runs]), runs)

    def _traced(self, found: Trace, runs: Sequence[_OneRun]) -> TracedRun:
        last, seconds = runs[-1], tuple((r.span[1] - r.span[0]) / 1e9 for r in runs)
        return TracedRun(found, last.metadata, last.error, seconds, last.value, self.session.graph)

    def _runs(self, options: RunOptions) -> list[_OneRun]:
        """As many as are asked for, or up to the first that fails."""
        runs: list[_OneRun] = []
        while len(runs) < self.steps and not (runs and runs[-1].error):
            runs.append(self._run(options))
        return runs

    def _run(self, options: RunOptions) -> _OneRun:
        metadata, start, value, error = RunMetadata(), time.time_ns(), None, None
        try:
            value = self.session.run(self.fetches, self.feed_dict, options, metadata)
        except OpError as failure:
            error = failure
        return _OneRun(metadata, value, error, (start, time.time_ns()))
