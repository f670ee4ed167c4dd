"""A slow request is run differently after some steps, and nobody sees it but by its speed.

Nothing is timed: a step counts as slow however long it takes, and in a probed step each
statement takes a second of a clock of its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.config import GraphOptions
from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.core.values import Array
from penstock.graph.graph import Graph
from penstock.runtime.compiler import profile
from penstock.runtime.compiler.compile_regions import Compiled, Compiler
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region
from penstock.runtime.tune import _FIRST_PAUSE, _LONGEST_PAUSE, Better, Tuner, slow_step
from penstock.state.checkpoints import checkpoint
from penstock.state.interrupt import Interrupt
from support.custom import custom_kernels
from support.functions import graph_def_with
from support.loops import counting_loop
from support.sketch import sketch

#: Steps after which a slow request is as it stays: three are watched, and one is probed.
STEPS = 4
V = np.array([0.5, -1.0, 2.0, 3.0], np.float32)

# -- the tuner by itself -------------------------------------------------------------------------


class Stages:
    """A tuner of regions that are only names."""

    def __init__(
        self, better: str | None = "better", *, has_parts: bool = False, lines: int = 0
    ) -> None:
        self.better = Better(cast("Region | None", better), has_parts)
        #: What the tuner asked for.
        self.asked: list[str] = []
        self.profiles: list[Profile] = []
        plain = cast("Region", "plain")
        slow = slow_step(lines, DEFAULT_LIMITS)
        self.tuner = Tuner(plain, self._probing, self._improve, slow=slow)

    def _probing(self, profile: Profile) -> Region:
        self.asked.append("probing")
        self.profiles.append(profile)
        return cast("Region", "probe")

    def _improve(self, profile: Profile) -> Better:
        self.asked.append("improve")
        self.profiles.append(profile)
        return self.better

    def begin_with_probe(self) -> None:
        """Have the plain region be one with probes, without which ``made`` is."""
        self.profiles.append(Profile())
        self.tuner.begin_with_probe(self.profiles[0], self._make_plain)

    def _make_plain(self) -> Region:
        self.asked.append("plain")
        return cast("Region", "made")

    def step(self, seconds: float = 1.0, as_parts: float = 1.0) -> str:
        """Run one step, which as parts takes other times; returns with what."""
        region = self.tuner.take()
        self.tuner.note(region, as_parts if region is None else seconds)
        return cast("str", region or "parts")


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


def test_a_long_text_must_be_slow_line_by_line() -> None:
    """Compiling it again takes longer than its steps, unless they take long for their lines."""
    for seconds, is_tuned in ((0.009, False), (0.011, True)):
        stages = Stages(lines=10_000)
        for _ in range(5):
            stages.step(seconds)
        assert stages.asked == (["probing", "improve"] if is_tuned else [])


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


def until_compared(stages: Stages) -> None:
    """Make the steps before the first one in parts."""
    for _ in range(STEPS):
        stages.step()


#: Steps of each way if they are close to each other.
LONG = 4 * DEFAULT_LIMITS.compared_steps


def compare(
    stages: Stages, whole: Sequence[float], parts: Sequence[float], *, first: float = 9.0
) -> list[str]:
    """Make the steps of one comparison, ``first`` of each included; returns how they were run."""
    times = {"parts": [first, *parts], "better": [first, *whole]}
    taken = []
    for _ in range(len(times["parts"]) + len(times["better"])):
        way = cast("str", stages.tuner.take() or "parts")
        region = None if way == "parts" else cast("Region", way)
        stages.tuner.note(region, times[way].pop(0))
        taken.append(way)
    return taken


@pytest.mark.parametrize(
    ("whole", "parts", "cores", "best"),
    [
        ([1.0, 1.0, 1.0], [3.0, 0.8, 3.0], 1.0, "parts"),
        ([1.0] * LONG, [0.95] * LONG, 1.0, "better"),
        ([1.0] * LONG, [1.05] * 3 + [0.97] + [3.0] * (LONG - 4), 1.9, "parts"),
        ([1.0] * LONG, [1.05] * LONG, 1.9, "better"),
        ([5.0, 1.0, 5.0], [2.0] * 3, 1.0, "better"),
        ([5.0, 1.0, 5.0], [1.05] * 3 + [0.85], 1.9, "parts"),
    ],
)
def test_parts_must_be_faster(
    whole: list[float], parts: list[float], cores: float, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At their best they take less than one function at its best; much less if cores were idle.

    As long as the two are close to each other, there are more steps to compare.
    """
    monkeypatch.setattr(Profile, "end", lambda profile: setattr(profile, "cores_used", cores))
    stages = Stages(has_parts=True)
    until_compared(stages)
    taken = compare(stages, whole, parts)
    assert taken == [("parts", "better")[number % 2] for number in range(len(taken))]
    assert {stages.step() for _ in range(5)} == {best}
    assert cast("str", stages.tuner.region or "parts") == best


