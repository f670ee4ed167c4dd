"""A session's graph grows: what TensorFlow's ``Session::Extend`` takes, and what it refuses.

Its answers were asked by the C API of TensorFlow 2.21 (``TF_ExtendGraph``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import penstock as ps
from penstock import errors
from penstock.defs.schema import GraphDef, Message
from support.functions import graph_def_with
from support.graphs import graph_def

TIMES = """
F(x: float32) -> (y: float32)
c = Const[value={factor}]
y = Mul(x, c:output)
return y = y:z
"""


@pytest.fixture
def session() -> Iterator[ps.Session]:
    """A session of two nodes, which has run."""
    with ps.Session(graph_def("x = Const[value=1]\ny = Neg(x)")) as made:
        assert made.run("y:0") == -1
        yield made


def calling(name: str, factor: int) -> Message:
    """A node called ``name`` that calls F of 3, and F, which multiplies by ``factor``."""
    text = f"{name}_in = Const[value=3]\n{name} = F({name}_in)"
    return graph_def_with(text, TIMES.format(factor=factor))


def test_nodes_that_are_there_are_refused(session: ps.Session) -> None:
    """Equal or not, alone or beside new ones; only new nodes are an extension."""
    for text in ("x = Const[value=1]", "x = Const[value=2]", "x = Const[value=1]\nz = Neg(x)"):
        with pytest.raises(errors.InvalidArgumentError, match="created by a previous call"):
            session.extend(graph_def(text))
    session.extend(graph_def("z = Add(x, y)"))
    assert session.run("z:0") == 0


def test_an_extension_may_be_empty(session: ps.Session) -> None:
    """Nothing at all is no mistake."""
    session.extend(GraphDef())

    assert session.run("y:0") == -1


def test_an_extension_may_bring_functions_only(session: ps.Session) -> None:
    """A later extension calls them."""
    functions, nodes = calling("c", 2), calling("c", 2)
    functions.ClearField("node")
    nodes.ClearField("library")
    session.extend(functions)
    session.extend(nodes)

    assert session.run("c:0") == 6


def test_equal_functions_are_one(session: ps.Session) -> None:
    """A function may come again, in the same graph or later; another of its name may not."""
    twice = calling("c", 2)
    twice.library.function.add().CopyFrom(twice.library.function[0])
    session.extend(twice)
    session.extend(calling("d", 2))
    with pytest.raises(errors.InvalidArgumentError, match="Cannot add function 'F' because a diff"):
        session.extend(calling("e", 5))

    assert session.run(["c:0", "d:0"]) == [6, 6]
    with pytest.raises(errors.NotFoundError, match="e:0"):
        session.run("e:0")


def test_functions_of_an_extension_that_fails_stay(session: ps.Session) -> None:
    """Nodes are taken away again, functions are not: TensorFlow adds them first."""
    bad = calling("c", 2)
    bad.node.add(name="q", op="Neg", input=["nowhere"]).attr["T"].type = 1
    with pytest.raises(errors.InvalidArgumentError, match="Unknown input node 'nowhere'"):
        session.extend(bad)
    with pytest.raises(errors.InvalidArgumentError, match="different function"):
        session.extend(calling("d", 5))
    session.extend(calling("c", 2))

    assert session.run("c:0") == 6


def test_gradients_may_come_again(session: ps.Session) -> None:
    """The same gradient of a function is no news, another one is a contradiction."""

    def gradient(function: str) -> Any:
        proto = GraphDef()
        proto.library.gradient.add(function_name="F", gradient_func=function)
        return proto

    session.extend(gradient("G"))
    session.extend(gradient("G"))
    with pytest.raises(errors.InvalidArgumentError, match="already has gradient function 'G'"):
        session.extend(gradient("H"))


@pytest.mark.parametrize("producer", [0, 4, 5, 1999, 2001, 99999])
def test_the_producer_may_be_another(session: ps.Session, producer: int) -> None:
    """The graph is then of the version of its last extension."""
    session.extend(graph_def("z = Add(x, y)", producer=producer))

    assert session.run("z:0") == 0
    assert session.graph.versions.producer == producer


def test_versions_that_shut_this_runtime_out(session: ps.Session) -> None:
    """A demand that cannot be met refuses the extension, and leaves the graph as it was."""
    too_new, bad = graph_def("z = Neg(x)"), graph_def("z = Neg(x)")
    too_new.versions.min_consumer = 99999
    bad.versions.bad_consumers.append(2474)
    for proto, says in ((too_new, "min consumer version 99999"), (bad, "disallows consumer")):
        with pytest.raises(errors.InvalidArgumentError, match=says):
            session.extend(proto)
    session.extend(graph_def("z = Add(x, y)"))

    assert session.run("z:0") == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("z = Neg(x:3)", "Node 'z': Connecting to invalid output 3 of source node x which has 1"),
        ("z = Neg[T=int32](x)", "Input 0 of node z was passed float"),
        ("z = Neg(x)\nz = Neg(y)", "Node 'z' is not unique"),
        ("z = Neg(q)\nq = Neg(z)", "2 nodes in a cycle"),
        ("z = Neg(nowhere)", "Node 'z': Unknown input node 'nowhere'"),
        ("_z = Neg(x)", "contains invalid characters"),
    ],
)
def test_extensions_that_are_wrong(session: ps.Session, text: str, says: str) -> None:
    """They say what is wrong and add nothing: the names are free for the next one."""
    with pytest.raises(errors.InvalidArgumentError, match=says):
        session.extend(graph_def(text))
    session.extend(graph_def("z = Add(x, y)"))

    assert session.run(["y:0", "z:0"]) == [-1, 0]


@pytest.mark.parametrize("name", ["q", "x/a", "y/Neg"])
def test_new_nodes_may_be_named_and_placed_after_old_ones(session: ps.Session, name: str) -> None:
    """An old name may be a scope of new ones, and they may lie with old nodes."""
    session.extend(graph_def(f"{name} = Neg[_class=loc:@x](x)"))

    assert session.run(f"{name}:0") == -1


# -- gradients that come after the first run ----------------------------------------------

BRANCHES = """
Then(x: float32) -> (y: float32)
y = Exp(x)
return y = y:y

