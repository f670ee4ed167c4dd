"""The whole journey of a request, one call per stage.

In:   a placed graph, a request, and the session's ``Environment``.
Out:  ``PreparedRequest``: one function for all devices, or a runnable for each, to be run any
      number of times.
Not:  runs nothing, and caches nothing; the session keeps what this makes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from threading import Lock

from penstock.config import Config, Tier
from penstock.core.collector import collector_paused
from penstock.core.denormals import is_supported
from penstock.errors import InternalError
from penstock.graph.check import check_partitions, check_placed
from penstock.graph.graph import Graph
from penstock.graph.roles import Role
from penstock.graph.stages import Partition, Placed, Pruned
from penstock.kernels.host import CLOSED, OPEN
from penstock.passes.prune import ClientDevice, Request, prune
from penstock.passes.split import split
from penstock.passes.tell_apart import tell_apart
from penstock.runtime.bind_kernels import KernelBinder
from penstock.runtime.call_functions import FunctionRuntime
from penstock.runtime.compiler.region import Region
from penstock.runtime.cost_model import CostModel
from penstock.runtime.executor.executor import Executor
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.explain_wait import explain_wait
from penstock.runtime.flushing import Flushing
from penstock.runtime.join_devices import join_devices
from penstock.runtime.make_instance import InstanceMaker
from penstock.runtime.optimize_request import optimize_request
from penstock.runtime.ready_order import ready_queues
from penstock.runtime.runnable import Runnable
from penstock.runtime.thread_pool import thread_count
from penstock.state.checkpoints import begin, heeding, holding
from penstock.state.devices import DeviceSet
from penstock.state.interrupt import Interrupt
from penstock.state.resources import ResourceManager


class PreparedRequest:
    """One request, ready to run."""

    def __init__(
        self,
        request: Request,
        pruned: Pruned,
        partitions: Sequence[Partition],
        environment: Environment,
    ) -> None:
        """Compile what can be compiled, and get ready to run the rest.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        self.request = request
        self.partitions = tuple(partitions)
        self.feed_types = pruned.feed_types
        self.fetch_types = pruned.fetch_types
        graph_options = environment.config.graph_options
        #: What the nodes cost, as far as steps were watched.
        self.costs = CostModel(
            every=graph_options.build_cost_model, after=graph_options.build_cost_model_after
        )
        #: Whether steps take denormal numbers for zeros.
        self.flushing = Flushing(
            pruned.graph, is_wanted=environment.config.flush_denormals and is_supported()
        )
        shared = tell_apart(pruned.graph)
        #: Endpoints of feeds that must be copies, and of fetches.
        self.shared_feeds = _at(shared.feeds, request.feeds)
        self.shared_fetches = _at(shared.fetches, request.fetches)
        #: Whether something in a step sends or receives.
        self.has_transfers = any(
            node.role in (Role.SEND, Role.RECV) for part in partitions for node in part.graph
        )
        self._environment = environment
        #: Held while runnables are made, which are read without.  Outermost but for the graph's.
        self._lock = Lock()
        #: One per partition; none before they are needed.
        self._runnables: tuple[Runnable, ...] = ()
        #: All partitions as one function, if they can be that.
        self._joined = _join(pruned, environment) if len(partitions) > 1 else None
        if self._joined is None:
            self._make_runnables()

    def take(self) -> Region | None:
        """The one function that is the next step, which then reports by ``note``; or None."""
        if self._joined is not None or len(self._runnables) != 1:
            return self._joined
        return self._runnables[0].take()

    def note(self, region: Region | None, seconds: float, interrupt: Interrupt) -> None:
        """A step with ``region``, or by executors, took so long; ``interrupt`` is its own."""
        if self._joined is None and len(self._runnables) == 1:
            self._runnables[0].note(region, seconds, interrupt)

    @property
    def whole(self) -> Region | None:
        """The one function that is the whole step, if there is one."""
        if self._joined is not None or len(self._runnables) != 1:
            return self._joined
        return self._runnables[0].whole

    @property
    def ends(self) -> tuple[int, int]:
        """How many values are fed and fetched."""
        return len(self.feed_types), len(self.fetch_types)

    @property
    def params(self) -> LocalExecutorParams:
        """What a step that is one function has of its device."""
        is_single = len(self.partitions) == 1
        device = self.partitions[0].device if is_single else self._environment.client.name
        return self._environment.params_of(device)

    def executors(self, interrupt: Interrupt, tier: Tier = Tier.COMPILED) -> list[Executor]:
        """What runs the partitions; without compiled regions on the dataflow tier.

        Raises:
            OpError: the reason of ``interrupt``, that of the step for which they are made.

        """
        if not self._runnables:
            heeding(interrupt, self._make_runnables)
        return [runnable.executor(interrupt, tier) for runnable in self._runnables]

    def _make_runnables(self) -> None:
        with holding(self._lock, "executors, which another thread makes"):
            if not self._runnables:
                self._runnables = tuple(map(self._new_runnable, self.partitions))

    def _new_runnable(self, part: Partition) -> Runnable:
        env = self._environment
        return Runnable(env.params_of(part.device), part.graph, env.config.tier, self.ends)


