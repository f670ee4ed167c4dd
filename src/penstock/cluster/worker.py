"""A worker: gets ready to run parts of graphs that a master cut, and runs them.

In:   parts of graphs, in which every node has one of this task's devices; steps by number.
Out:  tensors, to this task's client and to other tasks; errors.
Not:  does not know what the rest of a graph is, and speaks no protocol.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Condition
from typing import Final

from penstock.cluster.bounds import check_room
from penstock.cluster.registered_graph import RegisteredGraph
from penstock.cluster.rendezvous import TaskRendezvous
from penstock.cluster.task import Task
from penstock.config import Config, RunOptions
from penstock.core.values import DEAD, Value
from penstock.defs.schema import Message
from penstock.errors import (
    AbortedError,
    CancelledError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
)
from penstock.passes.exchange import NO_EXCHANGE, Exchange
from penstock.runtime.kernel_binder import KernelBinder
from penstock.runtime.thread_pool import SessionPools
from penstock.session.run import Call
from penstock.state.device_resources import DeviceResources
from penstock.state.session_state import SessionState

#: Seconds that steps of a session have to end when it does.
_CLOSING_SECONDS: Final = 8.0
_END: Final = "look which master does not end its sessions"


class WorkerSession:
    """What one master's session has at this worker."""

    def __init__(
        self, handle: str, config: Config, resources: DeviceResources, master: tuple[str, int]
    ) -> None:
        self.handle: Final = handle
        #: The master's task and its incarnation; "" and 0 if it did not say.
        self.master: Final = master
        self.resources: Final = resources
        self.state: Final = SessionState()
        #: What names of resources begin with that are this session's own.
        self.prefix: Final = f"_{handle}_"
        #: By device: kernels that keep something for all graphs of the session.
        self.kernels: Final[dict[str, KernelBinder]] = {}
        self.pools: Final = SessionPools(config)
        #: By handle.  Changed under the worker's lock.
        self.graphs: dict[str, RegisteredGraph] = {}
        #: What goes on.  Changed under the worker's lock.
        self.calls: set[Call] = set()


