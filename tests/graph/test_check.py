"""Every law of graphs and of what the passes make of them is noticed when it is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.core import dtypes
from penstock.errors import InternalError
from penstock.graph.check import check_graph, check_partitions, check_placed, check_pruned
from penstock.graph.graph import Edge, Graph
from penstock.graph.roles import Role
from penstock.graph.stages import Partition, Placed, Pruned
from penstock.passes.split import split
from support.graphs import graph
from support.sketch import CPU

OTHER = CPU.replace("CPU:0", "CPU:1")
TEXT = "x = Placeholder\ny = Neg(x)\nz = Add(x, y, ^x, ^y)"
LOOP = f"""
    x = Placeholder @{CPU}
    enter = Enter[frame_name=f](x) @{CPU}
    merge = Merge(enter, next) @{CPU}
    zero = Const(^merge) @{CPU}
    less = Less(zero, merge) @{CPU}
    cond = LoopCond(less) @{CPU}
    switch = Switch(merge, cond) @{CPU}
    body = Neg(switch:1) @{OTHER}
    more = Neg(body) @{OTHER}
    next = NextIteration(more) @{CPU}
    exit = Exit(switch) @{CPU}
"""


@pytest.fixture
def made() -> Graph:
    """A small graph whose laws all hold."""
    built = graph(TEXT)
    check_graph(built)
    return built


def parts(text: str) -> list[Partition]:
    """Partitions of a graph whose nodes name their devices; all laws hold."""
    built = graph(text)
    got = split(Pruned(built, {n.id: n.requested_device for n in built}, (), ()))
    check_partitions(got)
    return got


def node_of(partitions: list[Partition], op: str) -> tuple[Graph, Any]:
    """The first node of an op, with its partition's graph."""
    return next((p.graph, n) for p in partitions for n in p.graph if n.op.name == op)


def set_id(graph: Graph) -> None:
    graph.node("y").id = 17


def swap_names(graph: Graph) -> None:
    graph.node("y").name = "w"


def add_name(graph: Graph) -> None:
    graph._by_name["w"] = graph.node("y")


def lose_an_arrival(graph: Graph) -> None:
    graph.node("y").inputs[0] = None


def lose_a_departure(graph: Graph) -> None:
    graph.node("x").out_edges.pop()


def lead_outside(graph: Graph) -> None:
    stranger = Graph().add_node("s", graph.node("x").op, graph.node("x").attrs)
    edge = Edge(stranger, 0, graph.node("y"), 0)
    graph.remove_edge(graph.node("y").input(0))
    graph.node("y").inputs[0] = edge


def swap_slots(graph: Graph) -> None:
    graph.node("z").inputs.reverse()


def leave_no_output(graph: Graph) -> None:
    edge = graph.node("y").input(0)
    graph.node("y").inputs[0] = edge._replace(src_slot=3)


def give_control_a_slot(graph: Graph) -> None:
    controls = graph.node("z").control_inputs
    controls[0] = controls[0]._replace(dst_slot=0)


def change_input_type(graph: Graph) -> None:
    graph.node("y").input_types = (dtypes.int32,)


def change_output_type(graph: Graph) -> None:
    graph.node("y").output_types = (dtypes.int32,)


def add_an_input(graph: Graph) -> None:
    graph.node("y").inputs.append(None)


def shuffle_controls(graph: Graph) -> None:
    graph.node("z").control_inputs.reverse()


def change_role(graph: Graph) -> None:
    graph.node("y").role = Role.MERGE


@pytest.mark.parametrize(
    ("break_it", "text"),
    [
        (set_id, "ids do not grow|id 17 was never given out"),
        (swap_names, "'w' is not found by its name"),
        (add_name, "names without nodes"),
        (lose_an_arrival, "x:0 -> y:0 only leaves"),
        (lose_a_departure, "only arrives"),
        (lead_outside, "leads out of the graph at 's'"),
        (swap_slots, "stands at input 0 of 'z'"),
        (leave_no_output, "leaves an output that is not there"),
        (give_control_a_slot, "stands at the control inputs of 'z'"),
        (change_input_type, "'y' has input types .* which its op does not say"),
        (change_output_type, "joins types that do not fit"),
        (add_an_input, "'y' has 2 inputs of 1 types"),
        (shuffle_controls, "control inputs of 'z' are out of order: y, x"),
        (change_role, r"'y' \(Neg\) has the role MERGE"),
    ],
)
def test_broken_graphs_are_noticed(
    made: Graph, break_it: Callable[[Graph], None], text: str
) -> None:
    """Whichever law of graphs is broken, the check says which and where."""
    break_it(made)
    with pytest.raises(InternalError, match=text):
        check_graph(made)


