"""What a server does with a call before its method, and after it.

In:   calls, as gRPC hands them over: a method's path, the bytes of a request, metadata.
Out:  the bytes of an answer; errors in gRPC's form.
Not:  knows no method's meaning.

A call without the token is refused before anybody reads its request.  What is no request is told
so, and logged nowhere: whoever sends it could fill a disk.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from penstock.cluster.answering import refuse
from penstock.cluster.metrics import Metrics
from penstock.cluster.repeats import Repeats
from penstock.cluster.security import Security
from penstock.cluster.services import (
    METHODS,
    PIECES,
    RECV_TENSOR,
    REPEAT_KEY,
    REPEATABLE,
    WORKER,
    request_class,
)
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError

#: Characters of a key under which a request may come again.
_MAX_KEY: Final = 64


class Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    """All methods of a server's services; what is not there is unimplemented."""

    def __init__(self, services: Mapping[str, Any], security: Security, metrics: Metrics) -> None:
        """Find the methods.

        Args:
            services: by name, objects with a coroutine for each method.
            security: who may call.
            metrics: what counts the calls.

        """
        self._security: Final = security
        self._metrics: Final = metrics
        #: Answers of requests that may come again.
        self.repeats: Final = Repeats()
        self._handlers: Final = {
            f"/{service}/{method}": grpc.unary_unary_rpc_method_handler(
                self._unary(method, getattr(services[service], _snake(method)))
            )
            for service, methods in METHODS.items()
            for method in methods
        }
        self._handlers[PIECES] = grpc.unary_stream_rpc_method_handler(
            self._stream(services[WORKER].pieces)
        )

    def service(self, details: Any) -> Any:
        """The handler of a call; None if there is no such method."""
        return self._handlers.get(details.method)

    def _unary(self, name: str, method: Callable[[Any], Awaitable[Any]]) -> Any:
        read = request_class(name).FromString
        may_repeat = name in REPEATABLE

        async def answer(content: bytes, context: Any) -> Any:
            await self._admit(context)
            with self._metrics.call(name):
                try:
                    key = _key_of(context) if may_repeat else ""
                    if not key:
                        return _written(await method(_read(read, name, content)))

                    async def once() -> bytes:
                        return _written(await method(_read(read, name, content)))

                    return await self.repeats.answer(f"{name} {key}", once)
                except Exception as error:  # noqa: BLE001  (whatever it is, the caller is told)
                    await refuse(context, error)

        return answer

    def _stream(self, method: Callable[[Any], AsyncIterator[bytes]]) -> Any:
        """The same for a method that answers bit by bit."""
        read = request_class(RECV_TENSOR).FromString

        async def answer(content: bytes, context: Any) -> AsyncIterator[bytes]:
            await self._admit(context)
            with self._metrics.call("Pieces"):
                try:
                    async for item in method(_read(read, "Pieces", content)):
                        yield item
                except Exception as error:  # noqa: BLE001  (whatever it is, the caller is told)
                    await refuse(context, error)

        return answer

    async def _admit(self, context: Any) -> None:
        if self._security.token and not self._security.admits(context.invocation_metadata() or ()):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "The token is missing or wrong")


def _read(read: Callable[[bytes], Message], name: str, content: bytes) -> Message:
    try:
        return read(content)
    except DecodeError:
        raise InvalidArgumentError(f"The bytes are no request of {name}") from None


def _written(answer: Any) -> bytes:
    """An answer's bytes; that of RecvTensor has them already."""
    return answer if isinstance(answer, bytes) else answer.SerializeToString()


def _key_of(context: Any) -> str:
    """The key that the caller gave a request; empty if it gave none."""
    for key, value in context.invocation_metadata() or ():
        if key == REPEAT_KEY:
            return str(value)[:_MAX_KEY]
    return ""


def _snake(method: str) -> str:
    """``RunStep`` as ``run_step``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in method).lstrip("_")
