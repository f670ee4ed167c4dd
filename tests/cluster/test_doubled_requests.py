"""Requests that come twice, late or not at all change nothing twice, and errors name the task."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster import Server
from penstock.cluster.services import METHODS, WORKER, Stub, request_class
from support.relay import Fate, Relay, Rule, all_pass, relayed
from support.sampling import sampled

Pair = tuple[list[Server], list[Relay]]
THERE = "/job:worker/task:1"
#: Those that a client, a master and a task in a collective operation use here.
USED = [
    "CreateSession", "ExtendSession", "PartialRunSetup", "RunStep", "CloseSession", "ListDevices",
    "Reset", "MakeCallable", "RunCallable", "ReleaseCallable", "GetStatus", "CreateWorkerSession",
    "DeleteWorkerSession", "RegisterGraph", "RunGraph", "CleanupGraph", "CleanupAll", "RecvTensor",
    "EnterCollective",
]  # fmt: skip
#: Nobody here calls these, or nobody waits for them.
UNUSED = {"AbortCollectives", "DeregisterGraph", "MarkRecvFinished", "Logging", "Tracing",
          "GetStepSequence"}  # fmt: skip


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two tasks, each behind a relay."""
    with relayed(2, heartbeat_seconds=1) as found:
        yield found


def only(method: str, fate: Fate, *, times: int = 1_000_000) -> Rule:
    """A rule for one method, so many times."""
    left = [times]

    def rule(called: str) -> Fate:
        if called != method or left[0] <= 0:
            return Fate.PASS
        left[0] -= 1
        return fate

    return rule


def target(relays: list[Relay], task: int = 0) -> str:
    """A task's relay, as sessions name it."""
    return f"grpc://127.0.0.1:{relays[task].port}"


def life(relays: list[Relay]) -> list[Any]:
    """All that a client can do, from the first request to the last; what came of it."""
    graph, found = ps.Graph(), []
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        with ps.device(THERE):
            v = ps.Variable(np.float32(1), name="v")
            far = x * 2.0
        near = ps.identity(far + 1.0, name="near")
        with ps.device(THERE):
            back = near * 10.0
            queue = ps.ops.FIFOQueueV2(component_types=[ps.dtypes.float32], shapes=[[]], name="q")
            put = ps.ops.QueueEnqueueV2(handle=queue, components=[x])
            size = ps.ops.QueueSizeV2(handle=queue)
        add = v.assign_add(near)
        init = ps.global_variables_initializer()
    with ps.Session(graph, target=target(relays)) as session:
        session.run(init)
        found += [float(session.run(add, {x: float(i)})) for i in range(3)]
        session.run(put, {x: 1.0})
        found += [float(session.run(back, {x: 3.0})), int(session.run(size))]
        with graph.as_default():
            more = back + 1.0
        found.append(float(session.run(more, {x: 3.0})))
        found.append(len(session.list_devices()))
        found.append(callable_of(session, near, x))
        found.append(float(session.run(v)))
    found.append(partly(relays))
    found.append(together(relays))
    ps.Session.reset(target(relays))
    with ps.Session(graph, target=target(relays)) as session:
        session.run(init)
        found.append(float(session.run(v)))
    return found


WANTED = [2.0, 5.0, 10.0, 70.0, 1, 71.0, 2, [3.0, 5.0], 10.0, [4.0, 8.0], [[6.0], [6.0]], 1.0]


def callable_of(session: Any, fetch: Any, feed: Any) -> list[float]:
    """What a callable gives, twice."""
    made = session.make_callable(fetch, [feed])
    found = [float(made(1.0)), float(made(2.0))]
    del made
    return found


def partly(relays: list[Relay]) -> list[float]:
    """A run over two calls."""
    graph = ps.Graph()
    with graph.as_default():
        a = ps.placeholder(ps.dtypes.float32, [], name="a")
        b = ps.placeholder(ps.dtypes.float32, [], name="b")
        one, two = a * 2.0, a * b
    with ps.Session(graph, target=target(relays)) as session:
        handle = session.partial_run_setup([one, two], [a, b])
        first = session.partial_run(handle, one, {a: 2.0})
        return [float(first), float(session.partial_run(handle, two, {b: 4.0}))]


def together(relays: list[Relay]) -> list[list[float]]:
    """A collective operation of both tasks, three times; the last sums."""

    def member(task: int) -> list[float]:
        graph = ps.Graph()
        with graph.as_default(), ps.device(f"/job:worker/task:{task}"):
            total = ps.ops.CollectiveReduce(
                input=ps.constant(np.float32([2.0 + 2 * task])), group_size=2, group_key=1,
                instance_key=1, merge_op="Add", final_op="Id", subdiv_offsets=[0],
            )  # fmt: skip
        with ps.Session(graph, target=target(relays, task)) as session:
            for _ in range(3):
                found = session.run(total)
        return [float(value) for value in found]

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(member, range(2)))


def until(holds: Any) -> None:
    """Wait for something that is to become true."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def nothing_is_left(servers: list[Server]) -> bool:
    """Whether no session, and no step but one of the last exchange, is there."""
    return all(
        not server.master._clients and not server.worker._sessions and len(server.task.steps) <= 1
        for server in servers
    )


def test_every_method_is_used_here_or_known_not_to_be() -> None:
    """A new method must be looked at."""
    methods = {method for group in METHODS.values() for method in group}
    assert methods == set(USED) | UNUSED


CASES = [(method, fate) for method in USED for fate in (Fate.TWICE, Fate.AGAIN, Fate.LATE)]


@pytest.mark.parametrize("case", sampled(CASES, 7), ids=lambda case: f"{case[0]}-{case[1].name}")
def test_one_method_twice_or_late(pair: Pair, case: tuple[str, Fate]) -> None:
    """A client's whole life gives what it gives without, and leaves nothing behind."""
    (servers, relays), (method, fate) = pair, case
    for relay in relays:
        relay.rule = only(method, fate)
    assert life(relays) == WANTED
    assert sum(relay.touched.get(method, 0) for relay in relays) > 0
    for relay in relays:
        relay.rule = all_pass
    until(lambda: nothing_is_left(servers))


