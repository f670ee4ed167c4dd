"""The laws of graphs, and of what the passes make of them.

In:   a graph, or what a pass made of it.
Out:  nothing; or one InternalError that names every breach.
Not:  judges no user's graph: what may be wrong with that has errors of its own, which come
      earlier.

A law is a small function that yields a sentence for each breach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from penstock.core.device_names import DeviceName
from penstock.core.names import CONTROL_SLOT
from penstock.errors import InternalError, OpError
from penstock.graph.frames import ControlFlowInfo, build_control_flow_info
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import Role, role_of
from penstock.graph.stages import Partition, Placed, Pruned

#: More breaches than this help nobody.
_MAX_SHOWN: Final = 20
#: How ``split`` begins the names under which values travel; users' transfers are theirs.
_TRANSFER: Final = b"edge_"


def check_graph(graph: Graph) -> None:
    """Raise InternalError unless the laws of ``Graph`` hold."""
    _refuse("a graph", _graph_breaches(graph))


def check_placed(placed: Placed) -> None:
    """Raise InternalError unless the laws of ``Placed`` hold."""
    _refuse(
        "a placed graph",
        [
            *_graph_breaches(placed.graph),
            *devices_belong_to_nodes(placed.graph, placed.device_of),
            *devices_are_named_in_full(placed.device_of),
        ],
    )


def check_pruned(pruned: Pruned) -> None:
    """Raise InternalError unless the laws of ``Pruned`` hold."""
    _refuse(
        "a pruned graph",
        [
            *_graph_breaches(pruned.graph),
            *devices_belong_to_nodes(pruned.graph, pruned.device_of),
            *every_node_has_a_device(pruned.graph, pruned.device_of),
        ],
    )


def check_partitions(partitions: Sequence[Partition]) -> None:
    """Raise InternalError unless the laws of ``Partition`` hold."""
    graphs = [part.graph for part in partitions]
    of_each = [b for g in graphs for b in (*_graph_breaches(g), *every_input_has_an_edge(g))]
    of_transfers = _transfer_breaches(graphs) if len(graphs) > 1 else []
    _refuse("partitions", [*partitions_differ(partitions), *of_each, *of_transfers])


def _refuse(what: str, breaches: Sequence[str]) -> None:
    if breaches:
        more = len(breaches) - _MAX_SHOWN
        rest = [f"  … and {more} more"] if more > 0 else []
        raise InternalError(
            f"The laws of {what} are broken:",
            details=[*(f"  {breach}" for breach in breaches[:_MAX_SHOWN]), *rest],
            next_step="this is a mistake of Penstock's; please report it with the graph",
        )


# -- graphs --------------------------------------------------------------------------


def _graph_breaches(graph: Graph) -> list[str]:
    return [breach for law in GRAPH_LAWS for breach in law(graph)]


def ids_grow(graph: Graph) -> Iterator[str]:
    """Nodes stand in the order of their ids, which are below the next one."""
    ids = [node.id for node in graph]
    if ids != sorted(set(ids)):
        yield "ids do not grow"
    yield from (f"id {i} was never given out" for i in ids if not 0 <= i < graph.next_id)


def names_lead_to_nodes(graph: Graph) -> Iterator[str]:
    """Every node is found by its name, and nothing else is."""
    for node in graph:
        if graph.find(node.name) is not node:
            yield f"'{node.name}' is not found by its name"
    if len(graph.names()) != len(graph):
        yield "there are names without nodes"


def edges_stand_on_both_sides(graph: Graph) -> Iterator[str]:
    """What leaves one node arrives at another, as often."""
    arriving = Counter(edge for node in graph for edge in node.in_edges())
    leaving = Counter(edge for node in graph for edge in node.out_edges)
    yield from (f"{edge} only arrives" for edge in arriving - leaving)
    yield from (f"{edge} only leaves" for edge in leaving - arriving)


def edges_stay_inside(graph: Graph) -> Iterator[str]:
    """Both ends of every edge are nodes of the graph."""
    inside = set(graph)
    for node in graph:
        for edge in (*node.in_edges(), *node.out_edges):
            if edge.src not in inside or edge.dst not in inside:
                end = edge.src if edge.src not in inside else edge.dst
                yield f"{edge} leads out of the graph at '{end.name}'"


def edges_have_their_slots(graph: Graph) -> Iterator[str]:
    """An edge stands where its slots say, and its source has such an output."""
    for node in graph:
        for slot, edge in enumerate(node.inputs):
            if edge is not None and (edge.dst is not node or edge.dst_slot != slot):
                yield f"{edge} stands at input {slot} of '{node.name}'"
            if edge is not None and not 0 <= edge.src_slot < len(edge.src.output_types):
                yield f"{edge} leaves an output that is not there"
        for edge in node.control_inputs:
            if edge.dst is not node or {edge.src_slot, edge.dst_slot} != {CONTROL_SLOT}:
                yield f"{edge} stands at the control inputs of '{node.name}'"


def types_fit(graph: Graph) -> Iterator[str]:
    """A node's types are those of its op and attributes; an edge joins what fits."""
    for node in graph:
        if node.input_types != node.op.input_types(node.attrs):
            yield f"'{node.name}' has input types {node.input_types}, which its op does not say"
        if node.output_types != node.op.output_types(node.attrs):
            yield f"'{node.name}' has output types {node.output_types}, which its op does not say"
        if len(node.inputs) != len(node.input_types):
            yield f"'{node.name}' has {len(node.inputs)} inputs of {len(node.input_types)} types"
        for edge in node.inputs:
            if edge is not None and _misfits(edge):
                yield f"{edge} joins types that do not fit"


