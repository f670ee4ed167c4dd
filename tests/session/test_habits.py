"""What programs of TensorFlow 1 write works, or says what to write instead."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import habits
from penstock.builder.spelling import find_spelling, snake_case
from penstock.errors import CancelledError, FailedPreconditionError, InvalidArgumentError

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def graph() -> ps.Graph:
    """``y = x · w`` for a variable ``w`` that begins as 2."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None], name="x")
        w = ps.Variable(2.0, name="w")
        ps.identity(x * w, name="y")
        ps.global_variables_initializer()
    return graph


# -- graphs ------------------------------------------------------------------------------------


def test_elements_by_name(graph: ps.Graph) -> None:
    """Tensors and operations are found by TensorFlow's methods."""
    y = graph.get_tensor_by_name("y:0")
    operation = graph.get_operation_by_name("y")

    assert (y.name, y.op, y.graph, y.dtype) == ("y:0", operation, graph, ps.dtypes.float32)
    assert operation in graph.get_operations()
    assert [op.name for op in graph.get_operations()] == graph.names()
    assert graph.as_graph_def() == ps.graph_to_def(graph)
    with pytest.raises(InvalidArgumentError, match="no node called 'z'"):
        graph.get_tensor_by_name("z:0")


def test_consumers(graph: ps.Graph) -> None:
    """An operation that takes a tensor twice is one consumer; other outputs do not count."""
    with graph.as_default():
        parts = ps.ops.split(0, graph.tensor("x:0"), num_split=2)
        twice = parts[1] * parts[1]

    assert parts[1].consumers() == [twice.op]
    assert parts[0].consumers() == []


def test_shapes_are_what_the_graph_says() -> None:
    """Constants, placeholders and variables have shapes, and so has what is computed from them."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None, 3])
        w = ps.Variable(np.zeros((3, 2), np.float32))
        shapes = {
            x: [None, 3],
            ps.placeholder("float32"): None,
            ps.constant([[1, 2]]): [1, 2],
            w.handle: [],
            w.value(): [3, 2],
            ps.ops.ensure_shape(x, [7, 3]): [7, 3],
            ps.ops.mat_mul(x, w): [None, 2],
        }
    for tensor, sizes in shapes.items():
        assert tensor.shape == tensor.get_shape() == ps.TensorShape.of(sizes), tensor
    assert w.shape == w.get_shape() == ps.TensorShape.of([3, 2])


def test_shapes_that_tensorflow_noted() -> None:
    """A graph that was saved with the shapes of its outputs still has them."""
    proto: Any = ps.graph_to_def(ps.Graph())
    node = proto.node.add(name="a", op="Placeholder")
    node.attr["dtype"].type = 1
    node.attr["_output_shapes"].list.shape.add().dim.add(size=5)
    graph = ps.Graph()
    graph.import_graph_def(proto, name="")

    assert graph.tensor("a:0").shape == ps.TensorShape.of([5])


def test_definitions_go_to_the_default_graph(tmp_path: Path, graph: ps.Graph) -> None:
    """``import_graph_def`` takes a message, bytes or a path, and names as TensorFlow does."""
    message = graph.as_graph_def()
    (tmp_path / "g.pb").write_bytes(message.SerializeToString())
    for form in (message, message.SerializeToString(), tmp_path / "g.pb", str(tmp_path / "g.pb")):
        with ps.Graph().as_default() as plain:
            assert ps.import_graph_def(form, name="") == []
            ps.import_graph_def(form)
        assert {"y", "import/y"} <= set(plain.names())
    with ps.Graph().as_default() as mapped:
        five = ps.constant([5.0])
        y, op = ps.import_graph_def(message, {"x:0": five}, ["y:0", "y"], "scope")
        assert isinstance(y, ps.Tensor)
        assert y.op == op == mapped.operation("scope/y")
        assert five.consumers()


def test_a_graph_in_front_means_the_runtimes_own(graph: ps.Graph) -> None:
    """With a graph as the first argument, options say how the definition is merged."""
    other = ps.Graph()
    options = ps.ImportOptions(prefix="p", return_tensors=["y:0"])
    results = ps.import_graph_def(other, graph.as_graph_def(), options)

    assert results.return_tensors[0][0] is other.node("p/y")


@pytest.mark.parametrize("given", [3, "model.pb", b"", ps.graph_to_def(ps.Graph())])
def test_a_graph_is_made_of_nothing(given: Any) -> None:
    """``ps.Graph`` takes no graph; the error says what does."""
    with pytest.raises(InvalidArgumentError, match="A graph cannot be made from") as caught:
        ps.Graph(given)

    assert "import_graph_def takes a path" in caught.value.next_step


# -- sessions ----------------------------------------------------------------------------------


def test_the_default_graph_needs_no_name() -> None:
    """``ps.Session()`` runs what no block sent elsewhere."""
    ps.reset_default_graph()
    try:
        y = ps.constant(3) + 4
        with ps.Session() as session:
            assert session.graph is ps.default_graph()
            assert session.run(y) == 7
        with ps.Graph().as_default() as other, ps.Session() as session:
            assert session.graph is other
    finally:
        ps.reset_default_graph()


def test_tensors_and_operations_run_themselves(graph: ps.Graph) -> None:
    """``eval`` and ``run`` use the session of the innermost block, or the one that is given."""
    y, w = graph.tensor("y:0"), graph.variables[0]
    with ps.Session(graph=graph) as outer:
        graph.operation("init").run()
        assert y.eval({"x:0": [1, 2]}).tolist() == [2, 4]
        with ps.Session(graph) as inner:
            assert ps.default_session() is inner
            with pytest.raises(FailedPreconditionError, match="Could not find variable"):
                w.eval()
            assert w.eval(outer) == 2
            assert y.eval({"x:0": [5]}, session=outer).tolist() == [10]
            with outer.as_default() as same:
                assert same is ps.default_session() is outer
                assert w.eval() == 2
            graph.operation("init").run(session=inner)
            assert w.eval() == 2
        assert ps.default_session() is outer
        assert outer.run(y, {"x:0": [1]}) == 2  # as_default did not close it
    assert ps.default_session() is None
    with pytest.raises(FailedPreconditionError, match="no session is open here") as caught:
        y.eval()
    assert "session.run" in caught.value.next_step


def test_other_threads_have_no_session(graph: ps.Graph) -> None:
    """A block is one thread's own."""
    found: list[Any] = [graph]
    with ps.Session(graph):
        thread = threading.Thread(target=lambda: found.append(ps.default_session()))
        thread.start()
        thread.join()

    assert found[1:] == [None]


