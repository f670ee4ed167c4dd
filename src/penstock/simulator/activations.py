"""Which activations a step has, and who waits for whom.

In:   partitions, as ``passes/split.py`` makes them; what nodes cost.
Out:  ``Activations``: a graph without loops, whose nodes take time, and send.
Not:  knows no cluster, and simulates nothing.

A loop is as many copies of its body as it had iterations when costs were measured; a branch that
was not taken then takes no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, ResourceExhaustedError
from penstock.graph.frames import ControlFlowInfo, Frame, build_control_flow_info
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import Role
from penstock.graph.stages import Partition
from penstock.simulator.costs import Costs, NodeCost

#: More activations of one step than this are refused: each takes some 300 bytes.
MAX_ACTIVATIONS: Final = 5_000_000
_NOTHING: Final = NodeCost(0.0, 0.0)


@dataclass(slots=True)
class Activations:
    """Activations by number; each list has one item for each of them."""

    #: The devices that they lie on, in the order of their numbers.
    devices: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    #: The number of its device.
    place: list[int] = field(default_factory=list)
    #: How long it holds a core.
    seconds: list[float] = field(default_factory=list)
    successors: list[list[int]] = field(default_factory=list)
    #: How many activations and transfers it waits for.
    waits: list[int] = field(default_factory=list)
    #: Who receives what it sends, and how many bytes these are; of Sends only.
    sends: dict[int, tuple[int, int]] = field(default_factory=dict)
    #: Nodes of the request itself of which nobody has measured anything.
    unmeasured: int = 0

    def __len__(self) -> int:
        return len(self.names)

    def link(self, before: int, after: int) -> None:
        """Have one activation wait for another one."""
        self.successors[before].append(after)
        self.waits[after] += 1


def activations_of(partitions: Sequence[Partition], costs: Costs) -> Activations:
    """All activations of a step.

    Raises:
        ResourceExhaustedError: there are more than ``MAX_ACTIVATIONS``.
        InvalidArgumentError: a frame is malformed.

    """
    made = Activations()
    trips = _trips(partitions, costs)
    ends: dict[tuple[str, str], dict[bytes, range]] = {}
    parts = [_Part(made, part, costs, trips) for part in partitions]
    for part in parts:
        part.add_nodes()
    for part in parts:
        part.add_edges()
        for key, numbers in part.transfers.items():
            ends.setdefault(key[:2], {})[key[2]] = numbers
    for part in parts:
        part.add_sends(ends)
    return made


def _trips(partitions: Sequence[Partition], costs: Costs) -> dict[str, int]:
    """How often the condition of each loop is computed, each time that the loop begins."""
    counts: dict[str, float] = {}
    parents: dict[str, str] = {}
    for partition in partitions:
        info = build_control_flow_info(partition.graph)
        for frame in info.frames.values():
            if frame.parent is not None:
                parents[frame.name] = frame.parent.name
        for node in partition.graph:
            if node.role is Role.LOOP_COND and node.id in info.frame_of:
                name = info.frame_of[node.id].name
                counts[name] = max(counts.get(name, 0), costs.nodes.get(node.name, _NOTHING).count)
    trips: dict[str, int] = {"": 1}
    whole: dict[str, float] = {"": 1.0}

    def visit(name: str) -> float:
        if name not in whole:
            outside = visit(parents[name])
            trips[name] = max(1, round(counts.get(name, 0) / outside))
            whole[name] = outside * trips[name]
        return whole[name]

    for name in parents:
        visit(name)
    return trips


class _Part:
    """The activations of one partition."""

    def __init__(
        self, made: Activations, part: Partition, costs: Costs, trips: Mapping[str, int]
    ) -> None:
        self._made = made
        self._graph: Graph = part.graph
        self._costs = costs
        self._trips = trips
        self._info: ControlFlowInfo = build_control_flow_info(part.graph)
        self._device = len(made.devices)
        made.devices.append(part.device)
        #: The activations of each node, by its number.
        self._numbers: dict[int, range] = {}
        #: The activations of each end of a transfer: what it is, its devices, its name.
        self.transfers: dict[tuple[str, str, bytes], range] = {}

    def _instances(self, frame: Frame) -> int:
        """How many iterations a frame has in a step."""
        outer = 1 if frame.parent is None else self._instances(frame.parent)
        return outer * self._trips[frame.name]

    def add_nodes(self) -> None:
        """Number the activations of all nodes, and say what they take."""
        made = self._made
        for node in self._graph:
            frame = self._info.frame_of.get(node.id)
            if frame is None:
                continue  # no step ever reaches it
            first, count = len(made), self._instances(frame)
            if first + count > MAX_ACTIVATIONS:
                raise ResourceExhaustedError(
                    f"A step has more than {MAX_ACTIVATIONS} activations of nodes",
                    next_step="measure costs with fewer iterations of its loops",
                )
            self._numbers[node.id] = range(first, first + count)
            made.names += [node.name] * count
            made.ops += [node.op.name] * count
            made.place += [self._device] * count
            made.seconds += self._seconds(node, self._trips[frame.name], count)
            made.successors += [[] for _ in range(count)]
            made.waits += [0] * count
            if node.role in (Role.SEND, Role.RECV):
                devices = b"%b;%b" % (node.attrs["send_device"], node.attrs["recv_device"])
                key = (node.role.name, devices.decode(), node.attrs["tensor_name"])
                self.transfers[key] = self._numbers[node.id]

    def _seconds(self, node: Node, trips: int, count: int) -> list[float]:
        """Of each activation; those of iterations in which it is dead take none."""
        cost = self._costs.nodes.get(node.name)
        if cost is None:
            is_own = node.role in (Role.SEND, Role.RECV) or "/_" in node.name
            self._made.unmeasured += not is_own
            return [self._costs.overhead] * count
        alive, one = cost.count * trips / count, cost.seconds + self._costs.overhead
        of_loop = [one * min(1.0, max(0.0, alive - trip)) for trip in range(trips)]
        return of_loop * (count // trips)

    def add_edges(self) -> None:
        """Have each activation wait for those that its node reads or waits for."""
        for node in self._graph:
            if node.id not in self._numbers:
                continue
            for edge in node.out_edges:
                if edge.dst.id in self._numbers:
                    for before, after in self._pairs(edge):
                        self._made.link(before, after)

    def _pairs(self, edge: Edge) -> Iterator[tuple[int, int]]:
        """Which activations of an edge's ends belong together."""
        before, after = self._numbers[edge.src.id], self._numbers[edge.dst.id]
        role = edge.src.role
        if role is Role.ENTER:
            trips = len(after) // len(before)
            is_constant = edge.src.attrs["is_constant"]
            for outer, number in enumerate(before):
                body = after[outer * trips : (outer + 1) * trips]
                yield from ((number, one) for one in (body if is_constant else body[:1]))
        elif role is Role.EXIT:
            trips = len(before) // len(after)
            yield from zip(before[trips - 1 :: trips], after, strict=True)
        elif role is Role.NEXT_ITERATION:
            trips = self._trips[self._info.frame_of[edge.src.id].name]
            for number, one in zip(before, after, strict=True):
                if (one - after.start + 1) % trips:
                    yield number, one + 1
        else:
            yield from zip(before, after, strict=True)

    def add_sends(self, ends: Mapping[tuple[str, str], Mapping[bytes, range]]) -> None:
        """Join what is sent from here with who receives it."""
        for node in self._graph:
            if node.role is not Role.SEND or node.id not in self._numbers:
                continue
            devices = b"%b;%b" % (node.attrs["send_device"], node.attrs["recv_device"])
            receivers = ends.get(("RECV", devices.decode()), {}).get(node.attrs["tensor_name"])
            if receivers is None:
                raise InvalidArgumentError(f"Nobody receives what node {node.name} sends")
            edge = node.inputs[0]
            assert edge is not None  # split made it
            outputs = self._costs.nodes.get(edge.src.name, _NOTHING).outputs
            size = outputs[edge.src_slot] if edge.src_slot < len(outputs) else 0
            for sender, receiver in zip(self._numbers[node.id], receivers, strict=True):
                self._made.sends[sender] = (receiver, size)
                self._made.waits[receiver] += 1
