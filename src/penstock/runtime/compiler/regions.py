"""Group what can be compiled into regions that can run as one.

In:   the units of a frame, and which of them the executor must run itself.
Out:  groups of units.
Not:  writes no graph.

A region waits for all its inputs before it starts, so nothing in it may have to run before
one of them can come.  Units are therefore grouped by the set of those outside units that
they depend on.  On any path the set only grows, and it does grow behind a unit that is
outside; so no path leaves a group and comes back to it, and no two groups wait for each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from penstock.runtime.compiler.loops import Unit


def group(
    units: Sequence[Unit],
    sources: Callable[[Unit], Iterable[Unit]],
    is_outside: Callable[[Unit], bool],
) -> list[list[Unit]]:
    """Groups of units that are not outside; units come, and stay, sources first."""
    #: The outside units that a unit depends on, itself included, as bits.
    needs: dict[Unit, int] = {}
    groups: dict[int, list[Unit]] = {}
    outside = 0
    for unit in units:
        needed = 0
        for source in sources(unit):
            needed |= needs.get(source, 0)
        if is_outside(unit):
            needs[unit] = needed | (1 << outside)
            outside += 1
        else:
            needs[unit] = needed
            groups.setdefault(needed, []).append(unit)
    return list(groups.values())
