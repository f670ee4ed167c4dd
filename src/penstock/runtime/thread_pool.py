"""Threads for slow kernels, shared by the whole process unless a session wants its own.

In:   closures.
Out:  they run, some time soon, on some thread.
Not:  closures must not raise; kernels' errors are caught by the executor.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final, TypeAlias

Schedule: TypeAlias = Callable[[Callable[[], None]], None]

#: Guards ``_shared``.  Innermost.
_lock: Final = Lock()
#: The process's pools by number of threads; they live until the process ends.
_shared: Final[dict[int, ThreadPoolExecutor]] = {}


def thread_count(configured: int) -> int:
    """How many threads a setting means: 0 is one per core; less than 1 is none."""
    return (os.cpu_count() or 1) if configured == 0 else max(configured, 1)


def shared_pool(configured: int) -> Schedule | None:
    """The process's pool of that size; None if one thread, the caller's, is all there is."""
    count = thread_count(configured)
    if count == 1:
        return None
    with _lock:
        if count not in _shared:
            _shared[count] = new_pool(count)
        pool = _shared[count]
    return scheduler(pool)


def new_pool(count: int) -> ThreadPoolExecutor:
    """A pool of its own; whoever makes it shuts it down."""
    return ThreadPoolExecutor(count, thread_name_prefix="penstock")


def scheduler(pool: ThreadPoolExecutor) -> Schedule:
    """A function that hands closures to ``pool``."""

    def schedule(closure: Callable[[], None]) -> None:
        pool.submit(closure)

    return schedule
