"""Who records what a thread does, for kernels that compute many nodes at once.

In:   the lane of a recorded executor or function, for as long as a thread works for it.
Out:  the same, for whoever asks on that thread.
Not:  records nothing itself.

A kernel of ONNX Runtime's region, or of a program in C, asks ``if watching:``, which costs 15 ns
where nobody records, of what takes a hundred times as long at least.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from typing import Any, Final, NamedTuple, TypeVar

from penstock.tracing.recorder import Detail, Event, Note, Recorder

_Result = TypeVar("_Result")


class Watcher(NamedTuple):
    """Who records a thread."""

    note: Note
    #: Whether nodes inside of regions are to be computed one by one, so that they can be seen.
    is_close: bool

    def inside(self, title: str, op: str, start: int) -> None:
        """A node inside of a region, which began then, is done."""
        self.note((Event.OPAQUE, title, op, "node", start, perf_counter_ns(), get_ident()))


#: By thread.  Each thread changes its own entry alone.
watching: Final[dict[int, Watcher]] = {}


class Watched:
    """Has what this thread does be recorded, as long as its ``with`` block lasts."""

    __slots__ = ("_before", "_sampled", "_thread", "_watcher")

    def __init__(self, recorder: Recorder, note: Note) -> None:
        """Say by whom, and where it is noted."""
        detail, thread = recorder.detail, get_ident()
        self._watcher = Watcher(note, detail is Detail.INSIDE)
        self._thread = thread
        self._before = watching.get(thread)
        self._sampled = recorder.sampled(thread, note) if detail is Detail.LINES else None

    def __enter__(self) -> None:
        watching[self._thread] = self._watcher
        if self._sampled is not None:
            self._sampled.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self._sampled is not None:
            self._sampled.__exit__(*error)
        if self._before is None:
            del watching[self._thread]
        else:
            watching[self._thread] = self._before


def noted(title: str, sort: str, compute: Callable[..., _Result], *args: Any) -> _Result:
    """Compute a region, and note how long it takes if this thread is recorded."""
    watcher = watching.get(get_ident())
    if watcher is None:
        return compute(*args)
    start = perf_counter_ns()
    try:
        return compute(*args)
    finally:
        end = perf_counter_ns()
        watcher.note((Event.OPAQUE, title, "", sort, start, end, get_ident()))


def is_close() -> bool:
    """Whether whoever records this thread wants to see the nodes inside of regions."""
    watcher = watching.get(get_ident())
    return watcher is not None and watcher.is_close


def watcher_here() -> Watcher | None:
    """Who records this thread; None if nobody does."""
    return watching.get(get_ident())
