"""``debug``: a debugger for one request.

In:   a session or a graph, fetches and feeds.
Out:  a ``Debugger``, which has begun nothing.
Not:  runs nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.comparison.collected import AS_WRITTEN
from penstock.config import Config, Tier
from penstock.debugger.breakpoints import TensorFilter
from penstock.debugger.debugger import Debugger
from penstock.debugger.history import DEFAULT_BYTES
from penstock.session.session import Session


def debug(
    graph: Any,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    memory: int = DEFAULT_BYTES,
    filters: Mapping[str, TensorFilter] | None = None,
) -> Debugger:
    """Debug a step: run to a node, look at values, change them, go on.

    Args:
        graph: a ``Session``, which has its own options and variables; or a graph in any form that
            one takes, which is run as it was written, but for functions, which are put where they
            are called.
        fetches: like ``Session.run``'s.
        feed_dict: like ``Session.run``'s.
        memory: bytes of values that are remembered.
        filters: functions of a record and its value, by name: what ``run_to_filter`` and
            breakpoints can ask of each output.

    Returns:
        A debugger, to be closed; its ``run`` or ``step`` begins the step, and its ``interact`` asks
        at the terminal what to do.

    Raises:
        OpError: the graph is not acceptable.

    """
    if isinstance(graph, Session):
        return Debugger(graph, fetches, feed_dict or {}, memory=memory, filters=filters)
    session = Session(graph, config=as_written(Config()))
    return Debugger(
        session, fetches, feed_dict or {}, memory=memory, filters=filters, close=session.close
    )


def as_written(config: Config) -> Config:
    """The same options, but for what would change nodes, or end a step that waits for people."""
    return replace(config, tier=Tier.DATAFLOW, graph_options=AS_WRITTEN, operation_timeout_in_ms=0)
