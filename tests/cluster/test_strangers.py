"""Whatever strangers send to a server's port, it goes on, and answers others meanwhile."""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster import Security, Server
from penstock.cluster.bounds import Bounds
from penstock.cluster.services import EXCHANGE, MASTER, PIECES, WORKER, Stub, request_class
from penstock.defs.tensors import to_proto
from support import strangers
from support.clusters import new_cluster, serving
from support.strangers import PREFACE, SETTINGS, Caller

#: In milliseconds; a server that works for strangers alone answers later than that.
PATIENCE = ps.RunOptions(timeout_in_ms=20_000)
#: What a request that makes no sense may end with: all but what a mistake of ours would.
REFUSALS = {
    "OK", "INVALID_ARGUMENT", "ABORTED", "NOT_FOUND", "FAILED_PRECONDITION", "UNIMPLEMENTED",
    "OUT_OF_RANGE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "CANCELLED",
}  # fmt: skip


class Customer:
    """A client who gets answers as long as the server is well."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.graph = ps.Graph()
        with self.graph.as_default():
            self.x = ps.placeholder(ps.dtypes.float32, None, name="x")
            self.y = ps.identity(self.x * 2.0, name="y")
            self.words = ps.identity(ps.placeholder(ps.dtypes.string, None, name="w"), name="ww")
        self.session = ps.Session(self.graph, target=server.target)
        self.is_served()

    def is_served(self) -> None:
        """Get an answer."""
        assert self.session.run(self.y, {self.x: 3.0}, PATIENCE) == 6.0


@pytest.fixture
def customer(caplog: pytest.LogCaptureFixture) -> Iterator[Customer]:
    """A client of a server that is a cluster by itself; no mistake of ours is logged."""
    with caplog.at_level(logging.ERROR):
        with serving(new_cluster(worker=1), handshake_seconds=1) as (server,):
            made = Customer(server)
            yield made
            made.is_served()
            made.session.close()
    mistakes = [record for record in caplog.records if record.name == "penstock.cluster"]
    assert not mistakes, mistakes[0].getMessage()


# -- bytes ---------------------------------------------------------------------------------


def test_who_speaks_another_protocol_is_hung_up_on(customer: Customer) -> None:
    """HTTP/1, TLS, zeros, random bytes, with HTTP/2's beginning or without."""
    for content in strangers.garbage(random.Random(1)):
        with contextlib.suppress(ConnectionError):
            connection = strangers.connect(customer.server, content)
            connection.settimeout(0.05)
            with contextlib.suppress(TimeoutError):
                strangers.until_closed(connection)
            connection.close()
        customer.is_served()


@pytest.mark.parametrize("content", [b"", b"PRI * HT", PREFACE])
def test_who_says_nothing_is_hung_up_on(customer: Customer, content: bytes) -> None:
    """A connection on which the protocol never begins ends after ``handshake_seconds``."""
    strangers.until_closed(strangers.connect(customer.server, content))


def test_a_message_that_says_it_is_huge_is_refused(customer: Customer) -> None:
    """Whoever announces four gigabytes need not send them to be told."""
    path = f"/{MASTER}/RunStep"
    for announced in (0xFFFFFFFF, 0x80000000):
        head = strangers.call_head(path) + strangers.frame(
            0, 0, 1, b"\x00" + announced.to_bytes(4, "big") + b"x" * 100
        )
        connection = strangers.connect(customer.server, PREFACE + SETTINGS + head)
        found = b""
        while b"grpc-status" not in found and b"\x018" not in found:
            piece = connection.recv(1 << 12)
            assert piece
            found += piece
        connection.close()
        customer.is_served()


def test_larger_messages_than_allowed_are_refused() -> None:
    """``max_message_bytes`` holds for requests, and smaller ones are answered."""
    with serving(new_cluster(worker=1), max_message_bytes=10_000) as (server,):
        customer = Customer(server)
        large = np.zeros(5_000, np.float32)
        with pytest.raises(ps.errors.ResourceExhaustedError, match="larger than max"):
            customer.session.run(customer.y, {customer.x: large})
        customer.is_served()
        customer.session.close()


