"""Run a step once, and note all that it takes to run it again.

In:   a session or a graph, fetches and feeds.
Out:  a ``Recording``; the session is then where the step has left it.
Not:  replays nothing.

The step runs in a twin: a new session of the same graph and the same state, on the executor, node
by node.  Its state is the session's afterwards.  So nothing is in the way of steps that nobody
records.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NoReturn

from penstock.errors import UnimplementedError
from penstock.graph.export import graph_to_def
from penstock.replays.datasets import makers_of
from penstock.replays.needed import needed
from penstock.replays.orders import NotedOrder
from penstock.replays.recording import Recording
from penstock.replays.task import Settings, Stage, Task
from penstock.session.feeds import Feeds
from penstock.session.fetches import plan_fetches
from penstock.session.session import Session


def record(
    target: Any,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    threads: int = 1,
    seed: int | None = None,
    skip_unsupported: bool = False,
    timeout_in_ms: int = 0,
) -> Recording:
    """Run a step, and note the order of its nodes, its feeds, and the state before it.

    A step that fails is recorded like any other; its error is in ``Recording.ending``.

    Args:
        target: a ``Session``, or a graph in any form that one takes.
        fetches: like ``Session.run``'s.
        feed_dict: like ``Session.run``'s.
        path: where the recording is written; nowhere if None.
        threads: how many threads race for what has effects.
        seed: chooses among what could go on next; without it, what could first does.
        skip_unsupported: leave out what cannot be copied, as ``Session.snapshot`` does.
        timeout_in_ms: the step fails after this time; 0 means never.

    Raises:
        FailedPreconditionError: a step of the session is under way.
        UnimplementedError: something in the session cannot be copied.
        OpError: the step could not begin.

    """
    with nullcontext(target) if isinstance(target, Session) else Session(target) as session:
        task = _task(session, fetches, feed_dict or {}, skips=skip_unsupported)
        order = NotedOrder(seed)
        with Stage(task, threads=threads, allow_files=session.config.allow_files) as stage:
            attempt = stage.attempt(order, timeout_in_ms)
        session.restore(attempt.after)
    recording = Recording(
        task=task,
        events=tuple(order.events),
        ending=attempt.ending,
        results=attempt.results,
        error=attempt.error,
    )
    if path is not None:
        recording.save(path)
    return recording


def _task(session: Session, fetches: Any, feed_dict: Mapping[Any, Any], *, skips: bool) -> Task:
    before = session.snapshot(skip_unsupported=skips)
    plan = plan_fetches(fetches, session.graph)
    feeds = Feeds(session.graph, _not_held).values(feed_dict)
    names = [*plan.endpoints, *plan.targets, *feeds, *makers_of(before)]
    return Task(
        graph=needed(graph_to_def(session.graph), names),
        settings=Settings.of(session.config),
        fetches=plan.endpoints,
        targets=plan.targets,
        feeds=feeds,
        before=before,
    )


def _not_held(handle: str) -> NoReturn:
    raise UnimplementedError(
        f"The tensor of the handle '{handle}' cannot be fed to a step that is recorded",
        next_step="feed its value, which GetSessionTensor gives",
    )
