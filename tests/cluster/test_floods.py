"""However much strangers send, a server keeps only so much of it, and answers others meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import threading
from collections.abc import Iterator
from typing import Any

import pytest

grpc = pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster import Server, repeats
from penstock.cluster.bounds import Bounds
from penstock.cluster.repeats import Repeats
from penstock.cluster.request_ids import RequestIds
from penstock.cluster.services import EXCHANGE, MASTER, WORKER, Stub, request_class
from support import strangers
from support.clusters import new_cluster, serving


@pytest.fixture
def alone() -> Iterator[Server]:
    """A server that is a cluster by itself."""
    with serving(new_cluster(worker=1)) as (one,):
        yield one


def stub(of: Server, service: str) -> Stub:
    """Calls a server by hand."""
    return Stub(grpc.insecure_channel(of.target.removeprefix("grpc://")), service, "it")


def is_served(at: Server) -> None:
    """A client who comes now gets an answer."""
    graph = ps.Graph()
    with graph.as_default():
        two = ps.constant(1.0) + 1.0
    with ps.Session(graph, target=at.target) as session:
        assert session.run(two, options=ps.RunOptions(timeout_in_ms=20_000)) == 2.0


# -- connections and calls -------------------------------------------------------------------


def test_a_thousand_idle_connections(alone: Server) -> None:
    """Half of them speak the protocol, and none asks for anything."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit < 3000:
        pytest.skip("both ends of the connections are in this process")
    begun = strangers.PREFACE + strangers.SETTINGS
    threads = threading.active_count()
    with contextlib.ExitStack() as held:
        for number in range(1000):
            held.enter_context(strangers.connect(alone, begun if number % 2 else b""))
        is_served(alone)
        assert threading.active_count() < threads + 50


def test_many_small_frames_keep_nobody_waiting(alone: Server) -> None:
    """Pings and settings, thousands of them: the connection is ended, or they are answered."""
    ping = strangers.frame(6, 0, 0, b"12345678")
    with contextlib.suppress(ConnectionError, TimeoutError):
        connection = strangers.connect(alone, strangers.PREFACE + strangers.SETTINGS)
        connection.settimeout(2)
        connection.sendall(ping * 5_000 + strangers.SETTINGS * 5_000)
    is_served(alone)
    connection.close()


def test_values_that_nobody_sends_are_asked_for(alone: Server) -> None:
    """Thousands of calls wait, no thread does; when their callers go, nothing is left."""
    device = alone.task.client_device
    key = f"{device.name};{device.incarnation:016x};{device.name};edge_1_x;0:0"
    asked, ends = stub(alone, WORKER), []
    threads = threading.active_count()
    for step in range(2_000):
        request = request_class("RecvTensor")(step_id=step, rendezvous_key=key)
        ends.append(asked.start("RecvTensor", request, lambda _error, _answer: None))
    until(lambda: len(alone.task.steps) == 2_000)
    is_served(alone)
    assert threading.active_count() < threads + 50
    for end in ends:
        end()
    until(lambda: len(alone.task.steps) == 0)


def until(holds: Any) -> None:
    """Wait for something that is to become true."""
    waited = threading.Event()
    for _ in range(1000):
        if holds():
            return
        waited.wait(0.02)
    raise AssertionError


def test_more_calls_than_allowed_are_refused() -> None:
    """At once, and as long as the others are under way."""
    with serving(new_cluster(worker=1), bounds=Bounds(calls=10)) as (alone,):
        device = alone.task.client_device
        key = f"{device.name};{device.incarnation:016x};{device.name};edge_1_x;0:0"
        asked, refused, ends = stub(alone, WORKER), [], []
        for step in range(30):
            request = request_class("RecvTensor")(step_id=step, rendezvous_key=key)
            ends.append(asked.start("RecvTensor", request, lambda error, _: refused.append(error)))
        until(lambda: len(refused) == 20)
        assert {type(error) for error in refused} == {ps.errors.ResourceExhaustedError}
        for end in ends:
            end()
        until(lambda: len(alone.task.steps) == 0)
        is_served(alone)


# -- what is kept ------------------------------------------------------------------------------


def test_so_many_steps_are_known_and_no_more() -> None:
    """A master that does not say that its steps are over is told; its sessions' end frees them."""
    with serving(new_cluster(worker=1), bounds=Bounds(steps=10)) as (alone,):
        _steps(alone)


