"""Two ways to run the steps of a request, by turns until it is known which is faster.

In:   how long each step took, and in which way it was run.
Out:  the way for the next step; in the end, how much of the time the one takes of the other.
Not:  runs and measures nothing; decides nothing.

On a machine that others use any step may take long, and for seconds all of them may.  So steps of
the two ways take turns, and the fewest seconds of each are compared.  The first step of each, which
may make kernels and finds nothing in the caches, does not count.
"""

from __future__ import annotations

#: Steps of each way that do not count.
_FIRST_STEPS = 1


class Turns:
    """One comparison: a request as one region, and as parts.  The caller sees to a lock."""

    def __init__(self, count: int) -> None:
        """Compare so many steps of each; with 0, parts are taken to be faster."""
        self._wanted = count + _FIRST_STEPS if count else 0
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
        return min(len(self._whole), len(self._parts)) >= self._wanted

    @property
    def ratio(self) -> float:
        """How much of the region's time the parts take, when the turns are over."""
        if not self._wanted:
            return 0.0
        return min(self._parts[_FIRST_STEPS:]) / max(min(self._whole[_FIRST_STEPS:]), 1e-9)
