"""Servers come and go, keep what lives in them, and answer whoever may ask."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster import GrpcSession, Security, Server
from penstock.cluster.services import MASTER, WORKER, Stub, request_class
from penstock.defs.tensors import to_proto
from penstock.kernels.parallel.contention import contention
from support.cluster_processes import Wire
from support.clusters import free_ports, new_cluster, serving


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that is a cluster by itself."""
    with serving(new_cluster(worker=1)) as (one,):
        yield one


@pytest.fixture
def pair() -> Iterator[list[Server]]:
    """Two tasks of one cluster, which look soon whether the other is there."""
    with serving(new_cluster(worker=2), heartbeat_seconds=0.3) as servers:
        yield servers


class Model:
    """A graph with a variable, a queue and a computation on another task."""

    def __init__(self, device: str = "") -> None:
        self.graph = ps.Graph()
        with self.graph.as_default(), ps.device(device):
            self.x = ps.placeholder(ps.dtypes.float32, [], name="x")
            self.double = self.x * 2.0
            self.variable = ps.Variable(np.float32(1), name="v")
            self.read = ps.identity(self.variable, name="read")
            self.add = self.variable.assign_add(self.x)
            queue = ps.ops.FIFOQueueV2(
                component_types=[ps.dtypes.float32], shapes=[[]], capacity=2, name="q"
            )
            self.put = ps.ops.QueueEnqueueV2(handle=queue, components=[self.x])
            (self.take,) = ps.ops.QueueDequeueV2(handle=queue, component_types=[ps.dtypes.float32])
            self.size = ps.ops.QueueSizeV2(handle=queue)
            self.random = ps.ops.RandomUniform(
                shape=ps.constant([1]), dtype=ps.dtypes.float32, seed=3, seed2=4
            )
            self.init = ps.global_variables_initializer()


def stub(server: Server, service: str = MASTER) -> Stub:
    """Calls a server by hand."""
    address = server.target.removeprefix("grpc://")
    return Stub(grpc.insecure_channel(address), service, "the server")


# -- life ------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_told() -> None:
    """And the server that did not start leaves nothing behind."""
    (port,) = free_ports(1)
    cluster = {"worker": [f"127.0.0.1:{port}"]}
    with serving(cluster):
        with pytest.raises(ps.errors.UnavailableError, match=f"cannot listen at 127.0.0.1:{port}"):
            Server(cluster)
    with Server(cluster, grace_seconds=0):
        pass  # once it is free, it can be had again


def test_a_server_stops_once_and_for_all(server: Server) -> None:
    """It may be told twice; it does not come back."""
    assert server.is_ready
    assert not server.join(0)
    server.stop()
    server.stop()
    assert server.join(0)
    with pytest.raises(ps.errors.FailedPreconditionError, match="was stopped"):
        server.start()


def test_the_state_of_a_session_elsewhere_is_not_copied(server: Server) -> None:
    """It is in other processes, and so is what a step of it would do; this is said at once."""
    model = Model()
    with ps.Session(model.graph, target=server.target) as session:
        session.run(model.init)
        with pytest.raises(ps.errors.UnimplementedError, match="in other processes"):
            session.snapshot()
        with pytest.raises(ps.errors.UnimplementedError, match="in other processes"):
            session.restore(None)
        with pytest.raises(ps.errors.UnimplementedError, match="in other processes"):
            ps.record(session, [])


def test_a_server_that_is_not_started_listens_to_nobody() -> None:
    """``start=False`` leaves that to ``start``."""
    cluster = new_cluster(worker=1)
    server = Server(cluster, start=False, grace_seconds=0)
    address = cluster["worker"][0]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
    with server:
        assert server.is_ready


def test_threads_end_with_the_server() -> None:
    """What a server began, ends with it."""
    with serving(new_cluster(worker=1)) as (one,):
        with ps.Session(Model().graph, target=one.target) as session:
            session.run("mul:0", {"x:0": 1.0})
    deadline = time.monotonic() + 10
    while _own_threads() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _own_threads()