def test_everything_twice(pair: Pair) -> None:
    """All requests at once, whoever sends them."""
    servers, relays = pair
    for relay in relays:
        relay.rule = lambda _method: Fate.TWICE
    assert life(relays) == WANTED
    for relay in relays:
        relay.rule = all_pass
    until(lambda: nothing_is_left(servers))


# -- what is lost --------------------------------------------------------------------------


def counter(device: str = THERE) -> tuple[ps.Graph, Any, Any, Any]:
    """A graph that counts."""
    graph = ps.Graph()
    with graph.as_default(), ps.device(device):
        v = ps.Variable(np.float32(0), name="v")
        add = v.assign_add(np.float32(1))
        return graph, add, ps.global_variables_initializer(), v


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.UNANSWERED])
def test_a_session_is_opened_once_though_its_answer_is_lost(pair: Pair, fate: Fate) -> None:
    """The client asks again by itself; the server has but one session."""
    servers, relays = pair
    relays[0].rule = only("CreateSession", fate, times=2)
    graph, add, init, _ = counter()
    with ps.Session(graph, target=target(relays)) as session:
        session.run(init)
        assert session.run(add) == 1.0
        assert len(servers[0].master._clients) == len(servers[1].worker._sessions) == 1
    until(lambda: nothing_is_left(servers))


@pytest.mark.parametrize(("fate", "count"), [(Fate.LOST, 1), (Fate.UNANSWERED, 2)])
def test_a_step_whose_answer_is_lost_is_not_run_again(pair: Pair, fate: Fate, count: int) -> None:
    """The client cannot know whether it was run: it is told who did not answer."""
    _, relays = pair
    graph, add, init, v = counter()
    with ps.Session(graph, target=target(relays)) as session:
        session.run(init)
        session.run(add)
        relays[0].rule = only("RunStep", fate, times=1)
        with pytest.raises(ps.errors.UnavailableError, match=f"127.0.0.1:{relays[0].port}"):
            session.run(add)
        assert session.run(v) == count


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.UNANSWERED])
@pytest.mark.parametrize(
    "method",
    # The client opens its session ten times.
    [pytest.param("CreateWorkerSession", marks=pytest.mark.slow), "RegisterGraph", "RunGraph"],
)
def test_errors_name_the_task(pair: Pair, method: str, fate: Fate) -> None:
    """Whatever request of a master is lost, or its answer; then all goes on."""
    _, relays = pair
    graph, add, init, v = counter()
    session = ps.Session(graph, target=target(relays))
    if method != "CreateWorkerSession":
        session.run(init)
    relays[1].rule = only(method, fate, times=20)
    with pytest.raises(ps.errors.UnavailableError, match="/job:worker/replica:0/task:1"):
        session.run(add)
    relays[1].rule = all_pass
    if method != "RunGraph":
        session.run(init)
    done = method == "RunGraph" and fate is Fate.UNANSWERED
    assert session.run(add) == 1.0 + done
    assert session.run(v) == 1.0 + done
    session.close()


def test_a_tensor_that_is_lost_names_the_task(pair: Pair) -> None:
    """A large one, which does not go along with an answer."""
    _, relays = pair
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [None], name="x")
        with ps.device(THERE):
            y = x * 2.0
        z = ps.identity(y, name="z")
    value = np.ones(100_000, np.float32)
    with ps.Session(graph, target=target(relays)) as session:
        assert session.run(z, {x: value}).sum() == 200_000
        relays[1].rule = only("RecvTensor", Fate.LOST, times=1)
        with pytest.raises(ps.errors.UnavailableError, match="/job:worker/replica:0/task:1"):
            session.run(z, {x: value})
        assert session.run(z, {x: value}).sum() == 200_000


def test_numbers_of_steps_are_given_once(pair: Pair) -> None:
    """A request for the next ones that comes twice gets the same."""
    _, relays = pair
    worker = Stub(grpc.insecure_channel(f"127.0.0.1:{relays[1].port}"), WORKER, "it")
    ask = request_class("GetStepSequence")(graph_key=[5])

    def next_step() -> int:
        number: int = worker.call("GetStepSequence", ask).step_sequence[0].next_step_id
        return number

    first = next_step()
    relays[1].rule = only("GetStepSequence", Fate.TWICE)
    assert [next_step(), next_step()] == [first + 1, first + 2]


def test_a_graph_that_is_forgotten_twice(pair: Pair) -> None:
    """The second time is answered as the first was."""
    servers, relays = pair
    relays[1].rule = lambda _method: Fate.TWICE
    worker = Stub(grpc.insecure_channel(f"127.0.0.1:{relays[1].port}"), WORKER, "it")
    graph = ps.Graph()
    with graph.as_default():
        ps.constant(2.0)
    definition = ps.graph_to_def(graph)
    definition.node[0].device = servers[1].task.client_device.name
    request = request_class("RegisterGraph")(session_handle="a", graph_def=definition)
    handle = worker.call("RegisterGraph", request).graph_handle
    session = servers[1].worker._sessions["a"]
    assert list(session.graphs) == [handle]
    gone = request_class("DeregisterGraph")(session_handle="a", graph_handle=handle)
    worker.call("DeregisterGraph", gone)
    assert session.graphs == {}
