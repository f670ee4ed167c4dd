"""A graph cut at device borders means the same, and has just the transfers it needs."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Graph, Versions
from penstock.graph.stages import Partition, Pruned
from penstock.passes.split import colocate_loop_nodes, split
from support.graphs import graph, lines


def cut(text: str) -> dict[str, Graph]:
    """Split a graph whose nodes name their devices; partitions by device."""
    return {part.device: part.graph for part in parts(text)}


def parts(text: str) -> list[Partition]:
    """Split a graph whose nodes name their devices; the first device is the default."""
    return split(pruned(graph(text)))


def pruned(made: Graph) -> Pruned:
    """Every node on the device that it asks for, or else on A."""
    return Pruned(made, {n.id: n.requested_device or "A" for n in made}, (), ())


def ops(partition: Graph) -> Counter[str]:
    """How many nodes of each op a partition has."""
    return Counter(node.op.name for node in partition)


def test_one_device_is_left_alone() -> None:
    """Without a border there is nothing to insert."""
    made = graph("x = Placeholder\ny = Neg(x)")

    assert split(pruned(made))[0].graph is made


def test_a_data_edge_becomes_a_send_and_a_recv() -> None:
    """Both ends agree on the name under which the value travels."""
    got = cut("x = Placeholder @A\ny = Neg(x) @B")

    assert lines(got["A"]) == ["x = Placeholder", "x/_1 = _Send(x)"]
    assert lines(got["B"]) == ["y = Neg(x/_2)", "x/_2 = _Recv"]
    sent, received = got["A"].node("x/_1").attrs, got["B"].node("x/_2").attrs
    for name in ("tensor_name", "send_device", "recv_device", "send_device_incarnation"):
        assert sent[name] == received[name]


def test_a_control_edge_becomes_an_empty_constant_and_an_identity() -> None:
    """The consumer waits for the Identity: a Recv of a dead tensor would be alive."""
    got = cut("x = NoOp @A\ny = NoOp(^x) @B")

    assert lines(got["A"]) == ["x = NoOp", "x/_1 = Const(^x)", "x/_2 = _Send(x/_1)"]
    assert lines(got["B"]) == ["y = NoOp(^x/_4)", "x/_3 = _Recv", "x/_4 = Identity(x/_3)"]


def test_receivers_of_one_value_share_a_recv() -> None:
    """A value crosses once, whatever the number of its consumers."""
    got = cut("x = Placeholder @A\ny = Neg(x) @B\nz = Add(x, y) @B")

    assert ops(got["A"])["_Send"] == 1
    assert ops(got["B"])["_Recv"] == 1


def test_waiters_for_one_node_share_a_transfer() -> None:
    """So does a control signal."""
    got = cut("x = NoOp @A\ny = NoOp(^x) @B\nz = NoOp(^x) @B")

    assert ops(got["A"])["_Send"] == 1


def test_data_and_control_travel_apart() -> None:
    """A value and the news that its node is done are two transfers."""
    got = cut("x = Placeholder @A\ny = Neg(x, ^x) @B")

    assert ops(got["A"])["_Send"] == 2
    assert ops(got["B"])["_Recv"] == 2


def test_incomplete_graphs_are_refused() -> None:
    """A data input that comes from nowhere is counted."""
    made = graph("x = Placeholder @A\ny = Add(x, x) @B")
    made.remove_edge(made.node("y").input(1))

    with pytest.raises(InvalidArgumentError, match="Incomplete graph, missing 1 inputs for y"):
        split(pruned(made))


LOOP = """
    n = Placeholder @A
    enter = Enter[frame_name=f](n) @A
    merge = Merge(enter, next) @A
    less = Less(merge, merge) @A
    cond = LoopCond(less) @A
    switch = Switch(merge, cond) @A
    body = Neg(switch:1) @B
    next = NextIteration(body) @A
    exit = Exit(switch:0) @A
"""


def test_a_loop_that_crosses_gets_a_control_loop() -> None:
    """The other device runs a copy of the loop's skeleton, driven by the loop's predicate."""
    got = cut(LOOP)
    remote = ops(got["B"])

    for op in ("Const", "Enter", "Merge", "Switch", "NextIteration", "Neg"):
        assert remote[op] == 1
    assert remote["Exit"] == 0
    assert remote["_Recv"] == 2  # the value, and the predicate
    merge = next(n for n in got["B"] if n.op.name == "Merge")
    for recv in (n for n in got["B"] if n.op.name == "_Recv"):
        assert [edge.src for edge in recv.control_inputs] == [merge]


def test_what_is_made_of_loop_constants_is_sent_in_every_iteration() -> None:
    """A device that has nothing of a loop but constants goes round with it all the same."""
    text = LOOP.replace("body = Neg(switch:1) @B", "body = Add(switch:1, made) @A") + (
        "c = Enter[frame_name=f; is_constant=true](n) @B\nmade = Neg(c) @B"
    )
    remote = ops(cut(text)["B"])
    assert remote["NextIteration"] == remote["Merge"] == 1


def test_nested_loops_nest_their_control_loops() -> None:
    """The inner control loop is entered anew from the outer one's Merge."""
    text = (
        LOOP
        + """
        ienter = Enter[frame_name=g](switch:1) @A
        imerge = Merge(ienter, inext) @A
        iless = Less(imerge, imerge) @A
        icond = LoopCond(iless) @A
        iswitch = Switch(imerge, icond) @A
        ibody = Neg(iswitch:1) @B
        inext = NextIteration(ibody) @A
    """
    )
    remote = cut(text)["B"]
    enters = [n for n in remote if n.op.name == "Enter"]
    sources = {n.attrs["frame_name"]: n.input(0).src.op.name for n in enters}

    assert sources == {b"f": "Const", b"g": "Merge"}