def test_the_first_step_of_either_way_says_nothing() -> None:
    """Whatever it took."""
    for first in (0.0, 9.0):
        for parts, best in ((0.8, "parts"), (1.2, "better")):
            stages = Stages(has_parts=True)
            until_compared(stages)
            compare(stages, [1.0] * 3, [parts] * 3, first=first)
            assert stages.step() == best


def test_parts_may_be_worse_than_what_there_was() -> None:
    """If only parts were found, they are compared with the plain region."""
    stages = Stages(better=None, has_parts=True)
    taken = [stages.step(1.0, 2.0) for _ in range(8 + 2 * DEFAULT_LIMITS.compared_steps)]
    assert taken[3:6] == ["probe", "parts", "plain"]
    assert taken[-2:] == ["plain", "plain"]


def test_steps_that_began_before_count_for_nothing() -> None:
    """A step with another region that ends during a comparison is none of either way."""
    stages = Stages(has_parts=True)
    until_compared(stages)
    for _ in range(2 * DEFAULT_LIMITS.compared_steps):
        stages.tuner.note(cast("Region", "plain"), 0.0)
    compare(stages, [1.0] * 3, [0.5] * 3)
    assert stages.step() == "parts"


def test_it_is_asked_again_which_way_is_faster() -> None:
    """Of what has been faster once, another machine, or another hour, may make the slower one."""
    stages = Stages(has_parts=True)
    until_compared(stages)
    compare(stages, [1.0] * 3, [0.5] * 3)
    for slower in ("parts", "better", "parts"):
        assert {stages.step() for _ in range(_FIRST_PAUSE)} == {slower}
        seconds = {"parts": [0.5] * 3, "better": [0.5] * 3, slower: [1.0] * 3}
        taken = compare(stages, seconds["better"], seconds["parts"])
        assert taken == ["parts", "better"] * (1 + DEFAULT_LIMITS.compared_steps)


def test_parts_that_run_need_not_be_much_faster() -> None:
    """Who changed ways for a tenth of the time would do so back and forth."""
    stages = Stages(has_parts=True)
    until_compared(stages)
    compare(stages, [1.0] * 3, [0.5] * 3)
    for _ in range(_FIRST_PAUSE):
        stages.step()
    compare(stages, [1.0] * LONG, [0.95] * LONG)
    assert stages.step() == "parts"


def test_it_is_asked_less_and_less_often() -> None:
    """As long as the answer is the same, so that a long run makes next to no step the slow way."""
    stages = Stages(has_parts=True)
    until_compared(stages)
    taken = [stages.step(1.0, 2.0) for _ in range(80_000)]
    runs = [(way, len(list(steps))) for way, steps in itertools.groupby(taken)]
    # The last step of a comparison is run in the same way.
    pauses = [length - 1 for way, length in runs if way == "better" and length > 1]
    doubled = [_FIRST_PAUSE << number for number in range(len(pauses))]
    assert pauses[:-1] == [min(pause, _LONGEST_PAUSE) for pause in doubled][:-1]
    assert len(pauses) > 9


def test_eight_threads_compare() -> None:
    """However many make steps at once, both ways are tried, and the faster one goes on."""
    stages, gate = Stages(has_parts=True), threading.Barrier(8)
    until_compared(stages)

    def work(_number: int) -> list[str]:
        gate.wait(5.0)
        return [stages.step(1.0, 0.5) for _ in range(50)]

    with ThreadPoolExecutor(8) as pool:
        taken = [way for ways in pool.map(work, range(8)) for way in ways]
    assert 1 + DEFAULT_LIMITS.compared_steps <= taken.count("better") <= 200
    assert stages.step(1.0, 0.5) == "parts"


