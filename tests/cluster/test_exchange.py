"""What goes along with calls, what is asked for, what comes in pieces: answers are equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster import Server
from penstock.cluster.brief import BriefRequests
from penstock.cluster.services import RECV_TENSOR, request_class
from penstock.cluster.tensor_wire import (
    PIECE,
    announce_pieces,
    content_for_pieces,
    decode_answer,
    join_pieces,
)
from support.clusters import new_cluster, serving

MASTER, WORKER = "/job:worker/task:0", "/job:worker/task:1"


@pytest.fixture
def pair() -> Iterator[list[Server]]:
    """Two tasks of one cluster."""
    with serving(new_cluster(worker=2), heartbeat_seconds=0.3) as servers:
        yield servers


def calls(server: Server) -> dict[str, int]:
    """How often each method was called; what comes now and then is left out."""
    found = {
        name.partition('"')[2].rstrip('"}'): int(count)
        for name, count in server.metrics.counts().items()
        if name.startswith("calls_total")
    }
    return {name: count for name, count in found.items() if name != "GetStatus"}


def more(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What was called in between."""
    return {name: n - before.get(name, 0) for name, n in after.items() if n > before.get(name, 0)}


def squares(graph: ps.Graph) -> tuple[Any, Any]:
    """A square there, and its root added to it here."""
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, None, name="x")
        with ps.device(WORKER):
            square = x * x
        with ps.device(MASTER):
            return x, ps.identity(square + x, name="y")


def test_a_step_there_and_back_is_one_call(pair: list[Server]) -> None:
    """What is fed goes with it, what comes back is its answer, and nothing is left to clean up."""
    graph = ps.Graph()
    x, y = squares(graph)
    with ps.Session(graph, target=pair[0].target) as session:
        session.run(y, {x: 1.0})
        before = [calls(one) for one in pair]
        for value in (2.0, 3.0, 4.0, 5.0, 6.0):
            assert session.run(y, {x: value}) == value * value + value
        assert more(before[0], calls(pair[0])) == {"RunStep": 5}
        assert more(before[1], calls(pair[1])) == {"RunGraph": 5}
        assert len(pair[0].task.steps) == len(pair[1].task.steps) == 0


def test_large_values_are_asked_for(pair: list[Server]) -> None:
    """They are equal bit for bit, large ones in pieces; steps are forgotten all the same."""
    graph = ps.Graph()
    x, y = squares(graph)
    rng = np.random.default_rng(5)
    with ps.Session(graph, target=pair[0].target) as session:
        for size, pieces in ((70_000, False), (3_000_001, True), (3, False)):
            value = rng.standard_normal(size, dtype=np.float32)
            before = [calls(one) for one in pair]
            np.testing.assert_array_equal(session.run(y, {x: value}), value * value + value)
            for one, earlier in zip(pair, before, strict=True):
                made = more(earlier, calls(one))
                assert ("RecvTensor" in made) == (size > 3)
                assert ("Pieces" in made) == pieces
    for one in pair:
        assert len(one.task.steps) == 0


def test_state_is_that_of_the_moment(pair: list[Server]) -> None:
    """A variable that another task reads in brief steps has the value that it was given last."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        with ps.device(WORKER):
            v = ps.Variable(np.float32(1), name="v")
            assign = v.assign(x)
            read = ps.identity(v)
        with ps.device(MASTER):
            y = read + 1.0
        init = ps.global_variables_initializer()
    with ps.Session(graph, target=pair[0].target) as session:
        session.run(init)
        for value in range(20):
            session.run(assign, {x: float(value)})
            assert session.run(y) == value + 1


def test_an_error_there_names_its_task_and_node(pair: list[Server]) -> None:
    """Also where steps are brief; and the next step runs."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.int32, [], name="x")
        with ps.device(WORKER):
            there = ps.ops.FloorDiv(x=ps.constant(12), y=x, name="there")
        with ps.device(MASTER):
            y = there + 1
    with ps.Session(graph, target=pair[0].target) as session:
        for _ in range(6):
            assert session.run(y, {x: 3}) == 5
        with pytest.raises(ps.errors.InvalidArgumentError, match="zero") as caught:
            session.run(y, {x: 0})
        assert caught.value.node_name == "there"
        assert "task:1" in str(caught.value)
        assert session.run(y, {x: 4}) == 4