def test_loops_without_a_predicate_cannot_cross() -> None:
    """Without a LoopCond nobody could tell the other device when to stop."""
    with pytest.raises(InvalidArgumentError, match="must have a pivot predicate: f"):
        parts("x = Placeholder @A\ne = Enter[frame_name=f](x) @A\na = Neg(e) @A\ny = Neg(a) @B")


def test_nodes_that_only_pass_on_follow_their_value() -> None:
    """Switch and Exit go to their input, Enter and NextIteration to their consumer."""
    made = graph(
        "x = Placeholder @B\np = Placeholder[dtype=bool] @A\ns = Switch(x, p) @A\ny = Neg(s:1) @A"
    )
    moved = colocate_loop_nodes(pruned(made))

    assert moved.device_of[made.node("s").id] == "B"
    assert moved.device_of[made.node("y").id] == "A"


def test_split_by_another_function() -> None:
    """Partitions need not be devices: a worker's name splits by worker."""
    made = graph("x = Placeholder @w0/d0\ny = Neg(x) @w0/d1\nz = Neg(y) @w1/d0")
    got = split(pruned(made), partition_of=lambda device: device.split("/")[0])

    assert [part.device for part in got] == ["w0", "w1"]
    assert ops(got[0].graph) == {"Placeholder": 1, "Neg": 1, "_Send": 1}
    assert {n.assigned_device for n in got[0].graph} == {"w0/d0", "w0/d1"}


def test_reads_of_remote_references_come_last() -> None:
    """The Recv of a variable's value waits for the reader's other inputs."""
    got = cut("v = VariableV2 @A\nx = Placeholder @B\ny = Add(v, x) @B")
    recv = next(n for n in got["B"] if n.op.name == "_Recv")

    assert [edge.src.name for edge in recv.control_inputs] == ["x"]


def test_readers_of_a_remote_reference_do_not_wait_for_each_other() -> None:
    """Each reader has a Recv of its own: a shared one would wait for what waits for it."""
    got = cut(
        """
        v = VariableV2 @A
        x = Placeholder @B
        y = Add(v, x) @B
        z = Mul(v, y) @B
        """
    )
    recvs = {n.name: n for n in got["B"] if n.op.name == "_Recv"}
    of = {name: got["B"].node(name).input(0).src for name in ("y", "z")}

    assert len(recvs) == ops(got["A"])["_Send"] == 2
    assert [edge.src.name for edge in of["y"].control_inputs] == ["x"]
    assert [edge.src.name for edge in of["z"].control_inputs] == ["y"]


def test_a_reference_may_be_read_twice_by_one_node() -> None:
    """Two remote references of one reader do not wait for each other."""
    got = cut("v = VariableV2 @A\ny = Add(v, v) @B")

    assert all(not n.control_inputs for n in got["B"] if n.op.name == "_Recv")


def test_names_that_are_taken_are_not_given_to_transfers() -> None:
    """A graph may have nodes whose names look like those of transfers."""
    got = cut("x = Placeholder @A\nx/_1 = Neg(x) @A\nx/_2 = Neg(x) @B\ny = Neg(x/_1) @B")

    assert ops(got["A"]) == {"Placeholder": 1, "Neg": 1, "_Send": 2}
    assert ops(got["B"]) == {"Neg": 2, "_Recv": 2}


def test_a_control_loop_has_the_window_of_its_loop() -> None:
    """As many iterations may be alive there as in the loop itself."""
    made = cut(LOOP.replace("[frame_name=f]", "[frame_name=f; parallel_iterations=3]"))
    enters = [n for part in made.values() for n in part if n.op.name == "Enter"]

    assert len(enters) > 1
    assert {n.attrs["parallel_iterations"] for n in enters} == {3}


def test_the_enter_of_a_reference_stays() -> None:
    """A reference stays with its variable; only values go where they are read."""
    text = """
        v = VariableV2 @A
        e = RefEnter[frame_name=f](v) @A
        x = Placeholder @A
        o = Enter[frame_name=f](x) @A
        a = Neg(e) @B
        b = Neg(o) @B
    """
    made = graph(text)
    moved = colocate_loop_nodes(pruned(made))

    assert moved.device_of[made.node("e").id] == "A"
    assert moved.device_of[made.node("o").id] == "B"


def test_a_key_has_the_incarnation_of_its_source() -> None:
    """What is sent is meant for this life of the device that sends it."""
    made = graph("x = Placeholder @A\ny = Neg(x) @B\nz = Neg(y) @A")
    lives = {"A": 17, "B": -4}
    got = {p.device: p.graph for p in split(pruned(made), incarnation_of=lives.__getitem__)}
    ends = [n for part in got.values() for n in part if n.op.name in ("_Send", "_Recv")]

    assert len(ends) == 4
    for node in ends:
        source = node.attrs["send_device"].decode()
        assert node.attrs["send_device_incarnation"] == lives[source]


def test_partitions_are_of_the_graphs_versions() -> None:
    """Kernels that depend on who made the graph do so in each partition."""
    made = graph("x = Placeholder @A\ny = Neg(x) @B")
    made.versions = Versions(producer=27, min_consumer=5)

    assert [part.graph.versions for part in split(pruned(made))] == [made.versions] * 2
