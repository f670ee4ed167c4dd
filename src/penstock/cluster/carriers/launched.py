"""A cluster that a carrier runs: started, watched, started anew where it died, ended.

In:   how many tasks of which jobs, and what is to run them.
Out:  targets for sessions; how often each task was started anew, and why.
Not:  restores nothing: ``MonitoredSession`` gets variables back, from a checkpoint.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from penstock.builder import Graph
from penstock.cluster.carriers.carrier import Carrier, TaskOrder, TaskSettings
from penstock.cluster.carriers.local_processes import LocalProcesses
from penstock.cluster.cluster_spec import ClusterSpec, task_name
from penstock.config import Config
from penstock.core.forks import importing
from penstock.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)

if TYPE_CHECKING:
    from penstock.cluster.grpc_session import GrpcSession

_log: Final = logging.getLogger("penstock.cluster")
#: Seconds between two looks at the tasks, and the most between two lives of one.
_LOOK_SECONDS: Final = 0.1
_MAX_PAUSE_SECONDS: Final = 10.0
#: Seconds that the first try to reach all tasks takes at most; each further one has twice as many.
_TRY_SECONDS: Final = 0.5


def launch(
    jobs: Mapping[str, int] | None = None,
    carrier: Carrier | None = None,
    *,
    max_restarts: int = 3,
    settings: TaskSettings | None = None,
) -> LaunchedCluster:
    """Start a cluster; it ends with its ``with`` block, or by ``close``.

    Args:
        jobs: how many tasks each job has, ``{"ps": 1, "worker": 4}``; None if the carrier knows.
        carrier: what runs them; None for processes of this machine.
        max_restarts: so often each task is started anew when it has died.
        settings: what all tasks have in common.

    Raises:
        InvalidArgumentError: there cannot be such tasks.
        ResourceExhaustedError: there is no place for so many.

    """
    chosen = LocalProcesses() if carrier is None else carrier
    return LaunchedCluster(jobs or {}, chosen, max_restarts, settings or TaskSettings())


class LaunchedCluster:
    """The tasks of a cluster, wherever they run; made by ``launch``."""

    def __init__(
        self, jobs: Mapping[str, int], carrier: Carrier, max_restarts: int, settings: TaskSettings
    ) -> None:
        self._carrier: Final = carrier
        self._max_restarts: Final = max_restarts
        self._settings: Final = carrier.secured(settings)
        self._closing: Final = Event()
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        self._restarts: Counter[str] = Counter()
        #: Why tasks were given up.
        self._given_up: dict[str, str] = {}
        try:
            #: The tasks and their addresses.
            self.cluster: Final[ClusterSpec] = carrier.place(jobs, self._settings)
            self._orders: Final = _orders(self.cluster, self._settings)
            for order in self._orders.values():
                carrier.start(order)
        except BaseException:
            carrier.close()
            raise
        self._thread: Final = Thread(target=self._watch, name="penstock-carrier", daemon=True)
        self._thread.start()

    def target(self, job: str = "worker", task: int = 0) -> str:
        """What sessions give as their target to reach a task; raises NotFoundError."""
        return f"grpc://{self.cluster.task_address(job, task)}"

    def session(
        self, graph: Any, job: str = "worker", task: int = 0, **options: Any
    ) -> GrpcSession:
        """A session whose master is one of the tasks.

        Args:
            graph: as for ``Session``.
            job: that of the master.
            task: the master's number.
            options: as for ``Session``.

        """
        with importing:
            from penstock.cluster.grpc_session import GrpcSession  # noqa: PLC0415  (gRPC: not before)

        security = self._settings.security
        return GrpcSession(graph, target=self.target(job, task), security=security, **options)

    @property
    def restarts(self) -> Mapping[str, int]:
        """How often each task was started anew, by its name; those that never were are left out."""
        with self._lock:
            return dict(self._restarts)

    def log(self, job: str = "worker", task: int = 0) -> str:
        """The last lines that a task wrote, as far as they are on this machine."""
        return self._carrier.log(task_name(job, task))

    def wait_until_ready(self, timeout: float = 60) -> None:
        """Return when all tasks answer.

        Raises:
            DeadlineExceededError: some do not within so many seconds.
            UnavailableError: a task died too often; the error says which, and what it wrote.
            FailedPreconditionError: it was closed.

        """
        deadline = monotonic() + timeout
        patience = _TRY_SECONDS
        while True:
            self._check()
            try:
                self._reach(min(patience, deadline - monotonic()))
            except (UnavailableError, DeadlineExceededError, AbortedError) as missing:
                if monotonic() >= deadline:
                    self._check()
                    raise DeadlineExceededError(
                        f"Not all tasks answer after {timeout:g} s: {missing.reason}"
                    ) from None
                patience *= 2
                self._closing.wait(_LOOK_SECONDS)
            else:
                return

    def _reach(self, seconds: float) -> None:
        """Open a session for a moment: its master answers when all tasks do."""
        task = next(iter(self._orders.values()))
        config = Config(operation_timeout_in_ms=max(1, round(seconds * 1000)))
        with self.session(Graph(), task.job, task.index, config=config) as session:
            session.list_devices()

    def _check(self) -> None:
        """Raise if there is no use in waiting."""
        if self._closing.is_set():
            raise FailedPreconditionError("The cluster was closed")
        with self._lock:
            given_up = dict(self._given_up)
        for task, reason in given_up.items():
            last = _last_line(self._carrier.log(task))
            raise UnavailableError(
                f"{task} was given up: {reason}; its log ends with: {last}",
                next_step="read the log() of the cluster",
            )

    def close(self) -> None:
        """End all tasks.  May be called twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._thread.join()
        self._carrier.close()

    def __enter__(self) -> LaunchedCluster:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closing.is_set() else f"{len(self.cluster)} tasks"
        return f"<LaunchedCluster by {type(self._carrier).__name__}, {state}>"

    # -- the thread that watches -----------------------------------------------------------

    def _watch(self) -> None:
        """Start anew whatever has ended, as long as that may help."""
        again: dict[str, float] = {}
        while not self._closing.wait(_LOOK_SECONDS):
            for task, order in self._orders.items():
                if task in again:
                    if monotonic() >= again[task]:
                        del again[task]
                        self._carrier.start(order)
                elif task not in self._given_up and (reason := self._carrier.ended(task)):
                    pause = self._pause_before_next(task, reason)
                    if pause is not None:
                        again[task] = monotonic() + pause

    def _pause_before_next(self, task: str, reason: str) -> float | None:
        """Seconds until a task that has ended may begin anew; None if it has died too often."""
        with self._lock:
            if self._restarts[task] >= self._max_restarts:
                self._given_up[task] = reason
                _log.error("%s was given up: %s", task, reason)
                return None
            self._restarts[task] += 1
            count = self._restarts[task]
        _log.warning("%s is started anew (%d): %s", task, count, reason)
        return min(_LOOK_SECONDS * 2.0 ** (count - 1), _MAX_PAUSE_SECONDS)


def _last_line(log: str) -> str:
    return next((line for line in reversed(log.splitlines()) if line.strip()), "(none)")


def _orders(cluster: ClusterSpec, settings: TaskSettings) -> dict[str, TaskOrder]:
    """An order for each task, by its name; raises InvalidArgumentError if there is none."""
    orders = {
        task_name(job, index): TaskOrder(cluster=cluster, job=job, index=index, settings=settings)
        for job, tasks in cluster.as_dict().items()
        for index in tasks
    }
    if not orders:
        raise InvalidArgumentError(
            "A cluster needs a task", next_step="say how many each job has: {'worker': 2}"
        )
    return orders
