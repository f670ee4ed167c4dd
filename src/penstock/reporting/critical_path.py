"""What the end of a step waited for.

In:   a ``Trace``.
Out:  activations, each of which the next one had to wait for; the last is the last to end.
Not:  knows not what would be faster: another path may be nearly as long.

Going back from the last one: of the activations of the nodes that one reads, the one that ended
last before it began is what it waited for.  What a node receives comes from the one that sent it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, TypeAlias

from penstock.tracing.trace import Activation, Trace

#: A node on its device, in its function.
_Key: TypeAlias = tuple[str, str, str]


def critical_path(trace: Trace) -> list[int]:
    """Positions in ``trace.activations``, oldest first."""
    if not trace.activations:
        return []
    ends = _EndTimes(trace)
    last = max(range(len(trace.activations)), key=lambda n: trace.activations[n].op_end)
    path: dict[int, None] = {}
    at: int | None = last
    # What is met twice would be met for ever: clocks of several tasks may contradict each other.
    while at is not None and at not in path:
        path[at] = None
        at = ends.before(at)
    return list(path)[::-1]


class _EndTimes:
    """When each node's activations ended."""

    def __init__(self, trace: Trace) -> None:
        self._activations: Final = trace.activations
        self._sender: Final = {flow.target: flow.source for flow in trace.flows}
        #: By node, the ends of its activations and their positions, both in the order of time.
        self._ends: Final[dict[_Key, tuple[list[int], list[int]]]] = {}
        found: defaultdict[_Key, list[tuple[int, int]]] = defaultdict(list)
        for number, one in enumerate(trace.activations):
            found[_key(one, one.name)].append((one.op_end, number))
        for key, pairs in found.items():
            pairs.sort()
            self._ends[key] = [end for end, _ in pairs], [number for _, number in pairs]

    def before(self, number: int) -> int | None:
        """What an activation waited for; None if it was there from the beginning."""
        one = self._activations[number]
        sender = self._sender.get(number)
        if sender is not None:
            return sender
        return max(self._inputs(one), key=lambda n: self._activations[n].op_end, default=None)

    def _inputs(self, one: Activation) -> Iterator[int]:
        """The last activation of each node that it reads, of those that ended before it began."""
        for name in one.inputs:
            node = name.removeprefix("^").partition(":")[0]
            ends, numbers = self._ends.get(_key(one, node), ((), ()))
            at = bisect_right(ends, one.op_start)
            if at:
                yield numbers[at - 1]


def _key(one: Activation, name: str) -> _Key:
    return one.place.device, one.place.function, name
