"""A straight graph is walked node after node, as long as it is not compiled."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.limits import Limits
from penstock.graph.order import are_in_order
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.registry import Calling, Cost
from penstock.runtime import KernelBinder
from penstock.runtime.executor.executor import Executor
from penstock.runtime.walk import Path, Walk, path_through
from penstock.state.step_state import StepState
from support.custom import custom_kernels
from support.side_by_side import side_by_side
from support.sketch import CPU, sketch

#: What ends here stands above what it is made of.
BACKWARDS = """
    result = _Retval(sum) index=0
    sum = Add(twice, y)
    twice = Mul(x, x)
    y = _Arg() index=1 T=float32
    x = _Arg() index=0 T=float32
"""
ONE = "x = Placeholder() dtype=float32\ny = {}(x)\nz = Neg(y)"


def path_of(text: str, results: int = 1) -> Path | None:
    """The path through a graph."""
    graph, binder = sketch(text), KernelBinder(CPU)
    return path_through(graph, {node: binder.bind(node) for node in graph}, CPU, results)


def opened(text: str, **options: Any) -> ps.Session:
    """A session that compiles nothing."""
    return ps.Session(sketch(text), config=ps.Config(limits=Limits(uncompiled_steps=99), **options))


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What steps were made by, each time."""
    done: list[str] = []
    walk, run_async = Walk.run, Executor.run_async

    def walking(self: Walk, *args: Any) -> Any:
        done.append("walk")
        return walk(self, *args)

    def running(self: Executor, *args: Any) -> Any:
        done.append("executor")
        return run_async(self, *args)

    monkeypatch.setattr(Walk, "run", walking)
    monkeypatch.setattr(Executor, "run_async", running)
    return done


# -- which graphs ----------------------------------------------------------------------------------


def test_nodes_come_after_those_that_they_need() -> None:
    """In whatever order the graph has them; control edges count."""
    path = path_of(BACKWARDS)
    assert path is not None
    numbers = {node.name: place for place, node in enumerate(path.nodes)}
    assert numbers["x"] < numbers["twice"] < numbers["sum"] < numbers["result"]
    assert numbers["y"] < numbers["sum"]
    assert not are_in_order(sketch(BACKWARDS))
    path = path_of("late = NoOp(^early)\nearly = NoOp()", results=0)
    assert path is not None
    assert [node.name for node in path.nodes] == ["early", "late"]


@pytest.mark.parametrize(
    "text",
    [
        "a = Const() value=1\np = Const() value=True\ns = Switch(a, p)\nm = Merge(s:0, s:1)",
        'a = Const() value=1\ne = Enter(a) frame_name="f"',
        "t = ControlTrigger()",
        "v = VariableV2() dtype=float32 shape=[]\nread = Identity(v)",
        'q = FIFOQueueV2() component_types=["float32"]\n'
        'get = QueueDequeueV2(q) component_types=["float32"]',
        "t = TemporaryVariable() dtype=float32 shape=[]",
        "n = Neg() T=float32",
        "x = Placeholder() dtype=float32",
        f'r = _Recv() tensor_type=float32 tensor_name="r" send_device="{CPU}" '
        f'send_device_incarnation=1 recv_device="{CPU}"',
    ],
)
def test_others_have_no_path(text: str) -> None:
    """Where something is chosen, repeated, referred to, or has to be waited for."""
    assert path_of(text, results=0) is None


def test_a_node_that_can_never_run_has_no_kernel() -> None:
    """The executor leaves it out, as TensorFlow does."""
    graph, binder = sketch(BACKWARDS), KernelBinder(CPU)
    kernels = {node: binder.bind(node) for node in graph if node.name != "y"}
    assert path_through(graph, kernels, CPU, 1) is None


def test_a_graph_with_other_ends_is_for_the_executor(walked: list[str]) -> None:
    """Somebody wrote a node for a result that nobody asked for: it says what is wrong with it."""
    text = "x = Const() value=1.0\nr = _Retval(x) index=1"
    with opened(text) as session, pytest.raises(errors.OpError, match="SetRetval 1"):
        session.run(["x:0", "r"])
    assert walked == ["executor"]


# -- what it does ----------------------------------------------------------------------------------


