"""A slow request is run differently after some steps, and nobody sees it but by its speed.

Nothing is timed: a step counts as slow however long it takes, and in a probed step each
statement takes a second of a clock of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.config import GraphOptions
from penstock.core.values import Array
from penstock.graph.graph import Graph
from penstock.runtime import tune
from penstock.runtime.compiler import blocks, cut, profile
from penstock.runtime.compiler.compile_regions import Compiled, Compiler
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region
from penstock.runtime.tune import Tuner
from support.custom import custom_kernels
from support.loops import counting_loop
from support.sketch import sketch

#: Steps after which a slow request is as it stays: three are watched, and one is probed.
STEPS = 4
V = np.array([0.5, -1.0, 2.0, 3.0], np.float32)

# -- the tuner by itself -------------------------------------------------------------------------


class Stages:
    """A tuner of regions that are only names."""

    def __init__(self, better: str | None = "better") -> None:
        self.better = better
        #: What the tuner asked for.
        self.asked: list[str] = []
        self.profiles: list[Profile] = []
        self.tuner = Tuner(cast("Region", "plain"), self._probing, self._improve)

    def _probing(self, profile: Profile) -> Region:
        self.asked.append("probing")
        self.profiles.append(profile)
        return cast("Region", "probe")

    def _improve(self, profile: Profile) -> Region | None:
        self.asked.append("improve")
        self.profiles.append(profile)
        return cast("Region | None", self.better)

    def step(self, seconds: float = 1.0) -> str:
        """Run one step; returns with what."""
        region = self.tuner.take()
        self.tuner.note(region, seconds)
        return cast("str", region)


def test_the_stages_of_a_slow_request() -> None:
    """Some steps are watched, one is probed, and from then on the better region is taken."""
    stages = Stages()
    assert [stages.step() for _ in range(6)] == [*["plain"] * 3, "probe", "better", "better"]
    assert stages.asked == ["probing", "improve"]
    first, second = stages.profiles
    assert first is second
    assert cast("str", stages.tuner.region) == "better"


def test_nothing_better_means_as_before() -> None:
    """If a profile shows no way, the region stays."""
    stages = Stages(better=None)
    assert [stages.step() for _ in range(6)] == [*["plain"] * 3, "probe", "plain", "plain"]
    assert stages.asked == ["probing", "improve"]


@pytest.mark.parametrize("times", [(1.0, 0.0), (0.0, 0.0), (1.0, 1.0, 0.0)])
def test_fast_steps_settle(times: tuple[float, ...]) -> None:
    """One fast step after the first is enough to leave a request alone for good."""
    stages = Stages()
    for seconds in (*times, *[1.0] * 9):
        assert stages.step(seconds) == "plain"
    assert stages.asked == []


def test_the_first_step_says_nothing() -> None:
    """It may be slow for reasons of its own; nor does it matter that it is fast."""
    stages = Stages()
    stages.step(0.0)
    for _ in range(5):
        stages.step()
    assert stages.asked == ["probing", "improve"]


def test_one_step_is_probed_if_several_come_at_once() -> None:
    """Whoever comes while a step is being probed has the plain region."""
    stages = Stages()
    for _ in range(3):
        stages.step()
    taken = [cast("str", stages.tuner.take()) for _ in range(5)]
    assert taken == ["probe", *["plain"] * 4]
    for region in reversed(taken):
        assert stages.asked == ["probing"]
        stages.tuner.note(cast("Region", region), 1.0)
    assert stages.asked == ["probing", "improve"]
    stages.tuner.note(cast("Region", "plain"), 1.0)
    assert stages.step() == "better"


def test_a_probed_step_that_fails_changes_nothing() -> None:
    """It never reports; the steps after it have the plain region."""
    stages = Stages()
    for _ in range(3):
        stages.step()
    assert cast("str", stages.tuner.take()) == "probe"
    assert [stages.step() for _ in range(4)] == ["plain"] * 4
    assert stages.asked == ["probing"]


def test_eight_threads_probe_once() -> None:
    """However many threads take regions at once, one of them gets the probed one."""
    stages, gate = Stages(), threading.Barrier(8)

    def work(_number: int) -> list[str]:
        gate.wait(5.0)
        return [stages.step() for _ in range(50)]

    with ThreadPoolExecutor(8) as pool:
        taken = [region for regions in pool.map(work, range(8)) for region in regions]
    assert taken.count("probe") == 1
    assert stages.asked == ["probing", "improve"]
    assert stages.step() == "better"


def test_steps_wait_for_the_one_compilation() -> None:
    """A step that reports while another one's report compiles does not compile again."""
    started, go_on = threading.Event(), threading.Event()

    def improve(_profile: Profile) -> Region:
        started.set()
        assert go_on.wait(5.0)
        return cast("Region", "better")

    tuner = Tuner(cast("Region", "plain"), lambda _: cast("Region", "probe"), improve)
    for _ in range(3):
        tuner.note(tuner.take(), 1.0)
    before = tuner.region
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: tuner.note(tuner.take(), 1.0))
        assert started.wait(5.0)
        second = pool.submit(lambda: tuner.note(before, 1.0))
        assert not second.done()
        go_on.set()
        first.result(5.0)
        second.result(5.0)
    assert cast("str", tuner.take()) == "better"


