"""What one run of a region cost, statement by statement.

In:   calls of ``probe`` from generated text.
Out:  seconds and shapes by node; how many cores the run kept busy.
Not:  decides nothing; ``tune`` does.
"""

from __future__ import annotations

import math
from time import perf_counter, process_time
from typing import Any, TypeAlias

from penstock.graph.graph import Node

Shape: TypeAlias = tuple[int, ...]


class Profile:
    """The record of one run; used by one thread."""

    __slots__ = (
        "_began", "_last", "_nodes", "arguments", "cores_used", "has_others", "seconds", "shapes",
    )  # fmt: skip

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
        #: The shapes of what the region was given; None for what is no array, or a number.
        self.arguments: list[Shape | None] = []
        #: Seconds in all, and the shape of the largest first output, by node; None if all were
        #: without elements, or no arrays.
        self.seconds: dict[Node, float] = {}
        self.shapes: dict[Node, Shape | None] = {}

    def number_of(self, node: Node) -> int:
        """A number for a node's statement."""
        self._nodes.append(node)
        self.seconds[node] = 0.0
        self.shapes[node] = None
        return len(self._nodes) - 1

    def size_of(self, node: Node) -> int:
        """Elements of a node's largest first output; 0 if it is not known."""
        shape = self.shapes.get(node)
        return 0 if shape is None else math.prod(shape)

    def start(self, *arguments: Any) -> None:
        """The run begins now, with these arguments."""
        self.arguments = [getattr(argument, "shape", None) for argument in arguments]
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
        shape = getattr(value, "shape", ())
        if isinstance(shape, tuple) and math.prod(shape) > self.size_of(node):
            self.shapes[node] = shape
        self._last = perf_counter()
