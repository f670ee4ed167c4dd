"""Threads for slow kernels: pools of the process, pools with a name, a session's own.

In:   closures.
Out:  they run, some time soon, on some thread.
Not:  closures must not raise; kernels' errors are caught by the executor.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor  # not when it is wanted: it hooks into forks
from threading import Lock
from typing import Final
from weakref import WeakSet

from penstock.config import Config, ThreadPoolOption
from penstock.core.cores import CORES
from penstock.core.denormals import settle
from penstock.core.forks import end_stray, generation, in_children, process_lock
from penstock.errors import InvalidArgumentError
from penstock.kernels.parallel.contention import contention
from penstock.state.step_state import Runner


class Pool:
    """A number of threads, started when they are first needed."""

    __slots__ = ("__weakref__", "_executor", "_lock", "_scheduled", "count")

    def __init__(self, count: int) -> None:
        self.count: Final = count
        #: Guards the start of the threads, and the number of closures.  Innermost.
        self._lock = Lock()
        #: Closures that are not done yet.  Under ``_lock``.
        self._scheduled = 0
        #: None as long as nothing was scheduled, and in a forked process, which has the
        #: memory of its parent but not the threads.
        self._executor: ThreadPoolExecutor | None = None
        with _lock:
            _pools.add(self)

    def schedule(self, closure: Callable[[], None]) -> None:
        """Have ``closure`` run; raises RuntimeError after ``close``."""
        executor = self._executor
        if executor is None:
            executor = self._start()
        self._count(1)
        try:
            executor.submit(self._counted, closure)
        except RuntimeError:
            self._count(-1)
            raise

    def close(self, *, wait: bool = False) -> None:
        """Run what is scheduled and then end the threads; perhaps wait until they have."""
        self._start().shutdown(wait=wait)

    def forget_threads(self) -> None:
        """Start anew: this process was forked."""
        self._lock = Lock()
        self._executor = None
        self._scheduled = 0

    def _counted(self, closure: Callable[[], None]) -> None:
        before = generation()
        try:
            closure()
        finally:
            end_stray(before)
            self._count(-1)

    def _count(self, more: int) -> None:
        """Say how many kernels run side by side.

        What waits for a thread counts if it will get one at once: who begins first is not to have
        the cores for itself.
        """
        with self._lock:
            before = min(self._scheduled, self.count)
            self._scheduled += more
            change = min(self._scheduled, self.count) - before
        if change:
            contention.count(change)

    def _start(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    self.count, thread_name_prefix="penstock", initializer=settle
                )
            return self._executor


#: Guards ``_pools``.  Innermost.
_lock: Final = process_lock()
#: All pools there are, so that a forked process can start anew.
_pools: Final[WeakSet[Pool]] = WeakSet()
#: The process's pools by number of threads.  Like the next it only grows, by ``setdefault``,
#: which is atomic: a pool that loses the race has started no thread yet.
_shared: Final[dict[int, Pool]] = {}
#: Pools by name, each with the number that was asked for when it was made.
_named: Final[dict[str, tuple[int, Pool]]] = {}


def _start_anew() -> None:
    for pool in list(_pools):
        pool.forget_threads()


in_children(_start_anew)


def thread_count(configured: int) -> int:
    """How many threads a setting means: 0 is one per core; below 0 means 1, the caller's."""
    return CORES if configured == 0 else max(configured, 1)


class SessionPools:
    """The pools that the steps of one session can choose from, by number."""

    def __init__(self, config: Config) -> None:
        """Find or make the pools.

        Raises:
            InvalidArgumentError: a pool of that name has another number of threads.

        """
        #: How many threads a pool has that does not say.
        self._default = thread_count(config.inter_op_parallelism_threads)
        #: Pools that end with the session.
        self._own: list[Pool] = []
        listed = tuple(map(self._listed, config.session_inter_op_thread_pool))
        #: By number; at least one.
        self._pools = listed or (self._only(config),)

    def runner(self, number: int) -> Runner | None:
        """What schedules on a pool; None if the caller's thread is all there is.

        Raises:
            InvalidArgumentError: there is no pool of that number; -1 is the caller's thread.

        """
        if not -1 <= number < len(self._pools):
            raise InvalidArgumentError(
                f"Invalid inter_op_thread_pool: {number}",
                next_step=f"the session has {len(self._pools)}, counted from 0; -1 is the "
                "caller's own thread",
            )
        if number < 0 or self._pools[number].count == 1:
            return None
        return self._pools[number].schedule

    def close(self) -> None:
        """End the session's own threads; those that others share go on."""
        for pool in self._own:
            pool.close()

    def _only(self, config: Config) -> Pool:
        if config.use_per_session_threads:
            return self._new_own(self._default)
        return _shared_pool(self._default)

    def _listed(self, option: ThreadPoolOption) -> Pool:
        count = self._default if option.num_threads == 0 else max(option.num_threads, 1)
        if not option.global_name:
            return self._new_own(count)
        return _named_pool(option, count)

    def _new_own(self, count: int) -> Pool:
        self._own.append(Pool(count))
        return self._own[-1]


def _shared_pool(count: int) -> Pool:
    """The process's pool of that size."""
    known = _shared.get(count)
    return known if known is not None else _shared.setdefault(count, Pool(count))


def _named_pool(option: ThreadPoolOption, count: int) -> Pool:
    """The process's pool of that name, made by whoever asks first."""
    name, asked = option.global_name, option.num_threads
    known = _named.get(name)
    if known is None:
        known = _named.setdefault(name, (asked, Pool(count)))
    if known[0] != asked:
        raise InvalidArgumentError(
            f"Pool {name} configured previously with num_threads={known[0]}; cannot "
            f"re-configure with num_threads={asked}"
        )
    return known[1]
