"""``Server``: one task of a cluster, listening.

In:   a cluster, and which of its tasks this process is.
Out:  a master and a worker that others can call, until the server is stopped.
Not:  does no work itself.

gRPC runs on an event loop of its own, in a thread of its own; nothing that may wait is done there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any, Final, TypeVar

import grpc

from penstock.cluster.bounds import Bounds
from penstock.cluster.cluster_spec import ClusterSpec, check_address, task_name
from penstock.cluster.collectives import ExchangeService, TaskCollectives
from penstock.cluster.event_loop import new_event_loop
from penstock.cluster.handlers import Handlers
from penstock.cluster.health import health_handler
from penstock.cluster.heartbeat import Heartbeat
from penstock.cluster.master import Master
from penstock.cluster.master_service import MasterService
from penstock.cluster.metrics import Metrics
from penstock.cluster.peers import Peers
from penstock.cluster.security import Security
from penstock.cluster.services import EXCHANGE, MASTER, WORKER
from penstock.cluster.task import Task
from penstock.cluster.worker import Worker
from penstock.cluster.worker_service import WorkerService
from penstock.config import Config
from penstock.core.memory import keep_freed_memory
from penstock.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)
from penstock.session.claims import Claims

_Result = TypeVar("_Result")
_log: Final = logging.getLogger("penstock.cluster")

LOOPBACK: Final = "127.0.0.1"
_LOCAL_HOSTS: Final = frozenset({"localhost", LOOPBACK, "[::1]"})
#: Threads of steps and queues: there is one for each that waits, so this is no limit in practice.
_MAX_THREADS: Final = 16_384
_MAX_PENDING: Final = 1_000_000
#: Protobuf reads no larger messages.
MAX_MESSAGE_BYTES: Final = (1 << 31) - 1
_OPTIONS: Final = [
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
    # A step may ask for thousands of tensors at once; none of the requests is to be dropped.
    ("grpc.server.max_pending_requests", _MAX_PENDING),
    ("grpc.server.max_pending_requests_hard_limit", _MAX_PENDING),
    # Callers that went away without a word are noticed.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
]
_GC_SECONDS: Final = 1.0
_BOUNDS: Final = Bounds()


class Server:
    """A master and a worker in this process, for other processes; use it as a context manager."""

    def __init__(
        self,
        cluster: Any,
        job_name: str = "",
        task_index: int | None = None,
        *,
        config: Any = None,
        start: bool = True,
        bind: str = LOOPBACK,
        security: Security | None = None,
        session_gc_seconds: float = 0,
        heartbeat_seconds: float = 10,
        grace_seconds: float = 5,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        handshake_seconds: float = 20,
        bounds: Bounds = _BOUNDS,
    ) -> None:
        """Set up one task of a cluster.

        Args:
            cluster: a ``ClusterSpec``, a dictionary of jobs, or a ServerDef or ClusterDef message.
            job_name: the task's job; may be left out if there is but one.
            task_index: the task's number; may be left out if the job has but one task.
            config: a ``Config``, or a ConfigProto: of the task's devices, and of sessions.
            start: whether to listen at once.
            bind: the address that it listens at, without a port: that is the cluster's.  Only
                this machine can reach the default.
            security: TLS and a token; nothing by default, as TensorFlow's tasks know neither.
            session_gc_seconds: sessions that nobody used for so long end; 0 means never.
            heartbeat_seconds: how often workers are asked whether they are there while steps of
                this master wait for them; two periods without an answer end the step.
            grace_seconds: how long ``stop`` lets calls that are under way end by themselves.
            max_message_bytes: larger requests are refused before they are read.
            handshake_seconds: who connects, and has not said by then that it speaks the protocol,
                is hung up on.
            bounds: how much is kept of what others send.

        Raises:
            InvalidArgumentError: the cluster has no such task, or an address is none, or a limit
                makes no sense.
            UnavailableError: the port cannot be had.

        """
        if hasattr(cluster, "job_name"):  # a ServerDef
            job_name, task_index = job_name or cluster.job_name, task_index or cluster.task_index
            cluster = cluster.cluster
        self.cluster: Final = ClusterSpec.of(cluster)
        job, index = _own_task(self.cluster, job_name, task_index)
        config = Config.of(config)
        if config.keep_freed_memory:
            keep_freed_memory()  # before there are threads, which would have heaps of their own
        self._address: Final = self.cluster.task_address(job, index)
        self._bind: Final = bind
        self._security: Final = security or Security()
        peers = Peers(self.cluster, self._security)
        self.task: Final = Task(job, index, config, peers, bounds)
        self._claims: Final = Claims(self, self.task.config)
        self._max_calls: Final = bounds.calls
        self._exchanges: Final = TaskCollectives(self.task)
        self.task.new_container = self._exchanges.new_container
        self._threads: Final = ThreadPoolExecutor(_MAX_THREADS, "penstock-server")
        self._heartbeat: Final = Heartbeat(heartbeat_seconds)
        self.master: Final = Master(self.task, self._heartbeat, session_gc_seconds)
        self.worker: Final = Worker(self.task, self._threads)
        self.metrics: Final = Metrics(self.task)
        self._grace: Final = grace_seconds
        if not 0 < max_message_bytes <= MAX_MESSAGE_BYTES or not handshake_seconds > 0:
            raise InvalidArgumentError(
                f"max_message_bytes={max_message_bytes}, handshake_seconds={handshake_seconds:g}: "
                f"the former is from 1 to {MAX_MESSAGE_BYTES}, the latter more than 0"
            )
        self._options: Final = [
            *_OPTIONS,
            ("grpc.max_receive_message_length", max_message_bytes),
            ("grpc.server_handshake_timeout_ms", max(int(handshake_seconds * 1000), 1)),
        ]
        #: The event loop while it runs, and gRPC's server on it.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._grpc: Any = None
        self._collecting: asyncio.Task[None] | None = None
        self._thread: Thread | None = None
        self._stopped: Final = Event()
        #: The port that it listens at; 0 before it does.
        self.port = 0
        if start:
            self.start()

    # -- life ------------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """What sessions give as their target to reach this task: ``grpc://host:port``."""
        host = self._address.rpartition(":")[0]
        return f"grpc://{host}:{self.port or self._address.rpartition(':')[2]}"

    @property
    def is_ready(self) -> bool:
        """Whether it listens."""
        return bool(self.port) and not self._stopped.is_set()

    def start(self) -> None:
        """Listen; does nothing if it does already.

        Raises:
            UnavailableError: the port cannot be had.
            FailedPreconditionError: it was stopped.

        """
        if self._stopped.is_set():
            raise FailedPreconditionError(
                "The server was stopped", next_step="make another one; this one's state is gone"
            )
        if self._loop is not None:
            return
        self._loop = self.task.peers.loop = new_event_loop()
        self._thread = Thread(target=self._serve, name="penstock-grpc", daemon=True)
        self._thread.start()
        try:
            self._on_loop(self._listen())
        except BaseException:
            self.stop()
            raise
        self._warn_of_loopback()
        _log.info("%s listens at %s:%s", self.task.name, self._bind, self.port)

    def stop(self) -> None:
        """End all calls, sessions and steps, and listen no longer.  May be called twice."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._heartbeat.close()
        self.master.close()
        self.worker.close()
        self.task.steps.abort_all(CancelledError("The server was stopped"))
        if self._loop is not None:
            if self._grpc is not None:
                self._on_loop(self._shut_down())
            self._loop.call_soon_threadsafe(self._loop.stop)
            assert self._thread is not None
            self._thread.join()
            self._loop.close()
        self.task.peers.close()
        self.task.resources.close()
        self._claims.give_up()
        self._threads.shutdown(wait=False)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until it is stopped; whether it was, within so many seconds."""
        return self._stopped.wait(timeout)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "stopped" if self._stopped.is_set() else "ready" if self.port else "not started"
        return f"<Server {self.task.name} at {self._address}, {state}>"

    # -- the event loop --------------------------------------------------------------------

    def _serve(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _on_loop(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> None:
        server = grpc.aio.server(options=self._options, maximum_concurrent_rpcs=self._max_calls)
        services = {
            MASTER: MasterService(self.master, self._threads),
            EXCHANGE: ExchangeService(self.task, self._exchanges),
            WORKER: WorkerService(self.task, self.worker, self._threads),
        }
        handlers = Handlers(services, self._security, self.metrics)
        server.add_generic_rpc_handlers((handlers, health_handler(self)))
        address = check_address(f"{self._bind}:{self._address.rpartition(':')[2]}")
        try:
            port = self._security.add_port(server, address)
        except RuntimeError:
            port = 0
        if not port:
            raise UnavailableError(
                f"{self.task.name} cannot listen at {address}",
                next_step="look whether something else listens there already",
            )
        await server.start()
        self._grpc, self.port = server, port
        self._collecting = asyncio.ensure_future(self._collect())

    async def _shut_down(self) -> None:
        if self._collecting is not None:
            self._collecting.cancel()
        await self._grpc.stop(self._grace)
        await self.task.peers.close_on_loop()

    async def _collect(self) -> None:
        """End unused sessions now and then."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_GC_SECONDS)
            await loop.run_in_executor(self._threads, self.master.collect)

    def _warn_of_loopback(self) -> None:
        host = self._address.rpartition(":")[0]
        if self._bind == LOOPBACK and host not in _LOCAL_HOSTS and not host.startswith("127."):
            _log.warning(
                "%s is to be found at %s, but listens at %s only: give bind='0.0.0.0', or the "
                "address of an interface, to let other machines in",
                self.task.name, self._address, LOOPBACK,
            )  # fmt: skip


def _own_task(cluster: ClusterSpec, job: str, index: int | None) -> tuple[str, int]:
    """The task that a server is to be; raises NotFoundError if there is no such task."""
    if not job and len(cluster.jobs) == 1:
        job = cluster.jobs[0]
    if index is None:
        indices = cluster.task_indices(job)
        index = indices[0] if len(indices) == 1 else -1
    cluster.address(task_name(job, max(index, 0)) if index >= 0 else f"/job:{job or '?'}/task:?")
    return job, index