def test_blocks_may_end_in_any_order(graph: ps.Graph) -> None:
    """A session that is left early is no longer the default; the others stay."""
    first, second = ps.Session(graph), ps.Session(graph)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert ps.default_session() is second
    second.__exit__(None, None, None)
    assert ps.default_session() is None
    second.__exit__(None, None, None)
    with pytest.raises(CancelledError):
        second.run("init")


def test_variables_are_fetched_by_value(graph: ps.Graph) -> None:
    """A Variable stands for its value, also deep in a nesting, and always the same tensor."""
    w = graph.variables[0]
    with ps.Session(graph) as session:
        session.run("init")
        size = len(graph)
        assert session.run(w) == 2
        assert session.run([w, {"w": w}]) == [2, {"w": 2}]
        assert session.run_async(w).result() == 2
        assert session.make_callable(w)() == 2
        assert len(graph) == size + 1
        session.run(w.assign(5.0))
        assert session.run(w) == 5


def test_a_variable_fetched_inside_of_blocks_stays_outside(graph: ps.Graph) -> None:
    """The node that reads it is part of no scope, branch or loop around."""
    w = graph.variables[0]
    with graph.as_default(), ps.name_scope("inside"), ps.control_dependencies(["y"]):
        value = w.value()

    assert value.name.startswith("w/Read")
    assert value.op.control_inputs == ()


def test_variables_cannot_be_fed(graph: ps.Graph) -> None:
    """Other reads of it would not see the fed value, so it is refused, with the other way."""
    w = graph.variables[0]
    with ps.Session(graph) as session:
        with pytest.raises(InvalidArgumentError, match="w is a variable") as caught:
            session.run("y:0", {"x:0": [1], w: 3.0})
        with pytest.raises(InvalidArgumentError, match="w is a variable"):
            session.make_callable("y:0", [w])
    assert "variable.assign" in caught.value.next_step


@pytest.mark.parametrize("kind", ["digits_rnn", "digits_cnn"])
def test_the_graph_of_a_file_can_be_looked_at_and_built_upon(kind: str) -> None:
    """What a session read is a Graph like any other, before and after it has run."""
    images = np.zeros((2, 8, 8), np.float32)
    with ps.Session(EXAMPLES / f"{kind}.pb") as session:
        before = session.run("digit:0", {"images:0": images})
        assert isinstance(session.graph, ps.Graph)
        assert session.graph is session.graph
        digit = session.graph.get_tensor_by_name("digit:0")
        after = session.run(digit + 10, {session.graph.tensor("images:0"): images})
        with session.graph.as_default():
            named = ps.constant(1, name="digit")

    assert (after - before).tolist() == [10, 10]
    assert named.name == "digit_1:0"


