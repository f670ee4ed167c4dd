"""The graph as its author sees it."""

from __future__ import annotations

import pytest

import penstock as ps
from builder.asking import run
from penstock.builder import (
    Graph,
    Operation,
    Tensor,
    constant,
    default_graph,
    name_scope,
    ops,
    placeholder,
    reset_default_graph,
    while_loop,
)
from penstock.builder.structure import flatten, form, pack
from penstock.errors import InvalidArgumentError, OpError


def test_blocks_choose_the_default_graph(graph: Graph) -> None:
    """The innermost block decides; when it ends, the one around does again."""
    with Graph().as_default() as inner:
        assert default_graph() is inner
        with graph.as_default():
            assert default_graph() is graph
    assert default_graph() is graph


def test_a_graph_reentered_keeps_its_scopes(graph: Graph) -> None:
    """A block for the graph that is the default already changes nothing."""
    with name_scope("a"), graph.as_default():
        assert constant(1).name == "a/Const:0"


def test_there_is_a_graph_outside_of_all_blocks() -> None:
    """It is shared until it is reset."""
    from threading import Thread

    seen: list[Graph] = []

    def look() -> None:
        seen.append(default_graph())
        seen.append(default_graph())
        reset_default_graph()
        seen.append(default_graph())

    thread = Thread(target=look)
    thread.start()
    thread.join()

    assert seen[0] is seen[1]
    assert seen[2] is not seen[0]


def test_tensors_and_operations_are_found_by_name(graph: Graph) -> None:
    """``x:0`` is a tensor, ``x`` an operation."""
    x = constant(1, name="x")

    assert graph.tensor("x:0") == graph.tensor("x") == x
    assert graph.operation("x") == x.op == Operation(graph, x.node)
    for wrong in ("y:0", "x:1", "^x"):
        with pytest.raises(OpError):
            graph.tensor(wrong)
    with pytest.raises(InvalidArgumentError):
        graph.operation("y")


def test_operations_tell_what_they_are(graph: Graph) -> None:
    """Type, device, inputs, outputs and attributes of a node can be asked for."""
    total = ops.add_n([1, 2], name="total").op

    assert (total.type, total.device, str(total)) == ("AddN", "", "total")
    assert [tensor.name for tensor in total.inputs] == ["total/inputs_0:0", "total/inputs_1:0"]
    assert total.outputs == (Tensor(graph, total.node, 0),)
    assert (total.get_attr("N"), total.control_inputs) == (2, ())
    assert repr(total) == "<Operation total (AddN)>"
    assert repr(total.outputs[0]) == "<Tensor total:0 int32[]>"


def test_sessions_take_tensors_and_operations(graph: Graph) -> None:
    """Both can be fetched, in any nesting; tensors can be fed."""
    x = placeholder("int32", ())

    result = run(graph, {"sum": x + 1, "done": [ops.no_op()]}, {x: 4})

    assert result == {"sum": 5, "done": [None]}


def test_a_graph_comes_back_from_its_definition(graph: Graph) -> None:
    """What is exported can be imported, loops included, and computes the same."""
    x = placeholder("int32", (), name="x")
    while_loop(lambda i: i < x, lambda i: i + 2, [0], name="loop")
    exported = graph.as_graph_def()

    with ps.Session(exported) as session:
        assert session.run("loop/Exit:0", {"x:0": 5}) == 6

    with Graph().as_default() as other:
        five = constant(5)
        result, operation = other.import_graph_def(
            exported, input_map={"x:0": five}, return_elements=["loop/Exit:0", "loop/Exit"]
        )
        assert result.name == "import/loop/Exit:0"
        assert operation.type == "Exit"
        assert run(other, result + 1) == 7


def test_imported_names_are_taken(graph: Graph) -> None:
    """A node that was imported keeps its name from being given again."""
    with Graph().as_default() as other:
        constant(1, name="x")

    graph.import_graph_def(other.as_graph_def(), name="")

    assert constant(2, name="x").name == "x_1:0"


def test_hand_made_primitives_need_no_help(graph: Graph) -> None:
    """Switch and Merge can be called like any other op."""
    p = placeholder("bool", ())
    off, on = ops.switch(constant(3), p)

    result = ops.merge([off + 1, on * 10])

    assert run(graph, list(result), {p: True}) == [30, 1]


def test_structures_are_flattened_in_one_order() -> None:
    """Dicts go by sorted keys; None has no leaves."""
    structure = {"b": [1, (2, None)], "a": 3}

    assert flatten(structure) == [3, 1, 2]
    assert form(structure) == "{'a': *, 'b': [*, [*, None]]}"
    assert pack(structure, [30, 10, 20]) == {"b": [10, (20, None)], "a": 30}
    assert list(pack(structure, "abc")) == ["b", "a"]