class Worker:
    """Sessions, graphs and steps of one task."""

    def __init__(self, task: Task, threads: ThreadPoolExecutor) -> None:
        """Begin with nothing; ``threads`` run what may wait, as many as there are steps."""
        self.task: Final = task
        self._threads: Final = threads
        #: Guards what follows; told when a call ends.  Not held while a graph is prepared or run.
        self._lock = Condition()
        self._sessions: dict[str, WorkerSession] = {}
        #: Parts that run over several calls, by step.
        self._partial: dict[int, Future[None]] = {}
        #: The next number of a step with collective ops, by the key of its graph.
        self._step_ids: OrderedDict[int, int] = OrderedDict()

    # -- sessions ------------------------------------------------------------------------

    def create_session(
        self, handle: str, *, isolate: bool = False, master: tuple[str, int] = ("", 0)
    ) -> list[str]:
        """Begin a session; one that is there already stays as it is.

        Args:
            handle: what its master calls it.
            isolate: whether it has variables of its own.
            master: the master's task, and the incarnation of it; "" and 0 if that is not known.

        Returns:
            The sessions of past lives of that task, which nobody will end.

        Raises:
            ResourceExhaustedError: there are too many sessions.

        """
        with self._lock:
            if handle not in self._sessions:
                check_room("sessions", len(self._sessions), self.task.bounds.kept, _END)
                resources = DeviceResources() if isolate else self.task.resources
                made = WorkerSession(handle, self.task.config, resources, master)
                self._sessions[handle] = made
            task, incarnation = master
            if not task or not incarnation:
                return []
            return [
                other.handle
                for other in self._sessions.values()
                if other.master[0] == task and other.master[1] not in (0, incarnation)
            ]

    def delete_session(self, handle: str) -> None:
        """End a session, its graphs, and what goes on in it; waits until nothing does."""
        with self._lock:
            session = self._sessions.pop(handle, None)
            calls = list(session.calls) if session is not None else []
        for call in calls:
            call.cancel(CancelledError("The session was closed"))
        if session is not None:
            with self._lock:
                self._lock.wait_for(lambda: not session.calls, _CLOSING_SECONDS)
            self.task.steps.remove_of(handle)
            session.pools.close()
            session.resources.drop_named(session.prefix)
            if session.resources is not self.task.resources:
                session.resources.close()

    def _session(self, handle: str) -> WorkerSession:
        found = self._sessions.get(handle)
        if found is None:
            raise AbortedError(
                f"Session handle is not found: {handle}. Possibly this worker "
                f'("{self.task.name}") just restarted.'
            )
        return found

    # -- graphs --------------------------------------------------------------------------

    def register_graph(
        self,
        session_handle: str,
        graph_def: Message,
        config: Config,
        exchange: Exchange = NO_EXCHANGE,
    ) -> str:
        """Get ready to run a part of a graph; returns its handle.

        Args:
            session_handle: whose graph it is.
            graph_def: the part.
            config: the session's options.
            exchange: the values that go along with its runs.

        Raises:
            AbortedError: there is no such session.
            ResourceExhaustedError: there are too many graphs.
            OpError: the graph is not acceptable, or cannot be run here.

        """
        session = self._session(session_handle)
        graphs = sum(len(one.graphs) for one in list(self._sessions.values()))
        check_room("graphs", graphs, self.task.bounds.kept, _END)
        graph = RegisteredGraph(graph_def, config, self.task, session, exchange)
        handle = secrets.token_hex(8)
        with self._lock:
            session.graphs[handle] = graph
        return handle

    def deregister_graph(self, session_handle: str, handle: str) -> None:
        """Forget a graph; raises AbortedError if it is not there."""
        session = self._session(session_handle)
        with self._lock:
            if session.graphs.pop(handle, None) is None:
                raise _no_graph(handle)

    # -- steps ---------------------------------------------------------------------------

    def run_graph(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        sent: Mapping[str, Value],
        given: Mapping[str, Value],
        options: RunOptions,
        call: Call,
    ) -> tuple[Sequence[Value | None], Message | None]:
        """Run a registered graph to its end.

        Args:
            session_handle: whose graph it is.
            graph_handle: which graph.
            step_id: the number of the step, which the other tasks know it by.
            sent: values by their rendezvous keys.
            given: those that go along with the run; what is missing is asked for.
            options: how the run is watched.
            call: told what goes on, so that it can be ended.

        Returns:
            The results that go along with the run, and what was recorded.

        Raises:
            OpError: the part's own error; one that follows from another task's is derived.

        """
        session = self._session(session_handle)
        graph = self.graph(session_handle, graph_handle)
        rendezvous = self.task.steps.find_or_make(step_id)
        rendezvous.session = session_handle
        with self._lock:
            session.calls.add(call)
        try:
            for key, value in sent.items():
                rendezvous.send(key, value, is_dead=value is DEAD)
            keys = graph.exchange.given
            arguments = [given[key] if key in given else rendezvous.recv(key) for key in keys]
            return graph.run(rendezvous, arguments, session, options, call)
        except OpError as error:
            rendezvous.start_abort(error)
            raise
        finally:
            with self._lock:
                session.calls.discard(call)
                self._lock.notify_all()

    def graph(self, session_handle: str, handle: str) -> RegisteredGraph:
        """A graph that was registered; raises AbortedError if there is none."""
        found = self._session(session_handle).graphs.get(handle)
        if found is None:
            raise _no_graph(handle)
        return found

    def sent(self, step_id: int, keys: Sequence[str]) -> list[Value]:
        """What this task has sent in a step; raises InvalidArgumentError for what is dead."""
        rendezvous = self.task.steps.find_or_make(step_id)
        return [_fetched(rendezvous.recv(key, 0.0), key) for key in keys]

    def send(self, step_id: int, key: str, value: Value | None) -> None:
        """Let other tasks ask for a value."""
        rendezvous = self.task.steps.find_or_make(step_id)
        rendezvous.send(key, DEAD if value is None else value, is_dead=value is None)

    def run_partial(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        sent: Mapping[str, Value],
        wanted: Sequence[str],
        call: Call,
        *,
        is_last: bool,
    ) -> list[Value]:
        """Go on with a graph that runs over several calls; the first one starts it.

        Raises:
            OpError: like ``run_graph``.

        """
        rendezvous = self.task.steps.find_or_make(step_id)
        with self._lock:
            if step_id not in self._partial:
                self._partial[step_id] = self._threads.submit(
                    self._run_to_end, session_handle, graph_handle, step_id, call
                )
            future = self._partial[step_id]
        for key, value in sent.items():
            rendezvous.send(key, value, is_dead=value is DEAD)
        values = [_fetched(rendezvous.recv(key), key) for key in wanted]
        if is_last:
            with self._lock:
                self._partial.pop(step_id, None)
            future.result()
        return values

    def _run_to_end(self, session: str, graph: str, step_id: int, call: Call) -> None:
        self.run_graph(session, graph, step_id, {}, {}, RunOptions(), call)

    def sender(self, step_id: int, key: str) -> AbstractContextManager[TaskRendezvous]:
        """Where what this task sends under a key in a step is to be had, now or later.

        Raises:
            OpError: the key is none, or of another life of this task; or the step is over.

        """
        self.task.check_key(key)
        return self.task.steps.asked(step_id)

    def take_aside(self, step_id: int, request_id: int) -> memoryview:
        """What is sent in pieces.

        Raises:
            AbortedError: the step is over.
            NotFoundError: nothing was announced for that request, or it was taken already.

        """
        with self.task.steps.asked(step_id) as step:
            found = step.take_aside(request_id)
        if found is None:
            raise NotFoundError(f"Nothing was announced for request {request_id}")
        return found

    def cleanup_graph(self, step_id: int) -> None:
        """A step is over, whether it was known here or not."""
        with self._lock:
            self._partial.pop(step_id, None)
        self.task.steps.remove(step_id)

    def next_step_id(self, graph_key: int) -> int:
        """The number of the next step of a graph with collective ops."""
        with self._lock:
            step_id = self._step_ids.get(graph_key, secrets.randbits(32))
            self._step_ids[graph_key] = step_id + 1
            if len(self._step_ids) > self.task.bounds.kept:
                self._step_ids.popitem(last=False)
            return step_id

    def cleanup_all(self, containers: Sequence[str]) -> None:
        """Drop what is in some containers; in the default one if none are named."""
        self.task.resources.cleanup(containers)

    def close(self) -> None:
        """End all sessions."""
        for handle in list(self._sessions):
            self.delete_session(handle)


def _no_graph(handle: str) -> AbortedError:
    return AbortedError(
        f"Graph handle is not found: {handle}. Possibly, this worker just restarted."
    )


def _fetched(value: Value, key: str) -> Value:
    if value is DEAD:
        raise InvalidArgumentError(f"The tensor returned for {key} was not valid.")
    return value
