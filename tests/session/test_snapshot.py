"""A session goes on from a snapshot as it went on when the snapshot was taken."""

from __future__ import annotations

import json
import threading
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.step import Step
from penstock.session.snapshot import Snapshot
from support.corpus import Case, all_cases, uses_files
from support.op_cases import OpCase, all_op_cases
from support.sampling import sampled
from support.surroundings import folder, python_functions  # noqa: F401

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def with_steps() -> list[Case | OpCase]:
    """Cases of several steps, so that there is something to go on with."""
    found: list[Case | OpCase] = [*all_cases(), *all_op_cases()]
    return [case for case in found if len(case.steps) > 1 and not uses_files(case)]


def session_of(case: Case | OpCase, tier: ps.Tier) -> ps.Session:
    return ps.Session(case.graph_bytes, config=ps.Config(tier=tier, device_count=case.device_count))


def outcome(session: ps.Session, case: Case | OpCase, step: Any) -> list[Any]:
    """What a step gives, bit for bit; or its error."""
    names = [*step.get("fetches", ()), *step.get("targets", ())]
    try:
        results = session.run(names, case.feeds(step))
    except ps.errors.OpError as error:
        return [error.code]
    return [bits(result) for result in results]


def bits(value: Any) -> object:
    """Something that is equal for equal bits."""
    if value is None or isinstance(value, (str, bytes)):
        return value
    array = np.asarray(value)
    if array.dtype == object:
        return array.shape, [str(item) for item in array.flat]
    return array.dtype.str, array.shape, array.tobytes()


