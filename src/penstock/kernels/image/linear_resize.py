"""Rows of numbers blended from two neighbours each.

In:   for each place of one dimension its two sources, side by side or the same, and the part of
      the second one; float32 arrays [outer, before, inner].
Out:  arrays [outer, places, inner], in memory that is given.
Not:  knows no images, nor where sources and parts come from.

The first source and a part of the difference to the second one are added.  Where every second
(third, fourth) place has equally spaced sources and the same part, as when an image is doubled,
slices are blended and nothing is gathered.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from penstock.core.values import Array

#: Places may repeat after so many of them, and fall into so many runs.
_LONGEST_PERIOD: Final = 4
_MOST_RUNS: Final = 12
#: Shorter chunks are gathered element by element.
_SHORT: Final = 16


class PlaceRun(NamedTuple):
    """Some places, the first sources of all of them, and the part of the second ones."""

    places: slice
    first: slice
    part: np.float32

    @property
    def second(self) -> slice:
        """The second sources, if they have a part."""
        return slice(self.first.start + 1, self.first.stop + 1, self.first.step)


class AxisBlend(NamedTuple):
    """How one dimension is blended."""

    first: Array
    #: Where there is none it is the first once more, and its part is zero.
    second: Array
    #: Differences to the second sources; where there is none, the number of a zero behind them.
    differences: Array
    parts: Array
    #: None if sources are gathered.
    runs: tuple[PlaceRun, ...] | None


def line_of(sources: Array, parts: Array, before: int) -> AxisBlend:
    """For sources [places, 2]."""
    first, second = sources.T
    is_one = first == second
    differences = np.where(is_one, before - 1, first)
    parts = np.where(is_one, np.float32(0), parts)
    period = len(first) // math.gcd(before, len(first))
    runs = None
    if period <= _LONGEST_PERIOD:
        found = [run for phase in range(period) for run in _runs(first, parts, phase, period)]
        runs = tuple(found) if len(found) <= _MOST_RUNS else None
    return AxisBlend(first.copy(), second.copy(), differences, parts, runs)


def _runs(first: Array, parts: Array, phase: int, period: int) -> list[PlaceRun]:
    """Every ``period``-th place from ``phase`` on, as few runs as there are."""
    places = range(phase, len(first), period)
    found, start = list[PlaceRun](), 0
    while start < len(places):
        begin, end = places[start], start + 1
        step = int(first[places[end]] - first[begin]) if end < len(places) else 1
        while (
            end < len(places)
            and step > 0
            and first[places[end]] - first[places[end - 1]] == step
            and parts[places[end]] == parts[begin]
        ):
            end += 1
        source, count = int(first[begin]), end - start
        sources = slice(source, source + (count - 1) * step + 1, max(step, 1))
        found.append(PlaceRun(slice(begin, places[end - 1] + 1, period), sources, parts[begin]))
        start = end
    return found


def blend(x: Array, line: AxisBlend, out: Array) -> None:
    """Write an array [outer, before, inner], blended by a line, into [outer, places, inner]."""
    differences = np.empty_like(x)
    np.subtract(x[:, 1:], x[:, :-1], differences[:, :-1])
    differences[:, -1] = 0
    if line.runs is None:
        _gather(x, differences, line, out)
        return
    for run in line.runs:
        target, source = out[:, run.places], x[:, run.first]
        if run.part:
            np.multiply(differences[:, run.first], run.part, target)
            target += source
        else:
            target[...] = source


def _gather(x: Array, differences: Array, line: AxisBlend, out: Array) -> None:
    """By sources that may be anywhere."""
    outer, _, inner = x.shape
    first, second, parts = line.first, line.differences, line.parts[:, np.newaxis]
    if inner < _SHORT:
        first, second = _by_element(first, inner), _by_element(second, inner)
        parts = np.repeat(line.parts, inner)
        x, differences = x.reshape(outer, -1), differences.reshape(outer, -1)
        out = out.reshape(outer, -1)
    # They are in range; only "raise" would make sure once more, in memory of its own.
    differences.take(second, 1, out, "clip")
    out *= parts
    out += x.take(first, 1, mode="clip")


def _by_element(sources: Array, inner: int) -> Array:
    """Where each element of the sources is, if every source has so many of them."""
    return (sources[:, np.newaxis] * inner + np.arange(inner)).reshape(-1)