def _steps(alone: Server) -> None:
    called, run = stub(alone, WORKER), registered(alone)
    for step in range(10):  # as steps that send something stay until they are said to be over
        alone.task.steps.find_or_make(step).session = "a"
    with pytest.raises(ps.errors.ResourceExhaustedError, match="10 steps already"):
        called.call("RunGraph", request_class("RunGraph")(**run, step_id=10))
    called.call("CleanupGraph", request_class("CleanupGraph")(step_id=3))
    called.call("RunGraph", request_class("RunGraph")(**run, step_id=10))
    end = request_class("DeleteWorkerSession")(session_handle="a")
    called.call("DeleteWorkerSession", end)
    assert len(alone.task.steps) == 0


def registered(at: Server, handle: str = "a") -> dict[str, str]:
    """The handles of a session and of a graph at a worker."""
    graph = ps.Graph()
    with graph.as_default():
        ps.constant(2.0)
    definition = ps.graph_to_def(graph)
    definition.node[0].device = at.task.client_device.name
    request = request_class("RegisterGraph")(session_handle=handle, graph_def=definition)
    answer = stub(at, WORKER).call("RegisterGraph", request)
    return {"session_handle": handle, "graph_handle": answer.graph_handle}


def test_so_many_graphs_and_sessions_are_kept_and_no_more() -> None:
    """At a worker, of all its sessions; at a master; and callables of each session."""
    with serving(new_cluster(worker=1), bounds=Bounds(kept=3)) as (alone,):
        _graphs(alone)
        _sessions(alone)


def _graphs(alone: Server) -> None:
    for handle in ("a", "b", "b"):
        registered(alone, handle)
    with pytest.raises(ps.errors.ResourceExhaustedError, match="3 graphs already"):
        registered(alone, "a")
    create = request_class("CreateWorkerSession")
    stub(alone, WORKER).call("CreateWorkerSession", create(session_handle="c"))
    with pytest.raises(ps.errors.ResourceExhaustedError, match="3 sessions already"):
        stub(alone, WORKER).call("CreateWorkerSession", create(session_handle="d"))
    for key in range(9):
        sequence = request_class("GetStepSequence")(graph_key=[key])
        stub(alone, WORKER).call("GetStepSequence", sequence)
    assert len(alone.worker._step_ids) == 3


def _sessions(alone: Server) -> None:
    called = stub(alone, MASTER)
    for _ in range(3):
        made = called.call("CreateSession", request_class("CreateSession")())
        handle = made.session_handle
    with pytest.raises(ps.errors.ResourceExhaustedError, match="3 sessions already"):
        called.call("CreateSession", request_class("CreateSession")())
    for _ in range(3):
        called.call("MakeCallable", request_class("MakeCallable")(session_handle=handle))
    with pytest.raises(ps.errors.ResourceExhaustedError, match="3 callables already"):
        called.call("MakeCallable", request_class("MakeCallable")(session_handle=handle))


