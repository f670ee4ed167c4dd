"""Orders in which the executor may take what is ready.

In:   a mutant.
Out:  sets of nodes whose being taken last may matter, and what makes the executor do so.
Not:  runs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Final

import pytest

from fuzzing.mutant import Mutant
from fuzzing.neighbours import INTO_MERGE
from penstock.catalogue.op_def import OpDef
from penstock.catalogue.registry import find_op
from penstock.core import dtypes
from penstock.core.names import parse_endpoint
from penstock.runtime import environment
from penstock.runtime.executor.driver import ExecutorState
from penstock.runtime.executor.state import TaggedNode

#: How many nodes are kept back alone, and how many sets of them.
_ALONE: Final = 200
_SETS: Final = 60
_EXITS: Final = frozenset({"Exit", "RefExit"})


class LateQueue:
    """First come, first served; but some nodes only when all others are done."""

    def __init__(self, late: frozenset[str]) -> None:
        self._late_names = late
        self._ready: deque[TaggedNode] = deque()
        self._late: deque[TaggedNode] = deque()
        #: What has been begun, and may make others ready; that belongs to the executor.
        self.running: Collection[Any] = ()

    def append(self, tagged: TaggedNode, /) -> None:
        """Put an activation in."""
        is_late = tagged[0].name in self._late_names
        (self._late if is_late else self._ready).append(tagged)

    def popleft(self) -> TaggedNode:
        """Take the next one."""
        return self._ready.popleft() if self._ready else self._late.popleft()

    def clear(self) -> None:
        """Drop all."""
        self._ready.clear()
        self._late.clear()

    def __len__(self) -> int:
        return len(self._ready) + (0 if self.running else len(self._late))


class Lateness:
    """Which nodes are taken last in the steps to come."""

    def __init__(self, by_step: Sequence[frozenset[str]]) -> None:
        self._by_step = by_step
        #: The number of the step that runs.
        self.step = 0

    def make_queue(self) -> LateQueue:
        """A queue for an executor of that step."""
        return LateQueue(self._by_step[min(self.step, len(self._by_step) - 1)])


class NotingQueue(LateQueue):
    """First come, first served; notes Exits that leave the same frame more than once."""

    def __init__(self, again: set[str]) -> None:
        super().__init__(frozenset())
        self._again = again
        self._left: set[tuple[int, int]] = set()

    def append(self, tagged: TaggedNode, /) -> None:
        """Put an activation in."""
        item, frame, _, is_dead = tagged
        if item.op in _EXITS and not is_dead:
            place = item.id, frame.id
            if place in self._left:
                self._again.add(item.name)
            self._left.add(place)
        super().append(tagged)


@contextmanager
def noting_exits() -> Iterator[set[str]]:
    """Yield the names of Exits that leave a frame more than once, as they come."""
    again: set[str] = set()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(environment, "ready_queues", lambda _seed: lambda: NotingQueue(again))
        yield again


@contextmanager
def keeping_back(by_step: Sequence[frozenset[str]]) -> Iterator[Lateness]:
    """Have the executor take some nodes last, as long as this lasts.

    There is a set of names for each step; the last one is for those that come later as well.
    """
    lateness = Lateness(by_step)
    make = ExecutorState.__init__

    def make_state(self: ExecutorState, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if isinstance(self._ready, LateQueue):
            self._ready.running = self._running

    with pytest.MonkeyPatch.context() as monkeypatch:
        if any(by_step):
            monkeypatch.setattr(environment, "ready_queues", lambda _seed: lateness.make_queue)
            monkeypatch.setattr(ExecutorState, "__init__", make_state)
        yield lateness


def kept_back(mutant: Mutant) -> Iterator[frozenset[str]]:
    """Sets of nodes that may be taken last: single ones, then any of them, by chance."""
    names = list(_results(mutant))
    names += [node.name for node in mutant.all_nodes() if _minds_order(find_op(node.op))]
    names += [node.name for node, _, text in mutant.uses() if mutant.is_reference(text)]
    names += [node.name for node in mutant.of_op("Identity") if node.name.startswith(INTO_MERGE)]
    names = list(dict.fromkeys(names))
    yield from (frozenset({name}) for name in names[:_ALONE])
    draw = Random(len(names))
    for _ in range(_SETS if names else 0):
        yield frozenset(name for name in names if draw.random() < 0.5)


def _results(mutant: Mutant) -> Iterator[str]:
    """The nodes that hand out what is fetched, if they read a reference then."""
    for step in mutant.steps:
        for index, text in enumerate(step.fetches):
            if mutant.is_reference(text):
                endpoint = parse_endpoint(text)
                yield f"_retval_{endpoint.node}_{endpoint.slot}_{index}"


def _minds_order(op: OpDef | None) -> bool:
    """Whether it matters when a node runs: it has effects, or sees those of others."""
    shared = (arg.is_ref or arg.dtype is dtypes.resource for arg in op.inputs) if op else ()
    return op is not None and (op.is_stateful or op.traits.is_impure or any(shared))
