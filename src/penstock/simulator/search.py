"""A better placement.

In:   a forecast.
Out:  devices of nodes, and the prediction for them; never worse than what the graph asks for.
Not:  changes no graph.

First a list schedule: groups of nodes, those with the longest way to the end of the step first,
each where it would be done first, what it must be sent included (HEFT: Topcuoglu, Hariri and Wu,
2002).  Then a local search from the better of that and the graph's own placement: a group is moved
to another device, the step is simulated, and the move is kept if the step became shorter.

What may not be parted is one group: nodes that are colocated, by their attribute or since one has
the other's resource or reference, and all nodes of a loop.  A group stays on devices that all of
its nodes allow.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from penstock.core import dtypes
from penstock.core.device_names import DeviceName
from penstock.dataclass import dataclass
from penstock.graph.frames import ControlFlowInfo, Frame, build_control_flow_info
from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.simulator.costs import Costs, NodeCost
from penstock.simulator.forecast import Forecast
from penstock.simulator.prediction import Prediction

_FREE: Final = NodeCost(0.0)
_LOCAL: Final = "loc:@"


@dataclass(slots=True, eq=False)
class _Movable:
    """Nodes that lie on one device."""

    nodes: list[Node]
    allowed: list[str]
    device: str
    seconds: float = 0.0
    #: The bytes that it sends to others.
    sends: dict[_Movable, int] = field(default_factory=dict)
    #: Those that send to it, and how much.
    receives: dict[_Movable, int] = field(default_factory=dict)


def better_placement(
    forecast: Forecast, *, evaluations: int = 200, seed: int = 0
) -> tuple[Mapping[int, str], Prediction]:
    """Devices by the ids of nodes, and what is predicted of them.

    Args:
        forecast: the graph on its cluster.
        evaluations: how many placements are simulated.
        seed: of the order in which groups are moved.

    """
    groups = _groups(forecast)
    best = _placed(groups), forecast.predict()
    own = [group.device for group in groups]
    _list_schedule(groups, forecast)
    found = _placed(groups), forecast.predict(_placed(groups))
    if found[1].seconds < best[1].seconds:
        best = found
    else:
        for group, device in zip(groups, own, strict=True):
            group.device = device
    return _climb(groups, forecast, best, evaluations - 2, random.Random(seed))


def _placed(groups: list[_Movable]) -> dict[int, str]:
    return {node.id: group.device for group in groups for node in group.nodes}


# -- groups ----------------------------------------------------------------------------------


def _groups(forecast: Forecast) -> list[_Movable]:
    """All nodes, those that belong together together."""
    pruned = forecast.pruned
    leader: dict[Node, Node] = {node: node for node in pruned.graph}

    def find(node: Node) -> Node:
        while leader[node] is not node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    for one, other in _bonds(forecast):
        leader[find(one)] = find(other)
    members: defaultdict[Node, list[Node]] = defaultdict(list)
    for node in pruned.graph:
        members[find(node)].append(node)
    made = {
        first: _Movable(nodes, _allowed(nodes, forecast), pruned.device_of[first.id])
        for first, nodes in members.items()
    }
    for group in made.values():
        group.seconds = sum(_seconds(node, forecast.costs) for node in group.nodes)
        for node in group.nodes:
            for edge in node.out_edges:
                reader = made[find(edge.dst)]
                if reader is not group:
                    size = _size(edge, forecast.costs)
                    group.sends[reader] = group.sends.get(reader, 0) + size
                    reader.receives[group] = reader.receives.get(group, 0) + size
    return list(made.values())


def _bonds(forecast: Forecast) -> Iterator[tuple[Node, Node]]:
    """Pairs of nodes that may not be parted."""
    graph = forecast.pruned.graph
    for node in graph:
        for name in node.attrs.get("_class") or ():
            other = graph.find(name.decode().removeprefix(_LOCAL))
            if other is not None:
                yield node, other
        for edge in filter(None, node.inputs):
            dtype = edge.src.output_types[edge.src_slot]
            if dtype.is_ref or dtype is dtypes.resource:
                yield edge.src, node
    info = build_control_flow_info(graph)
    first: dict[Frame, Node] = {}
    for node in graph:
        loop = _outermost(node, info)
        if loop is not None:
            yield node, first.setdefault(loop, node)


def _outermost(node: Node, info: ControlFlowInfo) -> Frame | None:
    """The loop that a node is part of, its Enter and Exit included; None if there is none."""
    frames = info.frame_of if node.role is Role.EXIT else info.output_frame_of
    frame = frames.get(node.id)
    while frame is not None and frame.parent is not None and frame.parent.parent is not None:
        frame = frame.parent
    return frame if frame is not None and frame.parent is not None else None


def _allowed(nodes: list[Node], forecast: Forecast) -> list[str]:
    """The devices that all of some nodes allow; what a request pins stays where it is."""
    now = forecast.pruned.device_of[nodes[0].id]
    if any(node.role in (Role.ARG, Role.RETVAL) for node in nodes):
        return [now]
    wanted = {node.requested_device for node in nodes if node.requested_device}
    found = {device.name: True for device in forecast.devices}
    for name in wanted:
        here = [device.name for device in forecast.devices.find_matching(DeviceName.parse(name))]
        if here:  # else it asks for what the cluster lacks
            found = {name: True for name in found if name in here}
    return list(found) or [now]


def _seconds(node: Node, costs: Costs) -> float:
    cost = costs.nodes.get(node.name, _FREE)
    return (cost.seconds + costs.overhead) * cost.count


def _size(edge: Edge, costs: Costs) -> int:
    outputs = costs.nodes.get(edge.src.name, _FREE).outputs
    return outputs[edge.src_slot] if 0 <= edge.src_slot < len(outputs) else 0


# -- the list schedule -----------------------------------------------------------------------


def _list_schedule(groups: list[_Movable], forecast: Forecast) -> None:
    """Put each group where it would be done first."""
    machine = forecast.machine
    done: dict[_Movable, float] = {}
    free: defaultdict[str, float] = defaultdict(float)
    for group in _by_rank(groups, forecast):

        def end(device: str, group: _Movable = group) -> float:
            start = free[device]
            for other, size in group.receives.items():
                sent = machine.latency + size / machine.bandwidth if other.device != device else 0.0
                start = max(start, done.get(other, 0.0) + sent)
            return start + group.seconds

        group.device = min(group.allowed, key=lambda device: (end(device), device != group.device))
        done[group] = free[group.device] = end(group.device)


def _by_rank(groups: list[_Movable], forecast: Forecast) -> list[_Movable]:
    """Groups by the longest way from each to the end; ways that go in a circle are cut."""
    machine, ranks = forecast.machine, dict[_Movable, float]()
    for first in groups:
        stack = [(first, iter(first.sends))]
        entered = {first}
        while stack:
            group, rest = stack[-1]
            following = next((g for g in rest if g not in ranks and g not in entered), None)
            if following is not None:
                entered.add(following)
                stack.append((following, iter(following.sends)))
                continue
            stack.pop()
            ways = (
                ranks.get(other, 0.0) + machine.latency + size / machine.bandwidth
                for other, size in group.sends.items()
            )
            ranks[group] = group.seconds + max(ways, default=0.0)
    return sorted(groups, key=ranks.__getitem__, reverse=True)


# -- the local search ------------------------------------------------------------------------


def _climb(
    groups: list[_Movable],
    forecast: Forecast,
    best: tuple[Mapping[int, str], Prediction],
    evaluations: int,
    chance: random.Random,
) -> tuple[Mapping[int, str], Prediction]:
    """Move one group at a time, as long as that helps and simulations are left."""
    movable = [group for group in groups if len(group.allowed) > 1]
    weights = [group.seconds + forecast.costs.overhead + 1e-9 for group in movable]
    for _ in range(evaluations if movable else 0):
        [group] = chance.choices(movable, weights)
        before = group.device
        near = [g.device for g in (*group.sends, *group.receives) if g.device in group.allowed]
        choice = near if near and chance.random() < 0.5 else group.allowed
        group.device = chance.choice(choice)
        if group.device == before:
            continue
        found = forecast.predict(_placed(groups))
        if found.seconds < best[1].seconds:
            best = _placed(groups), found
        else:
            group.device = before
    return best