def test_several_threads_may_look_at_a_graph_at_once() -> None:
    """It becomes a Graph once, whoever is first."""
    with ps.Session(EXAMPLES / "digits_cnn.pb") as session:
        found: list[ps.Graph] = []
        threads = [threading.Thread(target=lambda: found.append(session.graph)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pools = {id(graph.name_pool) for graph in found}

    assert len(found) == 8
    assert len({*map(id, found)}) == len(pools) == 1


# -- another graph's ---------------------------------------------------------------------------


def test_elements_of_another_graph_are_refused(graph: ps.Graph) -> None:
    """A tensor or operation of another graph is no fetch and no feed, even of the same name."""
    twin = ps.Graph()
    twin.import_graph_def(graph.as_graph_def(), name="")
    x, y, init = twin.tensor("x:0"), twin.tensor("y:0"), twin.operation("init")
    with twin.as_default():
        w = ps.Variable(1.0, name="v")
    with ps.Session(graph) as session:
        session.run("init")
        fetches: list[Any] = [y, [y], {"a": (y,)}, init, w]
        for fetch in fetches:
            for run in (session.run, session.run_async, session.make_callable):
                with pytest.raises(InvalidArgumentError, match="is not an element of this graph"):
                    run(fetch)
        with pytest.raises(InvalidArgumentError, match=r"x:0 is not an element of this graph"):
            session.run("y:0", {x: [1.0]})
        with pytest.raises(InvalidArgumentError, match=r"x:0 is not an element of this graph"):
            session.make_callable("y:0", [x])
        with pytest.raises(InvalidArgumentError, match=r"x:0 is not an element of this graph"):
            session.partial_run_setup(["y:0"], [x])
        with pytest.raises(InvalidArgumentError, match=r"y:0 is not an element of this graph"):
            session.partial_run_setup([y], ["x:0"])
        assert session.run("y:0", {x.name: [1.0]}) == 2


def test_what_only_has_a_name_stands_for_it(graph: ps.Graph) -> None:
    """A tensor of TensorFlow's own, say, whose graph is none of ours."""

    class Named:
        name = "x:0"
        graph = object()

    with ps.Session(graph) as session:
        assert session.run(Named(), {Named(): [3.0]}).tolist() == [3.0]


@pytest.mark.parametrize("key", [3, None, 1.5, ("x:0",)])
def test_keys_that_name_nothing(graph: ps.Graph, key: Any) -> None:
    """What has no name is no feed."""
    wrong = pytest.raises(InvalidArgumentError, match="Cannot interpret feed_dict key as Tensor")
    with ps.Session(graph) as session, wrong:
        session.run("x:0", {key: 1.0})


# -- hints -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("opss", "did you mean ps.ops?"),
        ("matmul", "use ps.ops.mat_mul"),
        ("reduce_sum", "use ps.ops.sum"),
        ("concat", "use ps.ops.concat_v2"),
        ("float32", "use ps.dtypes.float32"),
        ("bool", "use ps.dtypes.bool_"),
        ("gfile", "ps.load_graph_def"),
        ("GraphDef", "ps.load_graph_def"),
        ("ConfigProto", "ps.Config"),
        ("get_variable", "ps.Variable"),
        ("train", "save/restore_all"),
        ("get_default_graph", "ps.default_graph"),
    ],
)
def test_names_of_tensorflow(name: str, hint: str) -> None:
    """A name of TensorFlow's is answered with what to write here."""
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; ") as caught:
        getattr(ps, name)

    assert hint in str(caught.value)


def test_names_of_nobody() -> None:
    """A name that means nothing has no hint, and Python's own are left alone."""
    for name in ("qqqqqq", "__wrapped__", "_private"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(ps, name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("reduce_mean", "TensorFlow's reduce_mean is ops.mean here"), ("rellu", "did you mean relu")],
)
def test_functions_of_tensorflow(name: str, hint: str) -> None:
    """So is a function of TensorFlow's Python that makes an op of another name."""
    with pytest.raises(AttributeError, match=hint):
        getattr(ps.ops, name)


def test_members_of_tensorflows_classes(graph: ps.Graph) -> None:
    """Graphs, sessions, tensors, operations and variables have hints of their own."""
    y = graph.tensor("y:0")
    with ps.Session(graph) as session:
        owners: dict[str, Any] = {
            "Graph": graph,
            "Operation": y.op,
            "Session": session,
            "Tensor": y,
            "Variable": graph.variables[0],
        }
        for place, owner in owners.items():
            for name, hint in habits._HINTS[place].items():
                with pytest.raises(AttributeError) as caught:
                    getattr(owner, name)
                assert str(caught.value) == f"'{place}' object has no attribute '{name}'; {hint}"
            assert not hasattr(owner, "__array_interface__")
            with pytest.raises(AttributeError, match=r"no attribute 'qqqqqq'$"):
                _ = owner.qqqqqq


def test_hints_are_about_what_is_not_there() -> None:
    """No hint hides a name that there is, and every op that is named exists."""
    assert not set(habits._HINTS["penstock"]) & set(ps.__all__)
    for function, here in habits._FUNCTIONS.items():
        op = find_spelling(here)
        assert op is not None
        assert snake_case(op) == here
        assert function != here


def test_hints_are_not_listed(graph: ps.Graph) -> None:
    """Completion offers what is there."""
    for owner in (graph, graph.tensor("y:0"), graph.variables[0]):
        for name in dir(owner):
            if not name.startswith("_"):
                assert name not in habits._HINTS[type(owner).__name__]
    assert "get_operations" in dir(graph)
