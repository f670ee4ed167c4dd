"""A thread that compiles programs while steps go on without them.

In:   work that nobody waits for.
Out:  it is done, some time; one piece after the other.
Not:  knows no programs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from penstock.core.forks import generation, process_lock

#: The thread, and in which process it is.  Changed under ``_lock``.
_pools: Final[dict[int, ThreadPoolExecutor]] = {}
#: Held while a thread is looked for; nothing is done under it.
_lock: Final = process_lock()


def start(work: Callable[[], None]) -> Future[None]:
    """Have some work done by and by; it must not raise."""
    with _lock:
        pool = _pools.get(generation())
        if pool is None:
            pool = _pools[generation()] = ThreadPoolExecutor(1, "penstock-native")
    return pool.submit(work)
