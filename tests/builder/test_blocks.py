"""Blocks say where and after what new nodes run."""

from __future__ import annotations

from threading import Thread

import pytest

from builder.asking import run, waits_for
from penstock.builder import (
    Graph,
    TensorArray,
    colocate_with,
    cond,
    constant,
    control_dependencies,
    default_graph,
    device,
    group,
    identity,
    no_op,
    ops,
    placeholder,
    tuple_,
    with_dependencies,
)
from penstock.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("/job:worker", "/gpu:0", "/job:worker/device:GPU:0"),
        ("/job:worker/task:1/cpu:0", "/task:2", "/job:worker/task:2/device:CPU:0"),
        ("/cpu:0", "", "/device:CPU:0"),
        ("/cpu:0", None, ""),
        ("", "CPU:1", "/device:CPU:1"),
    ],
)
def test_the_inner_device_replaces_what_it_names(
    outer: str, inner: str | None, expected: str
) -> None:
    """Nested blocks add up field by field; None takes everything back."""
    with device(outer), device(inner):
        assert constant(1).device == expected


def test_a_device_that_is_none_is_refused() -> None:
    """A malformed name is an error where it is written."""
    with pytest.raises(InvalidArgumentError, match="Malformed"), device("/job:/x"):
        pass


def test_nodes_wait_for_control_dependencies(graph: Graph) -> None:
    """Tensors, operations and names can be waited for; blocks add up."""
    first, second, third = no_op(name="a"), constant(1, name="b"), no_op(name="c")
    with control_dependencies([first, second]), control_dependencies(["c"]):
        last = no_op(name="last")

    assert waits_for(graph, last.name) == ["a", "b", third.name]


def test_a_node_that_waits_through_its_input_gets_no_edge(graph: Graph) -> None:
    """Only the first nodes of a chain wait by themselves."""
    gate = no_op(name="gate")
    with control_dependencies([gate]):
        x = constant(1, name="x")
        identity(x, name="y")

    assert (waits_for(graph, "x"), waits_for(graph, "y")) == (["gate"], [])


def test_a_source_that_is_an_input_needs_no_edge(graph: Graph) -> None:
    """Who takes the value has waited for it."""
    x = constant(1, name="x")
    with control_dependencies([x]):
        identity(x, name="y")

    assert waits_for(graph, "y") == []


def test_a_merge_waits_unless_all_its_inputs_do(graph: Graph) -> None:
    """A Merge runs for one input; that another one has waited says nothing."""
    gate, early = no_op(name="gate"), constant(1)
    with control_dependencies([gate]):
        late = constant(2)
        ops.merge([early, late], name="some")
        ops.merge([late, late], name="all")

    assert (waits_for(graph, "some"), waits_for(graph, "all")) == (["gate"], [])


def test_none_takes_control_dependencies_back(graph: Graph) -> None:
    """Within ``control_dependencies(None)`` nodes wait for nothing."""
    with control_dependencies([no_op()]), control_dependencies(None):
        constant(1, name="free")

    assert waits_for(graph, "free") == []


def test_only_operations_can_be_waited_for() -> None:
    """A number is over already."""
    with pytest.raises(TypeError, match="neither a tensor nor an operation"):
        group(1)


def test_operations_of_other_graphs_cannot_be_waited_for() -> None:
    """An edge cannot leave its graph."""
    with Graph().as_default():
        stranger = no_op()

    with pytest.raises(InvalidArgumentError, match="another graph"):
        group(no_op(), stranger)


def test_colocation_takes_over_device_and_group() -> None:
    """New nodes ask for the other's device, and to stay with it wherever it goes."""
    with device("/cpu:1"):
        x = constant(1, name="x")
    with colocate_with(x):
        y = constant(2, name="y")
    with colocate_with(y):
        z = constant(3)

    assert (y.device, y.op.get_attr("_class")) == ("/device:CPU:1", (b"loc:@x",))
    assert z.op.get_attr("_class") == (b"loc:@x",)


def test_a_group_waits_for_everything_in_it(graph: Graph) -> None:
    """Tensors, operations, arrays and lists of them make one operation."""
    array = TensorArray("int32", 1, name="array")
    both = group(constant(1, name="a"), [no_op(name="b"), (array,)], name="both")

    assert (both.type, waits_for(graph, "both")) == ("NoOp", ["a", "array", "b"])


def test_a_tuple_is_there_as_a_whole(graph: Graph) -> None:
    """No item of ``tuple_`` is computed before the gate that waits for all."""
    first, second = tuple_([constant(1, name="a"), constant(2, name="b")])

    assert waits_for(graph, first.node.name) == ["tuple/gate"]
    assert waits_for(graph, "tuple/gate") == ["a", "b"]
    assert run(graph, [first, second]) == [1, 2]


def test_a_value_can_be_held_back(graph: Graph) -> None:
    """``with_dependencies`` gives the same value, later."""
    held = with_dependencies([no_op(name="gate")], constant(5))

    assert (waits_for(graph, held.node.name), run(graph, held)) == (["gate"], 5)


def test_a_thread_has_blocks_of_its_own(graph: Graph) -> None:
    """What one thread opens, another does not see."""
    seen = []
    with device("/cpu:1"):
        thread = Thread(target=lambda: seen.append((default_graph(), graph.apply("NoOp").device)))
        thread.start()
        thread.join()

    assert seen[0][0] is not graph
    assert seen[0][1] == ""


def test_several_threads_can_build_one_graph(graph: Graph) -> None:
    """Names stay unique and no node is lost, whoever adds them."""
    x = placeholder("int32", ())

    def add_many() -> None:
        total = x
        for _ in range(200):
            total = cond(total > 0, lambda total=total: total + 1, lambda: 0)

    threads = [Thread(target=add_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(node.op.name == "Merge" for node in graph) == 800