# -- whole sessions ------------------------------------------------------------------------------


class Clock:
    """A clock that goes on by one second whenever it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def improved(monkeypatch: pytest.MonkeyPatch) -> list[Compiled | None]:
    """Tune every request; returns what has become of them.

    Every statement is worth a thread, and arrays of 64 elements are long.
    """
    monkeypatch.setattr(tune, "SLOW", 0.0)
    monkeypatch.setattr(cut, "HEAVY", 0.5)
    monkeypatch.setattr(cut, "_START", 0.0)
    monkeypatch.setattr(blocks, "PIECE", 16)
    monkeypatch.setattr(blocks, "LONG", 64)
    monkeypatch.setattr(profile, "perf_counter", Clock())
    made: list[Compiled | None] = []
    improve = Compiler.improve

    def noted(self: Compiler, graph: Graph, profile: Profile, threads: int) -> Compiled | None:
        made.append(improve(self, graph, profile, threads))
        return made[-1]

    monkeypatch.setattr(Compiler, "improve", noted)
    return made


Improved = list[Compiled | None]


def parts_of(improved: Improved) -> list[set[str]]:
    """The nodes with a line of their own in each region, of the one request that was cut."""
    [compiled] = improved
    assert compiled is not None
    assert compiled.whole is None
    return [
        {line.node.name for line in region.source.lines if line.node is not None}
        for region in compiled.regions.values()
    ]


def config(threads: int = 2, **options: Any) -> ps.Config:
    """Two threads, no optimiser, and every part that may leave its thread does."""
    return ps.Config(
        graph_options=GraphOptions.nothing(),
        inter_op_parallelism_threads=threads,
        offload_seconds=0.0,
        **options,
    )


def arm(name: str, source: str, ops: Sequence[str] = ("Tanh", "Exp", "Sin", "Cos")) -> str:
    """A chain of nodes; ``name`` is the last."""
    rows, before = [], source
    for index, op in enumerate(ops):
        now = name if index == len(ops) - 1 else f"{name}{index}"
        rows.append(f"{now} = {op}({before})")
        before = now
    return "\n".join(rows) + "\n"


def arm_of(x: Array) -> Array:
    """What an arm computes."""
    made: Array = np.cos(np.sin(np.exp(np.tanh(x))))
    return made


ARMS = "x = Placeholder()\ny = Placeholder()\n" + arm("a", "x") + arm("b", "y")
END = "end = Sub(a, b)\n"


def test_two_parts_are_cut(improved: Improved) -> None:
    """After some steps each arm is a region of its own, and the answers are the same."""
    with ps.Session(sketch(ARMS + END), config=config()) as session:
        for step in range(STEPS + 4):
            got = session.run(["end:0", "a:0"], {"x": V, "y": V + step})
            np.testing.assert_array_equal(got[0], arm_of(V) - arm_of(V + np.float32(step)))
            np.testing.assert_array_equal(got[1], arm_of(V))
            assert len(improved) == (step + 1 >= STEPS)
    sides = [part & {"a", "b"} for part in parts_of(improved)]
    assert sorted(side for side in map(tuple, sides) if side) == [("a",), ("b",)]


@pytest.mark.parametrize("threads", [-1, 1])
def test_one_thread_is_not_cut(improved: Improved, threads: int) -> None:
    """Without a second thread the request stays one function."""
    with ps.Session(sketch(ARMS + END), config=config(threads)) as session:
        for _ in range(STEPS + 1):
            session.run("end:0", {"x": V, "y": V})
    assert improved == [None]


def test_fast_requests_are_left_alone(improved: Improved, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose steps take less than SLOW is never probed."""
    monkeypatch.setattr(tune, "SLOW", 1e9)
    with ps.Session(sketch(ARMS + END), config=config()) as session:
        for _ in range(STEPS + 1):
            session.run("end:0", {"x": V, "y": V})
    assert improved == []


def test_a_callable_is_tuned(improved: Improved) -> None:
    """The short way of callables changes over as well, also after it was made."""
    with ps.Session(sketch(ARMS + END), config=config()) as session:
        call = session.make_callable("end:0", ["x", "y"])
        for _ in range(STEPS + 3):
            np.testing.assert_array_equal(call(V, -V), arm_of(V) - arm_of(-V))
    assert len(parts_of(improved)) >= 2


