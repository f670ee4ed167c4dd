"""A port that leads to a server, and does as it is told with each request on the way.

Requests are lost, held up, sent twice, sent again later; answers are lost.  What is said of a
request holds for calls of one answer; streams go through.
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from penstock.cluster import Server
from penstock.cluster.services import PIECES
from support.clusters import free_ports

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
    ("grpc.max_reconnect_backoff_ms", 100),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
]


class Fate(enum.Enum):
    """What becomes of a request."""

    PASS = "goes on its way"
    TWICE = "two of it, side by side; the first answer counts"
    AGAIN = "another one of it, after it was answered; its answer is lost"
    LOST = "it never arrives"
    UNANSWERED = "it arrives, and its answer is lost"
    LATE = "others overtake it"


#: Says what becomes of a request, by its method's name.
Rule = Callable[[str], Fate]


def all_pass(_method: str) -> Fate:
    """Nothing happens to anything."""
    return Fate.PASS


class Relay:
    """Listens at a port, and asks at another one."""

    def __init__(self, port: int, to: int, *, late_seconds: float = 0.1) -> None:
        self.port = port
        #: What becomes of requests from now on.
        self.rule: Rule = all_pass
        #: How many requests there were that something became of, by method.
        self.touched: dict[str, int] = {}
        self._late_seconds = late_seconds
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._threads = ThreadPoolExecutor(512, "relay")
        self._again = ThreadPoolExecutor(64, "relay-again")
        self._channel = grpc.insecure_channel(f"127.0.0.1:{to}", options=_OPTIONS)
        self._server = grpc.server(self._threads, options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_Handler(self),))
        assert self._server.add_insecure_port(f"127.0.0.1:{port}") == port
        self._server.start()

    def close(self) -> None:
        """Lead nowhere any more."""
        self._closed.set()
        self._server.stop(0).wait()
        self._channel.close()
        self._again.shutdown(wait=True)
        self._threads.shutdown(wait=True)

    def handle(self, path: str, request: bytes, context: Any) -> bytes:
        """Pass a request on, or do something else with it."""
        method = path.rpartition("/")[2]
        fate = self.rule(method)
        if fate is not Fate.PASS:
            with self._lock:
                self.touched[method] = self.touched.get(method, 0) + 1
        if fate is Fate.LOST:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the request was lost")
        if fate is Fate.LATE:
            self._closed.wait(self._late_seconds)
        first = self._send(path, request, context)
        if fate is Fate.TWICE:
            self._send(path, request, context)
        answer = self._answer(first, context)
        if fate is Fate.AGAIN:
            self._again.submit(self._send_again, path, request, context)
        if fate is Fate.UNANSWERED:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the answer was lost")
        return answer

    def _send(self, path: str, request: bytes, context: Any) -> Any:
        metadata = [item for item in context.invocation_metadata() if item[0] != "user-agent"]
        call = self._channel.unary_unary(path)
        # Once it is over, what was sent beside it goes on: nobody takes it back.
        return call.future(request, metadata=metadata, timeout=60, wait_for_ready=False)

    def _send_again(self, path: str, request: bytes, context: Any) -> None:
        self._closed.wait(self._late_seconds)
        with contextlib.suppress(grpc.RpcError, ValueError):
            self._send(path, request, context).result()

    def _answer(self, call: Any, context: Any) -> bytes:
        if not context.add_callback(call.cancel):
            call.cancel()
        try:
            answer: bytes = call.result()
        except grpc.FutureCancelledError:
            context.abort(grpc.StatusCode.CANCELLED, "the caller is gone")
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
        return answer

    def stream(self, path: str, request: bytes, context: Any) -> Iterator[bytes]:
        """Pass a request on whose answer comes in pieces."""
        metadata = [item for item in context.invocation_metadata() if item[0] != "user-agent"]
        call = self._channel.unary_stream(path)(request, metadata=metadata, timeout=60)
        try:
            yield from call
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def service(self, details: Any) -> Any:
        path, relay = details.method, self._relay
        if path == PIECES:
            return grpc.unary_stream_rpc_method_handler(
                lambda request, context: relay.stream(path, request, context)
            )
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: relay.handle(path, request, context)
        )


@contextlib.contextmanager
def relayed(count: int, **options: Any) -> Iterator[tuple[list[Server], list[Relay]]]:
    """A cluster in this process, whose tasks and clients reach each task through its relay."""
    ports = free_ports(2 * count)  # all at once: one that was given up may come again
    own, others = ports[:count], ports[count:]
    with contextlib.ExitStack() as stack:
        relays = []
        for port, between in zip(own, others, strict=True):
            relays.append(Relay(between, port))
            stack.callback(relays[-1].close)
        servers = []
        for index in range(count):
            seen = [own[i] if i == index else others[i] for i in range(count)]
            cluster = {"worker": [f"127.0.0.1:{port}" for port in seen]}
            made = Server(cluster, "worker", index, grace_seconds=0, **options)
            servers.append(stack.enter_context(made))
        yield servers, relays
