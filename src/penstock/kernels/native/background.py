"""A thread that compiles programs while steps go on without them.

In:   work that nobody waits for.
Out:  it is done, some time, one piece after the other; what has not begun when the process ends is
      not.
Not:  knows no programs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Thread, main_thread
from typing import Final

from penstock.core.forks import generation, process_lock

#: What is still to be done.  Changed under ``_lock``.
_waiting: Final[deque[Callable[[], None]]] = deque()
#: The process in which a thread works, as a number of forks, in its one element; None if none
#: does.  Changed under ``_lock``.
_works_in: Final[list[int | None]] = [None]
#: Held while work is put down or taken up; none is done under it.
_lock: Final = process_lock()


def start(work: Callable[[], None]) -> None:
    """Have some work done by and by; it must not raise."""
    with _lock:
        _waiting.append(work)
        if _works_in[0] == generation():
            return
        _works_in[0] = generation()
    # Not a daemon: one that is stopped within XLA would take the process with it.
    Thread(target=_work, name="penstock-native").start()


def is_idle() -> bool:
    """Whether all is done."""
    with _lock:
        return _works_in[0] != generation()


def _work() -> None:
    while (work := _next()) is not None:
        work()


def _next() -> Callable[[], None] | None:
    """What comes next; None if the thread is to end."""
    with _lock:
        if _waiting and main_thread().is_alive():
            return _waiting.popleft()
        _works_in[0] = None
        return None
