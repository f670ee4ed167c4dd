"""TensorFlow's two services: their methods, and how they are called.

In:   a channel to another task, a method and its request.
Out:  its answer, or an ``OpError``.
Not:  gives no message a meaning.

A method ``M`` takes a message ``MRequest`` and answers by an ``MResponse``.  The answer to
RecvTensor is left as bytes, since it may be large.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from penstock.cluster.wire_errors import from_wire
from penstock.defs.cluster_schema import message_class
from penstock.defs.schema import Message
from penstock.errors import Code, FailedPreconditionError, OpError

try:
    import grpc
except ImportError as cause:  # pragma: no cover (the tests have it)
    raise FailedPreconditionError(
        "Clusters need gRPC, which is not installed", next_step="pip install 'penstock[cluster]'"
    ) from cause

MASTER: Final = "tensorflow.MasterService"
WORKER: Final = "tensorflow.WorkerService"
#: Penstock's own.
EXCHANGE: Final = "penstock.ExchangeService"
METHODS: Final[dict[str, tuple[str, ...]]] = {
    EXCHANGE: ("EnterCollective", "AbortCollectives"),
    MASTER: (
        "CreateSession", "ExtendSession", "PartialRunSetup", "RunStep", "CloseSession",
        "ListDevices", "Reset", "MakeCallable", "RunCallable", "ReleaseCallable",
    ),
    WORKER: (
        "GetStatus", "CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph",
        "DeregisterGraph", "RunGraph", "CleanupGraph", "CleanupAll", "RecvTensor",
        "MarkRecvFinished", "Logging", "Tracing", "GetStepSequence",
    ),
}  # fmt: skip
#: Methods that change something, and whose requests have no numbers of their own.  Penstock's own
#: senders give each request a key by this name, beside the request.
REPEATABLE: Final = frozenset({
    "CreateSession", "ExtendSession", "CloseSession", "Reset", "ReleaseCallable",
    "CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph", "DeregisterGraph", "CleanupAll",
    "GetStepSequence", "EnterCollective",
})  # fmt: skip
REPEAT_KEY: Final = "penstock-request"
#: The method whose answer stays as bytes.
RECV_TENSOR: Final = "RecvTensor"
#: Penstock's own: takes the request of a RecvTensor again, and answers by pieces of the content.
PIECES: Final = "/penstock.TensorService/Pieces"

_UNREACHED: Final = "cannot be reached"
#: How long a lost connection waits before it is tried again, in milliseconds, at most.
_BACKOFF: Final = 1000
#: … and how long a try may take: busy machines need more than gRPC would give by the backoff.
_CONNECT: Final = 5000
CHANNEL_OPTIONS: Final[list[tuple[str, int]]] = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", _CONNECT),
    ("grpc.max_reconnect_backoff_ms", _BACKOFF),
]

#: Called once with (error, None) or (None, answer), on a thread of the channel.
Answered: TypeAlias = Callable[[OpError | None, Any], None]


def request_class(method: str) -> Message:
    """The message that a method takes."""
    return message_class(f"{method}Request")


def response_class(method: str) -> Message:
    """The message by which a method answers."""
    return message_class(f"{method}Response")


def _as_is(content: bytes) -> bytes:
    return content


def new_key() -> str:
    """A key by which a request is known when it comes again."""
    return secrets.token_hex(8)


class Stub:
    """One service of one task, as those who call it see it."""

    def __init__(self, channel: Any, service: str, peer: str, metadata: Sequence[Any] = ()) -> None:
        """Get ready to call; nothing is sent.

        Args:
            channel: gRPC's, to the task.
            service: ``MASTER`` or ``WORKER``.
            peer: who that is, for errors: its task and its address.
            metadata: sent with each call.

        """
        self.peer: Final = peer
        self._metadata: Final = tuple(metadata)
        self._calls: Final = {
            method: channel.unary_unary(
                f"/{service}/{method}",
                request_serializer=request_class(method).SerializeToString,
                response_deserializer=_as_is
                if method == RECV_TENSOR
                else response_class(method).FromString,
            )
            for method in METHODS[service]
        }
        self._pieces: Final = channel.unary_stream(
            PIECES, request_serializer=request_class(RECV_TENSOR).SerializeToString
        )

    def pieces(self, request: Message) -> Any:
        """The pieces of a tensor's content; they can be cancelled, and fail as gRPC's errors."""
        return self._pieces(request, metadata=self._metadata)

    @contextmanager
    def stream_errors(self) -> Iterator[None]:
        """What ``pieces`` raises, as OpError."""
        try:
            yield
        except grpc.RpcError as error:
            raise _error(self.peer, error) from None

    def _metadata_of(self, method: str, key: str = "") -> tuple[Any, ...]:
        """What goes beside a request; one that may come twice gets a key, unless it has one."""
        if method not in REPEATABLE:
            return self._metadata
        return (*self._metadata, (REPEAT_KEY, key or new_key()))

    def call(
        self, method: str, request: Message, *, timeout: float | None = None, waits: bool = False
    ) -> Any:
        """Call a method, and wait for its answer.

        Args:
            method: its name.
            request: what it takes.
            timeout: seconds until DeadlineExceededError; None for no limit.
            waits: whether to wait until there is a connection, instead of failing at once.

        Raises:
            OpError: the method's error, or UnavailableError, which says who cannot be reached.

        """
        try:
            return self._calls[method](
                request, timeout=timeout, wait_for_ready=waits, metadata=self._metadata_of(method)
            )
        except grpc.RpcError as error:
            raise _error(self.peer, error) from None

    def start(
        self,
        method: str,
        request: Message,
        done: Answered,
        *,
        timeout: float | None = None,
        key: str = "",
    ) -> Callable[[], object]:
        """Call a method; ``done`` is told.  Returns what cancels the call.

        With the ``key`` of a request that was sent before, it is answered as that one was.
        """
        metadata = self._metadata_of(method, key)
        future = self._calls[method].future(request, timeout=timeout, metadata=metadata)

        def finished(future: Any) -> None:
            try:
                answer = future.result()
            except grpc.FutureCancelledError:
                done(from_wire(Code.CANCELLED, "[_Derived_]The call was cancelled"), None)
            except grpc.RpcError as error:
                done(_error(self.peer, error), None)
            else:
                done(None, answer)

        future.add_done_callback(finished)
        cancel: Callable[[], object] = future.cancel
        return cancel


class AsyncStub:
    """One service of one task, as an event loop calls it."""

    def __init__(self, channel: Any, service: str, peer: str, metadata: Sequence[Any] = ()) -> None:
        """Get ready to call; see ``Stub``."""
        self.peer: Final = peer
        self._channel: Final = channel
        self._metadata: Final = tuple(metadata)
        self._calls: Final = {
            method: channel.unary_unary(
                f"/{service}/{method}",
                request_serializer=request_class(method).SerializeToString,
                response_deserializer=response_class(method).FromString,
            )
            for method in METHODS[service]
            if method != RECV_TENSOR
        }

    async def call(self, method: str, request: Message) -> Any:
        """Call a method; its answer.

        Raises:
            OpError: like ``Stub.call``.

        """
        try:
            return await self._calls[method](request, metadata=self._metadata)
        except grpc.RpcError as error:
            raise _error(self.peer, error) from None

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


def _error(peer: str, error: Any) -> OpError:
    """What a failed call means."""
    code, details = error.code().value[0], error.details() or ""
    # What a server says of somebody whom it cannot reach itself is left as it is.
    if code == Code.UNAVAILABLE and _UNREACHED not in details:
        return from_wire(code, f"{peer} {_UNREACHED}: {details}")
    return from_wire(code, details)


def status_of(code: int) -> Any:
    """The form that gRPC itself has for a code."""
    return _STATUS.get(code, grpc.StatusCode.UNKNOWN)


_STATUS: Final = {status.value[0]: status for status in grpc.StatusCode}