def test_it_gives_what_an_executor_gives(walked: list[str]) -> None:
    """For runs, callables, targets, and what is fetched twice or fed as well."""
    text = """
        x = Placeholder() dtype=float32
        v = VarHandleOp() dtype=float32 shape=[] shared_name="v"
        one = Const() value=1.0
        init = AssignVariableOp(v, one)
        more = AssignAddVariableOp(v, x, ^init)
        now = ReadVariableOp(v, ^more) dtype=float32
    """
    with opened(text) as session:
        assert session.run(["now:0", "x:0", "now:0"], {"x": np.float32(4)}) == [5.0, 4.0, 5.0]
        assert session.run("more", {"x": np.float32(4)}) is None
        call = session.make_callable(["x:0", "now:0"], ["x"])
        assert call(np.float32(2)) == [2.0, 3.0]
    assert walked == ["walk"] * 3


def test_what_nobody_will_read_is_let_go() -> None:
    """As soon as its last reader is done, so that a step takes no more memory than it must."""
    alive: list[weakref.ref[Any]] = []
    counts: list[int] = []

    def large(x: Any) -> Any:
        counts.append(sum(one() is not None for one in alive))
        made = np.full(1000, x.flat[0] + 1)
        alive.append(weakref.ref(made))
        return made

    with custom_kernels("WkLarge(x: float32) -> (y: float32)") as register:
        register("WkLarge", lambda x: large(x).astype(np.float32, copy=False))
        rows = ["x = Placeholder() dtype=float32", "n0 = WkLarge(x)"]
        rows += [f"n{place} = WkLarge(n{place - 1})" for place in range(1, 6)]
        with opened("\n".join(rows)) as session:
            session.run("n5:0", {"x": np.zeros(1, np.float32)})
    assert counts == [0, 1, 1, 1, 1, 1]


def test_kernels_are_told_that_they_are_at_the_root() -> None:
    """What asks for its context gets one."""
    seen: list[Any] = []

    def look(context: Any, x: Any) -> Any:
        seen.append((context.node_name, context.op, context.frame.name, context.iteration))
        assert context.step_container is context.step.state.container
        return x

    with custom_kernels("WkLook(x: float32) -> (y: float32)") as register:
        register("WkLook", look, "context")
        with opened(ONE.format("WkLook")) as session:
            assert session.run("z:0", {"x": np.float32(1)}) == -1.0
    assert seen == [("y", "WkLook", "", 0)]


def test_what_kernels_of_others_give_is_checked(walked: list[str]) -> None:
    """As on the executor, with the same words."""
    said = set()
    with custom_kernels("WkWrong(x: float32) -> (y: float32)") as register:
        register("WkWrong", lambda _x: np.int32(1))
        for config in ({}, {"tier": ps.Tier.DATAFLOW}):
            with (
                opened(ONE.format("WkWrong"), **config) as session,
                pytest.raises(errors.InternalError) as caught,
            ):
                session.run("z:0", {"x": np.float32(1)})
            said.add((str(caught.value), caught.value.where))
    assert len(said) == 1
    assert walked == ["walk", "executor"]


def test_those_of_our_own_are_checked_if_somebody_asks() -> None:
    """They are trusted otherwise."""
    graph = sketch("n = Const() value=1.0")
    [node] = graph
    kernels = {node: BoundKernel(lambda: np.int32(1), Calling.PLAIN, Cost.CHEAP)}
    for checks_outputs in (False, True):
        path = path_through(graph, kernels, CPU, 0, checks_outputs=checks_outputs)
        assert path is not None
        with pytest.raises(errors.InternalError) if checks_outputs else nullcontext():
            assert Walk(path).run(StepState()) == ()


def test_many_steps_at_once(walked: list[str]) -> None:
    """Each walk is one step's own."""
    with opened(ONE.format("Square")) as session:
        wrong: list[int] = []

        def work(number: int) -> None:
            x = np.float32([number])
            found = [session.run("z:0", {"x": x}) for _ in range(12)]
            wrong.extend(number for y in found if y != -x * x)

        side_by_side(work, 6)
    assert not wrong
    assert walked == ["walk"] * 72


# -- steps that end early --------------------------------------------------------------------------


