"""Group what can be compiled into regions that can run as one.

In:   the units of a frame, and which of them the executor must run itself.
Out:  groups of units.
Not:  writes no graph.

A region waits for all its inputs before it starts, so nothing in it may have to run before
one of them can come.  Units are therefore grouped by the set of those outside units that
they depend on.  On any path the set only grows, and it does grow behind a unit that is
outside; so no path leaves a group and comes back to it, and no two groups wait for each
other.

What comes through an Enter depends on what that depends on outside of the loop, too.  A Merge
runs when one of its inputs comes: it is outside itself unless they come together, and then
depends for certain only on what each of them depends on.  There the set may shrink, but whoever
comes after the Merge has it in the set, and nobody before it can.  A loop may take forever, and
nobody should wait for it without need: it counts as outside for what depends on it, and takes
along only what nobody else depends on, not even by an effect that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import reduce
from operator import and_

from penstock.runtime.compiler.loops import LoopOrNode, RegularLoop


def _itself(unit: LoopOrNode) -> Hashable:
    return unit


def _none(_unit: LoopOrNode) -> tuple[()]:
    return ()


def _yes(_unit: LoopOrNode) -> bool:
    return True


class Clustering:
    """Groups of all frames of a graph; each frame comes after those around it."""

    def __init__(
        self,
        sources: Callable[[LoopOrNode], Iterable[LoopOrNode]],
        is_outside: Callable[[LoopOrNode], bool],
        *,
        mark: Callable[[LoopOrNode], Hashable] = _itself,
        choices: Callable[[LoopOrNode], Iterable[Iterable[LoopOrNode]]] = _none,
        is_pure: Callable[[LoopOrNode], bool] = _yes,
    ) -> None:
        """Nothing is grouped yet.

        Args:
            sources: what a unit depends on.
            is_outside: whether the executor must run a unit itself.
            mark: what stands for such a unit in sets of those; several may have the same.
            choices: what a unit depends on for each of those inputs of which one is enough.
            is_pure: whether only its results matter: what has effects may be what another unit,
                one of those outside, waits for, and no edge says so.

        """
        self._sources = sources
        self._is_outside = is_outside
        self._mark = mark
        self._choices = choices
        self._is_pure = is_pure
        #: The outside units and loops that a unit depends on, itself included, as bits.
        self._needs: dict[LoopOrNode, int] = {}
        #: The bit of each mark.
        self._bits: dict[Hashable, int] = {}

    def expect(self, units: Iterable[LoopOrNode]) -> None:
        """Count outside units as such before their own frame is grouped: what leaves it."""
        for unit in units:
            self._needs[unit] = self._bit(self._mark(unit))

    def group(self, units: Sequence[LoopOrNode]) -> list[list[LoopOrNode]]:
        """Groups of units that are not outside; units come, and stay, sources first."""
        needs_of: dict[LoopOrNode, int] = {}
        for unit in units:
            needed, come_together = self._behind(unit)
            is_outside = self._is_outside(unit) or not come_together
            if is_outside or isinstance(unit, RegularLoop):
                needed |= self._bit(self._mark(unit))
            if not is_outside:
                needs_of[unit] = needed
            self._needs[unit] = needed
        self._join_loops(units, needs_of)
        groups: dict[int, list[LoopOrNode]] = {}
        for unit, needed in needs_of.items():
            groups.setdefault(needed, []).append(unit)
        return list(groups.values())

    def _bit(self, mark: Hashable) -> int:
        return self._bits.setdefault(mark, 1 << len(self._bits))

    def _needed(self, sources: Iterable[LoopOrNode]) -> int:
        needed = 0
        for source in sources:
            needed |= self._needs.get(source, 0)
        return needed

    def _behind(self, unit: LoopOrNode) -> tuple[int, bool]:
        """What a unit needs whichever of its inputs comes, and whether all of them need that."""
        choices = [set(sources) for sources in self._choices(unit)]
        if not choices:
            return self._needed(self._sources(unit)), True
        either = set().union(*choices)
        always = self._needed(source for source in self._sources(unit) if source not in either)
        needs = {self._needed(sources) for sources in choices}
        return always | reduce(and_, needs), len(needs) == 1

    def _join_loops(self, units: Sequence[LoopOrNode], needs_of: dict[LoopOrNode, int]) -> None:
        """Have what is of use to the group of a loop only wait for what that waits for."""
        waiting = {needs_of[unit] for unit in needs_of if isinstance(unit, RegularLoop)}
        if not waiting:
            return
        users: dict[LoopOrNode, set[int | None]] = {unit: set() for unit in needs_of}
        for unit in reversed(units):
            if unit in needs_of and len(users[unit]) == 1:
                [needed] = users[unit]
                if needed in waiting and self._may_wait(unit):
                    needs_of[unit] = needed
            for source in self._sources(unit):
                if source in users:
                    users[source].add(needs_of.get(unit))

    def _may_wait(self, unit: LoopOrNode) -> bool:
        """Whether nobody is kept waiting where a unit runs later than it could."""
        return not isinstance(unit, RegularLoop) and self._is_pure(unit)
