"""Nodes that only hand on their input are gone, unless they mean something."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.passes.remove_identities import remove_identities
from support.drafts import after, agree, both, unchanged
from support.loops import counting_loop


@pytest.mark.parametrize(
    "op", ["Identity", "Snapshot", "StopGradient", "PreventGradient", "PlaceholderWithDefault"]
)
def test_consumers_read_the_input_itself(op: str) -> None:
    """Chains of them go at once."""
    shape = " shape=[]" if op == "PlaceholderWithDefault" else ""
    text = f"""
        x = Placeholder() dtype=float32
        a = {op}(x){shape}
        b = {op}(a){shape}
        y = Add(a, b)
        r = _Retval(b) index=0
    """
    assert after(remove_identities, text) == [
        "r = _Retval(x)",
        "x = Placeholder",
        "y = Add(x, x)",
    ]


def test_who_waits_for_it_waits_for_its_input() -> None:
    """Control edges move to the source, and stand in order there."""
    text = """
        x = Placeholder() dtype=float32
        a = Neg(x)
        b = Identity(a)
        c = Neg(x)
        y = Add(x, x, ^c, ^b, ^a)
        z = Neg(b)
    """
    assert "y = Add(x, x, ^a, ^c)" in after(remove_identities, text)


@pytest.mark.parametrize(
    "text",
    [
        "v = VariableV2() shape=[] dtype=float32\na = Identity(v)\ny = Neg(a)",
        "v = VariableV2() shape=[] dtype=float32\na = Identity(v)\nb = Identity(a)\ny = Neg(b)",
        "x = Placeholder() dtype=float32\np = Placeholder() dtype=bool\n"
        "s = Switch(x, p)\na = Identity(s:1)\ny = Neg(a)",
        "r = _Recv() tensor_type=float32 tensor_name='t' send_device='d' recv_device='d'"
        " send_device_incarnation=1\na = Identity(r)\ny = Neg(a)",
        "x = Placeholder() dtype=float32\na = Identity(x, ^x)\ny = Neg(a)",
        "x = Placeholder() dtype=float32\na = Identity(x)",
        'x = Placeholder() dtype=float32\na = Identity(x) device="/device:CPU:1"\ny = Neg(a)',
        "x = Placeholder() dtype=float32\ne = Enter(x) frame_name='f'\na = Identity(e)\n"
        "n = NoOp(^a)\ny = Exit(a)",
        "x = Placeholder() dtype=float32\na = Identity(x)\ny = NoOp(^a)",
        "x = Placeholder() dtype=float32\na = IdentityN(x, x)\ny = Add(a:0, a:1)",
    ],
    ids=[
        "reference", "read of a reference", "Switch", "Recv", "waits", "target", "device",
        "awaited Enter", "awaited placeholder", "IdentityN",
    ],
)  # fmt: skip
def test_an_identity_that_means_something_stays(text: str) -> None:
    """References, branches, transfers, waits, devices and targets need it."""
    assert unchanged(remove_identities, text)


def test_the_body_of_a_loop_needs_its_pivot() -> None:
    """The Identity after a Switch stays; others inside the loop go."""
    text = counting_loop().replace(
        "next = NextIteration(sum)", "same = Identity(sum)\nnext = NextIteration(same)"
    )
    got = after(remove_identities, text)
    assert "body = Identity(switch:1)" in got
    assert "next = NextIteration(sum)" in got
    assert both(text, ["exit:0"], {"limit": np.int32(4)}) == [[4], [4]]


@pytest.mark.parametrize("taken", [True, False])
def test_deadness_passes(taken: bool) -> None:
    """What reads past an Identity is dead when the Identity was."""
    text = """
        p = Placeholder() dtype=bool
        x = Placeholder() dtype=float32
        s = Switch(x, p)
        a = Identity(s:1)
        b = Identity(a)
        c = Neg(b)
        d = Identity(s:0)
        m = Merge(d, c)
    """
    assert agree(text, ["m:0", "m:1"], {"p": taken, "x": 2.0})
    assert agree(text, ["c:0"], {"p": taken, "x": 2.0})
