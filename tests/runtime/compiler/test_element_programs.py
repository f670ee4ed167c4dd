"""Programs in C are chains of kernels: what they give, and what they leave to the kernels."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.limits import Limits
from penstock.kernels.c.library import library
from penstock.kernels.c.programs import Step, compile_steps
from penstock.runtime.compiler.element_programs import in_c, in_c_in_parts
from support.native import WITHOUT
from support.sketch import sketch

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(29)
STEPS = [Step("Mul", 3, 0, 1), Step("Tanh", 3, 3, 3), Step("Add", 3, 3, 2)]
#: Every request is tuned, after some steps.
EAGER = Limits(slow_step=0.0, compared_steps=0)
RUNS = 8
X = "x = Placeholder() dtype=float32\ny = Placeholder() dtype=float32\n"


def floats(*shape: int) -> Any:
    """Numbers of either sign."""
    return RNG.normal(size=shape).astype(np.float32)


def text_of(session: ps.Session) -> str:
    """What the only request has become."""
    [prepared] = session._requests._prepared.values()
    region = prepared.runnable._tuner.region
    assert region is not None
    listing: str = region.source.listing
    return listing


@pytest.mark.parametrize(
    "shapes",
    [
        ((600, 500), (500,), (600, 500)),
        ((600, 500), (600, 1), ()),
        ((1, 700, 400), (1, 1, 400), (700, 400)),
        ((2, 300, 20, 30), (2, 1, 1, 30), (30,)),
        ((300_000,), (1,), (300_000,)),
        ((5, 1), (1, 60_000), (5, 60_000)),
        ((0, 500), (500,), (1, 500)),
    ],
)
def test_parts_are_the_whole(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Whatever is repeated along whatever."""
    program = compile_steps("some", 3, (), STEPS)
    assert program is not None
    args = [floats(*shape) if shape else np.float32(0.5) for shape in shapes]
    got = in_c_in_parts(program, pytest.fail, *args)
    want = program.function(*args)
    assert (got.shape, got.tobytes()) == (want.shape, want.tobytes())


def test_threads_are_used_for_long_arrays() -> None:
    """And the result is one array."""
    program = compile_steps("some", 3, (), STEPS)
    assert program is not None
    seen: list[str] = []

    class Noting:
        memory = ()

        def function(self, *args: Any) -> Any:
            seen.append(threading.current_thread().name)
            return program.function(*args)

    x, y = floats(600, 500), floats(500)
    in_c_in_parts(Noting(), pytest.fail, x, y, y)  # type: ignore[arg-type]
    assert len(seen) > 1
    seen.clear()
    in_c_in_parts(Noting(), pytest.fail, x, x, x)  # type: ignore[arg-type]
    assert len(seen) == 1


@pytest.mark.parametrize("way", [in_c, in_c_in_parts])
def test_complaints_are_the_chains(way: Any) -> None:
    """Which knows the node."""
    program = compile_steps("some", 3, (), STEPS)
    assert program is not None

    def chain(*args: Any) -> Any:
        raise ValueError(f"{len(args)} do not fit")

    with pytest.raises(ValueError, match="3 do not fit"):
        way(program, chain, floats(3), floats(2), floats(3))


def test_errors_name_the_node() -> None:
    """As if there were no program."""
    text = X + "a = Mul(x, x)\nb = Add(a, y)\nc = Tanh(b)\n"
    with ps.Session(sketch(text), config=ps.Config(limits=EAGER)) as session:
        for _ in range(RUNS):
            session.run("c:0", {"x": floats(20), "y": floats(20)})
        assert "in_c(" in text_of(session)
        with pytest.raises(errors.InvalidArgumentError, match=r"\{\{node b\}\}"):
            session.run("c:0", {"x": floats(20), "y": floats(3)})
        x = np.float32(0.5)
        assert session.run("c:0", {"x": x, "y": x}) == pytest.approx(np.tanh(0.75))


@pytest.mark.parametrize("alpha", [0.2, -0.5, 1.0, 3.0])
def test_leaky_rectifiers_are_part_of_programs(alpha: float) -> None:
    """Each with its own alpha, beside others, and twice in one program."""
    text = X + (
        f"a = LeakyRelu(x) alpha={alpha}\nb = Sub(a, y)\nc = LeakyRelu(b) alpha=0.25\n"
        "d = Mul(c, a)\n"
    )
    x, y = floats(70), floats(70)
    x[:4] = [0, np.nan, np.inf, -np.inf]
    leak = np.float32(alpha)
    a = np.where(x > 0, x, leak * x)
    b = a - y
    want = np.where(b > 0, b, np.float32(0.25) * b) * a
    with ps.Session(sketch(text), config=ps.Config(limits=EAGER)) as session:
        for _ in range(RUNS):
            np.testing.assert_array_equal(session.run("d:0", {"x": x, "y": y}), want)
        assert text_of(session).count("in_c(") == 1


def test_what_is_in_a_loop_is_a_program() -> None:
    """Also of short arrays, of which there are many there, where the loop as a whole is none."""
    text = """
        x = Placeholder() dtype=float32
        n = Const() value=5 dtype=int32
        zero = Const() value=0 dtype=int32
        one = Const() value=1 dtype=int32
        enter_i = Enter(zero) frame_name="loop"
        enter_x = Enter(x) frame_name="loop"
        enter_n = Enter(n) frame_name="loop" is_constant=True
        enter_one = Enter(one) frame_name="loop" is_constant=True
        i = Merge(enter_i, next_i)
        v = Merge(enter_x, next_x)
        less = Less(i, enter_n)
        go = LoopCond(less)
        switch_i = Switch(i, go)
        switch_x = Switch(v, go)
        add = Add(switch_i:1, enter_one)
        square = Mul(switch_x:1, switch_x:1)
        tanh = Tanh(square)
        next_i = NextIteration(add)
        next_x = NextIteration(tanh)
        out = Exit(switch_x:0)
    """
    x = floats(30)
    want = x
    for _ in range(5):
        want = np.tanh(want * want)
    with ps.Session(sketch(text), config=ps.Config(limits=EAGER, graph_options=WITHOUT)) as session:
        for _ in range(RUNS):
            np.testing.assert_allclose(session.run("out:0", {"x": x}), want, rtol=1e-4, atol=1e-30)
        assert "in_c(" in text_of(session)


def test_without_accelerate_there_is_none() -> None:
    """All is numpy's then, and nothing is checked less."""
    text = X + "a = Mul(x, x)\nb = Add(a, y)\nc = Sqrt(b)\n"
    for options in ({"accelerate": False}, {"check_outputs": True}):
        with ps.Session(sketch(text), config=ps.Config(limits=EAGER, **options)) as session:
            for _ in range(RUNS):
                session.run("c:0", {"x": floats(20), "y": floats(20)})
            assert "in_c" not in text_of(session)
