"""Arithmetic that changes nothing is left out, and only that."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.passes.simplify_arithmetic import simplify_arithmetic
from support.drafts import after, agree, unchanged

X = "x = Placeholder() dtype=float32\n"
I = "x = Placeholder() dtype=int32\n"  # noqa: E741
NUMBERS = np.array([-0.0, 0.0, 1.5, -1.5, np.nan, np.inf, -np.inf, 1e-45], np.float32)


@pytest.mark.parametrize(
    "text",
    [
        X + "c = Const() value=1.0\ny = Mul(x, c)",
        X + "c = Const() value=1.0\ny = Mul(c, x)",
        X + "c = Const() value=-0.0\ny = Add(x, c)",
        X + "c = Const() value=0.0\ny = Sub(x, c)",
        X + "c = Const() value=1.0\ny = RealDiv(x, c)",
        X + "n = Neg(x)\ny = Neg(n)",
        "x = Placeholder() dtype=complex64\nn = Conj(x)\ny = Conj(n)",
        "x = Placeholder() dtype=int32\nn = Invert(x)\ny = Invert(n)",
        "x = Placeholder() dtype=bool\nn = LogicalNot(x)\ny = LogicalNot(n)",
        X + "y = Cast(x) SrcT=float32 DstT=float32",
        X + "y = AddN(x)",
        X + "p = Const() value=[0]\nt = Transpose(x, p)\ny = Transpose(t, p)",
    ],
)
def test_the_input_is_the_result(text: str) -> None:
    """Zeros, infinities and NaN are what they were, to the last bit."""
    text += "\nout = Identity(y)"
    assert "out = Identity(x)" in after(simplify_arithmetic, text)
    kind = {"complex64": np.complex64, "int32": np.int32, "bool": np.bool_}
    wanted = kind.get(text.partition("dtype=")[2].partition("\n")[0], np.float32)
    with np.errstate(all="ignore"):
        assert agree(text, ["out:0"], {"x": NUMBERS.astype(wanted)})


@pytest.mark.parametrize("zero", ["Add(x, c)", "Add(c, x)", "AddV2(x, c)", "Sub(x, c)"])
def test_whole_numbers_have_one_zero(zero: str) -> None:
    """For integers x + 0 is x."""
    text = f"{I}c = Const() value=0\ny = {zero}\nout = Identity(y)"
    assert "out = Identity(x)" in after(simplify_arithmetic, text)


@pytest.mark.parametrize(
    "text",
    [
        X + "c = Const() value=0.0\ny = Add(x, c)",
        X + "c = Const() value=-0.0\ny = Sub(x, c)",
        X + "c = Const() value=0.0\ny = Sub(c, x)",
        X + "c = Const() value=1.0\ny = RealDiv(c, x)",
        X + "c = Const() value=0.0\ny = Mul(x, c)",
        X + "c = Const() value=[1.0]\ny = Mul(x, c)",
        X + "c = Const(^x) value=1.0\ny = Mul(x, c)",
        X + "c = Const() value=1.0\ny = Mul(x, c, ^x)",
        X + "c = Placeholder() dtype=float32\ny = Mul(x, c)",
        X + "n = Neg(x, ^x)\ny = Neg(n)",
        X + "n = Neg(x)\ny = Abs(n)",
        X + "y = Cast(x) SrcT=float32 DstT=float64",
        X + "p = Const() value=[1, 2, 0]\nt = Transpose(x, p)\ny = Transpose(t, p)",
        X + "p = Const() value=[0, 0]\nt = Transpose(x, p)\ny = Transpose(t, p)",
        X + "y = AddN(x, x)",
        "x = Placeholder() dtype=complex64\nc = Placeholder() dtype=complex64\ny = Mul(x, c)",
        "v = VariableV2() shape=[] dtype=float32\nc = Const() value=1.0\ny = Mul(v, c)",
        "v = VariableV2() shape=[] dtype=float32\nn = Neg(v)\ny = Neg(n)",
        "v = VariableV2() shape=[] dtype=float32\ni = Identity(v)\nn = Neg(i)\ny = Neg(n)",
        X + "p = Const() value=True\ns = Switch(x, p)\nc = Const() value=1.0\ny = Mul(s:1, c)",
    ],
)
def test_what_may_change_something_stays(text: str) -> None:
    """Signs of zero, NaN, shapes, waits, liveness and references count."""
    assert unchanged(simplify_arithmetic, text + "\nout = Identity(y)")


def test_back_and_forth() -> None:
    """A permutation and its inverse are nothing."""
    text = """
        x = Placeholder() dtype=float32
        p = Const() value=[1, 2, 0]
        q = Const() value=[2, 0, 1]
        t = Transpose(x, p)
        y = Transpose(t, q)
        out = Identity(y)
    """
    assert "out = Identity(x)" in after(simplify_arithmetic, text)
    assert agree(text, ["out:0"], {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4)})


@pytest.mark.parametrize(
    ("first", "second", "is_once"),
    [
        ("[-1]", "[2, 3]", True),
        ("[6]", "[2, 3]", True),
        ("[2, -1]", "[4, -1]", True),
        ("[4, -1]", "[2, -1]", False),
        ("[3, 2]", "[2, -1]", False),
        ("[3, 3]", "[2, 3]", False),
        ("[-1, -1]", "[2, 3]", False),
        ("[0, -1]", "[0]", False),
    ],
)
def test_one_reshape_is_enough(first: str, second: str, is_once: bool) -> None:
    """The first of two goes if it cannot fail where the second does not."""
    text = f"""
        x = Placeholder() dtype=float32
        a = Const() value={first}
        b = Const() value={second}
        y = Reshape(x, a) Tshape=int32
        z = Reshape(y, b) Tshape=int32
    """
    assert ("z = Reshape(x, b)" in after(simplify_arithmetic, text)) is is_once


@pytest.mark.parametrize("unknown", ["a", "b"])
def test_a_shape_that_is_not_known_may_not_fit(unknown: str) -> None:
    """Who says to which shape may say one that fails."""
    known = "b" if unknown == "a" else "a"
    text = f"""
        x = Placeholder() dtype=float32
        {unknown} = Placeholder() dtype=int32
        {known} = Const() value=[2, 3]
        y = Reshape(x, a) Tshape=int32
        z = Reshape(y, b) Tshape=int32
        out = Identity(z)
    """
    assert unchanged(simplify_arithmetic, text)
