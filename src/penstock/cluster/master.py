"""A master: sessions of clients, by handle.

In:   graphs and requests of clients.
Out:  their values; the workers of the cluster do what lies on their devices.
Not:  speaks no protocol to clients; ``master_service`` does.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from threading import Lock
from time import monotonic
from typing import Any, Final

from penstock.cluster.bounds import check_room
from penstock.cluster.discovery import find_devices
from penstock.cluster.heartbeat import Heartbeat
from penstock.cluster.master_session import MasterSession
from penstock.cluster.request_ids import RequestIds
from penstock.cluster.services import request_class
from penstock.cluster.session_workers import SessionWorkers
from penstock.cluster.task import Task
from penstock.cluster.wire_config import config_of
from penstock.dataclass import dataclass
from penstock.defs.schema import Message
from penstock.errors import (
    AbortedError,
    InvalidArgumentError,
    NotFoundError,
)
from penstock.session.run import Call

#: Seconds that a worker has for dropping what is in its containers.
RESET_SECONDS: Final = 10.0


@dataclass(frozen=False, slots=True, eq=False)
class Client:
    """One client's session, and what belongs to it."""

    handle: str
    session: MasterSession
    workers: SessionWorkers | None
    #: Options of callables, by handle.  Changed under the master's lock.
    callables: dict[int, Message] = field(default_factory=dict)
    #: Calls under way.  Changed under the master's lock.
    calls: set[Call] = field(default_factory=set)
    used: float = field(default_factory=monotonic)
    #: Whether anybody has named it: the answer with its handle may have been lost.
    is_known: bool = False


class Master:
    """The sessions of one master."""

    def __init__(self, task: Task, heartbeat: Heartbeat, session_gc_seconds: float = 0) -> None:
        """Begin with none; those that nobody used for so long end (0: they do not)."""
        self.task: Final = task
        self._heartbeat: Final = heartbeat
        self._gc_seconds: Final = session_gc_seconds
        self.request_ids: Final = RequestIds()
        #: Guards what follows.  Not held while a session works.
        self._lock = Lock()
        self._clients: dict[str, Client] = {}
        self._next_callable = 0

    def create_session(self, graph_def: Message, config: Message, call: Call) -> Client:
        """Open a session on all devices of the cluster that its configuration does not filter out.

        Raises:
            OpError: the graph or the configuration is not acceptable, or a worker refuses; or why
                ``call`` was ended while workers were waited for.

        """
        self._check(config)
        advice = "close sessions; session_gc_seconds ends those that nobody uses"
        check_room("sessions", len(self._clients), self.task.bounds.kept, advice)
        handle = secrets.token_hex(8)
        found = find_devices(self.task, config.device_filters, call)
        workers = None
        if found:
            workers = SessionWorkers(self.task, handle, list(found), config, self._heartbeat)
            workers.create_sessions(isolate=config.isolate_session_state)
        others = [device for devices in found.values() for device in devices]
        session = MasterSession(
            graph_def, config_of(config, self.task.config), self.task, handle,
            others=others, workers=workers, isolated=config.isolate_session_state,
        )  # fmt: skip
        client = Client(handle, session, workers)
        with self._lock:
            self._clients[handle] = client
        return client

    def _check(self, config: Message) -> None:
        if config.session_inter_op_thread_pool or config.use_per_session_threads:
            raise InvalidArgumentError(
                "Distributed session does not support session thread pool options."
            )
        if config.cluster_def.job:
            raise InvalidArgumentError(
                "A session cannot bring a cluster of its own: this server has one",
                next_step="leave cluster_def out of the configuration",
            )

    def client(self, handle: str) -> Client:
        """The session of a handle; raises AbortedError if there is none."""
        found = self._clients.get(handle)
        if found is None:
            raise AbortedError(
                f"Session {handle} is not found. Possibly, this master "
                f'("{self.task.name}") has restarted.'
            )
        found.used, found.is_known = monotonic(), True
        return found

    def begin(self, handle: str, call: Call) -> Client:
        """A call of a session begins; see ``client``."""
        client = self.client(handle)
        with self._lock:
            client.calls.add(call)
        return client

    def end(self, client: Client, call: Call) -> None:
        """It has ended."""
        client.used = monotonic()
        with self._lock:
            client.calls.discard(call)

    def close_session(self, handle: str) -> None:
        """End a session, and what goes on in it; raises AbortedError if there is none."""
        client = self.client(handle)
        with self._lock:
            self._clients.pop(handle, None)
        client.session.close()
        if client.workers is not None:
            client.workers.delete_sessions()

    def discard(self, client: Client) -> None:
        """End a session of which nobody has heard."""
        with suppress(AbortedError):  # it has ended meanwhile
            self.close_session(client.handle)

    def reset(self, containers: Sequence[str]) -> None:
        """End all sessions, and drop what is in some containers of all tasks."""
        self.task.resources.end_waits(containers)
        self.close()
        self.task.resources.cleanup(containers)
        request = request_class("CleanupAll")(container=containers)
        for other in self.task.peers.cluster:
            if other != self.task.name:
                self.task.peers.worker(other).call("CleanupAll", request, timeout=RESET_SECONDS)

    def collect(self) -> None:
        """End the sessions that nobody used for long, or never."""
        now, first = monotonic(), self.task.bounds.first_use_seconds
        for client in list(self._clients.values()):
            seconds = self._gc_seconds if client.is_known else first
            if seconds > 0 and not client.calls and client.used < now - seconds:
                self.discard(client)

    def close(self) -> None:
        """End all sessions."""
        for handle in list(self._clients):
            self.close_session(handle)

    # -- callables -------------------------------------------------------------------------

    def make_callable(self, handle: str, options: Message) -> int:
        """Note what a callable feeds, fetches and runs; returns its handle."""
        client = self.client(handle)
        with self._lock:
            advice = "release those that are not needed any more"
            check_room("callables", len(client.callables), self.task.bounds.kept, advice)
            self._next_callable += 1
            client.callables[self._next_callable] = options
            return self._next_callable

    def callable_options(self, client: Client, number: int) -> Any:
        """What a callable does; raises NotFoundError if there is none."""
        found = client.callables.get(number)
        if found is None:
            raise NotFoundError(f"No such callable handle: {number}")
        return found

    def release_callable(self, handle: str, number: int) -> None:
        """Forget a callable; raises NotFoundError if there is none."""
        client = self.client(handle)
        with self._lock:
            if client.callables.pop(number, None) is None:
                raise NotFoundError(f"No such callable handle: {number}")