def test_parts_that_wait_for_each_other_meet(pair: list[Server]) -> None:
    """What needs something of a step before it can answer is no call: here, there, here, there."""
    graph = ps.Graph()
    with graph.as_default():
        y = x = ps.placeholder(ps.dtypes.float32, [], name="x")
        for number in range(6):
            with ps.device((WORKER, MASTER)[number % 2]):
                y = y * 2.0 + x
        y = ps.identity(y)
    with ps.Session(graph, target=pair[0].target) as session:
        for _ in range(5):
            assert session.run(y, {x: 1.0}) == 127.0


def test_what_is_dead_there_is_dead_here(pair: list[Server]) -> None:
    """A branch that is not taken on one task takes none on the other."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        with ps.device(WORKER):
            no, yes = ps.ops.Switch(data=x, pred=x > 0.0)
            no, yes = no - 1.0, yes + 1.0
        with ps.device(MASTER):
            merged, _ = ps.ops.Merge(inputs=[no * 2.0, yes * 3.0])
    with ps.Session(graph, target=pair[0].target) as session:
        for value, wanted in ((1.0, 6.0), (-1.0, -4.0), (2.0, 9.0), (0.0, -2.0)):
            assert session.run(merged, {x: value}) == wanted


def test_a_deadline_ends_a_call(pair: list[Server]) -> None:
    """Whoever waits for another task's queue is told which task, and what is there stays usable."""
    graph = ps.Graph()
    with graph.as_default():
        with ps.device(WORKER):
            queue = ps.ops.FIFOQueueV2(component_types=[ps.dtypes.float32], shapes=[[]], name="q")
            (taken,) = ps.ops.QueueDequeueV2(handle=queue, component_types=[ps.dtypes.float32])
            put = ps.ops.QueueEnqueueV2(handle=queue, components=[ps.constant(4.0)])
        with ps.device(MASTER):
            y = taken + 1.0
    with ps.Session(graph, target=pair[0].target) as session:
        with pytest.raises(ps.errors.DeadlineExceededError, match=r"part of the graph on .*task:1"):
            session.run(y, options=ps.RunOptions(timeout_in_ms=300))
        session.run(put)
        assert session.run(y) == 5.0


def test_what_is_traced_has_both_tasks(pair: list[Server]) -> None:
    """Step statistics come with the answer as well."""
    graph = ps.Graph()
    x, y = squares(graph)
    metadata = ps.RunMetadata()
    with ps.Session(graph, target=pair[0].target) as session:
        options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE)
        session.run(y, {x: 3.0}, options=options, run_metadata=metadata)
    devices = {stats.device for stats in metadata.step_stats.dev_stats}
    assert {device.partition("/device")[0][-6:] for device in devices} == {"task:0", "task:1"}


def test_a_graph_that_has_no_such_value_is_refused(pair: list[Server]) -> None:
    """Whoever registers a part with keys that it does not have is told so."""
    worker = pair[0].task.peers.worker("/job:worker/replica:0/task:1")
    with ps.Session(squares(ps.Graph())[1].graph, target=pair[0].target) as session:
        session.run("y:0", {"x:0": 1.0})
        (handle,) = pair[1].worker._sessions
        request = request_class("RegisterGraph")(
            session_handle=handle, create_worker_session_called=True, wanted_key=["nothing"]
        )
        with pytest.raises(ps.errors.InvalidArgumentError, match="cannot exchange 'nothing'"):
            worker.call("RegisterGraph", request)