@pytest.mark.parametrize(
    "limits", [{"max_message_bytes": 0}, {"max_message_bytes": 1 << 31}, {"handshake_seconds": 0}]
)
def test_limits_that_make_no_sense(limits: dict[str, Any]) -> None:
    """Are told at once."""
    with pytest.raises(ps.errors.InvalidArgumentError, match="max_message_bytes"):
        Server(new_cluster(worker=1), start=False, **limits)


def test_calls_that_never_end_keep_nobody_waiting(customer: Customer) -> None:
    """Headers without a message, and half a message, of every method."""
    held = []
    for path, _ in strangers.PATHS:
        for message in (b"", b"\x00\x00\x00\x10\x00half"):
            content = PREFACE + SETTINGS + strangers.call_head(path)
            content += strangers.frame(0, 0, 1, message) if message else b""
            held.append(strangers.connect(customer.server, content))
    customer.is_served()
    for connection in held:
        connection.close()


def test_plain_callers_at_a_tls_port(tmp_path: Path) -> None:
    """They are hung up on, and who speaks TLS is let in."""
    cert, key = new_certificate(tmp_path)
    security = Security(tls_ca=cert, tls_certificate=cert, tls_key=key)
    with serving(new_cluster(worker=1), security=security, handshake_seconds=1) as (server,):
        for content in (b"", PREFACE + SETTINGS, b"GET / HTTP/1.1\r\n\r\n", CUT_HELLO):
            strangers.until_closed(strangers.connect(server, content))
        with ps.cluster.GrpcSession(_two(), target=server.target, security=security) as session:
            assert session.run("two:0") == 2.0


CUT_HELLO = strangers.CLIENT_HELLO[:40]


def _two() -> ps.Graph:
    graph = ps.Graph()
    with graph.as_default():
        ps.constant(2.0, name="two")
    return graph


def new_certificate(folder: Path) -> tuple[str, str]:
    """A certificate of 127.0.0.1 that vouches for itself, and its key."""
    import subprocess

    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-keyout", key, "-out", cert, "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return str(cert), str(key)


# -- requests ------------------------------------------------------------------------------

#: CreateSession waits for nobody here, and Reset would end the customer's session.
TRIED = [(path, method) for path, method in strangers.PATHS if method != "Reset"]


@pytest.mark.parametrize(("path", "method"), TRIED, ids=[method for _, method in TRIED])
def test_requests_that_make_no_sense_are_refused(
    customer: Customer, path: str, method: str
) -> None:
    """Random bytes, random fields and damaged requests, of every method of every service."""
    caller, draw = Caller(customer.server), random.Random(method)
    found = {
        caller.code(path, content, seconds=0.3) for content in strangers.requests(method, draw, 12)
    }
    caller.close()
    assert found <= REFUSALS
    customer.is_served()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_more_requests_that_make_no_sense_are_refused(customer: Customer, seed: int) -> None:
    """The same for many of each method, in any order, at one server."""
    caller, draw = Caller(customer.server), random.Random(seed)
    tried = [
        (path, content)
        for path, method in TRIED
        for content in strangers.requests(method, draw, 100)
    ]
    draw.shuffle(tried)
    for path, content in tried:
        code = caller.code(path, content, seconds=0.1)
        assert code in REFUSALS, (path, content)
    caller.close()
    customer.is_served()


def test_resets_that_make_no_sense(customer: Customer) -> None:
    """What cannot be read resets nothing."""
    caller = Caller(customer.server)
    assert caller.code(f"/{MASTER}/Reset", b"\xff\xff\xff") == "INVALID_ARGUMENT"
    assert caller.code(f"/{MASTER}/Nothing", b"") == "UNIMPLEMENTED"
    assert caller.code("/", b"") == "UNIMPLEMENTED"
    assert caller.code(PIECES, b"\xff") == "INVALID_ARGUMENT"
    assert caller.code(PIECES, b"") in ("NOT_FOUND", "ABORTED")
    caller.close()


