"""Place the graph of a session, in which branches and loops are dataflow first.

In:   the graph, the devices there are, and how strictly requests for them are taken.
Out:  Placed.
Not:  changes the session's own graph: where nodes become others, it is a copy that is placed.

Where there is but one device, nothing depends on it where functional control flow becomes
dataflow, and that is left to the optimiser, which knows what a request needs.  On several, the
nodes of branches and loops lie where they ask to, and so must be there when nodes are placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.config import Config
from penstock.core.collector import collector_paused
from penstock.core.limits import Limits
from penstock.errors import OpError
from penstock.graph.extract import extract
from penstock.graph.graph import Graph, Node
from penstock.graph.stages import Placed
from penstock.kernels.api.registry import find_kernel
from penstock.passes.lower import has_choices, lower_choices
from penstock.passes.place import PlacerOptions, place
from penstock.passes.prune import Request, find_wanted, needed_nodes
from penstock.state.devices import DeviceSet


@collector_paused
def place_whole(graph: Graph, devices: DeviceSet, config: Config, options: PlacerOptions) -> Placed:
    """Place all nodes that some kernel supports; the others get no device.

    A node without a kernel does no harm as long as nobody needs it; ``prune`` refuses it when
    somebody does.

    Raises:
        OpError: nodes that have kernels cannot be placed.

    """
    if _lowers(graph, devices, config):
        return _place_lowered(graph, list(graph), devices, options, config.limits)
    return _place_supported(graph, devices, options)


@collector_paused
def place_for(
    graph: Graph, request: Request, devices: DeviceSet, config: Config, options: PlacerOptions
) -> Placed:
    """Place only what ``request`` needs; the other nodes get no device."""
    wanted, fed = find_wanted(graph, request)
    needed = sorted(needed_nodes(wanted, fed), key=lambda node: node.id)
    if _lowers(graph, devices, config):
        needed = list(dict.fromkeys([*needed, *(node for node, _ in fed)]))
        return _place_lowered(graph, needed, devices, options, config.limits)
    return _place_part(graph, needed, devices, options)


def _lowers(graph: Graph, devices: DeviceSet, config: Config) -> bool:
    """Whether nodes become others before they are placed."""
    is_wanted = len(devices) > 1 and not config.disable_functional_ops_lowering
    return is_wanted and has_choices(graph)


def _place_lowered(
    graph: Graph,
    nodes: Iterable[Node],
    devices: DeviceSet,
    options: PlacerOptions,
    limits: Limits,
) -> Placed:
    part, _ = extract(graph, nodes)
    stand_ins = lower_choices(part, devices.prioritized_types, limits.new_nodes)
    placed = _place_supported(part, devices, options)
    return Placed(part, placed.device_of, stand_ins)


def _place_supported(graph: Graph, devices: DeviceSet, options: PlacerOptions) -> Placed:
    try:
        return place(graph, devices, options)
    except OpError:
        types = devices.prioritized_types
        supported = [node for node in graph if _is_supported(node, types)]
        if len(supported) == len(graph):
            raise
        return _place_part(graph, supported, devices, options)


def _is_supported(node: Node, device_types: Sequence[str]) -> bool:
    if node.op.is_function:
        return True
    return any(find_kernel(node.op.name, kind, node.attrs) for kind in device_types)


def _place_part(
    graph: Graph, nodes: Iterable[Node], devices: DeviceSet, options: PlacerOptions
) -> Placed:
    part, copies = extract(graph, nodes)
    placed = place(part, devices, options)
    return Placed(graph, {node.id: placed.device_of[copy.id] for node, copy in copies.items()})
