"""Numbers for several calls at once, where calls that draw few numbers follow each other.

In:   the streams of a node's calls, each a fixed number of counters after the one before.
Out:  for each call the numbers that it would get by itself.
Not:  reserves no stream.

NumPy takes 50 us for a handful of words, and 165 for thirty thousand.  A loop with dropout, say,
draws a few hundred numbers in each iteration.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

from penstock.core.values import Array
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.random_numbers import Drawing

#: No more counters than this are worked on for calls to come.
_MOST: Final = 1 << 13


class DrawingAhead:
    """The draws of one node; safe to use from several threads."""

    def __init__(self, drawing: Drawing, reserved: int) -> None:
        """Each call's stream begins ``reserved`` counters per number after the one before."""
        self._drawing = drawing
        self._reserved = reserved
        #: Guards what follows.
        self._lock = Lock()
        #: What calls to come will get, by the counter of their stream; all of one length.
        self._ready: dict[int, Array] = {}
        #: The counter that comes next if calls go on as they did, and their length.
        self._next = (-1, -1)
        #: For how many calls numbers were made last.
        self._calls = 1

    def __call__(self, stream: Philox, count: int) -> Array:
        """The next ``count`` numbers of a stream."""
        counters = self._drawing.counters(count)
        if not 0 < counters <= _MOST // 2:
            return self._drawing(stream, count)
        with self._lock:
            found = self._ready.pop(stream.counter, None)
            if found is None or len(found) != count:
                found = self._drawn(stream, count, _MOST // counters)
            self._next = stream.skip(self._step(count)).counter, count
        return found

    def _step(self, count: int) -> int:
        return count * self._reserved

    def _drawn(self, stream: Philox, count: int, most: int) -> Array:
        """Numbers for one call; and for twice as many to come as last time, if they are alike."""
        goes_on = self._next == (stream.counter, count)
        self._calls = min(2 * self._calls, most) if goes_on else 1
        self._ready.clear()
        step = self._step(count)
        first, *rest = self._drawing.rows(stream, count, self._calls, step)
        for number, row in enumerate(rest, 1):
            # A row of its own, so that nobody keeps them all.
            self._ready[stream.skip(number * step).counter] = row.copy()
        numbers: Array = first.copy()
        return numbers
