"""What a server has done, counted.

In:   calls, as they begin and end.
Out:  numbers by name, also in Prometheus' text format.
Not:  keeps no history: whoever scrapes does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Final

from penstock.cluster.task import Task


class Metrics:
    """Counters of one server."""

    def __init__(self, task: Task) -> None:
        self._task: Final = task
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        self._calls: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()
        self._under_way = 0

    @contextmanager
    def call(self, method: str) -> Iterator[None]:
        """A call of a method: counted, and timed."""
        start = perf_counter()
        with self._lock:
            self._under_way += 1
        failed = True
        try:
            yield
            failed = False
        finally:
            with self._lock:
                self._under_way -= 1
                self._calls[method] += 1
                self._failures[method] += failed
                self._seconds[method] += perf_counter() - start  # type: ignore[assignment]

    def counts(self) -> dict[str, float]:
        """Every number, by name and method."""
        with self._lock:
            found: dict[str, float] = {
                "calls_under_way": self._under_way,
                "steps_known": len(self._task.steps),
            }
            for method in self._calls:
                found[f'calls_total{{method="{method}"}}'] = self._calls[method]
                found[f'failed_calls_total{{method="{method}"}}'] = self._failures[method]
                found[f'call_seconds_total{{method="{method}"}}'] = self._seconds[method]
        return found

    def text(self) -> str:
        """The same, as Prometheus reads it."""
        return "".join(f"penstock_{name} {value:g}\n" for name, value in self.counts().items())
