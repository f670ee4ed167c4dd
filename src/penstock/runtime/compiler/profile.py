"""What one run of a region cost, statement by statement.

In:   calls of ``probe`` from generated text.
Out:  seconds and sizes by node; how many cores the run kept busy.
Not:  decides nothing; ``tune`` does.
"""

from __future__ import annotations

from time import perf_counter, process_time
from typing import Any

from penstock.graph.graph import Node


class Profile:
    """The record of one run; used by one thread."""

    __slots__ = ("_began", "_last", "_nodes", "cores_used", "has_others", "seconds", "sizes")

    def __init__(self) -> None:
        #: Nodes by the numbers that the text calls them.
        self._nodes: list[Node] = []
        #: When the run began, and how long all threads had worked until then.
        self._began = 0.0, 0.0
        #: When the statement before was done.
        self._last = 0.0
        #: How many cores were at work on average; known when the run has ended.
        self.cores_used = 1.0
        #: Whether other steps of the request ran meanwhile, whose work counts there as well; set
        #: by who knows.
        self.has_others = False
        #: Seconds in all, and elements of the largest first output, by node.
        self.seconds: dict[Node, float] = {}
        self.sizes: dict[Node, int] = {}

    def number_of(self, node: Node) -> int:
        """A number for a node's statement."""
        self._nodes.append(node)
        self.seconds[node] = 0.0
        self.sizes[node] = 0
        return len(self._nodes) - 1

    def start(self) -> None:
        """The run begins now."""
        self._last = perf_counter()
        self._began = self._last, process_time()

    def end(self) -> None:
        """The run has just ended; kernels may have shared their work among threads of their own."""
        start, worked = self._began
        self.cores_used = (process_time() - worked) / max(perf_counter() - start, 1e-9)

    def probe(self, number: int, value: Any = None) -> None:
        """A statement is done, and ``value`` is its first output."""
        now = perf_counter()
        node = self._nodes[number]
        self.seconds[node] += now - self._last
        size = getattr(value, "size", 1)
        if isinstance(size, int) and size > self.sizes[node]:
            self.sizes[node] = size
        self._last = perf_counter()
