"""Lower and optimise what is about to be run, as the session's options say.

In:   a request's graph, or the body of a function, and the session's ``Config``.
Out:  the same, lowered and optimised; if that fails, a warning and the graph as it was.
Not:  decides nothing about single nodes; that is ``passes/lower.py`` and ``passes/optimize.py``.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, NamedTuple

from penstock.config import (
    Config,
    GraphOptions,
    Level,
    OptimizerOptions,
    RewriterConfig,
    Toggle,
)
from penstock.errors import OpError
from penstock.graph.check import check_graph, check_pruned
from penstock.graph.frames import build_control_flow_info
from penstock.graph.graph import Graph
from penstock.graph.instantiate import FunctionBody, idle_nodes
from penstock.graph.roles import LOOP_BORDERS
from penstock.graph.stages import Pruned
from penstock.kernels.api.host import CLOSED, WITHOUT_FILES
from penstock.passes.graph_pass import GraphPass, PassError, PassSettings
from penstock.passes.lower import PlaceNodes, lower
from penstock.passes.lowerable import Kinds
from penstock.passes.optimize import Passes, open_graph, optimize, optimize_graph
from penstock.passes.place import place_added
from penstock.runtime.choose_passes import passes_of
from penstock.state.checkpoints import checkpoint
from penstock.state.devices import DeviceSet


class Watch(NamedTuple):
    """Who is shown what becomes of a request's graph; by default nobody."""

    #: Shown the graph before the first pass: with functions where they are called.
    on_opened: Callable[[Pruned], object] | None = None
    #: Told of each pass that has changed something, and what the graph is then.
    on_pass: Callable[[GraphPass, Graph], object] | None = None
    #: Shown the graph that is run.
    on_made: Callable[[Pruned], object] | None = None


UNWATCHED: Final = Watch()


def optimize_request(
    prune: Callable[[], Pruned],
    config: Config,
    devices: DeviceSet,
    watch: Watch = UNWATCHED,
) -> Pruned:
    """The graph of a request, lowered and optimised; ``prune`` makes it, again if need be.

    Args:
        prune: makes the graph.
        config: what may be done to it.
        devices: where its nodes may lie.
        watch: who is shown what becomes of it.

    Raises:
        OpError: the request does not fit the graph, a frame is malformed, or whoever waits for
            it waits no more.

    """
    made = _optimized(prune, config, devices, watch)
    if watch.on_made is not None:
        watch.on_made(made)
    return made


def _optimized(
    prune: Callable[[], Pruned], config: Config, devices: DeviceSet, watch: Watch
) -> Pruned:
    pruned = prune()
    if config.check_graphs:
        check_pruned(pruned)
    passes = _passes_for(config)
    if watch.on_pass is not None:
        settings = dataclasses.replace(passes.settings, on_pass=watch.on_pass)
        passes = dataclasses.replace(passes, settings=settings)
    kinds = kinds_of(config, passes)
    if passes.change_nothing and not kinds:
        written = _as_written(pruned, passes)
        if watch.on_opened is not None:
            watch.on_opened(written)
        return written
    _check_frames(pruned.graph)
    try:
        opened = _opened(pruned, passes, config, devices) or _as_written(prune(), passes)
        if watch.on_opened is not None:
            watch.on_opened(opened)
        made = optimize(opened, passes)
        if config.check_graphs:
            check_pruned(made)
    except PassError:
        raise
    except Exception as failure:  # noqa: BLE001  (the step can do without)
        checkpoint()
        _complain(failure, config)
        return _as_written(prune(), passes)
    return made


def lower_request(prune: Callable[[], Pruned], config: Config, devices: DeviceSet) -> Pruned:
    """The graph of a request, lowered only: others optimise the parts that it is cut into.

    Raises:
        OpError: like ``optimize_request``.

    """
    as_written = GraphOptions(
        optimizer_options=OptimizerOptions(opt_level=Level.L0),
        rewrite_options=RewriterConfig(function_optimization=Toggle.ON),
    )
    return optimize_request(prune, dataclasses.replace(config, graph_options=as_written), devices)


def _as_written(pruned: Pruned, passes: Passes) -> Pruned:
    """A graph of which nothing is lowered."""
    open_graph(pruned.graph, pruned.device_of, passes, None)
    return pruned


def _opened(pruned: Pruned, passes: Passes, config: Config, devices: DeviceSet) -> Pruned | None:
    """What is lowered in place; None if what is used up by that cannot be placed.

    Resources that lie apart may be handed to one function, but not to one node of its body:
    on a device of its own, the call does as it is.
    """
    try:
        return _lowered(pruned, passes, config, devices)
    except OpError:
        if len(devices) == 1:
            raise
        return None


