"""Cut a region where expensive parts of it could run side by side.

In:   units, what they depend on, and the seconds that each of them took.
Out:  groups of units, each to be a region of its own; or none, if cutting gains nothing.
Not:  starts no thread: the executor gives slow regions to its pool, like slow kernels.

Every unit begins as a group.  Two groups are joined where that costs no time: a chain of two,
or a cheap group and the only one that needs it, or that it needs.  None of these can make a
cycle, since there is no second way from the one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.dataclass import dataclass
from penstock.runtime.compiler.loops import LoopOrNode, RegularLoop
from penstock.runtime.compiler.profile import Profile

#: How many times as fast the parts must be, side by side, as one after the other: for each core
#: that is busy then, since a part that is alone on its core takes so many times as long.
_GAIN: Final = 1.25
#: Or they keep all cores busy but for a tenth of the time.  Then kernels that share their work are
#: as fast in theory, and slower by what they wait for each other at the end of each.
_FULL: Final = 0.9


@dataclass(frozen=False, slots=True, eq=False)
class _CostGroup:
    members: list[LoopOrNode]
    seconds: float
    sources: set[_CostGroup] = field(default_factory=set)
    users: set[_CostGroup] = field(default_factory=set)


def seconds_of(unit: LoopOrNode, profile: Profile) -> float:
    """What a node, or all that is in a loop, took."""
    if isinstance(unit, RegularLoop):
        return sum(seconds_of(inner, profile) for inner in unit.body)
    return profile.seconds.get(unit, 0.0)


def partition_by_cost(
    units: Sequence[LoopOrNode],
    sources: Callable[[LoopOrNode], Iterable[LoopOrNode]],
    seconds: Mapping[LoopOrNode, float],
    threads: int,
    cores: float = 1.0,
    limits: Limits = DEFAULT_LIMITS,
) -> list[list[LoopOrNode]]:
    """Groups of units, each sources first; none if nothing is gained.

    Args:
        units: sources first.
        sources: what a unit depends on, inside or outside.
        seconds: what each unit took.
        threads: how many can run at the same time.
        cores: how many were busy when they ran one after the other.
        limits: what is worth a thread.

    """
    if threads < 2:
        return []
    heavy = limits.heavy_part
    groups = _joined(_singles(units, sources, seconds), heavy)
    if sum(group.seconds >= heavy for group in groups) < 2:
        return []
    if _times_as_fast(groups, threads, limits) < min(_GAIN * max(cores, 1.0), _FULL * threads):
        return []
    order = {unit: index for index, unit in enumerate(units)}
    return [sorted(group.members, key=order.__getitem__) for group in groups]


def _singles(
    units: Sequence[LoopOrNode],
    sources: Callable[[LoopOrNode], Iterable[LoopOrNode]],
    seconds: Mapping[LoopOrNode, float],
) -> list[_CostGroup]:
    groups = {unit: _CostGroup([unit], seconds.get(unit, 0.0)) for unit in units}
    for unit, group in groups.items():
        for source in sources(unit):
            if source in groups and source is not unit:
                group.sources.add(groups[source])
                groups[source].users.add(group)
    return list(groups.values())


def _joined(groups: list[_CostGroup], heavy: float) -> list[_CostGroup]:
    """Join as long as something can be joined."""
    alive = dict.fromkeys(groups)
    waiting = list(groups)
    while waiting:
        group = waiting.pop()
        if group not in alive:
            continue
        other = _partner(group, heavy)
        if other is not None:
            del alive[other]
            _swallow(group, other)
            waiting += [group, *group.sources, *group.users]
    return list(alive)


def _partner(group: _CostGroup, heavy: float) -> _CostGroup | None:
    """A neighbour that the group can be joined with at no cost."""
    is_cheap = group.seconds < heavy
    if len(group.users) == 1:
        [user] = group.users
        if is_cheap or len(user.sources) == 1:
            return user
    if len(group.sources) == 1:
        [source] = group.sources
        if is_cheap or len(source.users) == 1:
            return source
    return None


def _swallow(group: _CostGroup, other: _CostGroup) -> None:
    group.members += other.members
    group.seconds += other.seconds
    for source in other.sources - {group}:
        source.users.remove(other)
        source.users.add(group)
    for user in other.users - {group}:
        user.sources.remove(other)
        user.sources.add(group)
    group.sources = (group.sources | other.sources) - {group, other}
    group.users = (group.users | other.users) - {group, other}


def _times_as_fast(groups: Sequence[_CostGroup], threads: int, limits: Limits) -> float:
    """How many times as fast the groups are side by side, going by the longest path."""
    done: dict[_CostGroup, float] = {}
    waiting = list(groups)
    while waiting:
        group = waiting[-1]
        missing = [source for source in group.sources if source not in done]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        start = max((done[source] for source in group.sources), default=0.0)
        done[group] = start + group.seconds + limits.thread_start
    total = sum(group.seconds for group in groups)
    # However short the path, the work must be done by the threads there are.
    return total / max(*done.values(), total / threads, limits.heavy_part)
