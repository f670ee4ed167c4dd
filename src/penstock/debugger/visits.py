"""The places where a step stood, and which of them is looked at.

In:   stops, in order.
Out:  one of them, the latest unless somebody went back.
Not:  lets no step go on; keeps no values.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from penstock.debugger.stops import Moment, Stop
from penstock.errors import FailedPreconditionError

#: How many places are remembered.
_MOST: Final = 10_000


class Visits:
    """The places of one step, oldest first."""

    def __init__(self) -> None:
        self._stops: deque[Stop] = deque(maxlen=_MOST)
        #: Which of them is looked at, counted from the latest.
        self._behind = 0

    def add(self, stop: Stop) -> None:
        """Note where it stands now, unless that is known; it is looked at from now on."""
        if not self._stops or self._stops[-1] is not stop:
            self._stops.append(stop)
            self._behind = 0

    @property
    def all(self) -> list[Stop]:
        """All that are remembered, oldest first."""
        return list(self._stops)

    @property
    def at(self) -> Stop | None:
        """The place that is looked at; None before any."""
        return self._stops[-1 - self._behind] if self._stops else None

    @property
    def is_back(self) -> bool:
        """Whether an earlier place than the latest is looked at."""
        return self._behind > 0

    @property
    def has_ended(self) -> bool:
        """Whether there is no step any more."""
        return bool(self._stops) and self._stops[-1].moment is Moment.ENDED

    def back(self, count: int) -> Stop:
        """Look at an earlier place; at a later one if ``count`` is below zero.

        Raises:
            FailedPreconditionError: there is none, or nobody remembers it.

        """
        if not 0 <= self._behind + count < len(self._stops):
            raise FailedPreconditionError("There is no such place")
        self._behind += count
        return self._stops[-1 - self._behind]

    def standing(self) -> Stop:
        """The place where the step can go on.

        Raises:
            FailedPreconditionError: there is no step.

        """
        if not self._stops or self.has_ended:
            raise FailedPreconditionError("There is no step", next_step="run() or step() first")
        return self._stops[-1]