def test_a_step_that_fails_is_of_neither_way() -> None:
    """It never reports; others take its turn."""
    stages = Stages(has_parts=True)
    until_compared(stages)
    for _ in range(5):
        stages.tuner.take()
    taken = [stages.step(1.0, 0.5) for _ in range(20)]
    assert taken.count("better") == 1 + DEFAULT_LIMITS.compared_steps
    assert stages.step() == "parts"


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


@pytest.mark.parametrize(("better", "asked"), [("better", []), (None, ["plain"])])
def test_what_begins_with_probes(better: str | None, asked: list[str]) -> None:
    """Its first step fills the profile, and nothing is compiled that is not needed."""
    stages = Stages(better)
    stages.begin_with_probe()
    assert cast("str", stages.tuner.region) == "plain"
    assert [stages.step() for _ in range(6)] == ["plain", *[better or "made"] * 5]
    assert stages.asked == ["improve", *asked]
    first, second = stages.profiles
    assert first is second


@pytest.mark.parametrize(("parts", "best"), [(0.8, "parts"), (1.2, "better")])
def test_what_began_with_probes_may_have_parts(parts: float, best: str) -> None:
    """The probed step is none that they are compared with."""
    stages = Stages(has_parts=True)
    stages.begin_with_probe()
    assert stages.step(0.0) == "plain"
    compare(stages, [1.0] * 3, [parts] * 3)
    assert {stages.step() for _ in range(5)} == {best}
    assert stages.asked == ["improve"]


@pytest.mark.parametrize("is_late", [True, False])
def test_probes_are_for_one_step_alone(is_late: bool) -> None:
    """Who comes while that is under way, or after it has failed, has a region without."""
    stages = Stages()
    stages.begin_with_probe()
    assert cast("str", stages.tuner.take()) == "plain"
    assert [stages.step() for _ in range(4)] == ["made"] * 4
    assert stages.asked == ["plain"]
    if is_late:
        stages.tuner.note(cast("Region", "plain"), 1.0)
        assert stages.step() == "better"


def test_a_step_with_probes_that_is_ended_while_it_reports() -> None:
    """The others do without probes, and nobody tries again."""
    interrupt = Interrupt()

    def late(_profile: Profile) -> Better:
        interrupt.end(errors.DeadlineExceededError("late"))
        checkpoint()
        raise AssertionError("it goes on")

    tuner = Tuner(cast("Region", "plain"), lambda _: cast("Region", "probe"), late)
    tuner.begin_with_probe(Profile(), lambda: cast("Region", "made"))
    tuner.note(tuner.take(), 1.0, interrupt)
    assert [cast("str", tuner.take()) for _ in range(3)] == ["made"] * 3
    assert cast("str", tuner.region) == "made"


@pytest.mark.parametrize("stage", ["probing", "improve"])
def test_nobody_waits_for_a_compilation(stage: str) -> None:
    """While one step's report compiles, others begin and report; nothing is compiled twice."""
    started, go_on, asked = threading.Event(), threading.Event(), []

    def compiled(name: str) -> None:
        asked.append(name)
        if name == stage:
            started.set()
            assert go_on.wait(5.0)

    def probing(_profile: Profile) -> Region:
        compiled("probing")
        return cast("Region", "probe")

    def improve(_profile: Profile) -> Better:
        compiled("improve")
        return Better(cast("Region", "better"))

    tuner = Tuner(cast("Region", "plain"), probing, improve)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: [tuner.note(tuner.take(), 1.0) for _ in range(STEPS)])
        assert started.wait(5.0)
        for _ in range(5):
            assert cast("str", tuner.take()) == "plain"
            tuner.note(tuner.take(), 1.0)
        go_on.set()
        first.result(5.0)
    assert asked == ["probing", "improve"]
    assert cast("str", tuner.take()) == "better"