Else(x: float32) -> (y: float32)
return y = x

Go(x: float32) -> (go: bool)
go = Const[value=False; dtype=bool]
return go = go:output
"""
IF = "If[Tcond=bool; Tin=float32; Tout=float32; then_branch=Then; else_branch=Else](p, x)"
CASE = "Case[Tin=float32; Tout=float32; branches=Then|Else](i, x)"
WHILE = "While[T=float32; cond=Go; body=Then](x)"
TOO_LATE = "Node 'grad': Connecting to invalid output 1 of source node r which has 1 outputs"


@pytest.mark.parametrize(
    ("node", "hint"),
    [(IF, True), (f"Stateless{IF}", True), (WHILE, True), (CASE, False), ("Neg(x)", False)],
)
def test_intermediates_that_came_too_late(node: str, hint: bool) -> None:
    """TensorFlow makes gradients of a cond by letting it have more outputs, which is too late.

    A session that has run it knows it as it was, says so, and says what would have helped.
    """
    text = f"""
        p = Const[value=True; dtype=bool]
        i = Const[value=0; dtype=int32]
        x = Const[value=2]
        r = {node}
    """
    with ps.Session(graph_def_with(text, BRANCHES)) as session:
        before = session.run("r:0")
        with pytest.raises(errors.InvalidArgumentError, match=TOO_LATE) as caught:
            session.extend(graph_def("grad = Mul(r:1, x)"))
        assert session.run("r:0") == before
    assert ("output_all_intermediates(True)" in caught.value.message) is hint
