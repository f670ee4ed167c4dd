"""A recorded step gives the same again, whatever raced in it, or says where it did not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.defs.tensors import to_proto
from penstock.replays.events import Event
from support.corpus import Case, all_cases, run_case, uses_files
from support.op_cases import OpCase, all_op_cases
from support.sampling import sampled
from support.surroundings import folder, python_functions  # noqa: F401

#: Families of cases of many steps, which take long.
_LONG = {"fifty_steps", "saved_training"}
#: Cases that take long, or cannot be recorded, or tell the time.
_LEFT_OUT = (
    *("long_loop_20000", "long_loop_functional_5000", "table_dense_of_tensors"),
    "odds_and_ends/timestamp",
)


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
    """A recording of threads that raced; and a hundred times two others."""
    with ps.Session(racy()) as session:
        session.run("init")
        for times in (1000, 100, 100):
            recording = ps.record(session, "out:0", path=tmp_path / "step", threads=4)
            results = ps.replay(tmp_path / "step", times=times)
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


def test_effects_happen_one_at_a_time() -> None:
    """On however many threads: otherwise there would be no order to note."""
    active, most = [0], [0]

    def touch(number: Any) -> Any:
        active[0] += 1
        most[0] = max(most[0], active[0])
        time.sleep(0.005)
        active[0] -= 1
        return number

    ps.register_py_func({"touch": touch})
    graph = ps.Graph()
    with graph.as_default():
        calls = [
            ps.ops.PyFunc([np.float64(number)], token="touch", Tout=[ps.dtypes.float64])[0]
            for number in range(8)
        ]
        ps.ops.AddN(calls, name="out")
    recording = ps.record(graph, "out:0", threads=4)
    ps.register_py_func({"touch": None})
    assert recording.results == {"out:0": 28}
    assert most == [1]


def waiting(*, is_filled: bool) -> ps.Graph:
    """``take`` waits for an element that ``put`` brings, if it does."""
    graph = ps.Graph()
    with graph.as_default():
        queue = ps.ops.FIFOQueueV2(component_types=[ps.dtypes.int32], name="queue")
        ps.ops.QueueDequeueV2(queue, component_types=[ps.dtypes.int32], name="take")
        ps.ops.QueueEnqueueV2(queue, [np.int32(5)], name="put")
        if not is_filled:
            ps.ops.QueueCloseV2(queue, name="put_nothing")
    return graph


def test_who_waits_and_who_brings_are_replayed() -> None:
    """In whichever order they came, and with what the queue holds afterwards."""
    for seed in range(6):
        recording = ps.record(waiting(is_filled=True), ["take:0", "put"], seed=seed)
        assert ps.replay(recording, times=5) == {"take:0": 5}


def test_a_step_that_fails_fails_again(tmp_path: Path) -> None:
    """With the same error, and it leaves the same state."""
    wanted = ["take:0", "put_nothing"]
    recording = ps.record(waiting(is_filled=False), wanted, path=tmp_path / "failing")
    assert isinstance(recording.error, ps.errors.OutOfRangeError)
    assert ps.replay(tmp_path / "failing", times=3) == {}
    assert ps.Recording.load(tmp_path / "failing").ending.code.name == "OUT_OF_RANGE"


def test_an_iterator_goes_on_in_a_file(tmp_path: Path) -> None:
    """Its dataset is made again, with the seeds that it drew, and it is put into its place."""
    graph = ps.Graph()
    with graph.as_default():
        kind = {"output_types": [ps.dtypes.int64], "output_shapes": [ps.TensorShape(())]}
        offset = ps.Variable(np.int64(100), name="offset")
        ps.global_variables_initializer(name="init")
        first = offset.read_value()
        numbers = ps.ops.RangeDataset(first, first + 30, np.int64(1), **kind)
        mixed = ps.ops.ShuffleDataset(numbers, np.int64(7), np.int64(0), np.int64(0), **kind)
        again = ps.ops.RepeatDataset(mixed, np.int64(-1), **kind)
        iterator = ps.ops.IteratorV2(shared_name="it", container="", **kind)
        ps.ops.MakeIterator(again, iterator, name="start")
        ps.ops.IteratorGetNext(iterator, name="next", **kind)
    with ps.Session(graph) as session:
        session.run("init")
        session.run("start")
        for number in range(70):
            recording = ps.record(session, "next:0", path=tmp_path / "step")
            if number % 23 == 0:
                assert ps.replay(tmp_path / "step", times=2) == recording.results


# -- where a step is another one -------------------------------------------------------------------


def recorded() -> ps.Recording:
    with ps.Session(racy(3)) as session:
        session.run("init")
        return ps.record(session, "out:0", seed=2)


def test_a_node_that_is_not_ready_ends_the_replay() -> None:
    """The error names it, and says what would be ready."""
    recording = recorded()
    *events, begins, ends = recording.events
    name = begins.node_run.node
    with pytest.raises(ps.errors.AbortedError, match=f"1 of .* {name} begins, but .*; ready: "):
        ps.replay(replace(recording, events=(begins, *events, ends)))


def test_a_node_that_gives_something_else_ends_the_replay() -> None:
    """The first one is named, though all that follows from it is another value, too."""
    recording = recorded()
    changed = type(recording.task.graph)()
    changed.CopyFrom(recording.task.graph)
    for node in changed.node:
        if node.op == "Const" and ps.dtypes.float64.number == node.attr["dtype"].type:
            node.attr["value"].tensor.CopyFrom(to_proto(np.float64(0.25)))
            name = node.name
    other = replace(recording, task=replace(recording.task, graph=changed))
    with pytest.raises(ps.errors.AbortedError, match=f"{name} gives what .* something else"):
        ps.replay(other)


@pytest.mark.parametrize("count", [1, 7, -1])
def test_an_order_that_ends_early_ends_the_replay(count: int) -> None:
    """What is ready beyond it is named."""
    recording = recorded()
    with pytest.raises(ps.errors.AbortedError, match=r"nothing more, but .* is ready"):
        ps.replay(replace(recording, events=recording.events[:count]))


def test_an_order_that_goes_on_too_long_is_told() -> None:
    """So is a step that ends before its order does."""
    recording = recorded()
    first = recording.events[0]
    extra = Event(first.node_run._replace(node="ghost"), is_end=False)
    with pytest.raises(ps.errors.AbortedError, match="ghost begins"):
        ps.replay(replace(recording, events=(*recording.events, extra)))


def test_a_call_that_never_begins_ends_the_replay() -> None:
    """An order of another graph names executors that there are not."""
    recording = recorded()
    first = recording.events[0]
    events = (Event(first.node_run._replace(executor=9), is_end=False), *recording.events)
    with pytest.raises(ps.errors.AbortedError, match=r"executor 9 never begins"):
        ps.replay(replace(recording, events=events))


def test_another_state_afterwards_is_told() -> None:
    """Though every node gave what it gave."""
    recording = recorded()
    other = replace(recording, ending=replace(recording.ending, state=1))
    with pytest.raises(ps.errors.AbortedError, match="another state"):
        ps.replay(other)


def test_results_that_a_step_does_not_have_are_told() -> None:
    """A file may name any, and so may a graph that has changed."""
    recording = recorded()
    ending = replace(recording.ending, digests={"ghost:0": 1})
    with pytest.raises(ps.errors.AbortedError, match=r"ghost:0 is another value"):
        ps.replay(replace(recording, ending=ending))


def test_a_stranger_reaches_no_files_and_no_functions(tmp_path: Path) -> None:
    """Unless the caller says so: a recording is a program."""
    graph = ps.Graph()
    with graph.as_default():
        ps.ops.ReadFile(filename=str(tmp_path / "secret"), name="read")
    (tmp_path / "secret").write_text("password")
    recording = ps.record(graph, "read:0")
    with pytest.raises(ps.errors.AbortedError, match=r"read gives what it gave, but it fails"):
        ps.replay(recording)
    assert ps.replay(recording, allow_files=True) == {"read:0": b"password"}


# -- files -----------------------------------------------------------------------------------------


def test_damaged_recordings_are_refused(tmp_path: Path) -> None:
    """Wherever a file is cut, or a byte changes: an OpError, or the same step all the same."""
    path = tmp_path / "step"
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [2], name="x")
        ps.ops.neg(x, name="y")
    ps.record(graph, "y:0", {"x:0": [1, 2]}, path)
    content = path.read_bytes()
    for place in range(0, len(content), 23):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        for bad in (content[:place], bytes(damaged)):
            path.write_bytes(bad)
            try:
                results = ps.replay(path)
            except ps.errors.OpError as error:
                assert str(error)
            else:
                assert results["y:0"].tolist() == [-1, -2]


def test_a_snapshot_is_no_recording(tmp_path: Path) -> None:
    """Neither is a recording a snapshot."""
    with ps.Session(racy(1)) as session:
        session.snapshot().save(tmp_path / "snapshot")
        session.run("init")
        ps.record(session, "out:0", path=tmp_path / "step")
    with pytest.raises(ps.errors.InvalidArgumentError, match="is a penstock snapshot"):
        ps.replay(tmp_path / "snapshot")
    with pytest.raises(ps.errors.InvalidArgumentError, match="is a penstock step"):
        ps.Snapshot.load(tmp_path / "step")


# -- everything that graphs can do -----------------------------------------------------------------


class Replaying:
    """Stands for a session whose every step is recorded, and replayed."""

    def __init__(self, session: ps.Session, **how: int) -> None:
        self._session = session
        self._how = how

    def run(self, names: list[str], feeds: Mapping[str, Any]) -> list[Any]:
        recording = ps.record(self._session, names, feeds, **self._how)
        ps.replay(recording, times=2, allow_files=True)
        if recording.error is not None:
            raise recording.error
        return [recording.results.get(name if ":" in name else f"{name}:0") for name in names]


def replayable(cases: list[Any]) -> list[Any]:
    return [
        case
        for case in cases
        if not uses_files(case)
        and str(case).partition("/")[0] not in _LONG
        and not str(case).endswith(_LEFT_OUT)
    ]


CASES = replayable([*all_cases("control_flow_v1", "control_flow_v2", "state", "containers")])
OP_CASES = replayable([*all_op_cases()])
HOW: list[dict[str, int]] = [{}, {"seed": 1}, {"threads": 3}]


def check_case(case: Case | OpCase, how: Mapping[str, int]) -> None:
    with ps.Session(case.graph_bytes, config=ps.Config(device_count=case.device_count)) as session:
        run_case(Replaying(session, **how), case)


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("case", sampled(CASES[::2], 8), ids=str)
def test_recorded_steps_give_tensorflows_answers_again(case: Case, how: dict[str, int]) -> None:
    """Loops, branches, functions, variables and queues: recorded and replayed step by step."""
    check_case(case, how)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", OP_CASES[::12], ids=str)
def test_so_do_single_ops(case: OpCase) -> None:
    """Whatever there are kernels for."""
    check_case(case, {"seed": 1})
