"""Collective operations whose members are in several tasks, in one step or in one step each."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster import Server
from penstock.cluster.collectives import ExchangeService, TaskCollectives
from penstock.cluster.services import request_class
from penstock.state.collective_groups import Place
from support.clusters import new_cluster, serving


@pytest.fixture
def three() -> Iterator[list[Server]]:
    """Three tasks of one cluster."""
    with serving(new_cluster(worker=3), heartbeat_seconds=0.3) as servers:
        yield servers


def reduced(value: Any, key: int, size: int = 3, **attrs: Any) -> Any:
    """The sum of what all members bring."""
    return ps.ops.CollectiveReduce(
        input=value, group_size=size, group_key=1, instance_key=key, merge_op="Add",
        final_op="Id", subdiv_offsets=[0], **attrs,
    )  # fmt: skip


def test_devices_of_one_step_reduce_across_tasks(three: list[Server]) -> None:
    """Every member gets the sum of all, for small arrays and for those that go in pieces."""
    for size in (1, 7, 3_000_001):
        graph = ps.Graph()
        with graph.as_default():
            x = ps.placeholder(ps.dtypes.float32, [size], name="x")
            sums = []
            for task in range(3):
                with ps.device(f"/job:worker/task:{task}"):
                    sums.append(reduced(x * float(task + 1), 1))
        value = np.random.default_rng(2).standard_normal(size, dtype=np.float32)
        with ps.Session(graph, target=three[0].target) as session:
            for found in session.run(sums, {x: value}):
                np.testing.assert_allclose(found, value * 6, rtol=2e-6, atol=1e-6)


def in_steps_of_their_own(servers: list[Server], work: Callable[[int, Any], Any]) -> list[Any]:
    """What each task's own client gets, all of them at once."""
    with ThreadPoolExecutor(len(servers)) as pool:
        return list(pool.map(work, range(len(servers)), servers))


def test_steps_of_different_masters_meet(three: list[Server]) -> None:
    """Between-graph replication: each client runs its own graph at its own task, many times."""

    def train(task: int, server: Server) -> list[float]:
        graph = ps.Graph()
        with graph.as_default(), ps.device(f"/job:worker/task:{task}"):
            v = ps.Variable(np.zeros(2), name=f"v{task}")
            add = v.assign_add(reduced(ps.constant(np.array([1.0, task])), 7))
            init = ps.global_variables_initializer()
        with ps.Session(graph, target=server.target) as session:
            session.run(init)
            for _ in range(20):
                last = session.run(add)
        return [float(number) for number in last]

    assert in_steps_of_their_own(three, train) == [[60.0, 60.0]] * 3


def test_members_gather_and_broadcast(three: list[Server]) -> None:
    """Rows in the order of devices; the value of the one that sends it."""

    def work(task: int, server: Server) -> tuple[Any, Any]:
        graph = ps.Graph()
        with graph.as_default(), ps.device(f"/job:worker/task:{task}"):
            row = ps.constant(np.float32([[task, 10 * task]]))
            rows = ps.ops.CollectiveGather(
                input=row, group_size=3, group_key=2, instance_key=1, shape=[3, 2]
            )
            keys = {"group_size": 3, "group_key": 2, "instance_key": 2, "shape": [1, 2]}
            if task == 1:
                sent = ps.ops.CollectiveBcastSend(input=row, **keys)
            else:
                sent = ps.ops.CollectiveBcastRecv(T=ps.dtypes.float32, **keys)
        with ps.Session(graph, target=server.target) as session:
            return tuple(session.run([rows, sent]))

    for rows, sent in in_steps_of_their_own(three, work):
        np.testing.assert_array_equal(rows, [[0, 0], [1, 10], [2, 20]])
        np.testing.assert_array_equal(sent, [[1, 10]])


def test_nothing_is_left_of_exchanges(three: list[Server]) -> None:
    """Whatever was sent was taken, and its numbers are forgotten with the next exchange."""

    def work(task: int, server: Server) -> None:
        graph = ps.Graph()
        with graph.as_default(), ps.device(f"/job:worker/task:{task}"):
            total = reduced(ps.constant(np.ones(1000, np.float32)), 3)
        with ps.Session(graph, target=server.target) as session:
            for _ in range(30):
                session.run(total)

    in_steps_of_their_own(three, work)
    for server in three:
        assert len(server.task.steps) <= 2