# -- pieces ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex64", "bfloat16"])
def test_pieces_make_the_value_again(dtype: str) -> None:
    """Of any size that is not one of whole pieces, too."""
    numpy_type = ps.dtypes.as_dtype(dtype).numpy
    value = np.arange(5 * PIECE // numpy_type.itemsize * 2 + 9, dtype=np.uint32).astype(numpy_type)
    value = value[: len(value) // 3 * 3].reshape(3, -1)
    content = content_for_pieces(np.concatenate([value] * 4))
    assert content is not None
    announced = decode_answer(announce_pieces(np.concatenate([value] * 4))).announced
    pieces = [bytes(content[at : at + PIECE]) for at in range(0, len(content), PIECE)]
    found = join_pieces(announced, pieces)
    assert found.dtype == numpy_type
    assert found.tobytes() == np.concatenate([value] * 4).tobytes()


def test_small_values_and_strings_come_as_a_whole() -> None:
    """So do booleans, which have to be looked at."""
    assert content_for_pieces(np.zeros(10, np.float32)) is None
    assert content_for_pieces(np.full(10**6, b"text", object)) is None
    assert content_for_pieces(np.zeros(10**7, np.bool_)) is None


@pytest.mark.parametrize(
    ("shape", "number", "pieces", "error"),
    [
        ([3], 1, [b"1234" * 2], "do not fit"),
        ([3], 1, [b"1234" * 4], "do not fit"),
        ([3], 1, [], "do not fit"),
        ([-1], 1, [], "No float of shape|No float32 of shape"),
        ([3], 7, [b"123"], "No string of shape"),
        ([3], 10, [b"123"], "No bool of shape"),
        ([2**62, 2**62], 1, [], "No memory"),
        ([2**50], 1, [], "No memory"),
    ],
)
def test_pieces_of_nothing_are_refused(
    shape: list[int], number: int, pieces: list[bytes], error: str
) -> None:
    """Whatever a stranger announces and sends."""
    announced = decode_answer(announce_pieces(np.zeros(1, np.float32))).announced
    announced.dtype = number
    del announced.tensor_shape.dim[:]
    for size in shape:
        announced.tensor_shape.dim.add(size=size)
    with pytest.raises(ps.errors.OpError, match=error):
        join_pieces(announced, pieces)


def test_pieces_that_nobody_announced_are_refused(pair: list[Server]) -> None:
    """An error, and no empty answer."""
    worker = pair[0].task.peers.worker("/job:worker/replica:0/task:1")
    request = request_class(RECV_TENSOR)(step_id=3, request_id=4)
    with pytest.raises(ps.errors.NotFoundError, match="announced"), worker.stream_errors():
        list(worker.pieces(request))


# -- brief requests ----------------------------------------------------------------------------


def test_a_request_is_brief_when_some_like_it_were() -> None:
    """In a row, each of them quick, none of them smaller."""
    brief = BriefRequests()
    for _ in range(2):
        brief.note("a", 100, 1e-5, is_straight=True)
    assert not brief.include("a", 100)
    brief.note("a", 100, 1e-5, is_straight=True)
    assert brief.include("a", 100)
    assert not brief.include("a", 101)
    assert not brief.include("b", 1)


@pytest.mark.parametrize(("seconds", "is_straight"), [(0.1, True), (1e-5, False)])
def test_a_request_is_brief_no_longer_if_one_was_not(seconds: float, is_straight: bool) -> None:
    """It took long, or what it runs became something that may."""
    brief = BriefRequests()
    for _ in range(5):
        brief.note("a", 100, 1e-5, is_straight=True)
    brief.note("a", 100, seconds, is_straight=is_straight)
    assert not brief.include("a", 100)


def test_few_kinds_are_remembered() -> None:
    """However many a client asks."""
    brief = BriefRequests()
    for number in range(5_000):
        brief.note(number, 1, 1e-5, is_straight=True)
    assert len(brief._known) == 1_000
