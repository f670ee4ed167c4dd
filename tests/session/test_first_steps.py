"""A request that is run for the first time is run node by node; it is compiled for the second."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.limits import Limits
from penstock.runtime.executor.graph_view import NodeItem
from penstock.runtime.runnable import Runnable
from penstock.runtime.walk import Path
from penstock.session.compiled_callable import CompiledCallable
from penstock.state.checkpoints import checkpoint
from support.sketch import sketch

GRAPH = """
    x = Placeholder() dtype=float32
    y = Exp(x)
    z = Mul(y, x)
    shape = Const() value=[4] dtype=int32
    random = RandomUniform(shape) seed=3 seed2=5 dtype=float32
    variable = VarHandleOp() dtype=float32 shape=[] shared_name="v"
    zero = Const() value=0.0
    one = Const() value=1.0
    init = AssignVariableOp(variable, zero)
    more = AssignAddVariableOp(variable, one)
    value = ReadVariableOp(variable, ^more) dtype=float32
    bad = Const() value=[1.0, 2.0, 3.0]
    sum = Add(x, bad)
    true = IsFinite(five)
    five = Const() value=5.0
    way = Switch(x, true)
    chosen = Merge(way:0, way:1)
"""
LOOP = """
    n = Placeholder() dtype=int32
    n_in = Enter(n) frame_name="f"
    i = Merge(n_in, next)
    zero = Const() value=0
    limit = Enter(zero) frame_name="f" is_constant=True
    more = Greater(i, limit)
    go_on = LoopCond(more)
    way = Switch(i, go_on)
    turn = Identity(way:1)
    one = Const(^turn) value=1
    less = Sub(turn, one)
    next = NextIteration(less)
    end = Exit(way:0)
