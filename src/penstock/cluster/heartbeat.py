"""Whether workers are still there, as long as somebody waits for them.

In:   workers that somebody waits for, and what to call if one is gone.
Out:  an error that names the task: it does not answer, or is no longer the one that it was.
Not:  asks nobody for whom nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from threading import Condition, Thread
from time import monotonic
from typing import Any, Final

from penstock.cluster.services import Stub, request_class
from penstock.dataclass import dataclass
from penstock.errors import OpError, UnavailableError

_GetStatusRequest: Final = request_class("GetStatus")


@dataclass(frozen=False, slots=True, eq=False)
class _Watch:
    """Somebody who waits for a worker."""

    heartbeat: Heartbeat
    task: str
    worker: Stub
    lost: Callable[[OpError], None]
    #: When it was last heard of, by ``monotonic``.
    heard: float = field(default_factory=monotonic)
    #: When it was last asked.
    asked: float = field(default_factory=monotonic)


class Heartbeat:
    """Asks workers whether they are there."""

    def __init__(self, period: float) -> None:
        """Ask after each ``period`` seconds; two without an answer mean that a worker is gone."""
        self._period: Final = period
        #: Guards what follows.  Innermost: nobody is asked or told under it.
        self._wake = Condition()
        self._watches: set[_Watch] = set()
        #: None as long as nobody waits for anybody.
        self._thread: Thread | None = None
        self._is_closed = False

    def watch(self, task: str, worker: Stub, lost: Callable[[OpError], None]) -> _Watch:
        """Look after a worker from now on; ``lost`` is called at most once."""
        watch = _Watch(self, task, worker, lost)
        with self._wake:
            self._watches.add(watch)
            if self._thread is None and not self._is_closed:
                self._thread = Thread(target=self._work, name="penstock-heartbeat", daemon=True)
                self._thread.start()
        return watch

    @staticmethod
    def forget(watch: Any) -> None:
        """Nobody waits any more."""
        with watch.heartbeat._wake:  # noqa: SLF001  (its own)
            watch.heartbeat._watches.discard(watch)  # noqa: SLF001

    def close(self) -> None:
        """Ask nobody any more."""
        with self._wake:
            self._is_closed = True
            self._wake.notify_all()

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait(self._period / 4)
                if self._is_closed:
                    return
                watches = list(self._watches)
            self._ask(watches)

    def _ask(self, watches: list[_Watch]) -> None:
        """Ask each worker that it is time to ask, once for all who wait for it."""
        now = monotonic()
        due: dict[str, list[_Watch]] = {}
        for watch in watches:
            if now - watch.heard > 2 * self._period:
                self._lose(watch)
            elif now - max(watch.asked, watch.heard) >= self._period:
                due.setdefault(watch.task, []).append(watch)
        for waiting in due.values():
            self._ask_for(waiting)

    def _ask_for(self, waiting: list[_Watch]) -> None:
        for watch in waiting:
            watch.asked = monotonic()

        def answered(error: OpError | None, _answer: Any) -> None:
            if error is None:
                for watch in waiting:
                    watch.heard = monotonic()

        worker = waiting[0].worker
        worker.start("GetStatus", _GetStatusRequest(), answered, timeout=2 * self._period)

    def _lose(self, watch: _Watch) -> None:
        with self._wake:
            if watch not in self._watches:
                return
            self._watches.discard(watch)
        seconds = 2 * self._period
        watch.lost(
            UnavailableError(
                f"{watch.worker.peer} has not answered for {seconds:g} seconds",
                next_step="look whether the process still runs there, and can be reached",
            )
        )
