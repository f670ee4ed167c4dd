"""A part of a graph, ready to be run by this task any number of times.

In:   a GraphDef in which every node has a device of this task.
Out:  runs of it, whose values come and go by a step's rendezvous.
Not:  knows no session but what a run brings along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from penstock.cluster.rendezvous import TaskRendezvous
from penstock.cluster.task import Task
from penstock.config import Config, RunOptions
from penstock.core.values import Value
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError, Where
from penstock.graph.graph import Graph
from penstock.graph.import_graph_def import import_graph_def
from penstock.graph.import_options import ImportOptions
from penstock.graph.stages import Pruned
from penstock.passes.exchange import NO_EXCHANGE, Exchange, take_from_calls
from penstock.passes.prune import Request
from penstock.runtime.environment import Environment
from penstock.runtime.kernel_binder import KernelBinder
from penstock.runtime.prepare import prepare_part
from penstock.runtime.step_factory import StepFactory
from penstock.runtime.thread_pool import SessionPools
from penstock.session.fetches import copy_of
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

    def __init__(
        self,
        graph_def: Message,
        config: Config,
        task: Task,
        session: OfSession,
        exchange: Exchange = NO_EXCHANGE,
    ) -> None:
        """Read and prepare it.

        Args:
            graph_def: the part.
            config: the session's options.
            task: whose devices its nodes have.
            session: whose part it is.
            exchange: which values go along with its runs.

        Raises:
            InvalidArgumentError: the definition is wrong, or a node has no device of this task;
                or it has no such values.
            NotFoundError: an op is neither in the catalogue nor in the library, or has no kernel.

        """
        self._graph_def: Any = graph_def
        self._task: Final = task
        graph = self._read()
        environment = Environment(
            graph, config, task.devices, session.resources,
            kernels=session.kernels, session=session.prefix,
            new_container=task.new_container,
        )  # fmt: skip
        self.exchange: Final = exchange
        request = Request(exchange.given, exchange.wanted)
        self._prepared: Final = prepare_part(request, self._pruned, environment)
        # Read again only if it could not be prepared; from now on it takes memory for nothing.
        self._graph_def = None

    def _read(self) -> Graph:
        graph = Graph()
        import_graph_def(graph, self._graph_def, _OPTIONS)
        return graph

    def _pruned(self) -> Pruned:
        """The graph as a stage: there is nothing in it that nobody needs."""
        graph = self._read()
        for node in graph:
            device = self._task.devices.find(node.assigned_device or node.requested_device)
            if device is None:
                where = Where(node.name, node.op.name, node.requested_device)
                raise InvalidArgumentError(
                    f"A node of a registered graph is not on a device of {self._task.name}"
                ).at(where)
            node.assigned_device = device.name
        types = take_from_calls(graph, self.exchange)
        return Pruned(graph, {node.id: node.assigned_device for node in graph}, *types)

    @property
    def is_straight(self) -> bool:
        """Whether a run of it, at present, can neither wait nor repeat anything."""
        return self._prepared.is_straight

    @property
    def has_transfers(self) -> bool:
        """Whether a run of it sends or receives anything, but what goes along with the run."""
        return self._prepared.has_transfers

    def run(
        self,
        rendezvous: TaskRendezvous,
        given: Sequence[Value],
        session: OfSession,
        options: RunOptions,
        call: Call,
    ) -> tuple[Sequence[Value | None], Message | None]:
        """Run it once, on this thread.

        Args:
            rendezvous: where the parts of the step meet.
            given: what goes along with the run, in order.
            session: whose part it is.
            options: how it is watched.
            call: told what goes on.

        Returns:
            What is wanted, None for what is dead; and what was recorded, if anything was.

        Raises:
            OpError: the step's error, or why ``call`` was ended.

        """
        pool = session.pools.runner(options.inter_op_thread_pool)
        factory = StepFactory(self._prepared, options, session.state, pool, lambda: rendezvous)
        step = factory.new()
        call.turn_to(step)
        results = step.run(given, 0)
        shared = self._prepared.shared_fetches
        if shared:
            results = [
                copy_of(value, key) if key in shared and value is not None else value
                for key, value in zip(self.exchange.wanted, results, strict=True)
            ]
        return results, step.stats.step_stats() if step.stats is not None else None
