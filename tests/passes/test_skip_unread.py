"""What is only waited for is not computed."""

from __future__ import annotations

import pytest

from penstock.passes.skip_unread import skip_unread
from support.drafts import after, unchanged


def test_a_result_that_nobody_reads_is_not_computed() -> None:
    """Who waits for it waits for what it would have read, and for what it waited for."""
    text = """
        x = Placeholder() dtype=float32
        g = NoOp()
        a = Mul(x, x, ^g)
        y = Neg(x, ^a)
    """
    assert after(skip_unread, text) == [
        "a = NoOp(^g, ^x)",
        "g = NoOp",
        "x = Placeholder",
        "y = Neg(x, ^a)",
    ]


def test_what_it_alone_reads_is_not_computed_either() -> None:
    """A chain that ends in nothing but waiting goes as a whole."""
    text = """
        x = Placeholder() dtype=float32
        a = Neg(x)
        b = Exp(a)
        c = Exp(b)
        y = Neg(x, ^c)
    """
    result = after(skip_unread, text)
    assert [line for line in result if "Exp" in line or "a = Neg" in line] == []
    assert "c = NoOp(^b)" in result
    assert "y = Neg(x, ^c)" in result


@pytest.mark.parametrize(
    "text",
    [
        "x = Placeholder() dtype=float32\na = Neg(x)\nb = Neg(a)\ny = Neg(x, ^a)",
        "x = Placeholder() dtype=float32\na = Neg(x)",
        "x = Placeholder() dtype=float32\na = Print(x, x)\ny = Neg(x, ^a)",
        "x = Placeholder() dtype=float32\nv = VariableV2() shape=[] dtype=float32\n"
        "a = Assign(v, x)\ny = Neg(x, ^a)",
        "x = Placeholder() dtype=float32\np = Placeholder() dtype=bool\n"
        "s = Switch(x, p)\na = Neg(s:1)\ny = NoOp(^a)",
        "x = Placeholder() dtype=float32\ne = Enter(x) frame_name='f'\na = Neg(e)\n"
        "n = NoOp(^a)\ny = Exit(e, ^n)",
    ],
    ids=["read", "asked for", "prints", "assigns", "side of a branch", "first in a frame"],
)
def test_what_matters_stays(text: str) -> None:
    """Results that are read or asked for, effects, and what tells a branch or a frame."""
    assert unchanged(skip_unread, text)


def test_a_variable_need_not_be_read_for_nothing() -> None:
    """Reading is no effect; the order of what happens to the variable stays."""
    text = """
        v = VariableV2() shape=[] dtype=float32
        i = Identity(v)
        a = Neg(i)
        y = NoOp(^a)
    """
    assert "a = NoOp(^i)" in after(skip_unread, text)