def _misfits(edge: Edge) -> bool:
    given, taken = edge.src.output_types, edge.dst.input_types
    if not (0 <= edge.src_slot < len(given) and edge.dst_slot < len(taken)):
        return False
    return not given[edge.src_slot].may_feed(taken[edge.dst_slot])


def control_inputs_are_in_order(graph: Graph) -> Iterator[str]:
    """Control inputs are sorted by the name of their source, and no source comes twice."""
    for node in graph:
        names = [edge.src.name for edge in node.control_inputs]
        if names != sorted(set(names)):
            yield f"control inputs of '{node.name}' are out of order: {', '.join(names)}"


def roles_follow_from_ops(graph: Graph) -> Iterator[str]:
    """What a node is to the executor follows from its op alone."""
    for node in graph:
        if node.role is not role_of(node.op.name):
            yield f"'{node.name}' ({node.op.name}) has the role {node.role.name}"


GRAPH_LAWS: Final = (
    ids_grow,
    names_lead_to_nodes,
    edges_stand_on_both_sides,
    edges_stay_inside,
    edges_have_their_slots,
    types_fit,
    control_inputs_are_in_order,
    roles_follow_from_ops,
)


# -- devices -------------------------------------------------------------------------


def devices_belong_to_nodes(graph: Graph, device_of: Mapping[int, str]) -> Iterator[str]:
    """Only nodes of the graph have a device."""
    ids = {node.id for node in graph}
    yield from (f"id {i} has a device and is no node" for i in device_of if i not in ids)


def devices_are_named_in_full(device_of: Mapping[int, str]) -> Iterator[str]:
    """A device is one certain device."""
    for device in set(device_of.values()):
        name = DeviceName.try_parse(device)
        if name is None or name.type is None or name.id is None:
            yield f"'{device}' is not the name of one device"


def every_node_has_a_device(graph: Graph, device_of: Mapping[int, str]) -> Iterator[str]:
    """No node is left without a device."""
    yield from (f"'{node.name}' has no device" for node in graph if node.id not in device_of)


# -- partitions ----------------------------------------------------------------------


def partitions_differ(partitions: Sequence[Partition]) -> Iterator[str]:
    """There is one partition per device."""
    for device, count in Counter(part.device for part in partitions).items():
        if count > 1:
            yield f"{device} has {count} partitions"


def every_input_has_an_edge(graph: Graph) -> Iterator[str]:
    """Nothing was lost when edges were cut."""
    for node in graph:
        for slot, edge in enumerate(node.inputs):
            if edge is None:
                yield f"input {slot} of '{node.name}' has no edge"


def _transfer_breaches(graphs: Sequence[Graph]) -> list[str]:
    try:
        parts = [(graph, build_control_flow_info(graph)) for graph in graphs]
    except OpError as error:
        return [f"the loops of a partition are malformed: {error.reason}"]
    in_loops = (breach for part in parts for breach in recvs_in_loops_wait_for_their_turn(*part))
    return [*each_send_has_one_recv(parts), *in_loops]


def each_send_has_one_recv(parts: Iterable[tuple[Graph, ControlFlowInfo]]) -> Iterator[str]:
    """A Send and its Recv agree on their attributes and their loop, and with nobody else."""
    sends, recvs = Counter[object](), Counter[object]()
    for graph, info in parts:
        sends.update(_transfer_facts(node, info) for node in _transfers(graph, Role.SEND))
        recvs.update(_transfer_facts(node, info) for node in _transfers(graph, Role.RECV))
    for facts in sends | recvs:
        if (sends[facts], recvs[facts]) != (1, 1):
            yield f"{facts} has {sends[facts]} Sends and {recvs[facts]} Recvs"


def recvs_in_loops_wait_for_their_turn(graph: Graph, info: ControlFlowInfo) -> Iterator[str]:
    """A Recv inside a loop is started by a Merge of that loop, once in every iteration."""
    for node in _transfers(graph, Role.RECV):
        frame = info.frame_of.get(node.id, info.root)
        merges = [edge.src for edge in node.control_inputs if edge.src.role is Role.MERGE]
        if frame is not info.root and all(info.frame_of.get(m.id) is not frame for m in merges):
            yield f"'{node.name}' is in the loop '{frame}' and waits for none of its iterations"


def _transfers(graph: Graph, role: Role) -> list[Node]:
    """The Sends or Recvs that ``split`` put in."""
    return [n for n in graph if n.role is role and n.attrs["tensor_name"].startswith(_TRANSFER)]


def _transfer_facts(node: Node, info: ControlFlowInfo) -> tuple[object, ...]:
    """What both ends of a transfer must agree on."""
    dtype = node.attrs["T" if node.role is Role.SEND else "tensor_type"]
    names = ("tensor_name", "send_device", "send_device_incarnation", "recv_device")
    shared = [node.attrs[name] for name in (*names, "client_terminated")]
    return (*shared, dtype.name, info.frame_of.get(node.id, info.root).name)
