"""What a probed region says about its statements."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.graph.graph import Node
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.runtime import KernelBinder
from penstock.runtime.compiler import profile
from penstock.runtime.compiler.compile_regions import Compiler
from penstock.runtime.compiler.profile import Profile
from support.compiled import Bare, text_of
from support.loops import counting_loop
from support.sketch import CPU, sketch


class Clock:
    """A clock that goes on by one second whenever it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def profiled(
    text: str,
    *args: object,
    monkeypatch: pytest.MonkeyPatch,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[dict[str, tuple[float, int]], str]:
    """Seconds and sizes by node, after one run; and the text."""
    monkeypatch.setattr(profile, "perf_counter", Clock())
    graph, made = sketch(text), Profile()
    compiler = Compiler(device=CPU, make_kernel=KernelBinder(CPU).bind, limits=limits)
    region = compiler.probing(graph, made)
    region.run(Bare(), *args)
    found = {node.name: (made.seconds[node], made.size_of(node)) for node in made.seconds}
    return found, text_of(region)


@pytest.mark.parametrize("most", [DEFAULT_LIMITS.statements, 1])
def test_every_statement_is_measured(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One probe per statement, which counts from the end of the one before."""
    text = """
        x = _Arg() T=float32 index=0
        k = Const() value=0
        a = Add(x, x)
        b = Sum(a, k)
        u = Unpack(x) num=3
        n = NoOp(^b)
        c = Neg(u:1, ^n)
        r = _Retval(b) index=0
        q = _Retval(c) index=1
    """
    limits, x = Limits(statements=most), np.zeros((3, 5), np.float32)
    found, _ = profiled(text, x, monkeypatch=monkeypatch, limits=limits)
    assert found == {"a": (1.0, 15), "b": (1.0, 5), "u": (1.0, 5), "c": (1.0, 5)}


def test_nodes_may_be_called_what_a_probe_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes named like the functions that measure do not take their place."""
    text = """
        x = _Arg() T=float32 index=0
        start = Const() value=1.5
        probe = Exp(x)
        a = Add(probe, start)
        r = _Retval(a) index=0
    """
    found, _ = profiled(text, np.zeros(3, np.float32), monkeypatch=monkeypatch)
    assert found == {"probe": (1.0, 3), "a": (1.0, 3)}


def test_a_branch_that_is_not_taken_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not run has no seconds and no size."""
    text = """
        x = _Arg() T=float32 index=0
        p = _Arg() T=bool index=1
        s = Switch(x, p)
        a = Exp(s)
        b = Tanh(s:1)
        m = Merge(a, b)
        r = _Retval(m) index=0
    """
    found, _ = profiled(text, np.zeros(7, np.float32), np.True_, monkeypatch=monkeypatch)
    assert found["a"] == (0.0, 0)
    assert found["b"] == (1.0, 7)


def test_turns_of_a_loop_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement in a loop is measured in each iteration."""
    text = counting_loop(limit="_Arg() T=int32 index=0") + "r = _Retval(exit) index=0"
    found, _ = profiled(text, np.int32(5), monkeypatch=monkeypatch)
    assert found["less"] == (6.0, 1)
    assert found["sum"] == (5.0, 1)


def test_sizes_are_the_largest() -> None:
    """Of the iterations of a loop the largest size counts; what is no array is one element."""
    made = Profile()
    [a, b] = sketch("a = Const() value=1.0\nb = Const() value=1.0")
    first, second = made.number_of(a), made.number_of(b)
    made.start()
    for size in (3, 9, 5):
        made.probe(first, np.zeros(size))
    for value in (None, b"text", object()):
        made.probe(second, value)
    assert made.shapes == {a: (9,), b: ()}
    assert [made.size_of(node) for node in (a, b)] == [9, 1]
    assert all(seconds >= 0.0 for seconds in made.seconds.values())


def test_a_probed_region_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes change no value, and do not keep any alive."""
    text = """
        x = _Arg() T=float32 index=0
        a = Add(x, x)
        b = Exp(a)
        r = _Retval(b) index=0
    """
    x = np.ones(4, np.float32)
    _, python = profiled(text, x, monkeypatch=monkeypatch)
    assert "start(x)" in python
    assert python.count("probe(") == 2
    region = Compiler(device=CPU, make_kernel=KernelBinder(CPU).bind).probing(
        sketch(text), Profile()
    )
    np.testing.assert_array_equal(region.run(Bare(), x)[0], np.exp(x + x))


@pytest.mark.parametrize("cores", [0.5, 1.0, 6.0])
def test_how_many_cores_were_busy(cores: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what all threads have worked, by the time that went by."""
    clock = Clock()
    monkeypatch.setattr(profile, "perf_counter", clock)
    monkeypatch.setattr(profile, "process_time", lambda: cores * clock.now)
    made = Profile()
    made.start()
    for _ in range(10):
        clock()
    made.end()
    assert made.cores_used == pytest.approx(cores, rel=0.15)


def test_kernels_are_made_once() -> None:
    """Whatever is made of a graph shares them, until it is given up."""
    made: list[str] = []

    def make(node: Node) -> BoundKernel:
        made.append(node.name)
        return KernelBinder(CPU).bind(node)

    graph = sketch("x = _Arg() T=float32 index=0\na = Neg(x)\nr = _Retval(a) index=0")
    compiler, x = Compiler(device=CPU, make_kernel=make), np.ones(2, np.float32)
    results = [compiler.probing(graph, Profile()).run(Bare(), x) for _ in range(2)]
    np.testing.assert_array_equal(*results)
    assert sorted(made) == ["a", "r", "x"]
    compiler.give_up()
    compiler.bind(graph)
    assert len(made) == 6
