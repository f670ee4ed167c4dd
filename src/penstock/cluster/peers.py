"""The other tasks of a cluster, as this one calls them.

In:   the cluster's addresses.
Out:  a stub for each task, connected when it is first called; tensors pulled from there.
Not:  decides nothing: who is called when is for masters and workers to say.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Final

from penstock.cluster.cluster_spec import ClusterSpec, task_of
from penstock.cluster.security import Security
from penstock.cluster.services import RECV_TENSOR, WORKER, AsyncStub, Stub, request_class
from penstock.cluster.tensor_wire import Arrived, decode_answer, join_pieces
from penstock.errors import OpError
from penstock.exceptions import from_exception
from penstock.state.rendezvous import RecvDone

_RecvTensorRequest: Final = request_class(RECV_TENSOR)
#: So many large tensors are read at a time.
_READERS: Final = 8
_MarkRecvFinishedRequest: Final = request_class("MarkRecvFinished")


def new_request_id() -> int:
    """A number by which a receiver knows a request that comes twice; positive, of 63 bits."""
    return secrets.randbits(62) + 1


class Peers:
    """Workers by the names of their tasks."""

    def __init__(self, cluster: ClusterSpec, security: Security) -> None:
        self.cluster: Final = cluster
        self._security: Final = security
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        #: By service and task, and by task.  Grow, until all are closed.
        self._stubs: dict[tuple[str, str], Stub] = {}
        self._channels: dict[str, Any] = {}
        #: Threads that read large tensors.
        self._readers: Final = ThreadPoolExecutor(_READERS, "penstock-pieces")
        #: The event loop of the server, which knows the next one alone; None before it runs.
        self.loop: asyncio.AbstractEventLoop | None = None
        self._async_stubs: Final[dict[str, AsyncStub]] = {}

    def worker(self, task: str) -> Stub:
        """The worker of a task; raises NotFoundError if the cluster has no such task."""
        return self.stub(WORKER, task)

    def stub(self, service: str, task: str) -> Stub:
        """A service of a task; raises NotFoundError if the cluster has no such task."""
        found = self._stubs.get((service, task))
        if found is not None:
            return found
        address = self.cluster.address(task)
        with self._lock:
            if (service, task) not in self._stubs:
                if task not in self._channels:
                    self._channels[task] = self._security.channel(address)
                peer = f"{task} at {address}"
                self._stubs[service, task] = Stub(
                    self._channels[task], service, peer, self._security.metadata
                )
            return self._stubs[service, task]

    def worker_on_loop(self, task: str) -> AsyncStub:
        """The same for the server's event loop, which calls this."""
        found = self._async_stubs.get(task)
        if found is None:
            address = self.cluster.address(task)
            channel = self._security.async_channel(address)
            peer = f"{task} at {address}"
            found = AsyncStub(channel, WORKER, peer, self._security.metadata)
            self._async_stubs[task] = found
        return found

    async def close_on_loop(self) -> None:
        """Close what the event loop uses, which calls this."""
        for stub in self._async_stubs.values():
            await stub.close()

    def pull(self, step_id: int, key: str, done: RecvDone) -> Callable[[], object]:
        """Ask the task whose device sends under a key for the value; returns what gives up."""
        try:
            worker = self.worker(task_of(key[: key.index(";")]))
        except OpError as error:
            done(error, None, False)  # noqa: FBT003
            return lambda: None
        request = _RecvTensorRequest(
            step_id=step_id, rendezvous_key=key, request_id=new_request_id(), takes_pieces=True
        )
        pull = _Pull(worker, request, done, self._readers)
        pull.start()
        return pull.give_up

    def close(self) -> None:
        """Close all channels; calls under way fail."""
        with self._lock:
            channels, self._channels = list(self._channels.values()), {}
            self._stubs = {}
        self._readers.shutdown(wait=False)
        for channel in channels:
            channel.close()


class _Pull:
    """One value that another task is asked for."""

    def __init__(
        self, worker: Stub, request: Any, done: RecvDone, readers: ThreadPoolExecutor
    ) -> None:
        self._worker: Final = worker
        self._request: Final = request
        self._done: Final = done
        self._readers: Final = readers
        self._is_given_up = False
        #: Ends the call under way.  Set before ``_is_given_up`` is looked at, which is set before
        #: this is called.
        self._cancel: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Ask; ``done`` is told on a thread of the channel, or on one that reads pieces."""
        self._cancel = self._worker.start(RECV_TENSOR, self._request, self._answered)
        if self._is_given_up:
            self._cancel()

    def give_up(self) -> None:
        """Wait for the value no longer."""
        self._is_given_up = True
        self._cancel()

    def _answered(self, error: OpError | None, content: bytes | None) -> None:
        arrived = Arrived(None)
        if error is None:
            assert content is not None
            try:
                arrived = decode_answer(content)
                if arrived.announced is not None:
                    self._readers.submit(self._read_pieces, arrived.announced)
                    return
            except Exception as cause:  # noqa: BLE001  (whatever a stranger sent)
                error = from_exception(cause)
        if arrived.wants_ack:
            finished = _MarkRecvFinishedRequest(request_id=self._request.request_id)
            self._worker.start("MarkRecvFinished", finished, lambda _error, _answer: None)
        self._done(error, arrived.value, arrived.is_dead)

    def _read_pieces(self, announced: Any) -> None:
        error, value = None, None
        try:
            pieces = self._worker.pieces(self._request)
            self._cancel = pieces.cancel
            if self._is_given_up:
                pieces.cancel()
            with self._worker.stream_errors():
                value = join_pieces(announced, pieces)
        except Exception as cause:  # noqa: BLE001  (whatever a stranger sent)
            error = from_exception(cause)
        self._done(error, value, False)  # noqa: FBT003
