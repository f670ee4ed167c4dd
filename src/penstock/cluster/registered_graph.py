"""A part of a graph, ready to be run by this task any number of times.

In:   a GraphDef in which every node has a device of this task.
Out:  runs of it, whose values come and go by a step's rendezvous.
Not:  knows no session but what a run brings along.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from penstock.cluster.rendezvous import TaskRendezvous
from penstock.cluster.task import Task
from penstock.config import Config, RunOptions
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError, Where
from penstock.graph.graph import Graph
from penstock.graph.import_graph_def import import_graph_def
from penstock.graph.import_options import ImportOptions
from penstock.graph.stages import Pruned
from penstock.passes.prune import Request
from penstock.runtime.environment import Environment
from penstock.runtime.kernel_binder import KernelBinder
from penstock.runtime.prepare import prepare_part
from penstock.runtime.step_factory import StepFactory
from penstock.runtime.thread_pool import SessionPools
from penstock.session.run import Call
from penstock.state.device_resources import DeviceResources
from penstock.state.session_state import SessionState

_OPTIONS: Final = ImportOptions(
    allow_internal_names=True, expect_device=True, validate_colocation=False
)


class OfSession(Protocol):
    """What a graph has of its session."""

    @property
    def resources(self) -> DeviceResources:
        """Where its variables, queues and tables are."""

    @property
    def prefix(self) -> str:
        """What names of resources begin with that are the session's own."""

    @property
    def kernels(self) -> dict[str, KernelBinder]:
        """Those that keep something, by device."""

    @property
    def state(self) -> SessionState:
        """Where tensors are kept under handles."""

    @property
    def pools(self) -> SessionPools:
        """Where slow kernels run."""


class RegisteredGraph:
    """A part of a graph, and what runs it."""

    def __init__(self, graph_def: Message, config: Config, task: Task, session: OfSession) -> None:
        """Read and prepare it.

        Raises:
            InvalidArgumentError: the definition is wrong, or a node has no device of this task.
            NotFoundError: an op is neither in the catalogue nor in the library, or has no kernel.

        """
        self._graph_def: Any = graph_def
        self._task: Final = task
        graph = self._read()
        environment = Environment(
            graph, config, task.devices, session.resources,
            kernels=session.kernels, session=session.prefix,
        )  # fmt: skip
        self._prepared: Final = prepare_part(Request(), self._pruned, environment)
        # Read again only if it could not be prepared; from now on it takes memory for nothing.
        self._graph_def = None

    def _read(self) -> Graph:
        graph = Graph()
        import_graph_def(graph, self._graph_def, _OPTIONS)
        return graph

    def _pruned(self) -> Pruned:
        """The graph as a stage: there is nothing in it that nobody needs."""
        graph = self._read()
        device_of = {}
        for node in graph:
            device = self._task.devices.find(node.assigned_device or node.requested_device)
            if device is None:
                where = Where(node.name, node.op.name, node.requested_device)
                raise InvalidArgumentError(
                    f"A node of a registered graph is not on a device of {self._task.name}"
                ).at(where)
            device_of[node.id] = device.name
        return Pruned(graph, device_of, (), ())

    def run(
        self, rendezvous: TaskRendezvous, session: OfSession, options: RunOptions, call: Call
    ) -> Message | None:
        """Run it once, on this thread; returns what was recorded, if anything was.

        Raises:
            OpError: the step's error, or why ``call`` was ended.

        """
        pool = session.pools.runner(options.inter_op_thread_pool)
        factory = StepFactory(self._prepared, options, session.state, pool, lambda: rendezvous)
        step = factory.new()
        call.turn_to(step)
        step.run((), 0)
        return step.stats.step_stats() if step.stats is not None else None