def many(task: int, keys: range) -> tuple[ps.Graph, list[Any]]:
    """A graph with a reduction for each key, none of which waits for another."""
    graph = ps.Graph()
    with graph.as_default(), ps.device(f"/job:worker/task:{task}"):
        return graph, [reduced(ps.constant(np.full(5, key, np.float32)), key) for key in keys]


def test_many_exchanges_of_one_step_go_on_side_by_side(three: list[Server]) -> None:
    """One that has only just begun is not taken for one that is over."""
    keys = range(100, 140)

    def work(task: int, server: Server) -> list[float]:
        graph, sums = many(task, keys)
        with ps.Session(graph, target=server.target) as session:
            for _ in range(3):
                found = [float(total[0]) for total in session.run(sums)]
        return found

    assert in_steps_of_their_own(three, work) == [[3.0 * key for key in keys]] * 3
    found = in_steps_of_their_own(three, lambda task, server: outcome(server, task))
    assert found == [[3.0] * 4] * 3
    assert all(len(task_collectives(server)._known) <= 2 for server in three)


def test_exchanges_of_many_steps_go_on_side_by_side(three: list[Server]) -> None:
    """Steps of several sessions of each task, each with a group's exchange of its own."""

    def work(key: int, task: int) -> list[float]:
        graph, (total,) = many(task, range(key, key + 1))
        with ps.Session(graph, target=three[task].target) as session:
            return [float(session.run(total)[0]) for _ in range(10)]

    with ThreadPoolExecutor(24) as pool:
        found = [
            (key, pool.submit(work, key, task)) for key in range(200, 208) for task in range(3)
        ]
        for key, sums in found:
            assert sums.result(timeout=60) == [3.0 * key] * 10


def test_an_exchange_is_known_until_its_last_member_here_has_finished() -> None:
    """Whether anything was sent in it, or two devices of one task are in it."""
    with serving(new_cluster(worker=1), config=ps.Config(device_count={"CPU": 2})) as (server,):
        collectives, steps = task_collectives(server), server.task.steps
        devices = tuple(device.name for device in server.task.devices)
        one, other = (Place(devices, 0, 0, str(n), (1, 1), n) for n in (7, 8))
        first = collectives._peers_of(one)
        collectives._peers_of(other)
        assert steps.find_or_make(7) is first
        collectives.finished(one)
        collectives.finished(other)
        assert steps.find_or_make(7) is first
        collectives.finished(one)
        assert (len(steps), list(collectives._known)) == (1, [8])
        with pytest.raises(ps.errors.AbortedError):
            steps.find_or_make(7)


def test_a_member_that_goes_when_all_have_come_ends_the_exchange() -> None:
    """The others are in it already, and must not wait for what it would have sent."""
    with serving(new_cluster(worker=1), config=ps.Config(device_count={"CPU": 2})) as (server,):
        service = ExchangeService(server.task, task_collectives(server))
        requests = [
            request_class("EnterCollective")(
                group_key=1, group_size=2, instance_key=1, dtype=1, device=device.name
            )
            for device in server.task.devices
        ]

        async def play() -> int:
            gone, stays = (asyncio.ensure_future(service.enter_collective(r)) for r in requests)
            await asyncio.sleep(0)  # both have come, and neither has heard of that
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            number: int = (await stays).step_id
            return number

        with pytest.raises(ps.errors.AbortedError, match="Cleanup"):
            server.task.steps.find_or_make(asyncio.run(play()))


def task_collectives(server: Server) -> TaskCollectives:
    """The exchanges that a server's task knows."""
    return server._exchanges


