"""The whole journey of a request, one call per stage.

In:   a placed graph, a request, and the session's ``Environment``.
Out:  ``PreparedRequest``: one function for all devices, or a runnable for each, to be run any
      number of times.
Not:  runs nothing, and caches nothing; the session keeps what this makes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

import numpy as np

from penstock.config import Tier
from penstock.core.collector import collector_paused
from penstock.core.denormals import is_supported
from penstock.core.forks import importing
from penstock.core.values import Value
from penstock.graph.check import check_partitions, check_placed
from penstock.graph.extract import extract
from penstock.graph.graph import Graph
from penstock.graph.roles import Role
from penstock.graph.stages import Partition, Pruned
from penstock.passes.exchange import (
    Exchange,
    find_exchange,
    is_all_exchanged,
    leave_to_calls,
    take_from_calls,
)
from penstock.passes.prune import Request, prune
from penstock.passes.split import split
from penstock.passes.tell_apart import tell_apart
from penstock.runtime.compiler.region import Region
from penstock.runtime.cost_model import CostModel
from penstock.runtime.environment import Environment
from penstock.runtime.flushing import Flushing
from penstock.runtime.join_devices import join_devices
from penstock.runtime.native import asks_for_jit
from penstock.runtime.optimize_request import UNWATCHED, Watch, lower_request, optimize_request
from penstock.runtime.runnable import Runnable
from penstock.runtime.workers import EndableStep, RemoteGraph, Workers
from penstock.state.checkpoints import begin
from penstock.state.node_hook import NodeHook
from penstock.state.rendezvous import Rendezvous


class PreparedRequest:
    """One request, ready to run any number of times."""

    def __init__(
        self,
        request: Request,
        pruned: Pruned,
        partitions: Sequence[Partition],
        runnable: Runnable,
        environment: Environment,
        remote: Sequence[RemoteGraph] = (),
        *,
        is_exchanged: bool = False,
    ) -> None:
        """Note what the steps of a request have in common.

        Args:
            request: what is fed, fetched and run.
            pruned: the part of the graph that it needs, as it runs.
            partitions: the same, cut for its devices.
            runnable: the same, ready to run.
            environment: the session's.
            remote: the parts that other tasks run.
            is_exchanged: whether these are run before all else, and answer with arguments.

        """
        self.request = request
        self.is_exchanged = is_exchanged
        self.remote = tuple(remote)
        self.new_container = environment.new_container
        self._workers = environment.workers
        self._client = environment.client
        self.partitions = tuple(partitions)
        self.runnable = runnable
        self._resources = environment.resources
        self._max_memory = environment.config.max_memory_in_bytes
        #: Whether a step's tensors may take only so much memory.
        self.is_bounded = self._max_memory > 0
        limits = environment.config.limits
        self.feed_types = pruned.feed_types
        self.fetch_types = pruned.fetch_types
        #: Whether somebody may look at it when its session is closed.  Only becomes true.
        self.is_lent = False
        #: Steps that it makes before it is compiled, as long as it is not.  Only gets less; one
        #: too many or few, when threads meet, does no harm.
        self._first_steps = limits.uncompiled_steps
        self._long_array = limits.long_array
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
        #: What a step that is one function has of its device.
        self.params = environment.params_of(
            partitions[0].device if len(partitions) == 1 else environment.client.name
        )

    def takes_step(self, fed: Iterable[Value]) -> bool:
        """Whether a step with such feeds may be made now; False if it is to be compiled first.

        Where arrays are long, compiled text that works them off in pieces is worth it at once.
        """
        if self.runnable.is_compiled:
            return True
        if not self._first_steps or any(np.size(value) >= self._long_array for value in fed):
            return False
        self._first_steps -= 1
        return True

    @property
    def is_straight(self) -> bool:
        """Whether a step, at present, can neither wait nor repeat anything."""
        whole = self.runnable.whole
        return (
            whole is not None
            and whole.source.is_straight
            and not self.has_transfers
            and not self.meets_others
        )

    @property
    def meets_others(self) -> bool:
        """Whether parts of a step meet that run in several tasks."""
        return bool(self.remote) and not self.is_exchanged

    def exchanged(self, own: EndableStep) -> EndableStep:
        """A step that has other tasks run their parts, and then ``own`` with what they answer."""
        assert self._workers is not None
        return self._workers.exchanged_step(self.remote, own)

    def hook(self, asked: NodeHook | None) -> NodeHook | None:
        """Who is asked about the nodes of a step: who wants to be, and who bounds its memory."""
        if not self.is_bounded:
            return asked
        # Hardly any session has a bound, and this one needs the rules of shapes.
        with importing:
            from penstock.runtime.coming_outputs import ComingOutputs  # noqa: PLC0415
            from penstock.runtime.memory_bound import MemoryBound  # noqa: PLC0415

        coming = ComingOutputs(self.partitions)
        return MemoryBound(self._max_memory, coming, self._resources, asked)

    def give_up(self) -> None:
        """Let go of what it holds, which no step may need any more, unless it was lent.

        It holds itself in circles, of nodes and their edges, and of functions and what they refer
        to: without this, weights would be in memory until Python looks for such circles.
        """
        if self.is_lent:
            return
        self.runnable.give_up()
        for part in self.partitions:
            part.graph.clear()

    def new_rendezvous(self) -> Rendezvous:
        """Where the parts of one step meet."""
        if self._workers is not None and self.meets_others:
            return self._workers.new_rendezvous(self.remote)
        return Rendezvous(self._client.name, self._client.incarnation)


def _may_wait(environment: Environment, runnable: Runnable) -> bool:
    """Whether the first steps of a request may be made before it is compiled.

    Programs for straight lines, where these are asked for, differ in the last bits of numbers.
    """
    config = environment.config
    is_wanted = config.limits.uncompiled_steps > 0 and config.tier is Tier.COMPILED
    is_alike = config.adaptive and not asks_for_jit(config)
    return is_wanted and is_alike and environment.workers is None and runnable.is_straight


def _at(places: Collection[int], names: Sequence[str]) -> frozenset[str]:
    """The names at some places; a graph may have nodes for places that there are not."""
    return frozenset(name for place, name in enumerate(names) if place in places)


@collector_paused
def prepare(
    request: Request,
    environment: Environment,
    watch: Watch = UNWATCHED,
    *,
    at_once: bool = True,
) -> PreparedRequest:
    """Turn a request into what runs it, any number of times; the caller holds the graph's lock.

    Args:
        request: what is fed, fetched and run.
        environment: the session's.
        watch: who is shown what becomes of the graph, if all of it runs in this process.
        at_once: whether it is compiled even if its first steps can do without.

    Raises:
        OpError: the request does not fit the graph, the graph cannot be run, or whoever waits
            for it waits no more.

    """
    begin("placing the graph")
    placed = environment.placement.placed_for(request)
    if environment.config.check_graphs:
        check_placed(placed)
    begin("pruning the graph")

    def pruned() -> Pruned:
        return prune(placed, request, environment.client)

    if environment.workers is None:
        return prepare_part(request, pruned, environment, watch=watch, at_once=at_once)
    return _prepare_with(environment.workers, request, pruned, environment)


def _prepare_with(
    workers: Workers, request: Request, pruned: Callable[[], Pruned], environment: Environment
) -> PreparedRequest:
    """Split by task first; each task, this one like the others, sees to its own part."""
    whole = lower_request(pruned, environment.config, environment.devices)
    cut = split(
        whole,
        partition_of=workers.task_of,
        incarnation_of=environment.incarnation_of,
        numbers=workers.numbers,
    )
    graphs = {part.device: part.graph for part in cut}
    own = graphs.pop(workers.task_of(environment.client.name), Graph(whole.graph.library))
    if not graphs:
        return prepare_part(request, pruned, environment)
    begin("registering parts of the graph with other tasks")
    remote = [
        workers.register(task, graph, find_exchange(own, graph)) for task, graph in graphs.items()
    ]
    for part in remote:
        leave_to_calls(own, part.exchange)
    answers = [key for part in remote for key in part.exchange.wanted]
    is_exchanged = all(part.exchange.wanted for part in remote) and is_all_exchanged(own, answers)
    if is_exchanged:
        given = Exchange(given=tuple(answers))
        types, _ = take_from_calls(own, given, first=len(whole.feed_types))
        whole = dataclasses.replace(whole, feed_types=(*whole.feed_types, *types))
    again = partial(_copy, whole, own)
    return prepare_part(request, again, environment, remote, is_exchanged=is_exchanged)


def _copy(whole: Pruned, part: Graph) -> Pruned:
    """One part of a graph, to be changed."""
    graph, copies = extract(part, list(part))
    device_of = {copy.id: node.assigned_device for node, copy in copies.items()}
    return dataclasses.replace(whole, graph=graph, device_of=device_of)


def prepare_part(
    request: Request,
    pruned: Callable[[], Pruned],
    environment: Environment,
    remote: Sequence[RemoteGraph] = (),
    *,
    is_exchanged: bool = False,
    watch: Watch = UNWATCHED,
    at_once: bool = True,
) -> PreparedRequest:
    """Get ready to run what lies on devices of this process.

    Args:
        request: whom it is for.
        pruned: makes the graph, again if need be.
        environment: the session's.
        remote: the parts of the request's graph that other tasks run.
        is_exchanged: whether all values of these go along with calls.
        watch: who is shown what becomes of the graph.
        at_once: whether it is compiled even if its first steps can do without.

    """
    config = environment.config
    made = optimize_request(pruned, config, environment.own_devices, watch)
    begin("splitting the graph")
    partitions = split(made, incarnation_of=environment.incarnation_of) if len(made.graph) else []
    if config.check_graphs:
        check_partitions(partitions)
    begin("choosing tiers")
    return _prepared(
        request,
        made,
        partitions,
        environment,
        remote,
        is_exchanged=is_exchanged,
        at_once=at_once,
    )


def _prepared(
    request: Request,
    pruned: Pruned,
    partitions: Sequence[Partition],
    environment: Environment,
    remote: Sequence[RemoteGraph] = (),
    *,
    is_exchanged: bool = False,
    at_once: bool = True,
) -> PreparedRequest:
    """On the compiled tier what can be, at once or later, and the rest on the executor."""
    ends = len(pruned.feed_types), len(pruned.fetch_types)
    is_here = is_exchanged or not remote
    joined = _joined(pruned, environment) if len(partitions) > 1 and is_here else None
    tier, params_of = environment.config.tier, environment.params_of
    runnable = Runnable(partitions, params_of, tier, ends, joined=joined)
    if at_once or not _may_wait(environment, runnable):
        runnable.compile()
    else:
        runnable.bind()
    return PreparedRequest(
        request, pruned, partitions, runnable, environment, remote, is_exchanged=is_exchanged
    )


def _joined(pruned: Pruned, environment: Environment) -> Region | None:
    """All partitions as one function, if they can be that."""
    return join_devices(
        pruned,
        environment.config,
        environment.own_devices,
        environment.client.name,
        lambda device: environment.params_of(device).make_kernel,
    )


def prepare_nothing(environment: Environment) -> PreparedRequest:
    """The step of a request in which everything that is fetched is fed."""
    return _prepared(Request(), Pruned(Graph(), {}, (), ()), (), environment)


def place_and_prune(request: Request, environment: Environment) -> Pruned:
    """The part of the graph that a request needs, before it is optimised; like ``prepare``."""
    placed = environment.placement.placed_for(request)
    return prune(placed, request, environment.client)
