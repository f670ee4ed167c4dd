"""A kernel's own work on several cores.

In:   how many pieces the work falls into, and what does one of them.
Out:  the work is done; the first error of a piece is raised.
Not:  schedules no kernels (the runtime does); knows no arrays.

Threads help only where Python's lock is let go, as numpy does inside a long operation.  The
caller works too and waits for nothing but pieces that others are at, so it may itself be one
of the threads: if no other is free, it does everything.  Where whole kernels run side by side,
each of them keeps to its share of the cores.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import perf_counter
from typing import Final

from penstock.core.cores import CORES
from penstock.core.denormals import flushing, is_flushing, settle
from penstock.core.forks import in_children, process_lock
from penstock.core.quiet import quiet
from penstock.kernels.parallel.contention import contention

#: Does the piece of a number.
Body = Callable[[int], None]
#: Threads beside the caller's.
HELPERS: Final = CORES - 1


class _PiecewiseCall:
    """The pieces of one call."""

    __slots__ = (
        *("_body", "_count", "_error", "_is_done", "_lock", "_next", "_unfinished"),
        "is_flushing",
    )

    def __init__(self, count: int, body: Body) -> None:
        self._body, self._count = body, count
        #: Whether denormal numbers are zeros, as for whoever asks.
        self.is_flushing = is_flushing()
        self._lock = Lock()
        #: The piece that is taken next; no piece is taken twice.  Under ``_lock``.
        self._next = 0
        #: How many pieces are not done.  Under ``_lock``.
        self._unfinished = count
        #: What went wrong first.  Under ``_lock``.
        self._error: BaseException | None = None
        #: Held until the last piece is done.
        self._is_done = Lock()
        self._is_done.acquire()

    def work(self) -> None:
        """Do pieces until all are taken."""
        while True:
            with self._lock:
                number = self._next
                self._next = number + 1
            if number >= self._count:
                return
            error = None
            if self._error is None:  # after an error the rest is not worth doing
                try:
                    self._body(number)
                except BaseException as raised:  # noqa: BLE001  (raised again by ``finish``)
                    error = raised
            self._tick(error)

    def _tick(self, error: BaseException | None) -> None:
        """One piece less."""
        with self._lock:
            self._error = self._error or error
            self._unfinished -= 1
            is_last = self._unfinished == 0
        if is_last:
            self._is_done.release()

    def finish(self) -> None:
        """Wait for the pieces that others took, and raise what went wrong."""
        self._is_done.acquire()
        if self._error is not None:
            raise self._error


#: Loops that helpers are wanted for; each of them is there once for each helper wanted.
_wanted: Final[SimpleQueue[_PiecewiseCall]] = SimpleQueue()
#: The threads.  Grows under ``_starting``.
_threads: Final[list[Thread]] = []
_starting: Final = process_lock()


def parallel_for(count: int, body: Body) -> None:
    """Call ``body`` with each number below ``count``, on all cores, in any order."""
    helping = min(contention.helpers(HELPERS), count - 1)
    if helping < 1:
        for number in range(count):
            body(number)
        return
    if not _threads:
        _start()
    loop = _PiecewiseCall(count, body)
    for _ in range(helping):
        _wanted.put(loop)
    loop.work()
    loop.finish()


def parallel_equal(count: int, body: Body) -> None:
    """Like ``parallel_for``, for pieces of equal size.

    For a while after others held the cores, this thread does them all: whoever lost its core in
    the midst of a piece has everybody wait for it.
    """
    if count < 2 or contention.is_busy:
        for number in range(count):
            body(number)
        return
    seconds: list[float] = []

    def timed(number: int) -> None:
        start = perf_counter()
        body(number)
        seconds.append(perf_counter() - start)

    parallel_for(count, timed)
    contention.note(seconds)


def _start() -> None:
    with _starting:
        while len(_threads) < HELPERS:
            name = f"penstock-intra-op-{len(_threads)}"
            thread = Thread(target=_help, name=name, daemon=True)
            thread.start()
            _threads.append(thread)


def _help() -> None:
    """The life of a helper; numpy's warnings are each thread's own."""
    settle()
    with quiet():
        while True:
            loop = _wanted.get()
            with flushing(loop.is_flushing):
                loop.work()
            del loop  # which holds on to its arrays


def _forget_threads() -> None:
    """Start anew in the child of a fork: nobody there does what its parent wants to be done."""
    _threads.clear()
    with contextlib.suppress(Empty):
        while True:
            _wanted.get_nowait()


in_children(_forget_threads)