def test_without_the_token_no_request_is_read() -> None:
    """Not even told that it cannot be read."""
    with serving(new_cluster(worker=1), security=Security(token="t")) as (server,):
        caller = Caller(server)
        for path, _ in strangers.PATHS:
            assert caller.code(path, b"\xff\xff") == "UNAUTHENTICATED"
        caller.close()


def test_tensors_that_are_none_are_refused(customer: Customer) -> None:
    """Negative, huge and overflowing shapes, and contents that do not fit, wherever they come."""
    session = customer.session._handle
    master, worker = stub(customer.server, MASTER), stub(customer.server, WORKER)
    handles = registered(customer.server, worker)
    for tensor in strangers.absurd_tensors():
        step = request_class("RunStep")(session_handle=session, fetch=["y:0"])
        step.feed.add(name="x:0", tensor=tensor)
        assert code_of(master, "RunStep", step) in REFUSALS
        run = request_class("RunGraph")(**handles, step_id=5, recv_key=["x"])
        run.send.add(name="x", tensor=tensor)
        assert code_of(worker, "RunGraph", run) in REFUSALS
        worker.call("CleanupGraph", request_class("CleanupGraph")(step_id=5))
        node = ps.graph_to_def(_two())
        node.node[0].attr["value"].tensor.CopyFrom(tensor)
        create = request_class("CreateSession")(graph_def=node)
        assert code_of(master, "CreateSession", create) in REFUSALS
        customer.is_served()


def stub(server: Server, service: str) -> Stub:
    """Calls a server by hand."""
    return Stub(grpc.insecure_channel(server.target.removeprefix("grpc://")), service, "it")


def code_of(called: Stub, method: str, request: Any) -> str:
    """How a call ends."""
    try:
        called.call(method, request, timeout=10)
    except ps.errors.OpError as error:
        return error.code.name
    return "OK"


def registered(server: Server, worker: Stub) -> dict[str, str]:
    """The handles of a session and of a graph at a worker."""
    worker.call(
        "CreateWorkerSession", request_class("CreateWorkerSession")(session_handle="stranger")
    )
    graph = ps.graph_to_def(_two())
    graph.node[0].device = server.task.client_device.name
    request = request_class("RegisterGraph")(
        session_handle="stranger", graph_def=graph, create_worker_session_called=True
    )
    answer = worker.call("RegisterGraph", request)
    return {"session_handle": "stranger", "graph_handle": answer.graph_handle}


def test_requests_out_of_order_are_refused(customer: Customer) -> None:
    """Steps of graphs and sessions that there are not, or no more; the same twice."""
    worker, exchange = stub(customer.server, WORKER), stub(customer.server, EXCHANGE)
    handles = registered(customer.server, worker)
    run = request_class("RunGraph")
    worker.call("CleanupGraph", request_class("CleanupGraph")(step_id=7))
    assert code_of(worker, "RunGraph", run(**handles, step_id=7)) == "ABORTED"
    assert code_of(worker, "RunGraph", run(**handles | {"graph_handle": "x"})) == "ABORTED"
    assert code_of(worker, "RunGraph", run(**handles, step_id=8, request_id=3)) == "OK"
    assert code_of(worker, "RunGraph", run(**handles, step_id=9, request_id=3)) == "ABORTED"
    worker.call(
        "DeleteWorkerSession", request_class("DeleteWorkerSession")(session_handle="stranger")
    )
    assert code_of(worker, "RunGraph", run(**handles, step_id=10)) == "ABORTED"
    assert code_of(worker, "DeregisterGraph", request_class("DeregisterGraph")(**handles)) == (
        "ABORTED"
    )
    assert len(customer.server.task.steps) == 0
    enter = request_class("EnterCollective")(
        group_key=1, group_size=1, device="/job:other/replica:0/task:0/device:CPU:0", dtype=1
    )
    assert code_of(exchange, "EnterCollective", enter) == "INVALID_ARGUMENT"
    enter.device = "nothing"
    assert code_of(exchange, "EnterCollective", enter) == "INVALID_ARGUMENT"


