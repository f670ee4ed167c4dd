"""``ps.report``: from a session, or a graph, to a page.

In:   a session or a graph in any form, and perhaps what one step fetches and is fed.
Out:  a ``Report``, and a file of it.
Not:  runs more than that one step; without fetches, nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from penstock.checks.check_graph import request_of
from penstock.config import RunOptions
from penstock.core.collector import collector_paused
from penstock.core.files import FileSystem, file_errors
from penstock.errors import InvalidArgumentError, OpError
from penstock.graph.roles import Role
from penstock.passes.prune import Request
from penstock.reporting.code import code_of
from penstock.reporting.collect_graph import GraphWatcher, with_types
from penstock.reporting.collect_step import step_facts, types_of
from penstock.reporting.facts import Code, GraphFacts, Report
from penstock.reporting.summaries import Summaries
from penstock.reporting.write_page import page_of
from penstock.runtime.environment import Environment
from penstock.runtime.prepare import PreparedRequest
from penstock.session.session import Session
from penstock.session.traced import TracedRun, trace
from penstock.shapes.infer import infer_shapes
from penstock.state.devices import DeviceSet
from penstock.tracing.recorder import Detail


@collector_paused  # nearly all that a step's recorder makes stays
def report(
    graph: Any,
    fetches: Any = None,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    values: bool = False,
    detail: Detail | str = Detail.NODES,
    title: str = "graph",
) -> Report:
    """Show a graph and one step of it as one page, which opens in a browser without a network.

    Args:
        graph: a ``Session``; or a graph in any form that one takes, for a session of its own.
        fetches: like ``Session.run``'s, and run once, node by node; if there are none, nothing is
            run, and the graph alone is shown.
        feed_dict: like ``Session.run``'s.
        path: where to write the page; nowhere if it is None.
        values: whether the page has summaries of all values that nodes gave.
        detail: like ``trace``'s: ``nodes``; or ``inside``, which runs node by node what ONNX
            Runtime and XLA would compute.
        title: what the page calls it.

    Returns:
        What the page shows, as plain values.  A step that fails is shown up to there.

    Raises:
        OpError: the graph or what is asked of it makes no sense; or the file system refuses.

    """
    with ExitStack() as stack:
        session = graph if isinstance(graph, Session) else stack.enter_context(Session(graph))
        if session.target:
            raise InvalidArgumentError(
                f"A session at {session.target} cannot be shown",
                next_step="report with a session without a target",
            )
        reporter = _Reporter(session, title, detail)
        found = reporter.report(fetches, feed_dict or {}, with_values=values)
    if path is not None:
        write(found, path)
    return found


def write(found: Report, path: str | os.PathLike[str]) -> None:
    """Write the page of a report; raises OpError if the file system refuses."""
    write_text(os.fsdecode(path), page_of(found))


def write_text(path: str, text: str) -> None:
    """Write a file whole, or not at all."""
    files = FileSystem()
    with files.draft(path) as draft, file_errors(path):
        draft.write(text.encode())
        files.publish(path, draft)


class _Reporter:
    """Puts the facts of one session's graph together."""

    def __init__(self, session: Session, title: str, detail: Detail | str) -> None:
        self._session = session
        self._title = title
        self._detail = detail
        self._devices = DeviceSet(session.list_devices())

    def report(self, fetches: Any, feeds: Mapping[Any, Any], *, with_values: bool) -> Report:
        """All facts."""
        watcher = GraphWatcher(self._session.graph)
        if fetches is None:
            facts = self._facts(watcher, self._whole())
            return Report(self._title, with_types(facts, self._inferred()))
        prepared = self._session.prepared(fetches, feeds, watcher.watch)
        facts = self._facts(watcher, prepared.request)
        summaries = Summaries() if with_values else None
        run = self._run(fetches, feeds, summaries)
        error = "" if run.error is None else str(run.error)
        return Report(
            self._title,
            with_types(facts, types_of(run.trace, watcher.shown)),
            self._code(prepared, watcher),
            step_facts(run.trace, watcher.shown, error),
            None if summaries is None else summaries.shown(watcher.shown),
        )

    def _inferred(self) -> dict[tuple[str, int], str]:
        """Type and shape of each output, as far as they are known without a run."""
        graph = self._session.graph
        with graph.lock:
            shapes = infer_shapes(graph)
            return {
                (node.name, slot): f"{node.output_types[slot].name}{shape}"
                for node in graph
                for slot, shape in enumerate(shapes.facts(node).shapes)
            }

    def _run(
        self, fetches: Any, feeds: Mapping[Any, Any], summaries: Summaries | None
    ) -> TracedRun:
        options = RunOptions(node_outputs=summaries)
        return trace(self._session, fetches, feeds, detail=self._detail, options=options)

    def _whole(self) -> Request:
        """All that nobody reads is asked for, and all placeholders are fed."""
        graph = self._session.graph
        fed = [node.name for node in graph if node.role is Role.PLACEHOLDER]
        return request_of(graph, (), fed)

    def _facts(self, watcher: GraphWatcher, request: Request) -> GraphFacts:
        return watcher.facts(request, self._session.config, self._devices)

    def _code(self, prepared: PreparedRequest, watcher: GraphWatcher) -> Code:
        config = self._session.config
        environment = Environment(self._session.graph, config, self._devices)
        try:
            return code_of(prepared, environment, watcher.shown)
        except OpError:
            return Code()
