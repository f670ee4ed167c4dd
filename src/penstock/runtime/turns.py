"""Two ways to run the steps of a request, by turns until it is known which is faster.

In:   how long each step took, and in which way it was run.
Out:  the way for the next step; in the end, how much of the time the one takes of the other.
Not:  runs and measures nothing; decides nothing.

On a machine that others use any step may take long, and for seconds all of them may.  So steps of
the two ways take turns, and the fewest seconds of each are compared.  The first step of each, which
may make kernels and finds nothing in the caches, does not count.  As long as the two are close to
each other, more steps cost little, and tell more.
"""

from __future__ import annotations

#: Steps of each way that do not count.
_FIRST_STEPS = 1
#: Ways are close to each other if this is what they differ by; then there are so many times the
#: steps that were asked for.
_CLOSE = 0.1
_TIMES = 4


class Turns:
    """One comparison: a request as one region, and as parts.  The caller sees to a lock."""

    def __init__(self, count: int) -> None:
        """Compare so many steps of each, or some more; with 0, parts are taken to be faster."""
        self._count = count
        self._is_parts = False
        self._whole: list[float] = []
        self._parts: list[float] = []

    def take_parts(self) -> bool:
        """Whether the next step is to be run as parts."""
        self._is_parts = not self._is_parts
        return self._is_parts

    def note(self, seconds: float, *, as_parts: bool) -> None:
        """Take note of a step that has succeeded."""
        (self._parts if as_parts else self._whole).append(seconds)

    @property
    def are_over(self) -> bool:
        """Whether there are enough steps of each."""
        if not self._count:
            return True
        seen = min(len(self._whole), len(self._parts)) - _FIRST_STEPS
        is_close = seen >= self._count and abs(self.ratio - 1.0) < _CLOSE
        return seen >= self._count * (_TIMES if is_close else 1)

    @property
    def ratio(self) -> float:
        """How much of the region's time the parts take; there are steps of both that count."""
        if not self._count:
            return 0.0
        return min(self._parts[_FIRST_STEPS:]) / max(min(self._whole[_FIRST_STEPS:]), 1e-9)