def test_all_breaches_are_reported_at_once(made: Graph) -> None:
    """One error names everything that is wrong, and asks for a report."""
    change_role(made)
    shuffle_controls(made)
    with pytest.raises(InternalError) as caught:
        check_graph(made)
    assert "has the role" in caught.value.message
    assert "out of order" in caught.value.message
    assert "report" in caught.value.next_step


def test_references_may_feed_values() -> None:
    """A reference is read where a value is wanted; that breaks no law."""
    check_graph(graph("v = VariableV2\ny = Neg(v)\nw = Assign(v, y)"))


def test_devices_must_be_those_of_the_nodes(made: Graph) -> None:
    """A placed graph knows full names of devices, and only for its own nodes."""
    check_placed(Placed(made, {0: CPU}))
    with pytest.raises(InternalError, match="id 9 has a device and is no node"):
        check_placed(Placed(made, {9: CPU}))
    with pytest.raises(InternalError, match="'/device:CPU:\\*' is not the name of one device"):
        check_placed(Placed(made, {0: "/device:CPU:*"}))


def test_pruned_graphs_have_devices_everywhere(made: Graph) -> None:
    """When a graph is pruned, every node has a device."""
    device_of = {node.id: CPU for node in made}
    check_pruned(Pruned(made, device_of, (), ()))
    del device_of[1]
    with pytest.raises(InternalError, match="'y' has no device"):
        check_pruned(Pruned(made, device_of, (), ()))


CUT = f"x = Placeholder @{CPU}\ny = Neg(x) @{OTHER}\nz = NoOp(^x) @{OTHER}"


def test_each_device_has_one_partition() -> None:
    """No device has two partitions."""
    got = parts(CUT)
    with pytest.raises(InternalError, match="has 2 partitions"):
        check_partitions([got[0], got[0]])


def test_every_input_is_joined_again() -> None:
    """A cut edge that nothing took the place of is noticed."""
    got = parts(CUT)
    _, neg = node_of(got, "Neg")
    got[1].graph.remove_edge(neg.input(0))
    with pytest.raises(InternalError, match="input 0 of 'y' has no edge"):
        check_partitions(got)


@pytest.mark.parametrize("op", ["_Send", "_Recv"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recv_device", b"elsewhere"),
        ("send_device", b"elsewhere"),
        ("send_device_incarnation", 99),
        ("client_terminated", True),
    ],
)
def test_transfers_have_two_ends(op: str, name: str, value: bytes | int) -> None:
    """A Send without its Recv, or a Recv without its Send, is noticed: they agree on all."""
    got = parts(CUT)
    partition, node = node_of(got, op)
    node.attrs = {**node.attrs, name: value}
    check_graph(partition)
    with pytest.raises(InternalError, match="1 Sends and 0 Recvs"):
        check_partitions(got)


def test_recvs_in_loops_are_started_in_every_iteration() -> None:
    """A Recv that does not wait for an iteration of its loop would receive only once."""
    got = parts(LOOP)
    partition = got[1].graph
    recv = partition.node("body").input(0).src
    merge = recv.control_inputs[0].src
    switch = next(edge.dst for edge in merge.out_edges if edge.dst.role is Role.SWITCH)
    partition.remove_edge(recv.control_inputs[0])
    with pytest.raises(InternalError, match=r"'f'.* has 1 Sends and 0 Recvs"):
        check_partitions(got)
    partition.add_control_edge(switch, recv)
    with pytest.raises(InternalError, match="loop 'f' and waits for none of its iterations"):
        check_partitions(got)
    partition.add_control_edge(merge, recv)
    check_partitions(got)


def test_loops_are_whole_in_every_partition() -> None:
    """A partition in which values of two loops meet is noticed."""
    got = parts(LOOP)
    partition = got[1].graph
    predicate = next(n for n in partition if n.role is Role.SWITCH).input(1).src
    partition.remove_edge(predicate.control_inputs[0])
    with pytest.raises(InternalError, match=r"malformed: .* different frames"):
        check_partitions(got)