def _lowered(pruned: Pruned, passes: Passes, config: Config, devices: DeviceSet) -> Pruned:
    graph, first = pruned.graph, pruned.graph.next_id

    def place(device_of: Mapping[int, str]) -> Mapping[int, str]:
        return place_added(graph, devices, device_of, first)

    kinds = kinds_of(config, passes)
    if len(devices) > 1:
        # Where the nodes of these functions lie, only calls of them can say.
        kinds &= ~Kinds.PURE_CHOICES
    how = partial(
        lower,
        kinds=kinds,
        targets=pruned.targets | pruned.fetched,
        read=pruned.fetched - pruned.targets if passes.skip_unread else (),
        device_types=devices.prioritized_types,
        place=place if len(devices) > 1 else None,
        max_new_nodes=config.limits.new_nodes,
    )
    device_of = open_graph(graph, pruned.device_of, passes, how)
    return pruned.with_devices(device_of)


def optimize_body(
    body: FunctionBody, config: Config, device_types: Collection[str], *, keeps_effects: bool
) -> None:
    """Lower and optimise the body of a function in place; for its effects see ``lower``.

    Raises:
        OpError: a frame is malformed, or whoever waits for it waits no more.
        InternalError: the optimiser failed, and left no graph; or a pass of somebody else's failed.

    """
    passes = _passes_for(config)
    kinds = kinds_of(config, passes)
    graph = body.graph
    if passes.change_nothing and not kinds:
        open_graph(graph, {}, passes, None)
        return
    _check_frames(graph)
    how = partial(
        lower,
        kinds=kinds,
        targets={node.name for node in body.controls},
        device_types=device_types,
        keeps_effects=keeps_effects,
        max_new_nodes=config.limits.new_nodes,
    )
    try:
        open_graph(graph, {}, passes, how)
        optimize_graph(graph, {}, passes)
    except PassError:
        raise
    except Exception as failure:  # noqa: BLE001  (the step can do without)
        checkpoint()
        _complain(failure, config)
        # Passes look first and change then: most likely they have not begun.
        check_graph(graph)


def place_body(body: FunctionBody, config: Config, devices: DeviceSet, place: PlaceNodes) -> Pruned:
    """Make nodes of what a body calls, place all of them, and keep what is needed.

    As in TensorFlow, no option keeps the calls of a body that lies on several devices, and what
    nobody needs may still say where others lie.

    Raises:
        OpError: a frame is malformed, or a node can lie nowhere.

    """
    graph = body.graph
    kinds = Kinds.PARTITIONED_CALLS
    if not config.disable_functional_ops_lowering:
        kinds |= Kinds.CHOICES
    _check_frames(graph)
    targets = frozenset(node.name for node in body.controls)
    device_of = lower(
        graph,
        {},
        kinds=kinds,
        targets=targets,
        device_types=devices.prioritized_types,
        place=place,
        keeps_effects=not body.wanted,
        idle=set(idle_nodes(graph, body.wanted)) if body.wanted else (),
        max_new_nodes=config.limits.new_nodes,
    )
    return Pruned(graph, device_of, body.arg_types, body.ret_types, targets)


def optimize_spread(body: Pruned, config: Config, devices: DeviceSet) -> Pruned:
    """Lower calls of a body that lies on several devices, and optimise it; it is used up.

    Raises:
        OpError: whoever waits for it waits no more.
        InternalError: the optimiser failed, and left no graph; or a pass of somebody else's failed.

    """
    passes = _passes_for(config)
    if passes.change_nothing:
        return _as_written(body, passes)
    try:
        return optimize(_lowered(body, passes, config, devices), passes)
    except PassError:
        raise
    except Exception as failure:  # noqa: BLE001  (the step can do without)
        checkpoint()
        _complain(failure, config)
        check_graph(body.graph)
        return body


def _check_frames(graph: Graph) -> None:
    """Refuse malformed loops as they were written: of several mistakes, passes may leave one.

    Raises:
        OpError: a frame is malformed.

    """
    if any(node.role in LOOP_BORDERS for node in graph):
        build_control_flow_info(graph)


def _passes_for(config: Config) -> Passes:
    """The passes of a session."""
    settings = PassSettings(
        host=WITHOUT_FILES if config.allow_files else CLOSED,
        flush_denormals=config.flush_denormals,
        accelerate=config.accelerate,
        region_products=config.limits.region_products,
        entries_at_once=config.limits.entries_at_once,
        checks_graphs=config.check_graphs,
    )
    return passes_of(config.graph_options, settings)


def kinds_of(config: Config, passes: Passes) -> Kinds:
    """Which nodes are lowered: what asks for it always, others where functions are optimised."""
    return _kinds(passes.opens_calls, config.disable_functional_ops_lowering)


@functools.cache
def _kinds(opens_calls: bool, keeps_choices: bool) -> Kinds:  # noqa: FBT001  (as it is cached)
    kinds = Kinds.CALLS | Kinds.PURE_CHOICES if opens_calls else Kinds(0)
    return kinds & Kinds.CALLS if keeps_choices else kinds | Kinds.CHOICES


def _complain(failure: Exception, config: Config) -> None:
    """Raise what went wrong where somebody looks for mistakes; otherwise mention it."""
    if config.check_graphs or config.graph_options.rewrite_options.fail_on_optimizer_errors:
        raise failure
    warnings.warn(
        f"The graph runs as it is, since optimising it failed: {failure!r}; please report it "
        "with the graph",
        RuntimeWarning,
        stacklevel=3,
    )