def _at(places: Collection[int], names: Sequence[str]) -> frozenset[str]:
    """The names at some places; a graph may have nodes for places that there are not."""
    return frozenset(name for place, name in enumerate(names) if place in places)


class Environment:
    """What a session gives to all of its requests: devices, their state, their kernels."""

    def __init__(self, graph: Graph, config: Config, devices: DeviceSet) -> None:
        self.config = config
        self.devices = devices
        self._graph = graph
        self.resources = ResourceManager()
        client = devices.client_device
        assert client is not None  # local_devices always makes a CPU
        self.client = ClientDevice(client.name, client.incarnation)
        maker = InstanceMaker(config, devices, self.params_of, self._new_binder)
        self._functions = {
            device.name: FunctionRuntime(graph.library, device.name, maker, self.functions_of)
            for device in devices
        }
        self._params: Mapping[str, LocalExecutorParams] = {
            device.name: self._device_params(device.name) for device in devices
        }

    def params_of(self, device: str) -> LocalExecutorParams:
        """What executors on ``device`` have in common."""
        return self._params[device]

    def functions_of(self, device: str) -> FunctionRuntime:
        """The functions on ``device``; raises InternalError if there is no such device."""
        found = self.devices.find(device)
        if found is None:
            raise InternalError(
                f"Currently don't support instantiating functions on device: {device}"
            )
        return self._functions[found.name]

    def incarnation_of(self, device: str) -> int:
        """The number that tells this instance of a device from earlier ones."""
        return self.devices.lookup(device).incarnation

    def _device_params(self, device: str) -> LocalExecutorParams:
        return LocalExecutorParams(
            device=device,
            make_kernel=self._new_binder(device).bind,
            resources=self.resources,
            functions=self._functions[device],
            explain_wait=partial(explain_wait, self._graph),
            make_ready_queue=ready_queues(self.config.ready_order_seed),
            offload_seconds=self.config.offload_seconds,
            check_outputs=self.config.check_outputs,
            threads=thread_count(self.config.inter_op_parallelism_threads),
        )

    def _new_binder(self, device: str) -> KernelBinder:
        host = OPEN if self.config.allow_files else CLOSED
        return KernelBinder(
            device,
            accelerate=self.config.accelerate,
            by_trial=not self.config.exact_repetition,
            host=host,
        )


@collector_paused
def prepare(placed: Placed, request: Request, environment: Environment) -> PreparedRequest:
    """Turn a placed graph and a request into what runs it, any number of times.

    Raises:
        OpError: the request does not fit the graph, the graph cannot be run, or whoever waits
            for it waits no more.

    """
    is_checked = environment.config.check_graphs
    if is_checked:
        check_placed(placed)
    begin("pruning the graph")
    pruned = optimize_request(
        lambda: prune_for(placed, request, environment),
        environment.config,
        environment.devices,
    )
    begin("splitting the graph")
    partitions = split(pruned, incarnation_of=environment.incarnation_of)
    if is_checked:
        check_partitions(partitions)
    return PreparedRequest(request, pruned, partitions, environment)


def prepare_nothing(environment: Environment) -> PreparedRequest:
    """The step of a request in which everything that is fetched is fed."""
    return PreparedRequest(Request(), Pruned(Graph(), {}, (), ()), (), environment)


def _join(pruned: Pruned, environment: Environment) -> Region | None:
    """All partitions as one function, if they can be that."""
    return join_devices(
        pruned,
        environment.config,
        environment.devices,
        environment.client.name,
        lambda device: environment.params_of(device).make_kernel,
    )


def prune_for(placed: Placed, request: Request, environment: Environment) -> Pruned:
    """The part of a placed graph that a request needs, as it would run."""
    return prune(placed, request, environment.client)