@pytest.mark.parametrize("stage", ["probing", "improve"])
def test_a_compilation_ends_with_its_step(stage: str) -> None:
    """A step whose time is up has its results all the same, and nobody tries again."""
    interrupt, asked = Interrupt(), []

    def late(_profile: Profile) -> Any:
        asked.append(1)
        interrupt.end(errors.DeadlineExceededError("late"))
        checkpoint()
        raise AssertionError("it goes on")

    def probe(_profile: Profile) -> Region:
        return cast("Region", "probe")

    probing, improve = (late, lambda _: Better()) if stage == "probing" else (probe, late)
    tuner = Tuner(cast("Region", "plain"), probing, improve)
    for _ in range(5):
        tuner.note(tuner.take(), 1.0, interrupt)
    assert cast("str", tuner.take()) == "plain"
    assert asked == [1]


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
    """What has become of the requests that are tuned, where every statement takes a second."""
    monkeypatch.setattr(profile, "perf_counter", Clock())
    made: list[Compiled | None] = []
    cut_graphs: list[Graph] = []
    improve = Compiler.improve

    def noted(self: Compiler, graph: Graph, profile: Profile, threads: int) -> Compiled | None:
        assert profile.seconds  # the text had probes
        better = improve(self, graph, profile, threads)
        if graph not in cut_graphs:  # else this is what its parts compete with
            made.append(better)
        if better is not None and better.whole is None:
            cut_graphs.append(graph)
        return better

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


#: Every request is tuned.  Parts are not compared, but taken; every statement is worth a thread,
#: and arrays of 64 elements are long.
EAGER = Limits(
    slow_step=0.0, compared_steps=0, heavy_part=0.5, thread_start=0.0, piece=16, long_array=64
)


