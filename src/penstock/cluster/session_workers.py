"""A master's session at the workers of a cluster.

In:   parts of graphs, and steps of them, from the session's runtime.
Out:  the same, at the workers; their errors, which name the task.
Not:  cuts no graph: parts come as they are to be run.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from threading import Semaphore
from typing import Any, Final

from penstock.cluster.cluster_spec import task_of
from penstock.cluster.exchanged_step import ExchangedStep
from penstock.cluster.heartbeat import Heartbeat
from penstock.cluster.registered_part import ASIDE_SECONDS, RegisteredPart, new_step_id, says_task
from penstock.cluster.rendezvous import TaskRendezvous
from penstock.cluster.services import request_class
from penstock.cluster.task import Task
from penstock.defs.schema import Message
from penstock.errors import OpError
from penstock.graph.export import graph_to_def
from penstock.graph.graph import Graph
from penstock.passes.exchange import NO_EXCHANGE, Exchange
from penstock.runtime.workers import EndableStep, RemoteGraph
from penstock.state.rendezvous import Rendezvous


class SessionWorkers:
    """The workers of a cluster, for one session of one master."""

    def __init__(
        self, task: Task, handle: str, others: Sequence[str], config: Message, heartbeat: Heartbeat
    ) -> None:
        """Note whose session it is.

        Args:
            task: the master's own.
            handle: the session's, which all workers know it by.
            others: the names of the other tasks that take part.
            config: the session's ConfigProto, which goes along with graphs.
            heartbeat: looks whether workers are still there.

        """
        self._task: Final = task
        self._handle: Final = handle
        self._others: Final = tuple(others)
        self._config: Final = config
        self._heartbeat: Final = heartbeat
        #: Of nodes that are inserted.  Taken under the lock of the session's graph.
        self.numbers: Final = itertools.count(1)

    # -- sessions --------------------------------------------------------------------------

    def create_sessions(self, *, isolate: bool) -> None:
        """Begin the session at all other workers; raises OpError if one refuses."""
        for other in self._others:
            request = request_class("CreateWorkerSession")(
                session_handle=self._handle,
                isolate_session_state=isolate,
                master_task=self._task.name,
                master_incarnation=self._task.incarnation,
            )
            # Without a cluster in it: tasks know their own, and TensorFlow's would take one for a
            # request to build another.
            request.server_def.job_name = other.split("/")[1].removeprefix("job:")
            request.server_def.task_index = int(other.rpartition(":")[2])
            request.server_def.protocol = "grpc"
            try:
                self._task.peers.worker(other).call("CreateWorkerSession", request)
            except OpError as error:
                raise says_task(error, other) from None

    def delete_sessions(self) -> None:
        """End the session at all other workers that answer, and wait until nothing of it goes on.

        What a step of it still did to a variable would be done to the next session's.
        """
        arrived = Semaphore(0)
        request = request_class("DeleteWorkerSession")(session_handle=self._handle)
        for other in self._others:
            worker = self._task.peers.worker(other)
            worker.start(
                "DeleteWorkerSession",
                request,
                lambda _error, _answer: arrived.release(),
                timeout=ASIDE_SECONDS,
            )
        for _ in self._others:
            arrived.acquire(timeout=ASIDE_SECONDS)

    def _aside(self, task: str, method: str, **fields: Any) -> None:
        """Tell a worker something; whether it hears that does not matter."""
        request = request_class(method)(**fields)
        worker = self._task.peers.worker(task)
        worker.start(method, request, lambda _error, _answer: None, timeout=ASIDE_SECONDS)

    # -- what the runtime asks for -----------------------------------------------------------

    def task_of(self, device: str) -> str:
        """The name of the task that a device belongs to."""
        return task_of(device)

    def is_own(self, device: str) -> bool:
        """Whether a device is this task's."""
        return device.startswith(f"{self._task.name}/")

    def register(self, task: str, graph: Graph, exchange: Exchange) -> RemoteGraph:
        """Have another task get ready to run a part of a graph; raises OpError if it does not."""
        worker = self._task.peers.worker(task)
        request = request_class("RegisterGraph")(
            session_handle=self._handle,
            create_worker_session_called=True,
            graph_def=graph_to_def(graph),
            config_proto=self._config,
            given_key=exchange.given,
            wanted_key=exchange.wanted,
        )
        request.graph_options.CopyFrom(self._config.graph_options)
        try:
            answer = worker.call("RegisterGraph", request)
        except OpError as error:
            raise says_task(error, task) from None
        if not answer.exchanges_with_calls:
            exchange = NO_EXCHANGE
        handles = self._handle, answer.graph_handle
        return RegisteredPart(task, worker, handles, exchange, self._heartbeat, self._task)

    def new_rendezvous(self, remote: Sequence[RemoteGraph]) -> Rendezvous:
        """Where the parts of one new step meet, under a number of its own."""
        step_id = new_step_id()
        tasks = [part.task for part in remote if isinstance(part, RegisteredPart)]
        made = self._task.steps.find_or_make(step_id)
        made.on_leave = partial(self._clean_up, made, tasks)
        return made

    def exchanged_step(self, remote: Sequence[RemoteGraph], own: EndableStep) -> EndableStep:
        """A step in which all values of others go along with calls."""
        loop = self._task.peers.loop
        assert loop is not None
        parts = [part for part in remote if isinstance(part, RegisteredPart)]
        return ExchangedStep(parts, own, loop)

    def _clean_up(self, step: TaskRendezvous, tasks: Sequence[str]) -> None:
        self._task.steps.remove(step.step_id)
        for task in tasks:
            if task not in step.over_at:
                self._aside(task, "CleanupGraph", step_id=step.step_id)