class Stopping(NamedTuple):
    """A session whose second node waits in the middle of a step."""

    session: ps.Session
    #: Set by that node, by the test to let it go, and by the third one.
    has_begun: threading.Event
    may_end: threading.Event
    went_on: threading.Event

    def run(self) -> Any:
        return self.session.run("z:0", {"x": np.float32(1)})


@pytest.fixture
def stopping(request: pytest.FixtureRequest) -> Iterator[Stopping]:
    """Yield that; the parameter says how the kernel is called, and how long steps may take."""
    calling, timeout = getattr(request, "param", ("plain", 0))
    has_begun, may_end, went_on = threading.Event(), threading.Event(), threading.Event()

    def wait(*args: Any) -> Any:
        has_begun.set()
        assert may_end.wait(20)
        return args[-1]

    def go_on(y: Any) -> Any:
        went_on.set()
        return y

    with custom_kernels(
        "WkWait(x: float32) -> (y: float32)", "WkThen(x: float32) -> (y: float32)"
    ) as register:
        register("WkWait", wait, calling)
        register("WkThen", go_on)
        text = "x = Placeholder() dtype=float32\ny = WkWait(x)\nz = WkThen(y)"
        with opened(text, operation_timeout_in_ms=timeout) as session:
            yield Stopping(session, has_begun, may_end, went_on)


def test_a_step_that_is_ended_runs_no_further_node(stopping: Stopping, walked: list[str]) -> None:
    """It says where it was; the reason is what is raised."""
    run = stopping.session.run_async("z:0", {"x": np.float32(1)})
    assert stopping.has_begun.wait(20)
    run.cancel()
    stopping.may_end.set()
    with pytest.raises(errors.CancelledError, match="Run call was cancelled") as caught:
        run.result(20)
    assert "node after node, is at" in str(caught.value)
    assert "{{node y}}" in str(caught.value)
    assert not stopping.went_on.is_set()
    assert walked == ["walk"]


@pytest.mark.parametrize("stopping", [("plain", 50)], indirect=True)
def test_a_deadline_is_kept(stopping: Stopping, walked: list[str]) -> None:
    """By whoever waits for a kernel that only computes, on another thread."""
    with pytest.raises(errors.DeadlineExceededError, match="is at") as caught:
        stopping.run()
    stopping.may_end.set()
    assert "left" in str(caught.value)
    assert walked == ["walk"]


@pytest.mark.parametrize("stopping", [("context", 50)], indirect=True)
def test_what_may_have_effects_is_waited_for(stopping: Stopping, walked: list[str]) -> None:
    """Nobody knows what would be left half done."""
    timer = threading.Timer(0.3, stopping.may_end.set)
    timer.start()
    with pytest.raises(errors.DeadlineExceededError):
        stopping.run()
    assert stopping.may_end.is_set()
    assert walked == ["walk"]
    timer.join()


@pytest.mark.parametrize("raised", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_errors_have_their_place(raised: BaseException, walked: list[str]) -> None:
    """What is no error at all comes out as it is."""

    def fail(_x: Any) -> Any:
        raise raised

    expected = errors.OpError if isinstance(raised, Exception) else type(raised)
    with custom_kernels("WkFail(x: float32) -> (y: float32)") as register:
        register("WkFail", fail)
        with opened(ONE.format("WkFail")) as session, pytest.raises(expected) as caught:
            session.run("z:0", {"x": np.float32(1)})
    if isinstance(caught.value, errors.OpError):
        where = caught.value.where
        assert where is not None
        assert (where.node, where.op, where.device) == ("y", "WkFail", CPU)
    assert walked == ["walk"]


def test_whoever_watches_sees_each_node(walked: list[str]) -> None:
    """A step that is traced or has hooks is the executor's."""
    seen: list[str] = []

    def note(name: str, *_: Any) -> None:
        seen.append(name)

    with opened(ONE.format("Exp")) as session:
        options: list[ps.RunOptions] = [
            ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE),
            ps.RunOptions(node_outputs=note),
        ]
        for each in options:
            session.run("z:0", {"x": np.float32(1)}, options=each)
    assert walked == ["executor"] * 2
    assert {"y", "z"} <= set(seen)