ONE = "ExOne(x: float32) -> (y: float32)"
OWN = """
    x = Placeholder()
    a0 = ExOne(x)
    a1 = Neg(a0)
    a = Neg(a1)
    b0 = ExOne(x)
    b1 = Neg(b0)
    b = Neg(b1)
    end = Add(a, b)
"""


def test_parts_run_on_two_threads(improved: Improved) -> None:
    """Kernels in the two parts can wait for each other: both are run at the same time."""
    meet = threading.Barrier(2)
    threads: set[int] = set()

    def compute(x: Any) -> Any:
        if improved:
            meet.wait(5.0)
            threads.add(threading.get_ident())
        return x

    with custom_kernels(ONE) as register:
        register("ExOne", compute)
        with ps.Session(sketch(OWN), config=config()) as session:
            for _ in range(STEPS + 3):
                np.testing.assert_array_equal(session.run("end:0", {"x": V}), V + V)
    assert len(parts_of(improved)) >= 2
    assert len(threads) >= 2


def test_errors_in_parts_name_their_node(improved: Improved) -> None:
    """The node that failed is named, and not the region; the next step is fine again."""
    fails = threading.Event()

    def compute(x: Any) -> Any:
        if fails.is_set():
            raise ValueError("no good")
        return x

    text = OWN.replace("b0 = ExOne", "b0 = Neg").replace("b1 = Neg(b0)", "b1 = Neg(b0)")
    with custom_kernels(ONE) as register:
        register("ExOne", compute)
        with ps.Session(sketch(text), config=config()) as session:
            want = session.run("end:0", {"x": V})
            for _ in range(STEPS + 2):
                fails.set()
                with pytest.raises(errors.OpError, match="no good") as caught:
                    session.run("end:0", {"x": V})
                assert caught.value.where is not None
                assert (caught.value.where.node, caught.value.where.op) == ("a0", "ExOne")
                fails.clear()
                np.testing.assert_array_equal(session.run("end:0", {"x": V}), want)
    assert len(improved) <= 1


def test_errors_after_a_cut(improved: Improved) -> None:
    """An error of a kernel of Penstock's own is located in a part as it is in the whole."""
    text = ARMS + "z = Add(a, b)\n"
    text += arm("c", "z") + arm("d", "x")
    text += "end = Sub(c, d)\n"
    with ps.Session(sketch(text), config=config()) as session:
        for _ in range(STEPS + 1):
            session.run("end:0", {"x": V, "y": V})
        assert len(parts_of(improved)) >= 2
        with pytest.raises(errors.InvalidArgumentError) as caught:
            session.run("end:0", {"x": V, "y": V[:3]})
        assert caught.value.where is not None
        assert caught.value.where.node == "z"
        np.testing.assert_array_equal(
            session.run("end:0", {"x": V, "y": V}), arm_of(arm_of(V) + arm_of(V)) - arm_of(V)
        )


# -- the probed step -----------------------------------------------------------------------------


def test_a_probed_step_that_fails_leaves_the_session_usable(improved: Improved) -> None:
    """The error comes out, with its node, and the request goes on as it was."""
    with ps.Session(sketch(ARMS + END), config=config()) as session:
        for _ in range(STEPS - 1):
            session.run("end:0", {"x": V, "y": V})
        with pytest.raises(errors.InvalidArgumentError) as caught:
            session.run("end:0", {"x": V, "y": V[:3]})
        assert caught.value.where is not None
        assert caught.value.where.node == "end"
        for _ in range(3):
            got = session.run("end:0", {"x": V, "y": -V})
            np.testing.assert_array_equal(got, arm_of(V) - arm_of(-V))
    assert improved == []


def test_eight_threads_at_once(improved: Improved) -> None:
    """Steps on many threads are right before, during and after the change; it comes once."""
    gate = threading.Barrier(8)
    with ps.Session(sketch(ARMS + END), config=config(4)) as session:
        call = session.make_callable("end:0", ["x", "y"])

        def work(number: int) -> None:
            gate.wait(5.0)
            y = V * np.float32(number)
            want = arm_of(V) - arm_of(y)
            for turn in range(12):
                got = call(V, y) if turn % 2 else session.run("end:0", {"x": V, "y": y})
                np.testing.assert_array_equal(got, want)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    assert len(parts_of(improved)) >= 2


# -- control flow across parts -------------------------------------------------------------------

BRANCHES = (
    "x = Placeholder()\ny = Placeholder()\np = Placeholder() dtype=bool\n"
    "s = Switch(x, p)\nt = Switch(y, p)\n"
    + arm("a", "s:1")
    + arm("b", "t:1")
    + "both = Sub(a, b)\n"
    + "n = Neg(s)\nm = Merge(n, both)\n"
    + "g = NoOp(^a)\nc = Const(^g, ^b) value=7.0\nd = Switch(c, p)\nk = Merge(t, d:1)\n"
)


