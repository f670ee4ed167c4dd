"""The whole journey of a request, one call per stage.

In:   a placed graph, a request, and the session's ``Environment``.
Out:  ``PreparedStep``: one function for all devices, or a runnable for each, to be run any
      number of times.
Not:  runs nothing, and caches nothing; the session keeps what this makes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from threading import Lock

from penstock.config import Config, Tier
from penstock.core.collector import collector_paused
from penstock.core.denormals import is_supported
from penstock.graph.check import check_graph, check_partitions, check_placed
from penstock.graph.graph import Graph, Node
from penstock.graph.instantiate import FunctionBody
from penstock.graph.roles import Role
from penstock.graph.stages import Partition, Placed, Pruned
from penstock.kernels.bound import BoundKernel
from penstock.kernels.host import CLOSED, OPEN
from penstock.passes.prune import ClientDevice, Request, prune
from penstock.passes.split import split
from penstock.passes.tell_apart import tell_apart
from penstock.runtime.bind_kernels import KernelBinder
from penstock.runtime.call_functions import FunctionRuntime
from penstock.runtime.compiler.compile_regions import Compiler
from penstock.runtime.compiler.region import Region
from penstock.runtime.cost_model import CostModel
from penstock.runtime.executor.executor import Executor
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.explain_wait import explain_wait
from penstock.runtime.flushing import Flushing
from penstock.runtime.optimize_request import optimize_body, optimize_request
from penstock.runtime.ready_order import ready_queues
from penstock.runtime.runnable import Runnable
from penstock.runtime.thread_pool import thread_count
from penstock.state.checkpoints import begin, heeding, holding
from penstock.state.devices import DeviceSet
from penstock.state.interrupt import Interrupt
from penstock.state.resources import ResourceManager


class PreparedStep:
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
        self.resources = ResourceManager()
        client = devices.client_device
        assert client is not None  # local_devices always makes a CPU
        self.client = ClientDevice(client.name, client.incarnation)
        self._params: Mapping[str, LocalExecutorParams] = {
            device.name: self._device_params(device.name, graph) for device in devices
        }

    def params_of(self, device: str) -> LocalExecutorParams:
        """What executors on ``device`` have in common."""
        return self._params[device]

    def incarnation_of(self, device: str) -> int:
        """The number that tells this instance of a device from earlier ones."""
        return self.devices.lookup(device).incarnation

    def _device_params(self, device: str, graph: Graph) -> LocalExecutorParams:
        host = OPEN if self.config.allow_files else CLOSED
        # What has no kernel for the device runs as on a CPU.
        device_types = {self.devices.lookup(device).device_type, "CPU"}

        def new_binder() -> KernelBinder:
            return KernelBinder(
                device,
                accelerate=self.config.accelerate,
                by_trial=not self.config.exact_repetition,
                host=host,
            )

        def new_runnable(body: FunctionBody) -> Runnable:
            optimize_body(body.graph, self.config, device_types)
            if self.config.check_graphs:
                check_graph(body.graph)
            # Each body has kernels of its own, so that equal node names share no state.
            own = dataclasses.replace(params, make_kernel=new_binder().bind)
            ends = len(body.arg_types), len(body.ret_types)
            return Runnable(own, body.graph, self.config.tier, ends)

        params = LocalExecutorParams(
            device=device,
            make_kernel=new_binder().bind,
            resources=self.resources,
            functions=FunctionRuntime(graph.library, new_runnable),
            explain_wait=partial(explain_wait, graph),
            make_ready_queue=ready_queues(self.config.ready_order_seed),
            offload_seconds=self.config.offload_seconds,
            check_outputs=self.config.check_outputs,
            threads=thread_count(self.config.inter_op_parallelism_threads),
        )
        return params


@collector_paused
def prepare(placed: Placed, request: Request, environment: Environment) -> PreparedStep:
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
    return PreparedStep(request, pruned, partitions, environment)


def prepare_nothing(environment: Environment) -> PreparedStep:
    """The step of a request in which everything that is fetched is fed."""
    return PreparedStep(Request(), Pruned(Graph(), {}, (), ()), (), environment)


def _join(pruned: Pruned, environment: Environment) -> Region | None:
    """All partitions as one function, if their devices are but names for this host.

    What one of its CPUs sends to another one is the same memory, so that in compiled code a
    transfer is nothing at all.
    """
    config, device_of = environment.config, pruned.device_of
    devices = {environment.devices.lookup(name) for name in device_of.values()}
    if config.tier is Tier.DATAFLOW or any(device.device_type != "CPU" for device in devices):
        return None

    def make_kernel(node: Node) -> BoundKernel:
        return environment.params_of(device_of[node.id]).make_kernel(node)

    compiler = Compiler(
        device=environment.client.name,
        make_kernel=make_kernel,
        checks_outputs=config.check_outputs,
        device_of=device_of,
        ends=(len(pruned.feed_types), len(pruned.fetch_types)),
    )
    return compiler.compile_whole(pruned.graph)


def prune_for(placed: Placed, request: Request, environment: Environment) -> Pruned:
    """The part of a placed graph that a request needs, as it would run."""
    return prune(placed, request, environment.client)