def check_goes_on(case: Case | OpCase, tier: ps.Tier, at: int, path: Path) -> None:
    """The steps after a snapshot are the same from it: there, elsewhere, and out of a file."""
    rest: Sequence[Any] = case.steps[at:]
    with session_of(case, tier) as session:
        for step in case.steps[:at]:
            outcome(session, case, step)
        snapshot = session.snapshot()
        first = [outcome(session, case, step) for step in rest]
        session.restore(snapshot)
        assert [outcome(session, case, step) for step in rest] == first, "in the same session"
        session.restore(snapshot)
    with session_of(case, tier) as other:
        other.restore(snapshot)
        assert [outcome(other, case, step) for step in rest] == first, "in another session"
    if not any(place.type_name == "IteratorResource" for place in snapshot.resources):
        snapshot.save(path)
        with session_of(case, tier) as other:
            other.restore(Snapshot.load(path))
            assert [outcome(other, case, step) for step in rest] == first, "out of a file"


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", sampled(with_steps()[::6], 10), ids=str)
def test_steps_after_a_snapshot_are_the_same_again(case: Case | OpCase, tmp_path: Path) -> None:
    """Whatever a graph of the corpus keeps is restored: in place, elsewhere, and from a file."""
    check_goes_on(case, ps.Tier.COMPILED, len(case.steps) // 2, tmp_path / "snapshot")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", with_steps()[::9], ids=str)
def test_so_they_are_on_the_executor_from_any_step(case: Case | OpCase, tmp_path: Path) -> None:
    """The same node by node, wherever the snapshot was taken."""
    for at in {0, len(case.steps) - 1}:
        check_goes_on(case, ps.Tier.DATAFLOW, at, tmp_path / "snapshot")


# -- what is kept ----------------------------------------------------------------------------------


def counter() -> ps.Graph:
    graph = ps.Graph()
    with graph.as_default():
        count = ps.Variable(np.int64(0), name="count")
        ps.identity(count.assign_add(np.int64(1)), name="up")
        ps.global_variables_initializer(name="init")
        for name, seed in (("unseeded", 0), ("seeded", 7)):
            ps.ops.RandomUniform(shape=[3], dtype=ps.dtypes.float32, seed=seed, name=name)
    return graph


def test_a_snapshot_does_not_change() -> None:
    """What a session does later, in place or not, changes nothing in it."""
    with ps.Session(counter()) as session:
        session.run("init")
        session.run("up")
        snapshot = session.snapshot()
        for _ in range(3):
            session.run("up")
        session.restore(snapshot)
        assert session.run("up:0") == 2
        session.restore(snapshot)
        assert session.run("up:0") == 2


@pytest.mark.parametrize("name", ["unseeded", "seeded"])
def test_random_streams_go_on_where_they_were(name: str, tmp_path: Path) -> None:
    """Also those without a seed, and of nodes that had not run when the snapshot was taken."""
    with ps.Session(counter()) as session:
        fresh = session.snapshot()
        whole = [session.run(f"{name}:0").tolist() for _ in range(4)]
        later = session.snapshot()
        rest = [session.run(f"{name}:0").tolist() for _ in range(3)]
        fresh.save(tmp_path / "fresh")
        later.save(tmp_path / "later")
    with ps.Session(counter()) as other:
        other.run(name)
        other.restore(ps.Snapshot.load(tmp_path / "later"))
        assert [other.run(f"{name}:0").tolist() for _ in range(3)] == rest
        other.restore(ps.Snapshot.load(tmp_path / "fresh"))
        assert [other.run(f"{name}:0").tolist() for _ in range(4)] == whole


def test_unseeded_streams_of_two_sessions_differ() -> None:
    """Nobody can foresee what a session draws, though it is known afterwards."""
    with ps.Session(counter()) as one, ps.Session(counter()) as other:
        assert one.run("unseeded:0").tolist() != other.run("unseeded:0").tolist()


def each_kind() -> ps.Graph:
    """``NAME`` changes something of each kind that has a state, and gives what follows from it."""
    graph, ops, i64 = ps.Graph(), ps.ops, ps.dtypes.int64
    with graph.as_default():
        weights = ps.Variable(np.ones((300, 300), np.float32), name="weights")
        ps.global_variables_initializer(name="init")
        step = ops.ResourceApplyGradientDescent(
            var=weights.handle, alpha=np.float32(0.5), delta=np.ones((300, 300), np.float32)
        )
        with ps.control_dependencies([step]):
            ps.identity(weights.read_value(), name="trained")
        ops.NonDeterministicInts(shape=np.int64([4]), dtype=i64, name="chance")
        for name, seed in (("shuffled", 0), ("shuffled_by_seed", 5)):
            queue = ops.RandomShuffleQueueV2(component_types=[i64], shapes=[[]], seed=seed)
            ops.QueueEnqueueManyV2(queue, [np.arange(40)], name=f"fill_{name}")
            ops.QueueDequeueManyV2(queue, 4, component_types=[i64], name=name)
        table = ops.HashTableV2(key_dtype=i64, value_dtype=i64, name="table")
        keys = np.arange(5)
        ops.LookupTableImportV2(table, keys, keys * 7, name="fill_table")
        ops.LookupTableFindV2(table, keys, np.int64(-1), name="found")
        glimpses = ops.ExtractGlimpse(
            np.zeros((1, 2, 2, 1), np.float32), np.int32([4, 4]), np.zeros((1, 2), np.float32)
        )
        ps.identity(glimpses, name="noise")
    return graph


@pytest.mark.parametrize(
    "name", ["trained", "chance", "shuffled", "shuffled_by_seed", "found", "noise"]
)
def test_each_kind_goes_on(name: str, tmp_path: Path) -> None:
    """In place, in another session and out of a file; and steps write into no snapshot."""
    with ps.Session(each_kind()) as session:
        session.run(["init", "fill_shuffled", "fill_shuffled_by_seed", "fill_table"])
        session.run(f"{name}:0")
        snapshot = session.snapshot()
        snapshot.save(tmp_path / "before")
        rest = [bits(session.run(f"{name}:0")) for _ in range(3)]
        snapshot.save(tmp_path / "after")
        session.restore(snapshot)
        assert [bits(session.run(f"{name}:0")) for _ in range(3)] == rest
        snapshot.save(tmp_path / "later")
    whole = (tmp_path / "before").read_bytes()
    assert whole == (tmp_path / "after").read_bytes() == (tmp_path / "later").read_bytes()
    with ps.Session(each_kind()) as other:
        other.run(f"{name}:0" if name in ("chance", "noise") else "init")
        other.restore(Snapshot.load(tmp_path / "before"))
        assert [bits(other.run(f"{name}:0")) for _ in range(3)] == rest


def test_what_came_later_is_gone() -> None:
    """A resource that a snapshot does not have is dropped when it is restored."""
    with ps.Session(counter()) as session:
        empty = session.snapshot()
        session.run("init")
        session.restore(empty)
        with pytest.raises(ps.errors.OpError, match="count"):
            session.run("up")


# -- iterators -------------------------------------------------------------------------------------


def shuffled() -> ps.Graph:
    graph = ps.Graph()
    with graph.as_default():
        kind = {"output_types": [ps.dtypes.int64], "output_shapes": [ps.TensorShape(())]}
        numbers = ps.ops.RangeDataset(np.int64(0), np.int64(20), np.int64(1), **kind)
        mixed = ps.ops.ShuffleDataset(numbers, np.int64(7), np.int64(0), np.int64(0), **kind)
        iterator = ps.ops.IteratorV2(shared_name="it", container="", **kind)
        ps.ops.MakeIterator(mixed, iterator, name="start")
        ps.ops.IteratorGetNext(iterator, name="next", **kind)
    return graph


def test_iterators_go_on_where_they_were() -> None:
    """An iterator and its random order are restored, in the same session and in another one."""
    with ps.Session(shuffled()) as session:
        session.run("start")
        session.run("next:0")
        snapshot = session.snapshot()
        rest = [session.run("next:0") for _ in range(10)]
        session.restore(snapshot)
        assert [session.run("next:0") for _ in range(10)] == rest
    with ps.Session(shuffled()) as other:
        other.restore(snapshot)
        assert [other.run("next:0") for _ in range(10)] == rest


def test_a_file_has_an_iterators_place_but_not_its_dataset(tmp_path: Path) -> None:
    """Out of a file an iterator is restored where the session has made it, and nowhere else."""
    with ps.Session(shuffled()) as session:
        fresh = session.snapshot()
        session.run("start")
        session.run("next:0")
        session.snapshot().save(tmp_path / "begun")
        rest = [session.run("next:0") for _ in range(10)]
        fresh.save(tmp_path / "fresh")
    begun = ps.Snapshot.load(tmp_path / "begun")
    with ps.Session(shuffled()) as other:
        with pytest.raises(ps.errors.FailedPreconditionError, match="run the initializer"):
            other.restore(begun)
        other.restore(ps.Snapshot.load(tmp_path / "fresh"))
        other.run("start")
        other.restore(begun)
        assert [other.run("next:0") for _ in range(10)] == rest


# -- what is refused -------------------------------------------------------------------------------


def test_nothing_may_be_under_way() -> None:
    """A snapshot is of one moment: while a step runs or waits there is none."""
    graph = ps.Graph()
    with graph.as_default():
        queue = ps.ops.FIFOQueueV2(component_types=[ps.dtypes.int32], name="queue")
        ps.ops.QueueDequeueV2(queue, component_types=[ps.dtypes.int32], name="take")
        ps.ops.QueueEnqueueV2(queue, [np.int32(5)], name="put")
    with ps.Session(graph) as session:
        empty = session.snapshot()
        waiting = session.run_async("take:0")
        while not any(isinstance(one, Step) for one in session._under_way.running()):
            time.sleep(0.002)
        with pytest.raises(ps.errors.FailedPreconditionError, match="1 of its steps"):
            session.snapshot()
        with pytest.raises(ps.errors.FailedPreconditionError, match="cannot be restored"):
            session.restore(empty)
        session.run("put")
        assert waiting.result() == 5


def test_what_cannot_be_copied_is_named_or_skipped() -> None:
    """An open file is refused by name; skipped, it stays as it is while all else is restored."""
    graph = counter()
    with graph.as_default():
        ps.ops.WholeFileReaderV2(name="reader")
    with ps.Session(graph) as session:
        session.run(["init", "reader"])
        with pytest.raises(ps.errors.UnimplementedError, match="'reader'"):
            session.snapshot()
        snapshot = session.snapshot(skip_unsupported=True)
        assert [place.name for place in snapshot.skipped] == ["reader"]
        session.run("up")
        session.restore(snapshot)
        assert session.run("up:0") == 1
        session.run("reader")


def test_a_closed_session_has_no_state() -> None:
    """Neither is it copied, nor restored."""
    session = ps.Session(counter())
    snapshot = session.snapshot()
    session.close()
    with pytest.raises(ps.errors.CancelledError):
        session.snapshot()
    with pytest.raises(ps.errors.CancelledError):
        session.restore(snapshot)


# -- files of strangers ----------------------------------------------------------------------------


def written(tmp_path: Path) -> bytes:
    """A snapshot of some of everything."""
    with ps.Session(counter()) as session:
        session.run(["init", "seeded", "unseeded"])
        session.snapshot().save(tmp_path / "good")
    return (tmp_path / "good").read_bytes()


def test_equal_states_are_equal_files(tmp_path: Path) -> None:
    """What is in a file follows from the state alone, and not from the time of day."""
    with ps.Session(counter()) as session:
        session.run("init")
        session.snapshot().save(tmp_path / "one")
        session.snapshot().save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    """Wherever a file is cut, or a byte changes, an OpError says so; or all is well."""
    content, path = written(tmp_path), tmp_path / "bad"
    for at in range(0, len(content), 29):
        damaged = bytearray(content)
        damaged[at] ^= 0x55
        for bad in (content[:at], bytes(damaged)):
            path.write_bytes(bad)
            with ps.Session(counter()) as session:
                try:
                    session.restore(ps.Snapshot.load(path))
                except ps.errors.OpError as error:
                    assert str(error)


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ([], "0 parts"),
        ([[[DEVICE, "c", "Var", "v", "NoSuch", []]], [[], 0], ["00", []], []], "NoSuch"),
        ([[["d", "c", "Var", "v", "Ref", []]], [[], 0], ["00", []], []], "lacks"),
        ([[[DEVICE, "c", "Var", "v", "Ref", []]], [[], 0], ["00", []], []], "Var 'v'"),
        ([[], [[], -1], ["00", []], []], "kept tensors"),
        ([[], [[], 0], ["zz", []], []], "kernels"),
        ([[], [[], 0], ["00", [["", "", "", {"value": 9}]]], []], "damaged"),
    ],
)
def test_a_tree_that_makes_no_sense_is_refused(tree: Any, says: str, tmp_path: Path) -> None:
    """A file that is whole, but whose state nothing could have had, changes nothing."""
    path = tmp_path / "odd"
    with zipfile.ZipFile(path, "w") as archive:
        head = {"kind": "penstock snapshot", "version": 1, "tree": tree}
        archive.writestr("content.json", json.dumps(head))
    with ps.Session(counter()) as session:
        session.run("init")
        with pytest.raises(ps.errors.OpError, match=says):
            session.restore(ps.Snapshot.load(path))
        assert session.run("up:0") == 1


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ({"kind": "penstock snapshot", "version": 99, "tree": []}, "version 99"),
        ({"kind": "a poem", "version": 1, "tree": []}, "a poem"),
        ({"version": 1}, "None"),
    ],
)
def test_other_files_are_refused(head: Any, says: str, tmp_path: Path) -> None:
    """Another kind of file, and one of a later version, are said to be that."""
    path = tmp_path / "other"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content.json", json.dumps(head))
    with pytest.raises(ps.errors.InvalidArgumentError, match=says):
        ps.Snapshot.load(path)


# -- threads ---------------------------------------------------------------------------------------


def test_a_snapshot_is_of_one_moment() -> None:
    """Steps that other threads run meanwhile are in it as a whole, or not at all."""
    graph = ps.Graph()
    with graph.as_default():
        ups = [
            ps.Variable(np.zeros(100), name=name).assign_add(np.ones(100)) for name in ("a", "b")
        ]
        ps.global_variables_initializer(name="init")
        ps.group(*ups, name="up")
    with ps.Session(graph) as session:
        session.run("init")
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                session.run("up")
                stop.wait(0.0005)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        found: list[Snapshot] = []
        refused = 0
        while len(found) < 50:
            try:
                found.append(session.snapshot())
                session.restore(found[0])
            except ps.errors.FailedPreconditionError:
                refused += 1
                time.sleep(0.0002)
        stop.set()
        for thread in threads:
            thread.join()
    for snapshot in found:
        values = [held.state[1] for held in snapshot.resources.values()]
        assert (values[0] == values[1]).all()
