"""The gates of a recurrent cell are one node, and mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.passes.fuse_gates import fuse_gates
from support.drafts import after, both, constant, draft, unchanged
from support.sketch import sketch

#: A cell of two units and four gates, as TensorFlow's BasicLSTMCell makes them.
CELL = """
    x = Placeholder() dtype=float32
    w = Const() value=[[1.0, -2.0, 0.5, 2.0, 0.25, 3.0, -1.0, 0.75]]
    b = Const() value=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    axis = Const() value=1
    one = Const() value=1.0
    product = MatMul(x, w)
    sum = BiasAdd(product, b)
    parts = Split(axis, sum) num_split=4
    i = Sigmoid(parts)
    j = Tanh(parts:1)
    forget = AddV2(parts:2, one)
    f = Sigmoid(forget)
    o = Sigmoid(parts:3)
"""
OUT = """
    out = Pack(i, j, f, o)
"""
FUSED = ["out = Pack(parts, parts:1, parts:2, parts:3)", "parts = _FusedGates(x, w, parts/Const)"]
ROWS = np.random.default_rng(3).standard_normal((3, 1)).astype(np.float32)


def expected(x: Any) -> Any:
    """The gates by definition, in double precision."""
    w = np.array([[1, -2, 0.5, 2, 0.25, 3, -1, 0.75]])
    parts = np.split(x.astype(np.float64) @ w + np.arange(1, 9) / 10, 4, 1)
    sigmoids = [1 / (1 + np.exp(-part)) for part in (parts[0], parts[2] + 1, parts[3])]
    return np.stack([sigmoids[0], np.tanh(parts[1]), *sigmoids[1:]])


def test_a_cell_is_one_node() -> None:
    """Under the name of the Split; the forget bias is in the bias."""
    assert after(fuse_gates, CELL + OUT) == [
        FUSED[0],
        "parts = _FusedGates(x, w, parts/Const)",
        "parts/Const = Const",
        "w = Const",
        "x = Placeholder",
    ]
    made = draft(CELL + OUT)
    assert fuse_gates(made) == 7
    assert made.graph.node("parts").attrs["functions"] == [
        b"Sigmoid",
        b"Tanh",
        b"Sigmoid",
        b"Sigmoid",
    ]
    bias = constant(made, "parts/Const")
    np.testing.assert_array_equal(bias, np.float32([0.1, 0.2, 0.3, 0.4, 1.5, 1.6, 0.7, 0.8]))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value=1\n", "value=-1\n"),
        ("BiasAdd(product, b)", "AddV2(product, b)"),
        ("BiasAdd(product, b)", "Add(b, product)"),
        ("AddV2(parts:2, one)", "AddV2(one, parts:2)"),
    ],
)
def test_other_ways_to_write_it(old: str, new: str) -> None:
    """Sums may be turned round, and an axis may be counted from the end."""
    text = (CELL + OUT).replace(old, new)
    assert set(FUSED) <= set(after(fuse_gates, text))
    for (value,) in both(text, ["out:0"], {"x": ROWS}):
        np.testing.assert_allclose(value, expected(ROWS), rtol=2e-6)


def test_without_bias() -> None:
    """What is added then changes nothing, not even the sign of a zero."""
    text = (CELL + OUT).replace("BiasAdd(product, b)", "Identity(product)")
    text = text.replace("Split(axis, sum)", "Split(axis, product)")
    made = draft(text.replace("    sum = Identity(product)\n", ""))
    assert fuse_gates(made)
    bias = constant(made, "parts/Const")
    assert np.signbit(bias[[0, 1, 2, 3, 6, 7]]).all()
    assert not bias[[0, 1, 2, 3, 6, 7]].any()


JOINED = """
    x = Placeholder() dtype=float32
    h = Placeholder() dtype=float32
    xh = ConcatV2(x, h, axis)
    w = Const() value=[[1.0, -2.0, 0.5, 2.0], [0.25, 3.0, -1.0, 0.75]]
    product = MatMul(xh, w)
    axis = Const() value=1
    parts = Split(axis, product) num_split=2
    i = Sigmoid(parts)
    j = Tanh(parts:1)
    out = Pack(i, j)
"""


@pytest.mark.parametrize("axis", ["[1]", "[1, 1]"])
def test_an_axis_that_is_no_number_stays(axis: str) -> None:
    """Whether such an axis will do is said by the nodes that take it."""
    wrong = f"wrong = Const() value={axis}\n"
    assert unchanged(fuse_gates, wrong + (CELL + OUT).replace("Split(axis,", "Split(wrong,"))
    joined = JOINED.replace("(x, h, axis)", "(x, h, wrong)")
    assert "xh = ConcatV2(x, h, wrong)" in after(fuse_gates, wrong + joined)


def test_input_and_state_may_be_joined_before() -> None:
    """Joining them is part of the fused node."""
    rewritten = after(fuse_gates, JOINED)
    assert "parts = _FusedGates(x, h, w, parts/Const)" in rewritten
    assert not any("ConcatV2" in row for row in rewritten)
    plain, fused = both(JOINED, ["out:0"], {"x": ROWS, "h": ROWS[::-1]})
    np.testing.assert_allclose(plain[0], fused[0], rtol=2e-6)


@pytest.mark.parametrize(
    "text",
    [
        JOINED.replace("ConcatV2(x, h, axis)", "ConcatV2(x, x, h, axis)"),
        JOINED.replace(
            "ConcatV2(x, h, axis)", "ConcatV2(x, h, other)\n    other = Const() value=0"
        ),
        JOINED.replace("ConcatV2(x, h, axis)", "ConcatV2(x, h, o)\n    o = Const(^x) value=1"),
        JOINED + "z = Neg(xh)",
    ],
    ids=["three", "rows", "waits", "read"],
)
def test_other_joins_stay(text: str) -> None:
    """They are then one input of the fused node."""
    assert "parts = _FusedGates(xh, w, parts/Const)" in after(fuse_gates, text)


def test_a_part_without_function_stays_as_it_is() -> None:
    """Whoever reads it reads the fused node's output."""
    text = CELL + "out = Pack(i, parts:1, f, o)"
    assert FUSED[0] in after(fuse_gates, text)
    for (value,) in both(text, ["out:0"], {"x": ROWS}):
        np.testing.assert_allclose(value[1], ROWS @ [[0.5, 2.0]] + [[0.3, 0.4]], rtol=1e-6)