def test_dead_values_across_parts(improved: Improved) -> None:
    """What is not chosen is dead in every part, and fetching it is an error as before."""
    fetches = ["m:0", "m:1", "k:0"]
    with ps.Session(sketch(BRANCHES), config=config()) as session:
        call = session.make_callable([*fetches, "both:0", "a:0"], ["x", "y", "p"])
        for step in range(STEPS + 6):
            is_taken = step < STEPS or step % 2 == 0
            m, index, k, both, a = call(V, -V, is_taken)
            if is_taken:
                np.testing.assert_array_equal(m, arm_of(V) - arm_of(-V))
                np.testing.assert_array_equal(both, m)
                np.testing.assert_array_equal(a, arm_of(V))
                assert (index, k) == (1, 7.0)
            else:
                np.testing.assert_array_equal(m, -V)
                np.testing.assert_array_equal(k, -V)
                assert index == 0
                assert both.size == a.size == 0
        assert len(parts_of(improved)) >= 2
        feeds = {"x": V, "y": V, "p": False}
        for _ in range(STEPS + 2):
            with pytest.raises(errors.InvalidArgumentError, match="dead"):
                session.run("both:0", feeds)
        for _ in range(STEPS + 2):
            session.run("both:0", feeds | {"p": True})
        with pytest.raises(errors.InvalidArgumentError, match="dead"):
            session.run("both:0", feeds)


@pytest.mark.parametrize("fetch", ["exit", "total"])
def test_loops_are_parts(improved: Improved, fetch: str) -> None:
    """A loop is never cut, and goes on by itself beside other parts."""
    text = counting_loop() + arm("a", "x") + "n = Neg(exit)\ntotal = Mul(n, exit)\n"
    text = "x = Placeholder()\n" + text
    with ps.Session(sketch(text), config=config()) as session:
        for limit in (2, 2, 2, 2, 0, 1, 5):
            got = session.run([f"{fetch}:0", "a:0"], {"x": V, "limit": limit})
            assert got[0] == (limit if fetch == "exit" else -limit * limit)
            np.testing.assert_array_equal(got[1], arm_of(V))
    loops = {"less", "sum"}
    assert {frozenset(part & loops) for part in parts_of(improved)} == {
        frozenset(),
        frozenset(loops),
    }


#: A loop whose variables are the outputs ``{v}`` and ``{w}``, and run once if ``p`` is true.
TURN = """
    x = Placeholder()
    y = Placeholder()
    p = Placeholder() dtype=bool
    limit = Const() value=1
    u = Switch(limit, p)
    once = Identity(u:1)
    null = Const(^once) value=0
    i_enter = Enter(null) frame_name="loop"
    v_enter = Enter({v}) frame_name="loop"
    w_enter = Enter({w}) frame_name="loop"
    bound = Enter(once) frame_name="loop" is_constant=True
    i = Merge(i_enter, i_next)
    v = Merge(v_enter, v_next)
    w = Merge(w_enter, w_next)
    less = Less(i, bound)
    go = LoopCond(less)
    i_switch = Switch(i, go)
    v_switch = Switch(v, go)
    w_switch = Switch(w, go)
    i_body = Identity(i_switch:1)
    one = Const(^i_body) value=1
    i_sum = Add(i_body, one)
    i_next = NextIteration(i_sum)
    v_sum = Add(v_switch:1, w_switch:1)
    v_next = NextIteration(v_sum)
    w_sum = Cos(w_switch:1)
    w_next = NextIteration(w_sum)
    v_exit = Exit(v_switch)
    w_exit = Exit(w_switch)
    end = Sub(v_exit, w_exit)
"""
#: Where ``p`` is asked: for what the arms have made, or for what they are given.
TURNS = {
    "after": TURN.format(v="s:1", w="t:1")
    + arm("a", "x")
    + arm("b", "y")
    + "s = Switch(a, p)\nt = Switch(b, p)\n",
    "before": TURN.format(v="a", w="b")
    + "s = Switch(x, p)\nt = Switch(y, p)\n"
    + arm("a", "s:1")
    + arm("b", "t:1"),
}


@pytest.mark.parametrize("where", TURNS)
def test_a_loop_whose_variables_come_from_two_parts(improved: Improved, where: str) -> None:
    """In a part nobody knows any more that they are live together; answers are the same."""
    v, w = arm_of(V) + arm_of(-V), np.cos(arm_of(-V))
    with ps.Session(sketch(TURNS[where]), config=config()) as session:
        call = session.make_callable("end:0", ["x", "y", "p"])
        for step in range(STEPS + 6):
            is_taken = step < STEPS or step % 2 == 0
            got = call(V, -V, is_taken)
            if is_taken:
                np.testing.assert_array_equal(got, v - w)
            else:
                assert got.size == 0
    assert len(improved) == 1
