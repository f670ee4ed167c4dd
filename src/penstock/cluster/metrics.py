"""What a server has done, counted.

In:   calls, as they begin and end.
Out:  numbers by name, also in Prometheus' text format.
Not:  keeps no history: whoever scrapes does.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock
from time import perf_counter
from typing import Final, NamedTuple

from penstock.cluster.task import Task


class Sample(NamedTuple):
    """One number."""

    name: str
    #: The method whose calls are counted; empty if it is not about calls.
    method: str
    value: float

    @property
    def text(self) -> str:
        """Name and method, as Prometheus writes them."""
        return f'{self.name}{{method="{self.method}"}}' if self.method else self.name


class CountedCall:
    """A call of a method as long as its ``with`` block lasts."""

    __slots__ = ("_method", "_metrics", "_start")

    def __init__(self, metrics: Metrics, method: str) -> None:
        self._metrics = metrics
        self._method = method

    def __enter__(self) -> None:
        self._start = perf_counter()
        self._metrics.begin()

    def __exit__(self, kind: type[BaseException] | None, *_raised: object) -> None:
        seconds = perf_counter() - self._start
        self._metrics.end(self._method, seconds, failed=kind is not None)


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

    def call(self, method: str) -> CountedCall:
        """A call of a method, as a context: counted, and timed."""
        return CountedCall(self, method)

    def begin(self) -> None:
        """A call is under way."""
        with self._lock:
            self._under_way += 1

    def end(self, method: str, seconds: float, *, failed: bool) -> None:
        """It took so long."""
        with self._lock:
            self._under_way -= 1
            self._calls[method] += 1
            self._failures[method] += failed
            self._seconds[method] += seconds  # type: ignore[assignment]

    def samples(self) -> list[Sample]:
        """Every number."""
        with self._lock:
            found = [
                Sample("calls_under_way", "", self._under_way),
                Sample("steps_known", "", len(self._task.steps)),
            ]
            for method in self._calls:
                found += [
                    Sample("calls_total", method, self._calls[method]),
                    Sample("failed_calls_total", method, self._failures[method]),
                    Sample("call_seconds_total", method, self._seconds[method]),
                ]
        return found

    def counts(self) -> dict[str, float]:
        """The same, by name and method."""
        return {sample.text: sample.value for sample in self.samples()}

    def text(self) -> str:
        """The same, as Prometheus reads it."""
        return "".join(f"penstock_{name} {value:g}\n" for name, value in self.counts().items())
