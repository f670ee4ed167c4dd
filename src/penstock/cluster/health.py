"""gRPC's own health service, which Kubernetes and load balancers ask.

In:   whether a server is there at all (the service named ``""``), and whether it is ready for work
      (``ready``): it listens, and so do all other tasks of its cluster.
Out:  SERVING, NOT_SERVING, or NOT_FOUND for services that there are not.
Not:  has no ``Watch``.

The messages are so small that their bytes stand here.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

import grpc

from penstock.cluster.services import request_class
from penstock.cluster.task import Task
from penstock.defs.wire import fields_of
from penstock.errors import OpError

_CHECK: Final = "/grpc.health.v1.Health/Check"
_SERVING: Final = b"\x08\x01"
_NOT_SERVING: Final = b"\x08\x02"
_READY: Final = "ready"
#: Services that are there as long as the server is.
_ALIVE: Final = frozenset({"", "tensorflow.MasterService", "tensorflow.WorkerService"})
#: Seconds that another task has to answer.
_PATIENCE: Final = 2.0


class Checked(Protocol):
    """What is asked of a server."""

    @property
    def task(self) -> Task:
        """The task that it is."""

    @property
    def is_ready(self) -> bool:
        """Whether it listens."""


def health_handler(server: Checked) -> Any:
    """The service, as gRPC wants it."""

    async def check(request: bytes, context: Any) -> bytes:
        name = _service_of(request)
        if name == _READY:
            loop = asyncio.get_running_loop()
            is_ready = await loop.run_in_executor(None, all_tasks_answer, server)
            return _SERVING if is_ready else _NOT_SERVING
        if name not in _ALIVE:
            await context.abort(grpc.StatusCode.NOT_FOUND, "There is no such service")
        return _SERVING if server.is_ready else _NOT_SERVING

    return _Health(grpc.unary_unary_rpc_method_handler(check))


def all_tasks_answer(server: Checked) -> bool:
    """Whether a server, and all other tasks of its cluster, can be called."""
    if not server.is_ready:
        return False
    task = server.task
    try:
        for other in task.peers.cluster:
            if other != task.name:
                worker = task.peers.worker(other)
                worker.call("GetStatus", request_class("GetStatus")(), timeout=_PATIENCE)
    except OpError:
        return False
    return True


def _service_of(request: bytes) -> str:
    named = [field.value(request) for field in fields_of(request, 4) if field.number == 1]
    return named[-1].decode(errors="replace") if named else ""


class _Health(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def service(self, details: Any) -> Any:
        return self._handler if details.method == _CHECK else None
