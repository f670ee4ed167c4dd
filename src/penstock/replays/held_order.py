"""The order in which nodes become ready, but for some that wait for others.

In:   pairs of runs of nodes, the second of which is to wait for the first.
Out:  what happens, noted; whoever waits for what never comes, goes on in the end.
Not:  knows not why anybody waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from penstock.replays.orders import NotedOrder
from penstock.state.step_order import NodeRun, Outcome, Participant

#: The first is to end before the second begins.
Pair: TypeAlias = tuple[NodeRun, NodeRun]


class HeldOrder(NotedOrder):
    """First ready, first run; held back are those that wait for others."""

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        super().__init__()
        # The order's lock guards what follows, too.
        #: What each run still waits for.
        self._waits_for: Final[dict[NodeRun, set[NodeRun]]] = {}
        for first, second in pairs:
            self._waits_for.setdefault(second, set()).add(first)
        #: What somebody waits for, or has waited for.
        self._awaited: Final = {first for waited in self._waits_for.values() for first in waited}
        self._ended: Final[set[NodeRun]] = set()
        #: Executors that have something to do, or did not say yet; not those that have ended.
        self._busy: Final[dict[int, Participant]] = {}
        self._all: Final[dict[int, Participant]] = {}

    def join(self, participant: Participant) -> int:
        """An executor begins; returns its number."""
        number = super().join(participant)
        self._all[number] = self._busy[number] = participant
        return number

    def leave(self, number: int) -> None:
        """An executor has ended."""
        self._all.pop(number, None)
        self._busy.pop(number, None)

    def choose(
        self, number: int, ready: Collection[NodeRun], came: Collection[NodeRun]
    ) -> NodeRun | None:
        """What came; then the first that waits for nobody; if all wait, others may go on first."""
        if came or not ready:
            self._is_busy(number, is_busy=bool(came))
            return next(iter(came), None)
        free = next((one for one in ready if not self._waits(one)), None)
        self._is_busy(number, is_busy=free is not None)
        if free is None and not self._wakes_another():
            return next(iter(ready))  # for whom it waits, that one will not come
        return free

    def ends(self, node_run: NodeRun, outcome: Outcome) -> None:
        """Note it; those who wait for it may go on."""
        super().ends(node_run, outcome)
        self._ended.add(node_run)
        if node_run not in self._awaited:
            return
        for number, participant in self._all.items():
            if number != node_run.executor:
                self._busy[number] = participant
                participant.wake()

    def _waits(self, node_run: NodeRun) -> bool:
        return not self._waits_for.get(node_run, set()) <= self._ended

    def _is_busy(self, number: int, *, is_busy: bool) -> None:
        if is_busy:
            self._busy[number] = self._all[number]
        else:
            self._busy.pop(number, None)

    def _wakes_another(self) -> bool:
        """Have another executor go on, if one can."""
        for participant in self._busy.values():
            participant.wake()
            return True
        return False