LOOP = """
    w = Const() value=[[0.5, -0.25, 1.0, 0.75]]
    b = Const() value=[0.1, 0.2, 0.3, 0.4]
    x = Placeholder() dtype=float32
    zero = Const() value=0
    enter_i = Enter(zero) frame_name="loop"
    enter_x = Enter(x) frame_name="loop"
    enter_w = Enter(w) frame_name="loop" is_constant=True
    enter_b = Enter(b) frame_name="loop" is_constant=True
    at = Merge(enter_i, next_i)
    state = Merge(enter_x, next_x)
    limit = Const(^at) value=3
    goes_on = Less(at, limit)
    cond = LoopCond(goes_on)
    switch_i = Switch(at, cond)
    switch_x = Switch(state, cond)
    turn = Identity(switch_i:1)
    h = Identity(switch_x:1)
    axis = Const(^turn) value=1
    one = Const(^turn) value=1.0
    step = Const(^turn) value=1
    product = MatMul(h, enter_w)
    sum = BiasAdd(product, enter_b)
    parts = Split(axis, sum) num_split=4
    i = Sigmoid(parts)
    j = Tanh(parts:1)
    forget = AddV2(parts:2, one)
    f = Sigmoid(forget)
    kept = Mul(h, f)
    added = Mul(i, j)
    both = AddV2(kept, added)
    y = AddV2(both, parts:3)
    more = AddV2(turn, step)
    next_i = NextIteration(more)
    next_x = NextIteration(y)
    out = Exit(switch_x)
"""


def test_in_a_loop() -> None:
    """The new bias gets into the loop as the old one did, and the gates wait for the iteration."""
    rewritten = after(fuse_gates, LOOP)
    assert "parts = _FusedGates(h, enter_w, parts/Enter, ^turn)" in rewritten
    assert "parts/Enter = Enter(parts/Const)" in rewritten
    for tier in ps.Tier.DATAFLOW, ps.Tier.COMPILED:
        with ps.Session(sketch(LOOP), config=ps.Config(tier=tier, check_graphs=True)) as session:
            got = session.run("out:0", {"x": ROWS})
        want = ROWS.astype(np.float64)
        for _ in range(3):
            i, j, f, o = np.split(want @ [[0.5, -0.25, 1, 0.75]] + [0.1, 0.2, 0.3, 0.4], 4, 1)
            want = want / (1 + np.exp(-f - 1)) + np.tanh(j) / (1 + np.exp(-i)) + o
        np.testing.assert_allclose(got, want, rtol=3e-6)


@pytest.mark.parametrize(
    "text",
    [
        CELL + OUT + "z = Neg(product)",
        CELL + OUT + "z = Neg(sum)",
        CELL + OUT + "z = NoOp(^product)",
        CELL.replace("MatMul(x, w)", "MatMul(x, w) transpose_b=True") + OUT,
        CELL.replace("MatMul(x, w)", "MatMul(x, w, ^one)") + OUT,
        CELL.replace("w = Const() value=", "w = Placeholder() dtype=float32 #") + OUT,
        CELL.replace("b = Const() value=", "b = Placeholder() dtype=float32 #") + OUT,
        CELL.replace("value=1\n", "value=0\n") + OUT,
        CELL.replace(", 0.7, 0.8]", ", 0.7]") + OUT,
        CELL.replace("BiasAdd(product, b)", "BiasAdd(once, b)\n    once = BiasAdd(product, b)")
        + OUT,
        CELL.replace("BiasAdd(product, b)", "AddV2(once, b)\n    once = BiasAdd(product, b)") + OUT,
        CELL.replace("BiasAdd(product, b)", "AddV2(product, more)\n    more = MatMul(x, w)") + OUT,
        CELL.replace("BiasAdd(product, b)", 'BiasAdd(product, b) data_format="NCHW"') + OUT,
        CELL.replace("BiasAdd(product, b)", 'BiasAdd(product, b) device="/device:CPU:1"') + OUT,
        CELL + "out = Pack(parts, parts:1, parts:2, o)",
        CELL + "out = Pack(i, i, parts:2, parts:3)\nz = Neg(parts)",
    ],
    ids=[
        "product is read",
        "sum is read",
        "product is awaited",
        "transposed",
        "waits",
        "no constant",
        "no constant bias",
        "rows",
        "sizes",
        "two biases",
        "two biases of two kinds",
        "two products, one of which may be a single row",
        "layout",
        "device",
        "one function",
        "part is read twice",
    ],
)
def test_anything_else_stays(text: str) -> None:
    """What others see, what is not constant, and what is not worth it."""
    assert unchanged(fuse_gates, text)


def test_a_number_that_waits_for_something_else_is_added_later() -> None:
    """It may be dead when the other gates are not."""
    text = (CELL + OUT).replace("one = Const()", "one = Const(^x)")
    assert "forget = AddV2(parts:2, one)" in after(fuse_gates, text)
