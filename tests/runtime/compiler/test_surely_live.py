"""What is taken to be live in every step is: nothing less is asked of it when the step runs."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.config import GraphOptions
from penstock.runtime import KernelBinder
from penstock.runtime.compiler import compile_regions
from penstock.runtime.compiler.compile_regions import Compiler
from penstock.runtime.compiler.rewrite import SurelyLive
from support.compiled import leaving_out
from support.sketch import CPU, sketch

BRANCH = """
    p = Placeholder() dtype=bool
    x = Placeholder() dtype=int32
    s = Switch(x, p)
"""


def loop(start: str) -> str:
    """A loop that counts from a value to 5."""
    return f"""
        five = Const() value=5
        one = Const() value=1
        enter = Enter({start}) frame_name="loop"
        bound = Enter(five) frame_name="loop" is_constant=True
        more = Enter(one) frame_name="loop" is_constant=True
        merge = Merge(enter, next) T=int32
        less = Less(merge, bound) T=int32
        go = LoopCond(less)
        switch = Switch(merge, go) T=int32
        sum = Add(switch:1, more) T=int32
        next = NextIteration(sum) T=int32
        exit = Exit(switch) T=int32
    """


def sure(text: str, *asked: str) -> list[bool]:
    """Whether each of some nodes is taken to be live in every step."""
    graph = sketch(text)
    compiler = Compiler(device=CPU, make_kernel=KernelBinder(CPU).bind)
    levels, _ = compiler._look_at(graph)
    found = SurelyLive(levels)
    return [graph.node(name) in found for name in asked]


def test_whatever_depends_on_nothing_that_may_be_dead() -> None:
    """Feeds, constants, and what is computed of them."""
    assert sure("x = Placeholder()\nc = Const() value=1.0\ny = Add(x, c)", *"xcy") == [True] * 3


def test_nothing_behind_a_switch_or_a_recv() -> None:
    """Neither these themselves, nor what reads them, nor what waits for that."""
    transfer = (
        f'r = _Recv() tensor_type=int32 tensor_name="r" send_device="{CPU}" '
        f'send_device_incarnation=1 recv_device="{CPU}"\n'
    )
    text = BRANCH + transfer + "n = Neg(s:1)\nw = Neg(x, ^n)\nm = Neg(r) T=int32\no = Neg(x)"
    assert sure(text, "s", "n", "w", "r", "m", "o") == [False] * 5 + [True]


def test_a_merge_of_something_sure() -> None:
    """One input that is surely live is enough; of two sides of a Switch nothing is known."""
    text = BRANCH + "m = Merge(x, s:1)\nb = Merge(s, s:1)\nn = Neg(m) T=int32"
    assert sure(text, "m", "b", "n") == [True, False, True]


def test_a_loop_is_as_sure_as_all_that_enters_it() -> None:
    """A loop that is entered by something dead gives nothing."""
    text = BRANCH + loop("x") + "after = Neg(exit) T=int32"
    assert sure(text, "exit", "after") == [True, True]
    text = BRANCH + loop("s:1") + "after = Neg(exit) T=int32"
    assert sure(text, "exit", "after") == [False, False]


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("is_entered", [True, False])
def test_who_waits_for_a_loop_that_is_not_entered_is_dead(
    tier: ps.Tier, is_entered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the loop and what waits for it are in two regions."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out("between"))
    text = (
        BRANCH
        + loop("s:1")
        + """
        before = Neg(exit) T=int32
        between = Neg(x)
        here = Neg(between) T=int32
        there = Neg(here, ^before) T=int32
        other = Neg(s) T=int32
        both = Merge(there, other) T=int32
        """
    )
    config = ps.Config(tier=tier, graph_options=GraphOptions.nothing())
    with ps.Session(sketch(text), config=config) as session:
        value, index = session.run(["both:0", "both:1"], {"p": is_entered, "x": np.int32(2)})
    assert (value, index) == ((-2, 0) if is_entered else (-2, 1))
