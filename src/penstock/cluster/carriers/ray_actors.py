"""Tasks as actors of Ray, in a placement group.

In:   orders; a cluster of Ray, or none, and then one of this machine.
Out:  actors, each of which serves one task, on the machine where its bundle is.
Not:  sends no tensor by Ray: tasks have their own connections.

Ray starts an actor anew whose process died, in its bundle, so that its address stays; what it
prints is Ray's log; its counters are Ray's metrics.  If its whole machine is lost, Ray looks for
another one, where the address is wrong: then the task is given up, and the cluster must be launched
anew.
"""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Mapping
from dataclasses import replace
from threading import Event, Thread
from typing import Any, Final

import ray
from ray.util.metrics import Gauge
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from penstock.cluster.carriers.carrier import TaskOrder, TaskSettings
from penstock.cluster.cluster_spec import ClusterSpec, check_jobs, task_name
from penstock.cluster.security import Security
from penstock.cluster.server import Server
from penstock.errors import ResourceExhaustedError

#: Seconds between two times that Ray is told what a task has counted.
_METRICS_SECONDS: Final = 5.0


class RayActors:
    """Runs each task in an actor of Ray."""

    def __init__(
        self,
        address: str | None = None,
        *,
        num_cpus: float = 1,
        strategy: str = "SPREAD",
        max_restarts: int = -1,
        timeout: float = 60,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Connect to Ray, unless this process has done so.

        Args:
            address: as for ``ray.init``: ``"auto"``, an address; None for what ``RAY_ADDRESS``
                says, or else for this machine.
            num_cpus: so many cores are set apart for each task.
            strategy: how tasks are spread over machines, as for ``ray.util.placement_group``.
            max_restarts: so often Ray starts each task anew; -1 for always.
            timeout: seconds to wait for places.
            options: more for ``ray.init``, such as ``runtime_env``.

        """
        if not ray.is_initialized():
            ray.init(address=address, **(options or {}))
        self._num_cpus: Final = num_cpus
        self._strategy: Final = strategy
        self._max_restarts: Final = max_restarts
        self._timeout: Final = timeout
        self._group: Any = None
        #: The number of each task's bundle.
        self._bundles: dict[str, int] = {}
        self._actors: dict[str, Any] = {}
        #: Calls that end when the actor does.
        self._lives: dict[str, Any] = {}

    def place(self, jobs: Mapping[str, int], settings: TaskSettings) -> ClusterSpec:  # noqa: ARG002
        """A bundle for each task, and a port on its machine.

        Raises:
            InvalidArgumentError: jobs make no sense.
            ResourceExhaustedError: Ray has no cores for so many tasks.

        """
        check_jobs(jobs)
        count = sum(jobs.values())
        bundles = [{"CPU": self._num_cpus}] * count
        self._group = placement_group(bundles, strategy=self._strategy)
        if not self._group.wait(self._timeout):
            raise ResourceExhaustedError(
                f"Ray has no place for {count} tasks with {self._num_cpus:g} CPUs each, of "
                f"{ray.cluster_resources().get('CPU', 0):g} CPUs in all",
                next_step="ask for fewer tasks, or for fewer num_cpus",
            )
        places = [ray.remote(_free_place).options(**self._bundle(i)).remote() for i in range(count)]
        addresses = iter(ray.get(places))
        numbers = iter(range(count))
        self._bundles = {
            task_name(job, index): next(numbers) for job, n in jobs.items() for index in range(n)
        }
        return ClusterSpec({job: [next(addresses) for _ in range(n)] for job, n in jobs.items()})

    def _bundle(self, number: int) -> dict[str, Any]:
        strategy = PlacementGroupSchedulingStrategy(self._group, number)
        return {"num_cpus": self._num_cpus, "scheduling_strategy": strategy}

    def secured(self, settings: TaskSettings) -> TaskSettings:
        """With a token of its own, unless told otherwise: others can reach these machines, too."""
        if settings.security is not None:
            return settings
        return replace(settings, security=Security(token=secrets.token_urlsafe(32)))

    def start(self, order: TaskOrder) -> None:
        """Make the actor of a task."""
        number = self._bundles[order.task]
        actor = (
            ray.remote(_Task)
            .options(max_restarts=self._max_restarts, max_concurrency=4, **self._bundle(number))
            .remote(order)
        )
        self._actors[order.task] = actor
        self._lives[order.task] = actor.join.remote()

    def actor(self, task: str) -> Any:
        """Ray's handle of the actor of a task."""
        return self._actors[task]

    def ended(self, task: str) -> str | None:
        """Why Ray does not start the actor anew; None if it does, or if it runs."""
        done, _ = ray.wait([self._lives[task]], timeout=0)
        if not done:
            return None
        try:
            ray.get(done)
        except ray.exceptions.ActorUnavailableError:
            self._lives[task] = self._actors[task].join.remote()
            return None
        except ray.exceptions.RayError as error:
            return f"its actor has ended: {error}"
        return "its actor has ended"

    def log(self, task: str) -> str:  # noqa: ARG002
        """Ray has it: what actors write comes to the driver, and is in its dashboard."""
        return ""

    def close(self) -> None:
        """End all actors, and give up the placement group; Ray itself goes on."""
        for actor in self._actors.values():
            ray.kill(actor)
        if self._group is not None:
            remove_placement_group(self._group)


def _free_place() -> str:
    """An address on the machine where this runs, at which nothing listens."""
    host = ray.util.get_node_ip_address()
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as one:
        one.bind((host, 0))
        port = one.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Task:
    """One task of a cluster; ready when it is made."""

    def __init__(self, order: TaskOrder) -> None:
        logging.basicConfig(level=logging.INFO, format="%(message)s")
        host = order.cluster.address(order.task).rpartition(":")[0]
        self._server = order.make_server(bind=host)
        self._told = Event()
        Thread(target=_report, args=(self._server, self._told), daemon=True).start()

    def join(self) -> None:
        """Return when the task has ended."""
        self._server.join()

    def counts(self) -> dict[str, float]:
        """What the task has counted."""
        return self._server.metrics.counts()


def _report(server: Server, told: Event) -> None:
    """Tell Ray what a task has counted, now and then."""
    gauges: dict[str, Gauge] = {}
    while not told.wait(_METRICS_SECONDS) and server.is_ready:
        for sample in server.metrics.samples():
            gauge = gauges.get(sample.name)
            if gauge is None:
                tags = ("task", "method")
                gauge = gauges[sample.name] = Gauge(f"penstock_{sample.name}", tag_keys=tags)
            gauge.set(sample.value, {"task": server.task.name, "method": sample.method})