def _own_threads() -> list[str]:
    names = ("penstock-grpc", "penstock-heartbeat", "penstock-server")
    return [t.name for t in threading.enumerate() if t.name.startswith(names)]


@pytest.mark.parametrize(("job", "index"), [("ps", 0), ("worker", 5), ("", None), ("worker", None)])
def test_tasks_that_the_cluster_lacks(job: str, index: int | None) -> None:
    """A server must be told which task it is, unless there is but one."""
    with pytest.raises((ps.errors.NotFoundError, ps.errors.InvalidArgumentError)):
        Server({"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, job, index, start=False)


def test_only_this_machine_is_let_in_by_default(server: Server) -> None:
    """A server listens at the loopback address unless it is told another one."""
    port = int(server.target.rpartition(":")[2])
    own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in own - {"127.0.0.1"}:
        if address.startswith("127."):
            continue
        with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
            socket.create_connection((address, port), timeout=1)


# -- state -----------------------------------------------------------------------------


def test_variables_outlive_sessions_and_are_shared(server: Server) -> None:
    """All sessions of a server see one variable, until it is reset."""
    model = Model()
    with ps.Session(model.graph, target=server.target) as one:
        one.run(model.init)
        one.run(model.add, {model.x: 4.0})
    with ps.Session(Model().graph, target=server.target) as other:
        assert other.run("read:0") == 5.0
        ps.Session.reset(server.target)
        with pytest.raises(ps.errors.AbortedError, match="is not found"):
            other.run("read:0")
    with ps.Session(model.graph, target=server.target) as one:
        with pytest.raises(ps.errors.FailedPreconditionError, match="uninitialized"):
            one.run("read:0")


@pytest.mark.parametrize("device", ["", "/job:worker/task:1"])
def test_queues_without_a_name_are_the_sessions_own(pair: list[Server], device: str) -> None:
    """As TensorFlow's servers have it, wherever the queue lies."""
    one, other = (ps.Session(Model(device).graph, target=pair[0].target) for _ in range(2))
    put, size = Model(device).put.name, Model(device).size.name
    with one, other:
        one.run(put, {"x:0": 1.0})
        assert (one.run(size), other.run(size)) == (1, 0)
    deadline = time.monotonic() + 10
    while any(_queues(server) for server in pair):  # other tasks hear of it when nobody waits
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _queues(server: Server) -> list[Any]:
    kept = [key for of in server.task.resources.managers for key in of._resources]
    return [key for key in kept if key[1] == "Queue"]


@pytest.mark.parametrize("device", ["", "/job:worker/task:1"])
def test_streams_of_random_numbers_are_the_sessions_own(pair: list[Server], device: str) -> None:
    """Whatever is fetched beside it, a node's stream goes on; another session begins anew."""
    model = Model(device)
    with ps.Session(model.graph, target=pair[0].target) as session:
        first = session.run(model.random)
        second = session.run([model.random, model.double], {model.x: 1.0})[0]
        assert first != second
    with ps.Session(model.graph, target=pair[0].target) as session:
        assert session.run(model.random) == first
    with ps.Session(Model().graph) as local:
        assert [local.run(model.random.name), local.run(model.random.name)] == [first, second]


def test_isolated_sessions_have_variables_of_their_own(pair: list[Server]) -> None:
    """``isolate_session_state`` holds for all tasks."""
    from penstock.defs.schema import ConfigProto

    model = Model("/job:worker/task:1")
    isolated = ConfigProto(isolate_session_state=True, allow_soft_placement=True)
    with ps.Session(model.graph, target=pair[0].target) as shared:
        shared.run(model.init)
        with ps.Session(model.graph, target=pair[0].target, config=isolated) as alone:
            with pytest.raises(ps.errors.FailedPreconditionError):
                alone.run(model.variable)


def test_a_graph_may_grow(server: Server) -> None:
    """What is built after the first run gets to the server before the next."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        y = x + 1.0
    with ps.Session(graph, target=server.target) as session:
        assert session.run(y, {x: 1.0}) == 2.0
        with graph.as_default():
            z = y * 10.0
        assert session.run([z, y], {x: 1.0}) == [20.0, 2.0]


def test_two_clients_cannot_extend_one_graph(server: Server) -> None:
    """Who does not know what the other one added is refused."""
    master = stub(server)
    graph = ps.Graph()
    with graph.as_default():
        ps.constant(1.0, name="one")
    created = master.call("CreateSession", request_class("CreateSession")())
    extend = request_class("ExtendSession")(
        session_handle=created.session_handle,
        graph_def=ps.graph_to_def(graph),
        current_graph_version=created.graph_version,
    )
    assert master.call("ExtendSession", extend).new_graph_version == created.graph_version + 1
    with pytest.raises(ps.errors.AbortedError, match="Current version is 1 but caller expected 0"):
        master.call("ExtendSession", extend)


def test_sessions_that_nobody_uses_end() -> None:
    """After the time that the server allows; one in use goes on."""
    with serving(new_cluster(worker=1), session_gc_seconds=0.5) as (one,):
        model = Model()
        session = ps.Session(model.graph, target=one.target)
        session.run(model.double, {model.x: 1.0})
        waiting = session.run_async(model.take)
        time.sleep(2.5)
        assert not waiting.is_done()
        session.run(model.put, {model.x: 3.0})
        assert waiting.result(10) == 3.0
        time.sleep(2.5)
        with pytest.raises(ps.errors.AbortedError, match="is not found"):
            session.run(model.double, {model.x: 1.0})


# -- requests --------------------------------------------------------------------------


def test_a_request_that_comes_twice_is_run_once(server: Server) -> None:
    """The second one is refused, and says why."""
    model = Model()
    master = stub(server)
    with ps.Session(model.graph, target=server.target) as session:
        session.run(model.init)
        request = request_class("RunStep")(
            session_handle=session._handle, target=[model.add.name.split(":")[0]], request_id=77
        )
        request.feed.add(name="x:0", tensor=to_proto(np.float32(5)))
        master.call("RunStep", request)
        with pytest.raises(ps.errors.AbortedError, match="RunStep request was received twice"):
            master.call("RunStep", request)
        assert session.run(model.variable) == 6.0


@pytest.mark.parametrize(
    ("method", "fields", "kind", "text"),
    [
        ("RunStep", {"session_handle": "x"}, ps.errors.AbortedError, "Session x is not found"),
        ("CloseSession", {"session_handle": "x"}, ps.errors.AbortedError, "is not found"),
        ("ListDevices", {"session_handle": "x"}, ps.errors.AbortedError, "is not found"),
        ("RunCallable", {"session_handle": "x"}, ps.errors.AbortedError, "is not found"),
        ("PartialRunSetup", {"session_handle": "x"}, ps.errors.AbortedError, "is not found"),
    ],
)
def test_strange_sessions(
    server: Server, method: str, fields: dict[str, Any], kind: type[Exception], text: str
) -> None:
    """A session that a master does not know may be one of its past life."""
    with pytest.raises(kind, match=text):
        stub(server).call(method, request_class(method)(**fields))


@pytest.mark.parametrize(
    ("method", "fields", "text"),
    [
        ("RunGraph", {"session_handle": "x"}, "Session handle is not found: x. Possibly this w"),
        ("RegisterGraph", {"session_handle": "x", "create_worker_session_called": True}, "is not"),
        ("DeregisterGraph", {"session_handle": "x"}, "Session handle is not found"),
    ],
)
def test_strange_sessions_of_a_worker(
    server: Server, method: str, fields: dict[str, Any], text: str
) -> None:
    """So may one that a worker does not know."""
    with pytest.raises(ps.errors.AbortedError, match=text):
        stub(server, WORKER).call(method, request_class(method)(**fields))


def test_tensors_of_another_life_are_refused(server: Server) -> None:
    """A key with another incarnation is for the task that was here before."""
    device = server.task.client_device.name
    request = request_class("RecvTensor")(
        step_id=1, rendezvous_key=f"{device};00000000000000ff;{device};edge_1_x;0:0"
    )
    with pytest.raises(ps.errors.AbortedError, match="expects a different device incarnation"):
        stub(server, WORKER).call("RecvTensor", request)


@pytest.mark.parametrize(
    "key", ["", "a:0", "a;b;c;d;0:0", "/job:x/replica:0/task:0/device:CPU:0;1;"]
)
def test_keys_that_are_none_are_refused(server: Server, key: str) -> None:
    """A rendezvous key has all its parts."""
    request = request_class("RecvTensor")(step_id=1, rendezvous_key=key)
    with pytest.raises(ps.errors.InvalidArgumentError, match="Invalid  rendezvous key"):
        stub(server, WORKER).call("RecvTensor", request)


def test_who_asks_first_gets_it_all_the_same(server: Server) -> None:
    """RecvTensor may come before the step does; when the step is over, it is told."""
    device = server.task.client_device
    key = f"{device.name};{device.incarnation:016x};{device.name};edge_1_x;0:0"
    worker, answers = stub(server, WORKER), []
    got = threading.Event()

    def answered(error: Any, answer: Any) -> None:
        answers.append((error, answer))
        got.set()

    worker.start("RecvTensor", request_class("RecvTensor")(step_id=9, rendezvous_key=key), answered)
    time.sleep(0.2)
    server.task.steps.find_or_make(9).send(key, np.float32(2.5))
    assert got.wait(10)
    assert answers[0][0] is None
    worker.call("CleanupGraph", request_class("CleanupGraph")(step_id=9))
    with pytest.raises(ps.errors.AbortedError, match="Cleanup 9"):
        worker.call("RecvTensor", request_class("RecvTensor")(step_id=9, rendezvous_key=key))


# -- ends ------------------------------------------------------------------------------


def test_closing_a_session_ends_what_goes_on(pair: list[Server]) -> None:
    """Whoever waits is told, wherever the queue lies."""
    for device in ("", "/job:worker/task:1"):
        model = Model(device)
        session = ps.Session(model.graph, target=pair[0].target)
        session.run(model.double, {model.x: 1.0})
        waiting = session.run_async(model.take)
        time.sleep(0.3)
        session.close()
        with pytest.raises(ps.errors.CancelledError):
            waiting.result(10)


def test_cancelling_ends_the_step_at_the_server(pair: list[Server]) -> None:
    """An element that comes later is not taken by who went away."""
    model = Model("/job:worker/task:1")
    with ps.Session(model.graph, target=pair[0].target) as session:
        session.run(model.double, {model.x: 1.0})
        waiting = session.run_async(model.take)
        time.sleep(0.3)
        waiting.cancel()
        with pytest.raises(ps.errors.CancelledError):
            waiting.result(10)
        time.sleep(0.3)
        session.run(model.put, {model.x: 8.0})
        assert session.run(model.size) == 1
        assert session.run(model.take) == 8.0


def test_deadlines_hold_and_say_who_waits(pair: list[Server]) -> None:
    """The error comes from the master, which knows what its step waits for."""
    model = Model("/job:worker/task:1")
    with ps.Session(model.graph, target=pair[0].target) as session:
        session.run(model.double, {model.x: 1.0})
        start = time.monotonic()
        with pytest.raises(
            ps.errors.DeadlineExceededError, match=r"QueueDequeue|part of the graph"
        ):
            session.run(model.take, options=ps.RunOptions(timeout_in_ms=300))
        assert time.monotonic() - start < 5


def test_a_server_that_is_not_there_is_named() -> None:
    """Who cannot be reached, where, and how often it was tried."""
    (port,) = free_ports(1)
    with ps.Session(Model().graph, target=f"grpc://127.0.0.1:{port}") as session:
        config = ps.RunOptions(timeout_in_ms=500)
        with pytest.raises(ps.errors.UnavailableError, match=f"127.0.0.1:{port} cannot be reached"):
            session.run("mul:0", {"x:0": 1.0}, options=config)


@pytest.mark.parametrize("target", ["grpc://", "grpc://x", "http://a:1", "a:1", 7])
def test_targets_that_are_none(target: Any) -> None:
    """What is no server's address is refused at once."""
    with pytest.raises((ps.errors.InvalidArgumentError, ps.errors.NotFoundError)):
        ps.Session(Model().graph, target=target)


def test_a_worker_that_dies_is_named(pair: list[Server]) -> None:
    """A step on a worker that is gone fails at once, and says which."""
    model = Model("/job:worker/task:1")
    with ps.Session(model.graph, target=pair[0].target) as session:
        assert session.run(model.double, {model.x: 1.0}) == 2.0
        pair[1].stop()
        with pytest.raises(ps.errors.UnavailableError, match="/job:worker/replica:0/task:1"):
            session.run(model.double, {model.x: 1.0})


def test_a_worker_that_comes_back_is_another_one() -> None:
    """An old session is aborted, which says to open a new one; that works."""
    cluster = new_cluster(worker=2)
    model = Model("/job:worker/task:1")
    with Server(cluster, "worker", 0, grace_seconds=0) as first:
        second = Server(cluster, "worker", 1, grace_seconds=0)
        session = ps.Session(model.graph, target=first.target)
        assert session.run(model.double, {model.x: 1.0}) == 2.0
        second.stop()
        with Server(cluster, "worker", 1, grace_seconds=0):
            error = _first_but_unavailable(session, model)
            assert isinstance(error, ps.errors.AbortedError)
            with ps.Session(model.graph, target=first.target) as new:
                assert new.run(model.double, {model.x: 2.0}) == 4.0
        session.close()


def _first_but_unavailable(session: Any, model: Model) -> Exception | None:
    """The error of a run once the worker can be reached again."""
    for _ in range(50):
        try:
            session.run(model.double, {model.x: 1.0})
        except ps.errors.UnavailableError:
            time.sleep(0.1)
        except ps.errors.OpError as error:
            return error
        else:
            return None
    raise AssertionError("the worker stayed unreachable")


def test_a_session_waits_for_tasks_that_start_late() -> None:
    """As long as the caller allows; then it says that it gave up."""
    cluster = new_cluster(worker=2)
    model = Model("/job:worker/task:1")
    with Server(cluster, "worker", 0, grace_seconds=0) as first:
        with ps.Session(model.graph, target=first.target) as session:
            with pytest.raises(ps.errors.DeadlineExceededError):
                session.run(model.double, {model.x: 1.0}, options=ps.RunOptions(timeout_in_ms=300))
            run = session.run_async(model.double, {model.x: 1.0})
            time.sleep(0.5)
            with Server(cluster, "worker", 1, grace_seconds=0):
                assert run.result(20) == 2.0


def test_filters_leave_tasks_out() -> None:
    """A session that wants nothing of a task does not wait for it."""
    from penstock.defs.schema import ConfigProto

    cluster = new_cluster(worker=2)
    model = Model()
    config = ConfigProto(device_filters=["/job:worker/task:0"], allow_soft_placement=True)
    with Server(cluster, "worker", 0, grace_seconds=0) as first:
        with ps.Session(model.graph, target=first.target, config=config) as session:
            assert session.run(model.double, {model.x: 3.0}) == 6.0
            assert len(session.list_devices()) == 1


# -- who may ask -----------------------------------------------------------------------


def test_a_token_keeps_strangers_out() -> None:
    """Neither sessions nor tasks without it get an answer."""
    security = Security(token="a-secret")
    model = Model("/job:worker/task:1")
    with serving(new_cluster(worker=2), security=security) as servers:
        target = servers[0].target
        with GrpcSession(model.graph, target=target, security=security) as session:
            assert session.run(model.double, {model.x: 1.0}) == 2.0
        for wrong in (Security(), Security(token="another")):
            with GrpcSession(model.graph, target=target, security=wrong) as session:
                with pytest.raises(ps.errors.UnauthenticatedError, match="token"):
                    session.run(model.double, {model.x: 1.0})
    assert "a-secret" not in repr(security)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate of 127.0.0.1, signed by itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder: Path = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", key, "-out", cert, "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return str(cert), str(key)


def test_tls_keeps_strangers_out(certificate: tuple[str, str]) -> None:
    """Only who has a certificate that the server knows is let in."""
    cert, key = certificate
    security = Security(tls_ca=cert, tls_certificate=cert, tls_key=key)
    model = Model("/job:worker/task:1")
    with serving(new_cluster(worker=2), security=security) as servers:
        target = servers[0].target
        with GrpcSession(model.graph, target=target, security=security) as session:
            assert session.run(model.double, {model.x: 1.0}) == 2.0
        for wrong in (Security(), Security(tls_ca=cert)):
            with GrpcSession(model.graph, target=target, security=wrong) as session:
                with pytest.raises(ps.errors.OpError):
                    session.run(
                        model.double, {model.x: 1.0}, options=ps.RunOptions(timeout_in_ms=2000)
                    )


def test_wrong_files_are_told(tmp_path: Path) -> None:
    """A certificate that is not there is named, and so is one without its key."""
    missing = str(tmp_path / "none.pem")
    with pytest.raises(ps.errors.InvalidArgumentError, match="certificate and its key"):
        Security(tls_certificate=missing)
    security = Security(tls_certificate=missing, tls_key=missing)
    with pytest.raises(ps.errors.NotFoundError, match=r"none\.pem"):
        Server(new_cluster(worker=1), security=security)


# -- health ----------------------------------------------------------------------------


def test_health() -> None:
    """The server is there at once; it is ready when its whole cluster is."""
    cluster = new_cluster(worker=2)
    with Server(cluster, "worker", 0, grace_seconds=0) as first:
        assert _check(first, "") == _check(first, "tensorflow.MasterService") == b"\x08\x01"
        assert _check(first, "ready") == b"\x08\x02"
        with Server(cluster, "worker", 1, grace_seconds=0):
            deadline = time.monotonic() + 10
            while _check(first, "ready") != b"\x08\x01":
                assert time.monotonic() < deadline
                time.sleep(0.1)
        with pytest.raises(grpc.RpcError) as raised:
            _check(first, "another")
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND


def _check(server: Server, name: str) -> bytes:
    channel = grpc.insecure_channel(server.target.removeprefix("grpc://"))
    text = name.encode()
    request = b"\x0a" + bytes([len(text)]) + text if text else b""
    answer: bytes = channel.unary_unary("/grpc.health.v1.Health/Check")(request)
    return answer


def test_calls_are_counted(server: Server) -> None:
    """By method, with those that failed."""
    model = Model()
    with ps.Session(model.graph, target=server.target) as session:
        session.run(model.double, {model.x: 1.0})
        with pytest.raises(ps.errors.OpError):
            stub(server).call("RunStep", request_class("RunStep")(session_handle="x"))
    counts = server.metrics.counts()
    assert counts['calls_total{method="CreateSession"}'] == 1
    assert counts['calls_total{method="RunStep"}'] == 2
    assert counts['failed_calls_total{method="RunStep"}'] == 1
    assert 'penstock_calls_total{method="RunStep"} 2\n' in server.metrics.text()


def test_who_is_slow_to_connect_is_waited_for() -> None:
    """A while until the other end says a word is no reason to give up."""
    cluster = new_cluster(worker=2)
    own, other = cluster["worker"]
    (port,) = free_ports(1)
    wire = Wire(port, int(other.rpartition(":")[2]))
    wire.delay = 0.15
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        with ps.device("/job:worker/task:1"):
            y = x * 2.0
    beyond_wire = {"worker": [own, f"127.0.0.1:{port}"]}
    try:
        with (
            Server(beyond_wire, "worker", 0, grace_seconds=0) as first,
            Server(cluster, "worker", 1, grace_seconds=0),
            ps.Session(graph, target=first.target) as session,
        ):
            assert session.run(y, {x: 3.0}) == 6
    finally:
        wire.close()


def test_a_servers_config_limits_its_threads() -> None:
    """As long as it runs, whatever its clients ask for."""
    config = ps.Config(intra_op_parallelism_threads=1)
    before = contention.threads(8)
    with Server(new_cluster(worker=1), "worker", 0, config=config, grace_seconds=0) as server:
        assert contention.threads(8) == 1
        with ps.Session(ps.Graph(), target=server.target) as session:
            session.list_devices()
            assert contention.threads(8) == 1
        assert contention.threads(8) == 1
    assert contention.threads(8) == before
