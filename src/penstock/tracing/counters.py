"""How numbers change, from their changes.

In:   when a number grew or shrank, and by how much.
Out:  its values, in the order of time.
Not:  knows not what is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def accumulated(changes: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The values of a number that begins at 0: one for each time at which it is another."""
    points: list[tuple[int, int]] = []
    total = 0
    for at, change in sorted(changes):
        total += change
        if points and points[-1][0] == at:
            points[-1] = at, total
        else:
            points.append((at, total))
    return tuple(
        point for point, before in zip(points, [(0, 0), *points], strict=False)
        if point[1] != before[1]
    )  # fmt: skip


def changes(points: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What has such values, as changes."""
    before = 0
    for at, value in points:
        yield at, value - before
        before = value