# -- those who went away ---------------------------------------------------------------------


def test_a_session_that_is_made_too_late_ends(
    monkeypatch: pytest.MonkeyPatch, customer: Customer
) -> None:
    """CreateSession whose deadline passed while it worked leaves nothing behind."""
    master = customer.server.master
    make = type(master).create_session

    def slowly(self: Any, *args: Any) -> Any:
        made = make(self, *args)
        time.sleep(0.5)
        return made

    monkeypatch.setattr(type(master), "create_session", slowly)
    before = set(master._clients)
    with pytest.raises(ps.errors.DeadlineExceededError):
        stub(customer.server, MASTER).call(
            "CreateSession", request_class("CreateSession")(), timeout=0.2
        )
    until(lambda: set(master._clients) != before)
    until(lambda: set(master._clients) == before)


def until(holds: Any) -> None:
    """Wait for something that is to become true."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_session_that_nobody_names_ends() -> None:
    """The answer with its handle was lost; one that was used stays."""
    with serving(new_cluster(worker=1), bounds=Bounds(first_use_seconds=0.1)) as (server,):
        customer = Customer(server)
        stub(server, MASTER).call("CreateSession", request_class("CreateSession")())
        until(lambda: set(server.master._clients) == {customer.session._handle})
        customer.is_served()
        customer.session.close()


def test_sessions_of_a_masters_past_life_end(customer: Customer) -> None:
    """A master that comes back ends what it had at workers: nobody else knows of it."""
    worker = stub(customer.server, WORKER)
    create = request_class("CreateWorkerSession")
    task = "/job:worker/replica:0/task:1"
    worker.call(
        "CreateWorkerSession", create(session_handle="a", master_task=task, master_incarnation=1)
    )
    worker.call(
        "CreateWorkerSession", create(session_handle="b", master_task=task, master_incarnation=2)
    )
    worker.call(
        "CreateWorkerSession", create(session_handle="c", master_task=task, master_incarnation=2)
    )
    until(lambda: set(customer.server.worker._sessions) == {"b", "c"})


def test_a_tensor_that_nobody_waits_for_any_more_leaves_no_step(customer: Customer) -> None:
    """A step of which others only asked is forgotten with them."""
    device = customer.server.task.client_device
    key = f"{device.name};{device.incarnation:016x};{device.name};edge_1_x;0:0"
    worker = stub(customer.server, WORKER)
    request = request_class("RecvTensor")(step_id=99, rendezvous_key=key)
    with pytest.raises(ps.errors.DeadlineExceededError):
        worker.call("RecvTensor", request, timeout=0.2)
    until(lambda: len(customer.server.task.steps) == 0)
    with pytest.raises(ps.errors.NotFoundError):
        list(_pieces(worker, request))
    assert len(customer.server.task.steps) == 0


def _pieces(worker: Stub, request: Any) -> Any:
    with worker.stream_errors():
        yield from worker.pieces(request)


def test_feeds_of_strings_that_do_not_fit(customer: Customer) -> None:
    """Lengths that go beyond the content."""
    words = to_proto(np.array([b"a", b"bc"], object))
    words.tensor_content = b"\x02\xff\xff\xff\xff\x0f" + b"abc"
    del words.string_val[:]
    request = request_class("RunStep")(session_handle=customer.session._handle, fetch=["ww:0"])
    request.feed.add(name="w:0", tensor=words)
    assert code_of(stub(customer.server, MASTER), "RunStep", request) == "INVALID_ARGUMENT"