"""
X = np.float32([0.5, -1.0, 2.0])


def opened(text: str = GRAPH, steps: int = 1, **options: Any) -> ps.Session:
    """A session whose requests make so many steps before they are compiled."""
    limits = Limits(uncompiled_steps=steps)
    return ps.Session(sketch(text), config=ps.Config(limits=limits, **options))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Runnable]:
    """What was compiled so far; each once."""
    done: list[Runnable] = []
    compile_ = Runnable.compile

    def noting(runnable: Runnable) -> None:
        if not runnable.is_compiled:
            done.append(runnable)
        compile_(runnable)

    monkeypatch.setattr(Runnable, "compile", noting)
    return done


def is_short(call: Callable[..., Any]) -> bool:
    """Whether a callable goes the short way of compiled functions."""
    cells = call.__closure__ or ()
    return any(isinstance(cell.cell_contents, CompiledCallable) for cell in cells)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_so_many_steps_come_before_it_is_compiled(steps: int, compiled: list[Runnable]) -> None:
    """And all of them give the same, to the last bit."""
    with opened(steps=steps) as session:
        found = []
        for step in range(5):
            found.append(session.run("z:0", {"x": X}))
            assert len(compiled) == (step >= steps)
    np.testing.assert_allclose(found[0], np.exp(X) * X, rtol=1e-6)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_what_is_run_once_is_never_compiled(compiled: list[Runnable]) -> None:
    """Such as what initialises variables; each request counts for itself."""
    with opened() as session:
        session.run("init")
        assert [session.run(name) for name in ("value:0", "more")] == [1.0, None]
        assert not compiled
        assert session.run("value:0") == 3.0
    assert len(compiled) == 1


def test_loops_are_compiled_at_once(compiled: list[Runnable]) -> None:
    """Their nodes run many times in one step."""
    with opened(LOOP) as session:
        assert session.run("end:0", {"n": np.int32(5)}) == 0
        assert len(compiled) == 1


def test_long_arrays_have_it_compiled_at_once(compiled: list[Runnable]) -> None:
    """In the first step that is fed with one."""
    with opened(steps=3) as session:
        session.run("z:0", {"x": X})
        assert not compiled
        long = np.linspace(-1, 1, Limits().long_array, dtype=np.float32)
        np.testing.assert_allclose(session.run("z:0", {"x": long}), np.exp(long) * long, 1e-6)
        assert len(compiled) == 1


@pytest.mark.parametrize("options", [{"adaptive": False}, {"tier": ps.Tier.DATAFLOW}])
def test_a_session_that_learns_nothing_does_not_wait(
    options: dict[str, Any], compiled: list[Runnable]
) -> None:
    """Its first step is run like all others."""
    with opened(**options) as session:
        session.run("z:0", {"x": X})
    assert len(compiled) == 1


def test_a_callable_goes_the_short_way_when_it_is_compiled() -> None:
    """From the third step on, as the second one compiles."""
    with opened() as session:
        call = session.make_callable("z:0", ["x"])
        ways = []
        for _ in range(4):
            ways.append(is_short(call))
            np.testing.assert_allclose(call(X), np.exp(X) * X, rtol=1e-6)
    assert ways == [False, False, True, True]


def test_callables_and_runs_count_together(compiled: list[Runnable]) -> None:
    """They are the same request."""
    with opened() as session:
        session.run("z:0", {"x": X})
        call = session.make_callable("z:0", ["x"])
        assert not compiled
        call(X)
        assert len(compiled) == 1


def test_random_numbers_go_on() -> None:
    """What the first step draws is what a compiled one would have drawn."""
    with opened() as session, opened(steps=0) as other:
        for _ in range(4):
            np.testing.assert_array_equal(session.run("random:0"), other.run("random:0"))


def test_errors_are_the_same() -> None:
    """Whether a step is the first, the second or a later one."""
    with opened() as session:
        said = set()
        for _ in range(3):
            with pytest.raises(errors.InvalidArgumentError) as caught:
                session.run("sum:0", {"x": np.zeros(2, np.float32)})
            said.add((str(caught.value), caught.value.where))
    assert len(said) == 1


def test_a_kernel_that_cannot_be_made_is_told_of_at_once() -> None:
    """``make_callable`` says so, and not the first call."""
    text = "x = Placeholder() dtype=string\ny = FixedLengthRecordReaderV2() record_bytes=-3"
    with opened(text) as session, pytest.raises(errors.OpError, match="record_bytes"):
        session.make_callable("y:0")


def test_many_threads_begin_at_once(compiled: list[Runnable]) -> None:
    """Some of them run nodes while another one compiles."""
    for _ in range(10):
        compiled.clear()
        with opened() as session, ThreadPoolExecutor(8) as pool:
            barrier = threading.Barrier(8)

            def work(
                place: int, session: ps.Session = session, barrier: threading.Barrier = barrier
            ) -> Any:
                barrier.wait()
                return [session.run("z:0", {"x": X + place}) for _ in range(3)]

            for place, found in enumerate(pool.map(work, range(8))):
                for result in found:
                    np.testing.assert_allclose(result, np.exp(X + place) * (X + place), 1e-6)
        assert {id(one) for one in compiled} == {id(compiled[0])}


def test_whoever_looks_sees_it_compiled() -> None:
    """What was prepared is shown as it will be."""
    with opened() as session:
        assert session.prepared("z:0", {"x": X}).runnable.whole is not None
        np.testing.assert_allclose(session.run("z:0", {"x": X}), np.exp(X) * X, rtol=1e-6)


@pytest.mark.parametrize(
    ("fetch", "kind", "count"),
    [
        ("z:0", Path, 1),
        ("chosen:0", NodeItem, 5),  # x, the condition, Switch, Merge and what is fetched
    ],
)
def test_what_ran_the_first_step_goes_when_it_is_compiled(
    fetch: str, kind: type, count: int
) -> None:
    """It takes memory: about as much as what comes then; and no garbage collector is needed."""
    before = {id(item) for item in gc.get_objects() if isinstance(item, kind)}

    def made() -> int:
        return sum(isinstance(o, kind) and id(o) not in before for o in gc.get_objects())

    with opened() as session:
        gc.disable()
        try:
            session.run(fetch, {"x": X})
            assert made() == count
            session.run(fetch, {"x": X})
            assert made() == 0
        finally:
            gc.enable()


def test_a_partial_run_is_not_compiled(compiled: list[Runnable]) -> None:
    """It is made once, by executors."""
    with opened() as session:
        handle = session.partial_run_setup(["z:0"], ["x"])
        np.testing.assert_allclose(
            session.partial_run(handle, "z:0", {"x": X}), np.exp(X) * X, 1e-6
        )
    assert not compiled


@pytest.mark.parametrize("how", ["cancel", "close", "deadline"])
def test_compiling_for_a_later_step_can_be_ended(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like any preparation; the next step, if there is one, begins with it anew."""
    has_begun, is_blocked = threading.Event(), [True]
    compile_ = Runnable.compile

    def waiting(runnable: Runnable) -> None:
        has_begun.set()
        while is_blocked[0]:
            checkpoint()
            threading.Event().wait(0.005)
        compile_(runnable)

    with opened() as session:
        first = session.run("z:0", {"x": X})
        monkeypatch.setattr(Runnable, "compile", waiting)
        options = ps.RunOptions(timeout_in_ms=100 if how == "deadline" else 0)
        run = session.run_async("z:0", {"x": X}, options=options)
        assert has_begun.wait(20)
        if how == "cancel":
            run.cancel()
        elif how == "close":
            session.close()
        with pytest.raises((errors.CancelledError, errors.DeadlineExceededError)):
            run.result(20)
        if how != "close":
            is_blocked[0] = False
            np.testing.assert_array_equal(session.run("z:0", {"x": X}), first)
