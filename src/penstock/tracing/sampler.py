"""Look now and then which node a thread is at.

In:   what tells the place of a thread; threads, and where to note what they are at.
Out:  ``SAMPLE`` events.
Not:  knows no compiled text; changes nothing about what the threads do.

One thread looks at all that are watched.  A thread that computes in Python gives way every few
milliseconds unless it is asked to do so more often: so the interpreter's switch interval is that of
the sampler while one runs, and is put back afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event as Signal
from threading import Lock, Thread
from time import perf_counter_ns
from types import TracebackType
from typing import Final, TypeAlias

from penstock.tracing.recorder import Event, Note

#: The node that a thread is at: name, op, frame and iteration; None if it is at none.
PlaceNow: TypeAlias = Callable[[int], tuple[str, str, str, int] | None]
#: Seconds between two looks: ten per hundredth of a second, of which one takes some 20 us.
DEFAULT_INTERVAL: Final = 1e-3


class Sampler:
    """Looks at threads as long as its ``with`` block lasts."""

    def __init__(self, place_now: PlaceNow, interval: float = DEFAULT_INTERVAL) -> None:
        """Get ready.

        Args:
            place_now: tells what a thread is at.
            interval: seconds between two looks.

        """
        self._place_now: Final = place_now
        self._interval: Final = interval
        #: Guards ``_watched``.  Innermost.
        self._lock: Final = Lock()
        #: How each thread's places are noted; a thread that is watched twice has two notes.
        self._watched: Final[dict[int, list[Note]]] = {}
        self._is_over: Final = Signal()
        self._thread: Final = Thread(target=self._look, name="penstock sampler", daemon=True)
        self._switch_interval = 0.0

    def __enter__(self) -> Sampler:
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._interval, self._switch_interval))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        sys.setswitchinterval(self._switch_interval)

    @contextmanager
    def watch(self, thread: int, note: Note) -> Iterator[None]:
        """Look at a thread as long as the context lasts."""
        with self._lock:
            self._watched.setdefault(thread, []).append(note)
        try:
            yield
        finally:
            with self._lock:
                notes = self._watched[thread]
                notes.pop()
                if not notes:
                    del self._watched[thread]

    def _look(self) -> None:
        while not self._is_over.wait(self._interval):
            with self._lock:
                watched = [(thread, notes[-1]) for thread, notes in self._watched.items()]
            for thread, note in watched:
                at, place = perf_counter_ns(), self._place_now(thread)
                if place is not None:
                    note((Event.SAMPLE, *place, at, thread))
