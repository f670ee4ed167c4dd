"""A recorded step gives the same again, whatever raced in it, or says where it did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from cases_src.python_functions import FUNCTIONS
from penstock.replays.events import Event
from support.corpus import Case, all_cases, run_case
from support.op_cases import OpCase, all_op_cases
from support.sampling import sampled

#: Readers and writers of files, whose places in them nobody can copy.
_UNSUPPORTED = ("Reader", "RecordInput", "SummaryWriter")


def racy(count: int = 6) -> ps.Graph:
    """``out`` is a variable that so many nodes change, none of which waits for another."""
    graph = ps.Graph()
    with graph.as_default():
        v = ps.Variable(np.float64(1), name="v")
        ps.global_variables_initializer(name="init")
        changes = []
        for number in range(count):
            noise = ps.ops.RandomUniform(
                shape=[3000], dtype=ps.dtypes.float64, name=f"noise{number}"
            )
            amount = ps.ops.Sum(noise, [0], name=f"sum{number}")
            half = v.read_value() * 0.5
            changes.append(v.assign(half + amount) if number % 2 else v.assign_add(amount))
        with ps.control_dependencies(changes):
            ps.identity(v.read_value(), name="out")
    return graph


def orders_of(session: ps.Session, count: int, **options: Any) -> set[float]:
    """What recorded steps give, each from the same state."""
    found = set()
    for number in range(count):
        before = session.snapshot()
        seed = {"seed": number} if "threads" not in options else {}
        found.add(float(ps.record(session, "out:0", **seed, **options).results["out:0"]))
        session.restore(before)
    return found


@pytest.mark.parametrize("how", [{"threads": 4}, {"seed": 3}, {}], ids=str)
def test_a_racy_step_replays_to_the_same_result(how: Mapping[str, int], tmp_path: Path) -> None:
    """Bit for bit, each time, from memory and from a file; also its unseeded random numbers."""
    with ps.Session(racy()) as session:
        session.run("init")
        recording = ps.record(session, "out:0", path=tmp_path / "step", **how)
    want = recording.results["out:0"]
    assert ps.replay(recording, times=20)["out:0"] == want
    assert ps.replay(tmp_path / "step", times=20)["out:0"] == want


@pytest.mark.slow
def test_a_racy_step_replays_1000_times_of_1000(tmp_path: Path) -> None:
    """For each of ten recordings of threads that raced."""
    with ps.Session(racy()) as session:
        session.run("init")
        for _ in range(10):
            recording = ps.record(session, "out:0", path=tmp_path / "step", threads=4)
            results = ps.replay(tmp_path / "step", times=1000)
            assert results["out:0"] == recording.results["out:0"]


def test_seeds_and_threads_find_other_orders() -> None:
    """Without this, replaying would show nothing: steps that are not replayed differ."""
    with ps.Session(racy()) as session:
        session.run("init")
        assert len(orders_of(session, 12)) > 3


@pytest.mark.slow
def test_threads_race() -> None:
    """So do steps on threads; how they do is the machine's affair."""
    with ps.Session(racy()) as session:
        session.run("init")
        found: set[float] = set()
        for _ in range(20):
            found |= orders_of(session, 10, threads=4)
            if len(found) > 1:
                return
    raise AssertionError("two hundred steps came out alike")


def test_the_session_is_where_the_step_has_left_it() -> None:
    """A step that is recorded has the effects of one that is not."""
    graph = ps.Graph()
    with graph.as_default():
        count = ps.Variable(np.int64(0), name="count")
        ps.global_variables_initializer(name="init")
        ps.identity(count.assign_add(np.int64(1)), name="up")
    with ps.Session(graph) as session:
        session.run("init")
        assert ps.record(session, "up:0").results == {"up:0": 1}
        assert session.run("up:0") == 2
        assert ps.record(session, "up:0").results == {"up:0": 3}


# -- everything that graphs can do -----------------------------------------------------------------


class Replaying:
    """Stands for a session whose every step is recorded, and replayed."""

    def __init__(self, session: ps.Session, **how: int) -> None:
        self._session = session
        self._how = how

    def run(self, names: list[str], feeds: Mapping[str, Any]) -> list[Any]:
        try:
            recording = ps.record(self._session, names, feeds, **self._how)
        except ps.errors.UnimplementedError as error:
            pytest.skip(f"no recording: {error.message}")
        ps.replay(recording, times=2, allow_files=True)
        if recording.error is not None:
            raise recording.error
        return [recording.results.get(name if ":" in name else f"{name}:0") for name in names]


def replayable(cases: list[Any]) -> list[Any]:
    return [
        case
        for case in cases
        if not any(part in op for op in case.ops for part in _UNSUPPORTED)
        and b"@TMP@" not in case.graph_bytes
    ]


@pytest.fixture(autouse=True)
def python_functions() -> Any:
    """The functions that graphs of ``cases_src/python_functions.py`` call."""
    ps.register_py_func(FUNCTIONS)
    yield
    ps.register_py_func(dict.fromkeys(FUNCTIONS))


CASES = replayable([*all_cases("control_flow_v1", "control_flow_v2", "state", "containers")])
OP_CASES = replayable([*all_op_cases()])
HOW: list[dict[str, int]] = [{}, {"seed": 1}, {"threads": 3}]


def check_case(case: Case | OpCase, how: Mapping[str, int]) -> None:
    count = case.device_count if isinstance(case, OpCase) else case.meta.get("device_count") or {}
    with ps.Session(case.graph_bytes, config=ps.Config(device_count=count)) as session:
        run_case(Replaying(session, **how), case)


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("case", sampled(CASES, 12), ids=str)
def test_recorded_steps_give_tensorflows_answers_again(case: Case, how: dict[str, int]) -> None:
    """Loops, branches, functions, variables and queues: recorded and replayed step by step."""
    check_case(case, how)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", OP_CASES[::4], ids=str)
def test_so_do_single_ops(case: OpCase) -> None:
    """Whatever there are kernels for."""
    check_case(case, {"seed": 1})
