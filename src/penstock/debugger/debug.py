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
from penstock.debugger.command import Console
from penstock.debugger.commands import execute
from penstock.debugger.debugger import Debugger
from penstock.debugger.history import DEFAULT_BYTES
from penstock.debugger.prompt import interact
from penstock.errors import InvalidArgumentError
from penstock.session.session import Session


class InteractiveDebugger(Debugger):
    """A debugger that understands the words of commands."""

    def command(self, line: str) -> str:
        """What a command says: ``debugger.command("pt x:0")``.

        Raises:
            OpError: it makes no sense, or cannot be done now.

        """
        return execute(Console(self), line)

    def interact(self) -> None:
        """Ask at the terminal what to do, until somebody has had enough.

        Raises:
            FailedPreconditionError: prompt_toolkit is not installed.

        """
        interact(Console(self))


def debug(
    graph: Any,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    memory: int = DEFAULT_BYTES,
    filters: Mapping[str, TensorFilter] | None = None,
) -> InteractiveDebugger:
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
        A debugger, to be closed: ``run`` or ``step`` begins the step, ``interact`` asks at the
        terminal what to do.

    Raises:
        InvalidArgumentError: the session runs elsewhere.
        OpError: the graph is not acceptable.

    """
    if isinstance(graph, Session):
        if graph.target:
            raise InvalidArgumentError(
                "Steps of a cluster run at its tasks, and not here",
                next_step="open a session of this process, without target",
            )
        return InteractiveDebugger(graph, fetches, feed_dict or {}, memory=memory, filters=filters)
    session = Session(graph, config=as_written(Config()))
    return InteractiveDebugger(
        session, fetches, feed_dict or {}, memory=memory, filters=filters, close=session.close
    )


def as_written(config: Config) -> Config:
    """The same options, but for what would change nodes, or end a step that waits for people."""
    return replace(config, tier=Tier.DATAFLOW, graph_options=AS_WRITTEN, operation_timeout_in_ms=0)
