"""TensorFlow's WorkerService: a worker, as masters and other workers call it.

In:   requests of the protocol.
Out:  its answers.
Not:  runs nothing itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import get_ident
from time import perf_counter
from typing import Any, Final

from penstock.cluster.answering import in_thread, noted_in
from penstock.cluster.brief import BriefRequests
from penstock.cluster.registered_graph import RegisteredGraph
from penstock.cluster.request_ids import RequestIds
from penstock.cluster.services import response_class
from penstock.cluster.task import Task
from penstock.cluster.tensor_wire import (
    PIECE,
    announce_pieces,
    content_for_pieces,
    encode_answer,
    is_small,
    tensor_proto,
)
from penstock.cluster.wire_config import config_of
from penstock.cluster.worker import Worker
from penstock.config import RunOptions, TraceLevel
from penstock.core.values import Value, dtype_of
from penstock.defs.tensors import from_proto
from penstock.errors import OpError
from penstock.passes.exchange import Exchange
from penstock.session.run import Call
from penstock.state.cancellation import CancellationManager

_RunGraphResponse: Final = response_class("RunGraph")


class WorkerService:
    """One coroutine for each method; raises OpError."""

    def __init__(self, task: Task, worker: Worker, threads: ThreadPoolExecutor) -> None:
        self._task: Final = task
        self._worker: Final = worker
        self._threads: Final = threads
        self._request_ids: Final = RequestIds()
        self._brief: Final = BriefRequests()

    async def get_status(self, _request: Any) -> Any:
        """The task's devices."""
        return response_class("GetStatus")(device_attributes=self._task.device_attributes())

    async def create_worker_session(self, request: Any) -> Any:
        """Begin a session."""
        stale = self._worker.create_session(
            request.session_handle,
            isolate=request.isolate_session_state,
            master=(request.master_task, request.master_incarnation),
        )
        for handle in stale:
            self._threads.submit(self._worker.delete_session, handle)
        return response_class("CreateWorkerSession")()

    async def delete_worker_session(self, request: Any) -> Any:
        """End a session."""
        await in_thread(
            self._threads,
            lambda r, _call: self._worker.delete_session(r.session_handle),
            request,
        )
        return response_class("DeleteWorkerSession")()

    async def register_graph(self, request: Any) -> Any:
        """Get ready to run a part of a graph."""
        return await in_thread(
            self._threads, self._register, request, unwanted=partial(self._unregister, request)
        )

    def _unregister(self, request: Any, answer: Any) -> None:
        """Forget a graph whose handle nobody got."""
        with suppress(OpError):
            self._worker.deregister_graph(request.session_handle, answer.graph_handle)

    def _register(self, request: Any, _call: Call) -> Any:
        proto = request.config_proto
        if request.HasField("graph_options"):
            proto.graph_options.CopyFrom(request.graph_options)
        if not request.create_worker_session_called:
            self._worker.create_session(request.session_handle)
        exchange = Exchange(given=tuple(request.given_key), wanted=tuple(request.wanted_key))
        config = config_of(proto, self._task.config)
        handle = self._worker.register_graph(
            request.session_handle, request.graph_def, config, exchange
        )
        return response_class("RegisterGraph")(graph_handle=handle, exchanges_with_calls=True)

    async def deregister_graph(self, request: Any) -> Any:
        """Forget a part of a graph."""
        self._worker.deregister_graph(request.session_handle, request.graph_handle)
        return response_class("DeregisterGraph")()

    async def run_graph(self, request: Any) -> Any:
        """Run a part of a graph; errors stand in the answer if the caller can read them there."""
        try:
            self._request_ids.track(request.request_id, "RunGraph")
            kind, size = (request.session_handle, request.graph_handle), request.ByteSize()
            if self._brief.include(kind, size):
                return self._run(request, Call())
            return await in_thread(self._threads, self._run, request)
        except Exception as error:
            if not request.store_errors_in_response_body:
                raise
            return noted_in(_RunGraphResponse(), error)

    def _run(self, request: Any, call: Call) -> Any:
        start = perf_counter()
        answer = self._answer(request, call)
        self._brief.note(
            (request.session_handle, request.graph_handle),
            request.ByteSize(),
            perf_counter() - start,
            is_straight=answer.is_over and self._graph_of(request).is_straight,
        )
        return answer

    def _graph_of(self, request: Any) -> RegisteredGraph:
        return self._worker.graph(request.session_handle, request.graph_handle)

    def _answer(self, request: Any, call: Call) -> Any:
        sent = {item.name: from_proto(item.tensor) for item in request.send}
        answer = _RunGraphResponse()
        handles = request.session_handle, request.graph_handle, request.step_id
        if request.is_partial:
            values = self._worker.run_partial(
                *handles, sent, request.recv_key, call, is_last=request.is_last_partial_run
            )
        else:
            given = {item.name: from_proto(item.tensor) for item in request.given}
            results, recorded = self._worker.run_graph(
                *handles, sent, given, _options(request.exec_opts), call
            )
            if recorded is not None:
                answer.step_stats.CopyFrom(recorded)
            values = self._worker.sent(request.step_id, request.recv_key)
            self._pass_on(request, results, answer)
        for key, value in zip(request.recv_key, values, strict=True):
            answer.recv.add(name=key, tensor=tensor_proto(value, dtype_of(value)))
        return answer

    def _pass_on(self, request: Any, results: Sequence[Value | None], answer: Any) -> None:
        """Let small results go along with the answer, and large ones be asked for."""
        graph = self._graph_of(request)
        for key, value in zip(graph.exchange.wanted, results, strict=True):
            if value is not None and is_small(value):
                answer.passed.add(name=key, tensor=tensor_proto(value, dtype_of(value)))
            else:
                self._worker.send(request.step_id, key, value)
        if len(answer.passed) == len(results) and not graph.has_transfers:
            self._worker.cleanup_graph(request.step_id)
            answer.is_over = True

    async def cleanup_graph(self, request: Any) -> Any:
        """A step is over."""
        self._worker.cleanup_graph(request.step_id)
        return response_class("CleanupGraph")()

    async def cleanup_all(self, request: Any) -> Any:
        """Drop what is in some containers."""
        await in_thread(
            self._threads, lambda r, _call: self._worker.cleanup_all(r.container), request
        )
        return response_class("CleanupAll")()

    async def recv_tensor(self, request: Any) -> bytes:
        """What this task sends under a key, when it has sent it."""
        self._request_ids.track(request.request_id, "RecvTensor")
        loop, here = asyncio.get_running_loop(), get_ident()
        arrival: asyncio.Future[tuple[Value, bool]] = loop.create_future()
        cancellation = CancellationManager()

        def settle(error: OpError | None, value: Value, is_dead: bool) -> None:  # noqa: FBT001
            if arrival.done():
                return
            if error is not None:
                arrival.set_exception(error)
            else:
                arrival.set_result((value, is_dead))

        def done(error: OpError | None, value: Value, is_dead: bool) -> None:  # noqa: FBT001
            if get_ident() == here:
                settle(error, value, is_dead)
            else:
                loop.call_soon_threadsafe(settle, error, value, is_dead)

        with self._worker.sender(request.step_id, request.rendezvous_key) as step:
            step.recv_async(request.rendezvous_key, done, cancellation)
            try:
                value, is_dead = await arrival
            except asyncio.CancelledError:
                cancellation.start_cancel()
                raise
            if not is_dead and request.takes_pieces:
                content = content_for_pieces(value)
                if content is not None:
                    step.set_aside(request.request_id, content)
                    return announce_pieces(value)
            return encode_answer(value, is_dead=is_dead)

    async def pieces(self, request: Any) -> AsyncIterator[bytes]:
        """The content of what ``recv_tensor`` announced, for the same request."""
        content = self._worker.take_aside(request.step_id, request.request_id)
        for start in range(0, len(content), PIECE):
            yield bytes(content[start : start + PIECE])

    async def mark_recv_finished(self, _request: Any) -> Any:
        """Nothing is kept for receivers that may not have got it."""
        return response_class("MarkRecvFinished")()

    async def logging(self, _request: Any) -> Any:
        """Nothing is logged: what a step records goes back with its answer."""
        return response_class("Logging")()

    async def tracing(self, _request: Any) -> Any:
        """Nothing is traced between steps."""
        return response_class("Tracing")()

    async def get_step_sequence(self, request: Any) -> Any:
        """The next numbers of steps with collective ops, by their graphs' keys."""
        answer = response_class("GetStepSequence")()
        for key in request.graph_key:
            answer.step_sequence.add(graph_key=key, next_step_id=self._worker.next_step_id(key))
        return answer


def _options(exec_opts: Any) -> RunOptions:
    is_traced = exec_opts.record_timeline or exec_opts.record_costs
    return RunOptions(trace_level=TraceLevel.FULL_TRACE if is_traced else TraceLevel.NO_TRACE)
