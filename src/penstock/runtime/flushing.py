"""Which steps take denormal numbers for zeros, as TensorFlow's threads do.

In:   a request's graph, and then the values that are fed.
Out:  whether the step flushes.
Not:  sets nothing; ``core/denormals.py`` does, in each thread that works for the step.

TensorFlow flushes in all of its threads, and not in the caller's.  To turn the switch of the
processor on and off takes 2 µs, which is a third of the shortest steps, and next to nothing of
those for which it matters.  So the law here: a step flushes if it computes floats in a graph with
a loop, calls a function, or is large.  It is large if it has many nodes, or some and long arrays
among its constants, variables and feeds.  Times have no say in it: one request with feeds of the
same shapes always flushes, or never.  What runs in the caller's own thread
(``inter_op_thread_pool=-1``) does not, as in TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, shape_of
from penstock.defs.attrs import TensorAttr
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.graph.static_shapes import noted_shapes

#: A step is large if the nodes that compute floats, times the elements of the longest array...
_WORK: Final = 1 << 18
#: ... or nodes alone are so many.
_NODES: Final = 4096
#: Their references included.
_FLOATING: Final = frozenset(
    kind for base in dtypes.ALL if base.is_floating for kind in (base, base.ref)
)
#: Nodes that have arrays, besides handles of variables.
_LASTING: Final = frozenset({Role.CONSTANT, Role.VARIABLE})
#: Tells of the values that are fed whether a step with them flushes.
Flushes: TypeAlias = Callable[[Sequence[Value]], bool]


class Flushing:
    """Whether the steps of one request flush."""

    __slots__ = ("_always", "_long", "_looked_at", "is_wanted")

    def __init__(self, graph: Graph, *, is_wanted: bool) -> None:
        #: Whether the configuration and the machine allow it.
        self.is_wanted = is_wanted
        computing, longest, has_loop, has_call = 0, 0, False, False
        args: list[Node] = []
        for node in graph:
            role = node.role
            if role is Role.OTHER:
                op = node.op
                computing += not _FLOATING.isdisjoint(node.output_types)
                has_call |= op.is_function or op.takes_functions
                if op.name == "VarHandleOp":
                    longest = max(longest, _length(node))
            elif role in _LASTING:
                longest = max(longest, _length(node))
            elif role is Role.ARG:
                args.append(node)
            else:
                has_loop |= role is Role.NEXT_ITERATION
                has_call |= role is Role.CALL  # what is called is not looked into
        is_large = computing >= _NODES or computing * longest >= _WORK
        self._always = is_wanted and (is_large or has_call or (has_loop and computing > 0))
        #: Feeds that may be long, by number, and from how many elements on they are.
        self._looked_at: tuple[int, ...] = ()
        self._long = -(-_WORK // max(computing, 1))
        if is_wanted and computing and not self._always:
            self._looked_at = tuple(arg.attrs["index"] for arg in args if self._may_be_long(arg))

    def _may_be_long(self, arg: Node) -> bool:
        is_short = any(
            shape.is_fully_defined and shape.num_elements() < self._long
            for shape in noted_shapes(arg)[:1]
        )
        return arg.output_types[0].is_floating and not is_short

    def on_pool(self, number: int) -> Flushes:
        """What tells of a step's feeds whether it flushes; -1 is the caller's own thread."""
        if number < 0 or not (self._always or self._looked_at):
            return _never
        return _ever if self._always else self._has_long_feed

    def _has_long_feed(self, feeds: Sequence[Value]) -> bool:
        long = self._long
        for index in self._looked_at:
            # A graph may have nodes for feeds that there are not, which others tell of.
            if index < len(feeds) and getattr(feeds[index], "size", 0) >= long:
                return True
        return False


def _never(_feeds: Sequence[Value]) -> bool:
    return False


def _ever(_feeds: Sequence[Value]) -> bool:
    return True


def _length(node: Node) -> int:
    """The elements of a constant or a variable."""
    if node.role is Role.CONSTANT:
        value = node.attrs.get("value")
        return math.prod(shape_of(value.value)) if isinstance(value, TensorAttr) else 0
    shape = node.attrs.get("shape")
    if isinstance(shape, TensorShape) and shape.dims is not None:
        return math.prod(max(size or 0, 0) for size in shape.dims)
    return 0