def test_so_many_partial_runs_wait_in_a_session() -> None:
    """Whoever begins runs that nobody feeds fills no memory with them; one that ends makes room."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        y = x + 1.0
    with (
        serving(new_cluster(worker=1), bounds=Bounds(kept=3)) as (alone,),
        ps.Session(graph, target=alone.target) as session,
    ):
        begun = [session.partial_run_setup([y], [x]) for _ in range(3)]
        with pytest.raises(ps.errors.ResourceExhaustedError, match="3 partial runs already"):
            session.partial_run_setup([y], [x])
        assert session.partial_run(begun[0], y, {x: 1.0}) == 2.0
        session.partial_run_setup([y], [x])


def test_so_many_members_of_groups_are_known() -> None:
    """Whoever makes up groups fills no memory with them."""
    with serving(new_cluster(worker=1), bounds=Bounds(members=5)) as (alone,):
        _members(alone)


def _members(alone: Server) -> None:
    called = stub(alone, EXCHANGE)
    for key in range(5):
        called.call("EnterCollective", member(alone, key))
    with pytest.raises(ps.errors.ResourceExhaustedError, match="5 members"):
        called.call("EnterCollective", member(alone, 5))
    called.call("EnterCollective", member(alone, 4))


def member(at: Server, key: int) -> Any:
    """A request of the only member of a group."""
    return request_class("EnterCollective")(
        group_key=key, group_size=1, device=at.task.client_device.name, dtype=1
    )


def test_requests_of_many_names_are_not_remembered(alone: Server) -> None:
    """What a request asks for is kept to know it again, if it is short."""
    graph = ps.Graph()
    with graph.as_default():
        ps.constant(2.0, name="two")
    with ps.Session(graph, target=alone.target) as session:
        session.run("two:0")
        many = request_class("RunStep")(session_handle=session._handle, fetch=["two:0"] * 2_000)
        for _ in range(5):
            assert len(stub(alone, MASTER).call("RunStep", many).tensor) == 2_000
        (client,) = alone.master._clients.values()
        assert max(len(fetches) for fetches, _ in client.session._known_plans) == 1


# -- requests that come twice --------------------------------------------------------------------


def test_answers_are_kept_up_to_a_number_of_bytes() -> None:
    """The oldest go first; whoever asks for one that is gone is told that it was done."""
    assert (repeats.MAX_BYTES, repeats.MAX_KEYS) == (64 << 20, 65_536)

    async def play() -> None:
        kept, done = Repeats(max_bytes=1000, max_keys=20), []

        async def work(key: str) -> bytes:
            done.append(key)
            return b"x" * 300

        for number in range(5):
            assert len(await kept.answer(str(number), lambda: work(str(number)))) == 300  # noqa: B023
            assert kept.size <= 1000
        assert await kept.answer("4", lambda: work("4")) == b"x" * 300
        with pytest.raises(ps.errors.AbortedError, match="done the first time"):
            await kept.answer("0", lambda: work("0"))
        for number in range(5, 100):
            await kept.answer(str(number), lambda: work(str(number)))  # noqa: B023
            assert len(kept) <= 20
        assert len(done) == 100

        async def large() -> bytes:
            return b"x" * 5000

        assert len(await kept.answer("large", large)) == 5000
        assert kept.size <= 1000

    asyncio.run(play())


def test_answers_are_kept_for_some_time() -> None:
    """And no longer than that, though there is room for them."""

    async def play() -> None:
        now = [0.0]
        kept = Repeats(max_bytes=30, max_seconds=10, clock=lambda: now[0])

        async def work() -> bytes:
            return b"x" * 8

        for number in range(100):
            now[0] = float(number)
            await kept.answer(f"{number}", work)
            assert len(kept) == min(number + 1, 11)
            assert kept.size == 8 * min(number + 1, 3)
        now[0] = 1000.0
        await kept.answer("last", work)
        assert len(kept) == 1

    asyncio.run(play())


def test_numbers_of_requests_are_kept_for_some_time() -> None:
    """Whoever sends one again meanwhile is told so; afterwards there is room for others."""
    now = [0.0]
    ids = RequestIds(clock=lambda: now[0])
    for number in range(1, 1000):
        now[0] = float(number)
        ids.track(number, "RunStep")
        with pytest.raises(ps.errors.AbortedError, match="received twice"):
            ids.track(max(number - 250, 1), "RunStep")
        assert len(ids._known) <= 301
    ids.track(1, "RunStep")
    ids.track(0, "RunStep")
    ids.track(0, "RunStep")


def test_what_is_kept_is_the_answer_alone() -> None:
    """Not the task that found it, which takes far more than a small answer."""

    def tasks() -> int:
        return sum(isinstance(each, asyncio.Task) for each in gc.get_objects())

    async def play() -> None:
        kept, before = Repeats(), tasks()

        async def work(*, fails: bool) -> bytes:
            if fails:
                raise ps.errors.NotFoundError("it is not there")
            return b"x"

        for number in range(100):
            assert await kept.answer(f"good {number}", lambda: work(fails=False)) == b"x"
            for _ in range(2):
                with pytest.raises(ps.errors.NotFoundError, match="it is not there"):
                    await kept.answer(f"bad {number}", lambda: work(fails=True))
        assert len(kept) == 200
        assert tasks() <= before + 2

    asyncio.run(play())


def test_work_ends_when_nobody_waits_for_it() -> None:
    """As long as one of two waits, it goes on; errors are told to both."""

    async def play() -> None:
        kept, begun, go = Repeats(), [], asyncio.Event()

        async def work() -> bytes:
            begun.append(1)
            await go.wait()
            raise ps.errors.NotFoundError("it is not there")

        first, second = (asyncio.ensure_future(kept.answer("k", work)) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        go.set()
        for again in (second, kept.answer("k", work)):
            with pytest.raises(ps.errors.NotFoundError, match="it is not there"):
                await again
        assert (len(begun), len(kept)) == (1, 1)
        go.clear()
        alone = asyncio.ensure_future(kept.answer("other", work))
        await asyncio.sleep(0.01)
        alone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await alone
        assert len(kept) == 1

    asyncio.run(play())