@pytest.mark.parametrize("turns", range(5))
def test_a_member_that_comes_while_others_are_told_does_not_wait(turns: int) -> None:
    """The two before it do not fit, and have not heard of that yet, or only just."""
    with serving(new_cluster(worker=3)) as [server, *_]:
        service = ExchangeService(server.task, task_collectives(server))
        request = request_class("EnterCollective")
        requests = [
            request(
                group_key=1, group_size=3, instance_key=1, dtype=1, kind=0, shape=[4 + task],
                device=f"/job:worker/replica:0/task:{task}/device:CPU:0",
            )
            for task in range(3)
        ]  # fmt: skip

        async def play() -> list[Any]:
            first, second = (
                asyncio.ensure_future(service.enter_collective(r)) for r in requests[:2]
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            third = asyncio.ensure_future(service.enter_collective(requests[2]))
            members = asyncio.gather(first, second, third, return_exceptions=True)
            told = await asyncio.wait_for(members, 10)
            # All have been told, so the next exchange is one of all three.
            alike = [request(**fields_of(requests[0]), device=r.device) for r in requests]
            again = asyncio.gather(*(service.enter_collective(r) for r in alike))
            return [*told, *await asyncio.wait_for(again, 10)]

        *told, first, second, third = asyncio.run(play())
        assert all(isinstance(error, ps.errors.OpError) for error in told), told
        assert [first.rank, second.rank, third.rank] == [0, 1, 2]


def fields_of(request: Any) -> dict[str, Any]:
    """All that a request of a member says, but for who it is."""
    return {
        name: getattr(request, name)
        for name in ("group_key", "group_size", "instance_key", "dtype", "kind", "shape")
    }


def outcome(server: Server, task: int, **attrs: Any) -> Any:
    """A member's sum, or its error."""
    graph = ps.Graph()
    with graph.as_default(), ps.device(f"/job:worker/task:{task}"):
        total = reduced(ps.constant(np.ones(4, np.float32)), 5, **attrs)
    try:
        with ps.Session(graph, target=server.target) as session:
            return session.run(total).tolist()
    except ps.errors.OpError as error:
        return error


def test_a_member_that_never_comes_ends_by_the_timeout(three: list[Server]) -> None:
    """The one whose time is up says so, the others are told once; and the next exchange works."""
    with ThreadPoolExecutor(2) as pool:
        patient = pool.submit(outcome, three[0], 0)
        time.sleep(0.2)
        late = outcome(three[1], 1, timeout_seconds=0.3)
        assert isinstance(late, ps.errors.DeadlineExceededError)
        assert "timed out waiting for other workers" in str(late)
        told = patient.result(timeout=30)
    assert isinstance(told, ps.errors.OpError)
    assert "aborted" in str(told)
    assert "run the step again" in str(outcome(three[2], 2))
    found = in_steps_of_their_own(three, lambda task, server: outcome(server, task))
    assert found == [[3.0] * 4] * 3


def test_members_that_do_not_fit_are_told_why(three: list[Server]) -> None:
    """Other shapes, in the same instance."""

    def work(task: int, server: Server) -> Any:
        graph = ps.Graph()
        with graph.as_default(), ps.device(f"/job:worker/task:{task}"):
            total = reduced(ps.constant(np.ones(4 + task, np.float32)), 9)
        with ps.Session(graph, target=server.target) as session:
            with pytest.raises(ps.errors.OpError) as caught:
                session.run(total)
            return str(caught.value)

    texts = in_steps_of_their_own(three, work)
    assert any("shape" in text for text in texts), texts


def test_a_session_that_closes_ends_the_waits_of_others(three: list[Server]) -> None:
    """Nobody waits for a member that was cancelled while it waited."""
    graph = ps.Graph()
    with graph.as_default(), ps.device("/job:worker/task:2"):
        total = reduced(ps.constant(np.ones(4, np.float32)), 5)
    session = ps.Session(graph, target=three[2].target)
    run = session.run_async(total)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(outcome, three[0], 0)
        time.sleep(0.5)
        run.cancel()
        with pytest.raises(ps.errors.CancelledError):
            run.result(timeout=30)
        assert isinstance(other.result(timeout=30), ps.errors.OpError)
    session.close()


def test_a_task_that_stops_ends_the_exchange(three: list[Server]) -> None:
    """The others' steps end, with an error and not by waiting."""
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda t=task: results.append(outcome(three[t], t)))
        for task in (0, 1)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    three[1].stop()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert len(results) == 2
    assert all(isinstance(result, ps.errors.OpError) for result in results)
