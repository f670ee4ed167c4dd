"""Equal things are computed once, and what only looks equal is not touched."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.defs import tensors
from penstock.defs.schema import GraphDef
from penstock.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from support.drafts import after, agree, both, draft, unchanged

TWO = """
    x = Placeholder() dtype=float32
    y = Placeholder() dtype=float32
"""


def test_equal_nodes_are_one() -> None:
    """Of equal nodes the first stays, and everything reads it; so equals follow from equals."""
    text = f"""{TWO}
        a = Add(x, y)
        b = Add(x, y)
        c = Neg(a)
        d = Neg(b)
        e = Mul(c, d)
        n = NoOp(^b)
    """
    assert after(eliminate_common_subexpressions, text) == [
        "a = Add(x, y)",
        "c = Neg(a)",
        "e = Mul(c, c)",
        "n = NoOp(^a)",
        "x = Placeholder",
        "y = Placeholder",
    ]


def test_all_outputs_move() -> None:
    """Each output of a duplicate becomes the same output of the first."""
    text = """
        x = Placeholder() dtype=float32
        axis = Const() value=0
        a = Split(axis, x) num_split=2
        b = Split(axis, x) num_split=2
        c = Sub(a:1, b:0)
        d = Sub(a:0, b:1)
    """
    assert [line for line in after(eliminate_common_subexpressions, text) if line[0] in "bcd"] == [
        "c = Sub(a:1, a)",
        "d = Sub(a, a:1)",
    ]


def test_wishes_for_colocation_do_not_count() -> None:
    """Placement is over: who wanted to be near whom makes no difference."""
    made = draft(f"{TWO}\na = Add(x, y)\nb = Add(x, y)\nc = Mul(a, b)")
    node = made.graph.node("b")
    node.attrs["_class"] = (b"loc:@x",)  # type: ignore[index]
    assert eliminate_common_subexpressions(made) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1.0", "1.0"),
        ("[1, 2]", "[1, 2]"),
        ("'text'", "'text'"),
        ("True", "True"),
    ],
)
def test_equal_constants_are_one(first: str, second: str) -> None:
    """Small constants are compared by their bits."""
    text = f"a = Const() value={first}\nb = Const() value={second}\nc = IdentityN(a, b)"
    assert "c = IdentityN(a, a)" in after(eliminate_common_subexpressions, text)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1.0", "1"),
        ("0.0", "-0.0"),
        ("[1, 2]", "[[1, 2]]"),
        ("[1, 2]", "[1, 3]"),
        ("'text'", "'texts'"),
        ("[1]", "1"),
        ("1", "True"),
        (str([7] * 17), str([7] * 17)),
    ],
)
def test_other_constants_are_two(first: str, second: str) -> None:
    """Another type, shape or sign of zero is another constant; large ones are not compared."""
    text = f"a = Const() value={first}\nb = Const() value={second}\nc = IdentityN(a, b)"
    assert unchanged(eliminate_common_subexpressions, text)


def test_constants_of_one_value_may_declare_two_types() -> None:
    """One of them is a mistake, which is told of where it stands."""
    graph = GraphDef()
    for name, dtype in (("good", 1), ("bad", 3)):
        node = graph.node.add(name=name, op="Const")
        node.attr["dtype"].type = dtype
        node.attr["value"].tensor.CopyFrom(tensors.to_proto(np.float32(1)))
    with (
        ps.Session(graph, config=ps.Config(check_graphs=True)) as session,
        pytest.raises(ps.errors.InvalidArgumentError, match="Type mismatch between value") as info,
    ):
        session.run(["good:0", "bad:0"])
    assert info.value.node_name == "bad"


@pytest.mark.parametrize(
    "rows",
    [
        "a = Add(x, y)\nb = Add(y, x)",
        "a = Add(x, y)\nb = Sub(x, y)",
        "a = Add(x, y)\nb = Add(x, y, ^x)",
        'a = Add(x, y)\nb = Add(x, y) device="/device:CPU:1"',
        "a = LeakyRelu(x) alpha=0.1\nb = LeakyRelu(x) alpha=0.2",
        "a = LeakyRelu(x) alpha=0.0\nb = LeakyRelu(x) alpha=-0.0",
        "a = MatMul(x, y)\nb = MatMul(x, y) transpose_a=True",
        "s = Const() value=[2]\na = RandomUniform(s) dtype=float32\nb = RandomUniform(s)",
        "p = Const() value=True\na = Switch(x, p)\nb = Switch(x, p)",
        "a = Enter(x) frame_name='f'\nb = Enter(x) frame_name='f'",
        "a = VariableV2() shape=[] dtype=float32\nb = VariableV2() shape=[] dtype=float32",
        "n = Const() value='file'\na = ReadFile(n)\nb = ReadFile(n)",
        "h = Placeholder() dtype=string\na = TensorArraySizeV2(h, x)\nb = TensorArraySizeV2(h, x)",
        "a = _Retval(x) index=0\nb = _Retval(x) index=0",
        "a = NoOp(^x)\nb = NoOp(^x)",
    ],
)
def test_what_only_looks_equal_stays(rows: str) -> None:
    """Other inputs, attributes, devices or waits; effects, chance, files, control flow."""
    assert unchanged(eliminate_common_subexpressions, TWO + rows)


def test_reads_of_a_variable_are_two() -> None:
    """Between two reads of a reference somebody may write."""
    text = """
        v = VariableV2() shape=[] dtype=float32
        one = Const() value=1.0
        init = Assign(v, one)
        a = Add(v, one)
        up = AssignAdd(v, one, ^a)
        b = Add(v, one)
        r = Identity(v)
        s = Identity(v)
        t = Neg(r)
        u = Neg(r)
    """
    assert unchanged(eliminate_common_subexpressions, text)


def test_branches_and_iterations_keep_their_own() -> None:
    """Equal constants of two branches wait for different nodes, and so are not equal."""
    text = """
        p = Placeholder() dtype=bool
        x = Placeholder() dtype=float32
        switch = Switch(x, p)
        no = Identity(switch:0)
        yes = Identity(switch:1)
        a = Const(^yes) value=2.0
        b = Const(^no) value=2.0
        c = Mul(yes, a)
        d = Mul(no, b)
        merge = Merge(c, d)
    """
    assert unchanged(eliminate_common_subexpressions, text)
    for taken in (True, False):
        assert agree(text, ["merge:0", "merge:1"], {"p": taken, "x": 3.0})


def test_duplicates_of_an_iteration_are_one() -> None:
    """Inside a loop too, equal nodes are computed once in each iteration."""
    text = """
        n = Placeholder() dtype=int32
        zero = Const() value=0
        enter = Enter(zero) frame_name="loop"
        bound = Enter(n) frame_name="loop" is_constant=True
        merge = Merge(enter, next)
        less = Less(merge, bound)
        cond = LoopCond(less)
        switch = Switch(merge, cond)
        body = Identity(switch:1)
        one = Const(^body) value=1
        uno = Const(^body) value=1
        sum = Add(body, one)
        gain = Add(body, uno)
        more = Maximum(sum, gain)
        next = NextIteration(more)
        exit = Exit(switch)
    """
    assert "more = Maximum(sum, sum)" in after(eliminate_common_subexpressions, text)
    assert both(text, ["exit:0"], {"n": np.int32(5)}) == [[5], [5]]


@pytest.mark.slow
def test_many_duplicates_cost_no_more_than_many_nodes() -> None:
    """Ten thousand equal nodes with one reader each, and one reader of all."""
    rows = [f"c{i} = Const() value=1.0\nn{i} = Neg(c{i})" for i in range(5000)]
    every = ", ".join(f"n{i}" for i in range(5000))
    waits = ", ".join(f"^n{i}" for i in range(5000))
    text = "\n".join(rows) + f"\nsum = AddN({every})\nend = NoOp({waits})"
    assert after(eliminate_common_subexpressions, text)[:2] == ["c0 = Const", "end = NoOp(^n0)"]