def config(threads: int = 2, limits: Limits = EAGER, **options: Any) -> ps.Config:
    """Two threads, numpy, no optimiser, and every part that may leave its thread does."""
    return ps.Config(
        **{"accelerate": False, **options},
        limits=limits,
        graph_options=GraphOptions.nothing(),
        inter_op_parallelism_threads=threads,
        offload_seconds=0.0,
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


@pytest.mark.parametrize("is_slow", [True, False])
def test_a_slow_first_step_has_the_second_one_probed(improved: Improved, is_slow: bool) -> None:
    """It is compiled with probes then, and what is learnt serves the third step."""
    limits = dataclasses.replace(EAGER, uncompiled_steps=1, slow_step=0.0 if is_slow else 1e3)
    with ps.Session(sketch(ARMS + END), config=config(1, limits)) as session:
        for step in range(1, 5):
            got = session.run("end:0", {"x": V, "y": V + step})
            np.testing.assert_array_equal(got, arm_of(V) - arm_of(V + np.float32(step)))
            assert len(improved) == (is_slow and step >= 2)
        whole = session.prepared("end:0", {"x": V, "y": V}).runnable.whole
    assert whole is not None
    assert not any("probe" in line.code for line in whole.source.lines)


def test_numbers_beside_arrays_are_spread_in_each_part(improved: Improved) -> None:
    """A part is written with what the profile says, as the whole is: its number has rank 0."""
    halves = "half = Const() value=0.5\nx = Placeholder()\ny = Placeholder()\n"
    halves += arm("c", "x") + "a = Mul(c, half)\n" + arm("d", "y") + "b = Mul(d, half)\n"
    with ps.Session(sketch(halves + END), config=config()) as session:
        for _ in range(STEPS + 1):
            got = session.run("end:0", {"x": V, "y": -V})
            np.testing.assert_array_equal(got, arm_of(V) / 2 - arm_of(-V) / 2)
        [compiled] = improved
        assert compiled is not None
        objects = [
            list(region.source.function.__globals__.values())
            for region in compiled.regions.values()
        ]
    spread = [[v for v in some if isinstance(v, np.ndarray) and v.shape == ()] for some in objects]
    assert [numbers for numbers in spread if numbers] == [[0.5], [0.5]]


@pytest.mark.parametrize("after", [0, 2])
def test_what_keeps_the_cores_busy_is_cut_if_its_parts_do(
    improved: Improved, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Kernels with threads of their own gain from running side by side if they all can."""
    monkeypatch.setattr(Profile, "end", lambda profile: setattr(profile, "cores_used", 2.0))
    text = ARMS + END + arm("last", "end", ("Tanh", "Exp")[:after] or ("Neg",))
    with ps.Session(sketch(text), config=config()) as session:
        for _ in range(STEPS + 1):
            session.run("last:0" if after else "end:0", {"x": V, "y": V})
    assert (improved == [None]) is (after > 0)


@pytest.mark.parametrize("beside", ["begins", "ends", ""])
def test_steps_beside_the_probed_one_are_noted(beside: str) -> None:
    """Those that begin or end meanwhile: what kept the cores busy may have been theirs."""
    stages = Stages()
    for _ in range(3):
        stages.step()
    probe = stages.tuner.take()
    assert cast("str", probe) == "probe"
    if beside == "begins":
        stages.tuner.take()
    if beside == "ends":
        stages.tuner.note(cast("Region", "plain"), 1.0)
    stages.tuner.note(probe, 1.0)
    assert [profile.has_others for profile in stages.profiles] == [bool(beside)] * 2


def test_requests_with_several_steps_at_once_are_not_cut(
    improved: Improved, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their steps keep the cores busy, and parts would only get into each other's way."""
    monkeypatch.setattr(Profile, "end", lambda profile: setattr(profile, "has_others", True))
    with ps.Session(sketch(ARMS + END), config=config()) as session:
        for _ in range(STEPS + 1):
            session.run("end:0", {"x": V, "y": V})
    assert improved == [None]


@pytest.mark.parametrize("threads", [-1, 1])
def test_one_thread_is_not_cut(improved: Improved, threads: int) -> None:
    """Without a second thread the request stays one function."""
    with ps.Session(sketch(ARMS + END), config=config(threads)) as session:
        for _ in range(STEPS + 1):
            session.run("end:0", {"x": V, "y": V})
    assert improved == [None]


def test_fast_requests_are_left_alone(improved: Improved) -> None:
    """A request whose steps take less than what counts as slow is never probed."""
    limits = dataclasses.replace(EAGER, slow_step=1e9)
    with ps.Session(sketch(ARMS + END), config=config(limits=limits)) as session:
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


def test_eight_threads_at_once(improved: Improved, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps on many threads are right before, during and after the change; it comes once."""
    monkeypatch.setattr(Profile, "end", lambda profile: setattr(profile, "has_others", False))
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


# -- state ---------------------------------------------------------------------------------------

STATE = (
    "x = Placeholder()\ny = Placeholder()\nshape = Const() value=[4]\n"
    "random = RandomUniform(shape) seed=3 seed2=4 dtype=float32\n"
    'h = VarHandleOp() dtype=float32 shape=[4] shared_name="v"\n'
    "zeros = Const() value=[0.0, 0.0, 0.0, 0.0]\n"
    "init = AssignVariableOp(h, zeros)\n"
    "r = Add(x, random)\n"
    + arm("a", "r")
    + arm("b", "y")
    + "both = Add(a, b)\n"
    + "old = ReadVariableOp(h) dtype=float32\n"
    + "add = AssignAddVariableOp(h, both, ^old)\n"
    + "new = ReadVariableOp(h, ^add) dtype=float32\n"
)


def test_state_goes_on(improved: Improved) -> None:
    """Random streams continue and variables keep their values, on whatever is run."""
    seen: dict[ps.Tier, list[Any]] = {}
    for tier in ps.Tier:
        with ps.Session(sketch(STATE), config=config(tier=tier)) as session:
            session.run("init")
            feeds = {"x": V, "y": -V}
            seen[tier] = [session.run(["random:0", "new:0"], feeds) for _ in range(STEPS + 5)]
    assert len(parts_of(improved)) >= 2
    totals = np.zeros(4, np.float32)
    for one, other in zip(*seen.values(), strict=True):
        np.testing.assert_array_equal(one, other)
        totals += arm_of(V + one[0]) + arm_of(-V)
        np.testing.assert_array_equal(one[1], totals)
    assert len({draw.tobytes() for draw, _ in seen[ps.Tier.COMPILED]}) == STEPS + 5


REFS = (
    "x = Placeholder()\ny = Placeholder()\n"
    "v = VariableV2() dtype=float32 shape=[4]\n"
    "init = Assign(v, x)\n"
    + arm("a", "x")
    + arm("b", "y")
    + "both = Sub(a, b)\n"
    + "set = AssignAdd(v, both)\n"
    + "end = Identity(v, ^set)\n"
)


def test_references_between_parts(improved: Improved) -> None:
    """A variable that is a reference is read when it is used, in whichever part."""
    with ps.Session(sketch(REFS), config=config()) as session:
        session.run("init", {"x": V})
        total = V.copy()
        for _ in range(STEPS + 4):
            total = total + (arm_of(V) - arm_of(-V))
            np.testing.assert_array_equal(session.run("end:0", {"x": V, "y": -V}), total)
    assert len(parts_of(improved)) >= 2


# -- requests ------------------------------------------------------------------------------------


def test_each_request_is_tuned_by_itself(improved: Improved) -> None:
    """What is fed and fetched makes the request; inner values can be both."""
    with ps.Session(sketch(ARMS + END), config=config()) as session:
        for _ in range(STEPS + 2):
            a1, end = session.run(["a1:0", "end:0"], {"x": V, "y": -V})
            np.testing.assert_array_equal(a1, np.exp(np.tanh(V)))
            np.testing.assert_array_equal(end, arm_of(V) - arm_of(-V))
        assert len(improved) == 1
        for _ in range(STEPS + 2):
            end, a = session.run(["end:0", "a:0"], {"a": V, "y": -V})
            np.testing.assert_array_equal(end, V - arm_of(-V))
            np.testing.assert_array_equal(a, V)
        assert len(improved) == 2
    assert improved[0] is not None
    assert improved[1] is None


def test_requests_with_calls(improved: Improved) -> None:
    """The executor makes calls, so that such a request is no one function to be tuned."""
    text = """
        x = Placeholder
        a = PartitionedCall[f=Arm; Tin=float32; Tout=float32](x)
        a1 = Exp(a)
        y = Placeholder
        b = PartitionedCall[f=Arm; Tin=float32; Tout=float32](y)
        b1 = Exp(b)
        end = Sub(a1, b1)
    """
    functions = """
        Arm(x: float32) -> (y: float32)
        t = Tanh[T=float32](x)
        e = Exp[T=float32](t:y)
        return y = e:y
    """

    def call(x: Array) -> Array:
        made: Array = np.exp(np.exp(np.tanh(x)))
        return made

    with ps.Session(graph_def_with(text, functions), config=config()) as session:
        for _ in range(STEPS + 4):
            got = session.run("end:0", {"x": V, "y": -V})
            np.testing.assert_array_equal(got, call(V) - call(-V))
    assert improved == []


def test_a_traced_run_after_a_cut(improved: Improved) -> None:
    """Whoever watches sees the nodes of the graph, and no parts."""
    options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE)
    with ps.Session(sketch(ARMS + END), config=config()) as session:
        for _ in range(STEPS + 1):
            metadata = ps.RunMetadata()
            session.run("end:0", {"x": V, "y": V})
            session.run("end:0", {"x": V, "y": V}, options, metadata)
            [device] = metadata.step_stats.dev_stats
            names = {node.node_name for node in device.node_stats}
            assert {"a", "a0", "b", "end"} <= names
            assert not any("region" in name for name in names)
    assert len(parts_of(improved)) >= 2


ENDLESS = counting_loop() + arm("a", "x") + "n = Neg(exit)\ntotal = Mul(n, exit)\n"


@pytest.mark.parametrize("how", ["deadline", "cancel", "close"])
def test_parts_can_be_ended(improved: Improved, how: str) -> None:
    """A deadline, ``cancel`` and ``close`` end a loop in a part."""
    session = ps.Session(sketch("x = Placeholder()\n" + ENDLESS), config=config())
    fetches, forever = ["total:0", "a:0"], 2**31 - 1
    for _ in range(STEPS + 1):
        session.run(fetches, {"x": V, "limit": 2})
    assert len(parts_of(improved)) >= 2
    options = ps.RunOptions(timeout_in_ms=30 if how == "deadline" else 0)
    run = session.run_async(fetches, {"x": V, "limit": forever}, options)
    if how == "cancel":
        run.cancel()
    elif how == "close":
        session.close()
    kind = errors.DeadlineExceededError if how == "deadline" else errors.CancelledError
    with pytest.raises(kind):
        run.result(10.0)
    session.close()


# -- long arrays ---------------------------------------------------------------------------------

UNARY = ["Tanh", "Exp", "Neg", "Sqrt", "Sin", "Abs", "Sigmoid", "Relu", "Square", "Floor"]
BINARY = ["Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum"]


def random_program(rng: np.random.Generator) -> tuple[str, list[str]]:
    """An element-wise program over arrays, rows, numbers and constants; and what to fetch."""
    rows = [*(f"{name} = Placeholder()" for name in ("x", "y", "row", "one"))]
    rows += ["c = Const() value=0.75", "k = Const() value=[0]"]
    values = ["x", "y", "x", "y", "row", "one", "c"]
    for index in range(int(rng.integers(5, 25))):
        name = f"n{index}"
        recent = values[-3:] if rng.integers(3) else values
        if rng.integers(2):
            rows.append(f"{name} = {rng.choice(UNARY)}({rng.choice(recent)})")
        else:
            other = rng.choice(values)
            rows.append(f"{name} = {rng.choice(BINARY)}({rng.choice(recent)}, {other})")
        if not rng.integers(6):
            rows[-1] = rows[-1].replace(")", f", ^{rng.choice(values)})")
        values.append(name)
        if not rng.integers(8):
            rows.append(f"less{index} = Less({name}, x)")
            rows.append(f"cast{index} = Cast(less{index}) SrcT=bool DstT=float32")
            values.append(f"cast{index}")
        if not rng.integers(8):
            rows.append(f"sum{index} = Sum({name}, k)")
            rows.append(f"view{index} = ExpandDims({name}, k)")
            rows.append(f"same{index} = Identity({name})")
            values.append(f"same{index}")
    names = [row.partition(" ")[0] for row in rows[6:]]
    few = [str(name) for name in rng.choice(names, min(3, len(names)), replace=False)]
    return "\n".join(rows), sorted({f"{names[-1]}:0", *(f"{name}:0" for name in few)})


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(("threads", "accelerate"), [(1, False), (4, False), (1, True), (4, True)])
def test_random_programs_have_the_same_bits(
    improved: Improved, seed: int, threads: int, *, accelerate: bool
) -> None:
    """Chains in pieces or in C, overwritten arrays and parts: every bit is as node by node."""
    rng = np.random.default_rng(seed)
    text, fetches = random_program(rng)
    feeds = {
        "x": rng.normal(size=(33, 8)).astype(np.float32),
        "y": rng.normal(size=(33, 8)).astype(np.float32),
        "row": rng.normal(size=8).astype(np.float32),
        "one": rng.normal(size=(1, 1)).astype(np.float32),
    }
    for value in feeds.values():
        value.flags.writeable = False
    fetches += ["x:0"]
    plain = ps.Config(
        tier=ps.Tier.DATAFLOW, graph_options=GraphOptions.nothing(), accelerate=accelerate
    )
    with ps.Session(sketch(text), config=plain) as session:
        want = [value.copy() for value in session.run(fetches, feeds)]
    # Some make their first step on the executor, unless arrays are long, and the next with probes.
    late = dataclasses.replace(EAGER, uncompiled_steps=1, long_array=1 << 9)
    tuned = config(threads, late if seed % 4 == 0 else EAGER, accelerate=accelerate)
    with ps.Session(sketch(text), config=tuned) as session:
        results = [session.run(fetches, feeds) for _ in range(STEPS + 2)]
    for got in results:
        for value, wanted in zip(got, want, strict=True):
            assert (value.dtype, value.shape) == (wanted.dtype, wanted.shape)
            assert value.tobytes() == wanted.tobytes()
    assert len(improved) == 1


def test_random_programs_are_tuned(improved: Improved) -> None:
    """Many of these programs have chains, and many are cut."""
    kinds = {"whole": 0, "cut": 0}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        text, fetches = random_program(rng)
        x = np.ones((33, 8), np.float32)
        feeds = {"x": x, "y": x, "row": x[0], "one": x[:1, :1]}
        with ps.Session(sketch(text), config=config(1 + 3 * (seed % 2))) as session:
            for _ in range(STEPS):
                session.run(fetches, feeds)
        if improved[-1] is not None:
            kinds["cut" if improved[-1].whole is None else "whole"] += 1
    assert kinds["whole"] >= 3
    assert kinds["cut"] >= 3
