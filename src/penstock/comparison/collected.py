"""Every value that a step computes.

In:   a session or a graph, fetches and feeds.
Out:  outputs of nodes, in the order in which they came up, as copies.
Not:  compares nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.config import (
    Config,
    GraphOptions,
    Level,
    OptimizerOptions,
    RewriterConfig,
    RunOptions,
    Tier,
    Toggle,
)
from penstock.errors import ResourceExhaustedError
from penstock.passes.prune import fed_by
from penstock.runtime.executor.node_outputs import NodeOutputContext
from penstock.session.session import Session

#: Graphs as they were written, but for functions, which are where they are called.
AS_WRITTEN: Final = GraphOptions(
    optimizer_options=OptimizerOptions(opt_level=Level.L0),
    rewrite_options=RewriterConfig(function_optimization=Toggle.ON),
)
#: The bytes of values that are kept of one step.
MAX_BYTES: Final = 4 << 30


class NodeValue(NamedTuple):
    """One output of one activation of a node."""

    #: ``node:slot``, and ``@loop[iteration]`` behind it inside of loops.
    key: str
    node: str
    op: str
    slot: int
    #: None if it is dead, or no value: a reference, a handle.
    value: Any
    is_dead: bool


class _Collector:
    """Takes what nodes give."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        #: Guards what is above, and what follows.  Innermost.
        self._lock = Lock()
        self.values: Final[list[NodeValue]] = []

    def __call__(
        self,
        node: str,
        slot: int,
        value: Any,
        is_dead: bool,  # noqa: FBT001  (so it is called)
        context: NodeOutputContext,
    ) -> None:
        """One output; see ``RunOptions.node_outputs``."""
        # What is fed goes by the name of what it is fed for.
        node, slot = fed_by(node, context.op) or (node, slot)
        copied = _copied(value)
        found = NodeValue(_key(node, slot, context), node, context.op, slot, copied, is_dead)
        with self._lock:
            self._left -= getattr(copied, "nbytes", 0)
            if self._left >= 0:
                self.values.append(found)

    def check(self) -> None:
        """Raise ResourceExhaustedError if some values were left out."""
        if self._left < 0:
            raise ResourceExhaustedError(
                f"The values of the step are {-self._left} bytes more than are kept",
                next_step="fetch less, or allow more by max_bytes",
            )


def collect(
    graph: Any,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    max_bytes: int = MAX_BYTES,
) -> list[NodeValue]:
    """Run a step node by node, and keep what each node gives.

    Args:
        graph: a ``Session``, which has its own options and variables; or a graph in any form that
            one takes, which is run as it was written, by the dataflow executor.
        fetches: like ``Session.run``'s.
        feed_dict: like ``Session.run``'s.
        max_bytes: of all values together.

    Raises:
        ResourceExhaustedError: there are more bytes.
        OpError: the step fails.

    """
    taking = _Collector(max_bytes)
    with session_of(graph) as session:
        session.run(fetches, feed_dict, options=RunOptions(node_outputs=taking))
    taking.check()
    return taking.values


@contextmanager
def session_of(graph: Any) -> Iterator[Session]:
    """A session as it is; or one of a graph, for a ``with`` block, that runs it as written."""
    if isinstance(graph, Session):
        yield graph
    else:
        with Session(graph, config=Config(tier=Tier.DATAFLOW, graph_options=AS_WRITTEN)) as session:
            yield session


def alive(values: list[NodeValue]) -> dict[str, NodeValue]:
    """Those that have a value, by key."""
    return {one.key: one for one in values if one.value is not None}


def compiled_values(
    graph: Any, values: list[NodeValue], feed_dict: Mapping[Any, Any] | None
) -> dict[str, Any]:
    """The same values as the compiled tier computes them: all outside of loops, at once."""
    config = dataclasses.replace(Config(), graph_options=AS_WRITTEN)
    with Session(graph, config=config) as session:
        keys = [one.key for one in values if one.value is not None and "@" not in one.key]
        there = [key for key in keys if key.rpartition(":")[0] in session.graph]
        return dict(zip(there, session.run(there, feed_dict), strict=True))


def _key(node: str, slot: int, context: NodeOutputContext) -> str:
    where = f"@{context.frame}[{context.iteration}]" if context.frame else ""
    return f"{node}:{slot}{where}"


def _copied(value: Any) -> Any:
    """What nobody writes over; None for what is no value."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (np.generic, bytes, int, float, complex, bool)):
        return np.asarray(value)
    return None
