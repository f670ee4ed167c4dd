"""The fewest exchanged pairs: which two nodes have to run in which order for a step to fail.

In:   a recording of a step that fails, and what it means to fail.
Out:  pairs of nodes, each in another order than where every node runs when it becomes ready; and
      a recording in which hardly anything else is exchanged.
Not:  judges no graph: the pairs may be a mistake of it, or of what looks at its result.

*Canonical* is the order in which nodes become ready.  The failing order is moved towards it: a
part of it, large ones first, is sorted as the canonical order has it, and stays so if the step
still fails.  In the end no two neighbours can be sorted any more.  Those that are still the other
way round are what it takes; two nodes that are no neighbours are then exchanged, if at all, since
something between them is.  (After Zeller, Hildebrandt: "Simplifying and isolating failure-inducing
input", 2002.)
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.dataclass import dataclass
from penstock.errors import FailedPreconditionError, OpError
from penstock.replays.events import Event, named
from penstock.replays.held_order import HeldOrder
from penstock.replays.recording import Recording
from penstock.replays.task import Attempt, Stage
from penstock.state.step_order import NodeRun

#: Told the results of a step and its error, says whether that is a failure.
Fails: TypeAlias = Callable[[Mapping[str, Any], OpError | None], bool]
#: Runs of nodes with effects, one after the other.
_Order: TypeAlias = tuple[NodeRun, ...]
#: The size of the smallest part that can be sorted.
_PAIR: Final = 2


class Exchange(NamedTuple):
    """Two runs of nodes, in another order than the canonical one."""

    #: Which one is first when the step fails.
    first: NodeRun
    second: NodeRun

    def __str__(self) -> str:
        return f"`{named(self.first)}` before `{named(self.second)}` instead of after"


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What makes a step fail."""

    #: Exchanges that it takes.
    exchanges: tuple[Exchange, ...]
    #: Whether none of them can be left out; otherwise there was no time to find out.
    is_minimal: bool
    #: How often the step was run to find out.
    runs: int
    #: The step in an order with these exchanges; it fails.
    recording: Recording

    def __str__(self) -> str:
        count = len(self.exchanges)
        what = "1 exchange" if count == 1 else f"{count} exchanges"
        lines = [f"fails with {what}, found in {self.runs} runs:"]
        return "\n".join([*lines, *(f"  {exchange}" for exchange in self.exchanges)])


def shrink(
    recording: Recording | str | os.PathLike[str],
    fails: Fails | None = None,
    *,
    allow_files: bool = False,
    max_runs: int = 2000,
) -> Shrunk:
    """Find the fewest pairs of nodes that have to be exchanged for a recorded step to fail.

    Args:
        recording: what ``record`` gave, or the path of its file.
        fails: whether results, by endpoint, and an error are a failure; without it, a step fails
            that gives what the recorded one gave.
        allow_files: like ``replay``'s.
        max_runs: how often the step is run to find out, at most.

    Raises:
        FailedPreconditionError: the step fails in the canonical order as well, or not in the
            recorded one.
        OpError: the file cannot be read, or the graph not be run here.

    """
    found = recording if isinstance(recording, Recording) else Recording.load(recording)
    with Stage(found.task, allow_files=allow_files) as stage:
        trials = _Trials(found, stage, fails or _ends_as(found), max_runs)
        return trials.shrunk()


def _ends_as(recording: Recording) -> Callable[[Mapping[str, Any], OpError | None], bool]:
    wanted = recording.ending

    def fails(results: Mapping[str, Any], error: OpError | None) -> bool:
        found = Attempt(results, error, recording.task.before).ending
        return (found.code, found.digests) == (wanted.code, wanted.digests)

    return fails


class _Trials:
    """The step in one order after the other."""

    def __init__(self, recording: Recording, stage: Stage, fails: Fails, max_runs: int) -> None:
        self._recording = recording
        self._stage = stage
        self._fails = fails
        self._left = max_runs
        #: The place of each node with effects in the canonical order.
        self._place: dict[NodeRun, int] = {}
        #: Orders that were tried and do not fail.
        self._passing: set[tuple[NodeRun, ...]] = set()

    def shrunk(self) -> Shrunk:
        """What ``shrink`` is to find."""
        most, self._place = self._left, self._canonical()
        order = self._nearest(self._recorded())
        held = HeldOrder(itertools.pairwise(order))
        attempt = self._stage.attempt(held)
        return Shrunk(
            tuple(Exchange(*pair) for pair in itertools.pairwise(order) if self._is_other(*pair)),
            self._left > 0,
            most - self._left,
            replace(
                self._recording,
                events=tuple(held.events),
                ending=attempt.ending,
                results=attempt.results,
                error=attempt.error,
            ),
        )

    def _canonical(self) -> dict[NodeRun, int]:
        order = HeldOrder()
        attempt = self._stage.attempt(order)
        if self._fails(attempt.results, attempt.error):
            raise FailedPreconditionError(
                "The step fails in the canonical order as well: it is no matter of order",
                next_step="look at what it computes, by penstock compare, say",
            )
        begun = [one for one in _begun(order.events) if one in order.effects]
        return {one: at for at, one in enumerate(begun)}

    def _recorded(self) -> _Order:
        """The failing order, of what the canonical one has as well."""
        order = tuple(one for one in _begun(self._recording.events) if one in self._place)
        if not self._still_fails(order):
            raise FailedPreconditionError(
                "The step does not fail where its nodes begin in the recorded order",
                next_step="give what it means to fail, as shrink's second argument; that outcomes "
                "travelled later on threads plays no part here",
            )
        return order

    def _nearest(self, order: _Order) -> _Order:
        """A failing order of which no two neighbours can be sorted."""
        size = len(order)
        while size > _PAIR:
            order = self._sorted_in_parts(order, size)
            size = max(size // 2, _PAIR)
        while (smaller := self._sorted_in_parts(order, _PAIR)) != order:
            order = smaller
        return order

    def _sorted_in_parts(self, order: _Order, size: int) -> _Order:
        """The order with parts of a size sorted, where it then still fails."""
        for start in range(0, len(order) - 1, size // 2):
            part = sorted(order[start : start + size], key=self._place.__getitem__)
            changed = (*order[:start], *part, *order[start + size :])
            if changed != order and self._still_fails(changed):
                order = changed
        return order

    def _is_other(self, first: NodeRun, second: NodeRun) -> bool:
        """Whether the canonical order has two nodes the other way round."""
        return self._place[first] > self._place[second]

    def _still_fails(self, order: _Order) -> bool:
        """Whether the step fails in an order; no, when it may not be run any more."""
        if order in self._passing or self._left <= 0:
            return False
        self._left -= 1
        attempt = self._stage.attempt(HeldOrder(itertools.pairwise(order)))
        fails = self._fails(attempt.results, attempt.error)
        if not fails:
            self._passing.add(order)
        return fails


def _begun(events: Sequence[Event]) -> list[NodeRun]:
    return [event.node_run for event in events if not event.is_end]
