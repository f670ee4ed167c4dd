"""Give every node a device.

In:   a graph, and the devices there are.
Out:  Placed, with the full name of one of these devices for every node.
Not:  moves no node for speed: there is no cost model, and no look at sizes.

Runs before a request is pruned, on the whole graph: where a node lies does not depend on
what is fetched.  Every group of nodes goes to the first of its possible devices.  Two kinds
of nodes look at their neighbours first:

- A *metadata* node (Shape, Size, Rank) goes where its input is, to spare a transfer; so
  does an Identity that merely stands between two nodes of equal requests.
- A *generator* (no inputs, one output that is no reference) is placed last, and goes where
  its consumers are if they all lie together.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Final

from penstock.core.device_names import DeviceName, MergeMode
from penstock.dataclass import dataclass
from penstock.errors import FailedPreconditionError, InvalidArgumentError, OpError, Where
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.graph.stages import Placed
from penstock.kernels.api.registry import find_kernel, kernels_of
from penstock.passes.colocation import Colocation
from penstock.passes.constraints import Constraints, NodeConstraints, SupportedType
from penstock.state.checkpoints import checkpoint
from penstock.state.devices import Device, DeviceSet


class Choice(enum.Enum):
    """Why a node lies on its device."""

    ASSIGNED = "an earlier placement has put it there, and nodes with state do not move"
    WITH_GROUP = "it must lie with others, of which one was placed before"
    WITH_INPUT = "it only looks at its input, or hands it on, and so lies where that is"
    WITH_CONSUMERS = "it makes a value out of nothing, and all who read it are there"
    REQUESTED = "the graph asks for it"
    FALLBACK = "what the graph asks for cannot be had, and soft placement takes the best device"
    BEST = "nobody asks for a device, and of those with a kernel for it this one comes first"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacerOptions:
    """How strictly requests are taken, and who wants to hear of it."""

    #: Rather place a node elsewhere than refuse the graph.
    allow_soft_placement: bool = True
    #: Devices given to nodes by an earlier placement, by node name; they are kept.
    assigned: Mapping[str, str] = field(default_factory=dict)
    #: The device to prefer to all others where it is possible; none if empty.
    default_device: str = ""
    #: Gets a line for each node placed, and for each request that was ignored.
    log: Callable[[str], None] | None = None
    #: Told (node, wanted, got) of each node whose request no device could meet.
    on_fallback: Callable[[Node, str, str], None] | None = None
    #: Told why each node lies where it does.
    on_choice: Callable[[Node, Choice], None] | None = None


def place(graph: Graph, devices: DeviceSet, options: PlacerOptions | None = None) -> Placed:
    """Choose a device for every node of ``graph``.

    Raises:
        FailedPreconditionError: there are no devices.
        InvalidArgumentError: an op has no kernel, a device name is malformed, or requests
            contradict each other or what there is.
        InternalError: an earlier placement does not fit the devices or kernels.

    """
    if not len(devices):
        raise FailedPreconditionError("No devices are registered")
    options = options or PlacerOptions()
    return _place_on_only(graph, devices, options) or _Placer(graph, devices, options).run()


def place_added(
    graph: Graph, devices: DeviceSet, device_of: Mapping[int, str], first: int
) -> Mapping[int, str]:
    """Place the nodes from an id on, which were added to a graph whose other nodes have devices.

    Returns:
        The devices of all nodes, by id.

    Raises:
        OpError: a new node can lie nowhere, not even where it does not ask to.

    """
    if graph.next_id == first:
        return device_of
    assigned = {node.name: device_of[node.id] for node in graph if node.id < first}
    return place(graph, devices, PlacerOptions(assigned=assigned)).device_of


def _place_on_only(graph: Graph, devices: DeviceSet, options: PlacerOptions) -> Placed | None:
    """All nodes on the only device there is; None if one must not lie there, or for a log."""
    nodes = list(graph)
    if not may_lie_on_only(graph, nodes, devices, options):
        return None
    return Placed(graph, dict.fromkeys([node.id for node in nodes], devices.devices[0].name))


def may_lie_on_only(
    graph: Graph, nodes: Iterable[Node], devices: DeviceSet, options: PlacerOptions
) -> bool:
    """Whether there is only one device, on which all of these nodes may lie, and no log of it.

    Where every node may lie on the device by itself, whatever joins them may, too.
    """
    device = devices.devices[0]
    if len(devices) > 1 or options.log is not None or options.on_choice is not None:
        return False
    assigned, kind = options.assigned, device.device_type
    constraints = NodeConstraints(devices, graph.library, assigned)
    fitting: set[Constraints] = set()
    for node in nodes:
        checkpoint()
        # Hardly any node asks for a device, and then a kernel is all that it needs.
        asks = node.requested_device or node.assigned_device or node.name in assigned
        if not asks and not node.op.is_function and find_kernel(node.op.name, kind, node.attrs):
            continue
        try:
            own = constraints.of(node)
        except OpError:
            return False  # The whole procedure says what is wrong.
        if own not in fitting:
            if not _may_lie(own, device):
                return False
            fitting.add(own)
    return True


def _may_lie(constraints: Constraints, device: Device) -> bool:
    return device.parsed_name.is_specialization_of(
        constraints.requested
    ) and device.device_type in {t.device_type for t in constraints.supported}


@dataclass(frozen=True, slots=True)
class _Possible:
    """The devices that a group may lie on, best first."""

    devices: tuple[Device, ...]
    #: Whether a request had to be given up to find any.
    is_fallback: bool = False


class _Placer:
    """One placement under way."""

    def __init__(self, graph: Graph, devices: DeviceSet, options: PlacerOptions) -> None:
        self.graph: Final = graph
        self.devices: Final = devices
        self.options: Final = options
        self.log: Final = options.log or _ignore
        mode = MergeMode.SOFT if options.allow_soft_placement else MergeMode.STRICT
        self.constraints: Final = NodeConstraints(devices, graph.library, options.assigned)
        self.colocation: Final = Colocation(graph, self.constraints, mode, self.log)
        #: The result, by node id; grows until it has every node.
        self.device_of: Final[dict[int, Device]] = {}
        #: By constraints.  Nodes without a group share theirs, so this stays small.
        self.possible: Final[dict[Constraints, _Possible]] = {}

    def run(self) -> Placed:
        """All nodes but generators, then generators."""
        generators = []
        for node in self.graph:
            checkpoint()
            assigned = self.constraints.assigned_device(node)
            if assigned:
                self.settle(node, self.devices.lookup(assigned), Choice.ASSIGNED)
            elif _is_generator(node):
                generators.append(node)
            else:
                self.place_node(node, self.input_device, Choice.WITH_INPUT)
        for node in generators:
            self.place_node(node, self.consumers_device, Choice.WITH_CONSUMERS)
        return Placed(self.graph, {n.id: self.device_of[n.id].name for n in self.graph})

    def place_node(
        self, node: Node, preferred: Callable[[Node], Device | None], choice: Choice
    ) -> None:
        """Put a node on the device it prefers, if that is possible, or on the best one."""
        group = self.colocation.group_of(node)
        if group is not None and group.device is not None:
            self.settle(node, group.device, Choice.WITH_GROUP)
            return
        possible = self.possible_devices(node)
        device = preferred(node)
        if device is None or device not in possible.devices:
            device = possible.devices[0]
            is_asked = not self.colocation.constraints_of(node).requested.is_any
            choice = Choice.REQUESTED if is_asked else Choice.BEST
        if possible.is_fallback:
            choice = Choice.FALLBACK
        self.settle(node, device, choice)

    def settle(self, node: Node, device: Device, choice: Choice) -> None:
        """Note the device of a node, and hold its whole group to it."""
        self.device_of[node.id] = device
        if self.options.on_choice is not None:
            self.options.on_choice(node, choice)
        group = self.colocation.group_of(node)
        if group is not None:
            group.device = device
        if self.options.log is not None:
            self.log(f"{node.name}: ({node.op.name}): {device.name}")
        if node.requested_device and self.options.on_fallback is not None:
            self.tell_fallback(node, device)

    def tell_fallback(self, node: Node, device: Device) -> None:
        """Report a request that had to be given up, but not one that colocation overruled."""
        wanted = DeviceName.parse(node.requested_device)
        if device.parsed_name.is_specialization_of(wanted):
            return
        possible = self.possible.get(self.colocation.constraints_of(node))
        is_lost = possible is not None and possible.is_fallback
        if self.options.on_fallback is not None and (
            is_lost or not self.devices.find_matching(wanted)
        ):
            self.options.on_fallback(node, node.requested_device, device.name)

    # -- preferences ---------------------------------------------------------------

    def input_device(self, node: Node) -> Device | None:
        """Where the input of a metadata node or an Identity is, if it is placed yet."""
        is_drawn = node.role is Role.METADATA or (
            node.role is Role.IDENTITY and _is_pass_through(node)
        )
        first = next(node.in_edges(), None) if is_drawn else None
        return None if first is None else self.device_of.get(first.src.id)

    def consumers_device(self, node: Node) -> Device | None:
        """Where all consumers are; control edges count, and so do nodes not placed yet."""
        places = {self.device_of.get(edge.dst.id) for edge in node.out_edges}
        return places.pop() if len(places) == 1 else None

    # -- possible devices ----------------------------------------------------------

    def possible_devices(self, node: Node) -> _Possible:
        """The devices that a node's group may lie on; raises InvalidArgumentError if none."""
        constraints = self.colocation.constraints_of(node)
        found = self.possible.get(constraints)
        if found is None:
            found = self.possible[constraints] = self.find_possible(constraints)
        if not found.devices:
            raise self.refusal(node, constraints).at(_where(node))
        return found

    def find_possible(self, constraints: Constraints) -> _Possible:
        """As requested; or, under soft placement, as near to it as can be."""
        found = self.supported(constraints.requested, constraints)
        if found or not self.options.allow_soft_placement or constraints.requested.is_any:
            return _Possible(found)
        found = self.supported(constraints.softened(), constraints)
        if not found:
            found = self.supported(constraints.softened_most(), constraints)
            if found:
                self.log(
                    "Failed to place the graph without changing the devices of some resources: "
                    f"'{constraints.resource}' cannot run everything that uses them"
                )
        return _Possible(found, is_fallback=True)

    def supported(self, wanted: DeviceName, constraints: Constraints) -> tuple[Device, ...]:
        """The devices of a name that have the kernels, best first."""
        by_type: dict[str, SupportedType] = {t.device_type: t for t in constraints.supported}

        def rank(device: Device) -> tuple[bool, int, int, str]:
            return (
                device.name != self.options.default_device,
                -by_type[device.device_type].priority,
                -device.priority,
                device.name,  # As text: GPU:10 stands before GPU:2.
            )

        matching = self.devices.find_matching(wanted)
        return tuple(sorted((d for d in matching if d.device_type in by_type), key=rank))

    # -- errors --------------------------------------------------------------------

    def refusal(self, node: Node, constraints: Constraints) -> OpError:
        """The error for a node that no device can have."""
        reason, details = self.reason(node, constraints)
        return InvalidArgumentError(
            f"Cannot assign a device for operation {node.name}: {reason}", details=details
        )

    def reason(self, node: Node, constraints: Constraints) -> tuple[str, list[str]]:
        """Why no device can have the node, and the lines that go with it."""
        wanted = node.requested_device
        group = self.colocation.debug_info(node)
        if constraints.requested.is_any:
            inputs = ", ".join(t.name for t in node.input_types)
            return (
                "Node had no OpKernel registered to support this operation: Operation was "
                f"{node.op.name} and inputs were [{inputs}].",
                group,
            )
        known = ", ".join(_sorted_names(self.devices))
        unmet = f"Could not satisfy explicit device specification '{wanted}' because "
        own = DeviceName.parse(wanted)
        if own != constraints.requested:
            return (
                f"{unmet}the node {{{{colocation_node {node.name}}}}} was colocated with a group "
                f"of nodes that required incompatible device '{constraints.requested}'. "
                f"All available devices [{known}].",
                group,
            )
        if not self.devices.find_matching(own):
            is_gpu = own.type is not None and own.type.lower() == "gpu"
            hint = " The requested device appears to be a GPU, but CUDA is not enabled."
            return (
                f"{{{{node {node.name}}}}} was explicitly assigned to {wanted} but available "
                f"devices are [ {known} ]. Make sure the device specification refers to a valid "
                f"device.{hint if is_gpu else ''}",
                [],
            )
        kernels = [f"    {k}" for k in kernels_of(node.op.name)]
        return (
            f"{unmet}no supported kernel for {own.type or 'its'} devices is available.",
            [*group, "  Registered kernels:", *kernels],
        )


def _is_generator(node: Node) -> bool:
    """Whether it makes one value out of nothing."""
    return not node.inputs and len(node.output_types) == 1 and not node.output_types[0].is_ref


def _is_pass_through(node: Node) -> bool:
    """Whether an Identity asks for nothing and stands between nodes that ask for the same."""
    edges = list(node.in_edges())
    if node.requested_device or len(edges) != 1 or len(node.out_edges) > 1:
        return False
    # A node without consumers has an edge to the end of the graph, which asks for nothing.
    wanted = node.out_edges[0].dst.requested_device if node.out_edges else ""
    return edges[0].src.requested_device == wanted


def _sorted_names(devices: Iterable[Device]) -> list[str]:
    return sorted(device.name for device in devices)


def _where(node: Node) -> Where:
    return Where(node.name, node.op.name, node.requested_device)


def _ignore(_line: str) -> None:
    pass
