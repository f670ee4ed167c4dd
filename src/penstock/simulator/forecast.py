"""From a graph and a cluster to a prediction.

In:   a graph, what a request feeds, fetches and runs, what nodes cost, and a cluster.
Out:  a ``Prediction``, for the placement that the graph asks for or any other one.
Not:  runs no node, but for constants that the optimiser folds.

The graph is placed, pruned, optimised and split by the passes that sessions use.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from penstock.config import Config
from penstock.core.device_names import DeviceName
from penstock.graph.graph import Graph
from penstock.graph.stages import Pruned
from penstock.passes.prune import Request
from penstock.passes.split import split
from penstock.runtime.environment import Environment
from penstock.runtime.optimize_request import optimize_request
from penstock.runtime.prepare import place_and_prune
from penstock.simulator.activations import Activations, activations_of
from penstock.simulator.costs import Costs
from penstock.simulator.engine import simulate
from penstock.simulator.machine import Machine
from penstock.simulator.prediction import Prediction
from penstock.state.devices import DeviceSet


class Forecast:
    """A request on a cluster."""

    def __init__(
        self,
        graph: Graph,
        machine: Machine,
        costs: Costs,
        *,
        fetches: Sequence[str] = (),
        feeds: Sequence[str] = (),
        targets: Sequence[str] = (),
        replicated: str = "",
    ) -> None:
        """Place the graph on the cluster.

        Args:
            graph: what is to be run.
            machine: the cluster.
            costs: of the nodes, by name.
            fetches: tensors, such as ``loss:0``.
            feeds: tensors that are fed.
            targets: nodes that are run as well.
            replicated: the job whose every task runs a replica of the whole graph, with its own
                task where the graph has task 0 of that job (between-graph replication).  All
                replicas share the tasks of other jobs.

        Raises:
            OpError: the request does not fit the graph, or the graph cannot be placed.

        """
        self.machine: Final = machine
        self.costs: Final = costs
        self.replicated: Final = replicated
        self.replicas: Final = machine.job(replicated).tasks if replicated else 1
        self.devices: Final = DeviceSet(machine.devices(replicated))
        config = Config(allow_soft_placement=True)
        environment = Environment(graph, config, self.devices)
        request = Request(tuple(feeds), tuple(fetches), tuple(targets))
        with graph.lock:
            #: The nodes of one replica, on the devices that the graph asks for.
            self.pruned: Final[Pruned] = optimize_request(
                lambda: place_and_prune(request, environment), config, self.devices
            )
        self._tasks: Final = [
            f"/job:{job.name}/replica:0/task:{index}"
            for job in machine.jobs
            for index in range(job.tasks)
        ]
        self._numbers: Final = {task: number for number, task in enumerate(self._tasks)}

    def activations(self, device_of: Mapping[int, str] | None = None) -> Activations:
        """What one replica does, with its nodes on some devices."""
        pruned = self.pruned
        if device_of is not None:
            pruned = dataclasses.replace(pruned, device_of=dict(device_of))
        partitions = split(pruned) if len(pruned.graph) else []
        return activations_of(partitions, self.costs)

    def predict(self, device_of: Mapping[int, str] | None = None) -> Prediction:
        """A step, with nodes on the devices that the graph asks for, or on those given by id."""
        work = self.activations(device_of)
        tasks_of = [self._tasks_of(work, replica) for replica in range(self.replicas)]
        machine = self.machine
        schedule = simulate(
            work, tasks_of, machine.hosts, bandwidth=machine.bandwidth, latency=machine.latency
        )
        overhead = machine.step_seconds
        return Prediction(work, schedule, self._tasks, machine.cores, tasks_of, overhead)

    def _tasks_of(self, work: Activations, replica: int) -> list[int]:
        names = map(DeviceName.parse, work.devices)
        own = self.replicated
        return [
            self._numbers[f"/job:{n.job}/replica:0/task:{replica if n.job == own else n.task}"]
            for n in names
        ]
