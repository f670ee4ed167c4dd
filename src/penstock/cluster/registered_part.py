"""A part of a graph that another worker is ready to run.

In:   steps of it.
Out:  its results, or its error, which names the task.
Not:  does not know what else the step consists of.

There are two ways to run it: beside other parts, which it meets in a rendezvous, or as a call that
takes and gives all of its values.

As long as a run goes on, the worker is asked now and then whether it is still there: a connection
to a task that stopped looks like one to a task that computes for long.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from threading import Timer
from typing import Any, Final

from penstock.cluster.heartbeat import Heartbeat
from penstock.cluster.peers import new_request_id
from penstock.cluster.rendezvous import TaskRendezvous
from penstock.cluster.services import Stub, request_class
from penstock.cluster.task import Task
from penstock.cluster.tensor_wire import is_small, tensor_proto
from penstock.cluster.wire_errors import from_wire
from penstock.core.values import Value, dtype_of
from penstock.defs.schema import Message
from penstock.defs.tensors import from_proto
from penstock.errors import CancelledError, InternalError, OpError
from penstock.exceptions import from_exception
from penstock.passes.exchange import Exchange
from penstock.runtime.executor.params import DoneCallback
from penstock.state.step_state import StepState

_RunGraphRequest: Final = request_class("RunGraph")
#: Steps are numbered with so many random bits, as TensorFlow's masters do it.
_STEP_BITS: Final = 56
#: Seconds until which the error should have come that another one follows from.
_ROOT_SECONDS: Final = 1.0
#: Seconds to wait for a worker to take or forget something, where nobody waits for that.
ASIDE_SECONDS: Final = 10.0


def new_step_id() -> int:
    """A number that all tasks know a step by."""
    return secrets.randbits(_STEP_BITS)


class RegisteredPart:
    """A part of a graph that another worker is ready to run."""

    def __init__(
        self,
        task: str,
        worker: Stub,
        handles: tuple[str, str],
        exchange: Exchange,
        heartbeat: Heartbeat,
        master: Task,
    ) -> None:
        self.task: Final = task
        self._master: Final = master
        self.exchange: Final = exchange
        self._worker: Final = worker
        self._session_handle, self._handle = handles
        self._heartbeat: Final = heartbeat

    def run_async(
        self,
        step: StepState,
        feeds: Sequence[Value],
        stats: list[Message] | None,
        done: DoneCallback,
    ) -> None:
        """Start one step there; see ``RemoteGraph``."""
        rendezvous = step.rendezvous
        assert isinstance(rendezvous, TaskRendezvous)
        request = self._request(rendezvous.step_id, feeds, stats, rendezvous.send)
        rendezvous.expect(self.exchange.wanted)
        run = _RemoteRun(self.task, self.exchange.wanted, step, stats, done)
        run.start(self._worker, request, self._heartbeat)

    def _request(
        self,
        step_id: int,
        feeds: Sequence[Value],
        stats: list[Message] | None,
        send: Callable[[str, Value], object],
    ) -> Any:
        """The request for a run; what is too large to go along with it is sent."""
        request = _RunGraphRequest(
            session_handle=self._session_handle,
            create_worker_session_called=True,
            graph_handle=self._handle,
            step_id=step_id,
            request_id=new_request_id(),
            store_errors_in_response_body=True,
        )
        if stats is not None:
            request.exec_opts.record_timeline = request.exec_opts.record_costs = True
        for key, feed in zip(self.exchange.given, self.exchange.feeds, strict=True):
            value = feeds[feed]
            if is_small(value):
                request.given.add(name=key, tensor=tensor_proto(value, dtype_of(value)))
            else:
                send(key, value)
        return request

    async def ask(
        self,
        feeds: Sequence[Value],
        stats: list[Message] | None,
        lost: Callable[[OpError], None],
    ) -> list[Value]:
        """Have it run; its results in order; see ``Askable``."""
        step_id, steps = new_step_id(), self._master.steps

        def send(key: str, value: Value) -> None:
            steps.find_or_make(step_id).send(key, value)

        request = self._request(step_id, feeds, stats, send)
        watch = self._heartbeat.watch(self.task, self._worker, lost)
        is_over = False
        try:
            answer = await self._master.peers.worker_on_loop(self.task).call("RunGraph", request)
            if answer.status_code:
                raise from_wire(answer.status_code, answer.status_error_message)
            if stats is not None:
                stats.append(answer.step_stats)
            is_over = answer.is_over
            found = {item.name: from_proto(item.tensor) for item in answer.passed}
            for key in self.exchange.wanted:
                if key not in found:
                    found[key] = await self._pulled(step_id, key)
            return [found[key] for key in self.exchange.wanted]
        except OpError as error:
            raise says_task(error, self.task) from None
        finally:
            Heartbeat.forget(watch)
            steps.remove_if_known(step_id)
            if not is_over:
                self._forget(step_id)

    async def _pulled(self, step_id: int, key: str) -> Value:
        """A result that was too large to come with the answer."""
        loop = asyncio.get_running_loop()
        arrival: asyncio.Future[Value] = loop.create_future()

        def settle(error: OpError | None, value: Value, is_dead: bool) -> None:  # noqa: FBT001
            if arrival.done():
                return
            if error is None and is_dead:
                error = InternalError(f"{self.task} sends a dead tensor for '{key}'")
            if error is not None:
                arrival.set_exception(error)
            else:
                arrival.set_result(value)

        def done(error: OpError | None, value: Value, is_dead: bool) -> None:  # noqa: FBT001
            loop.call_soon_threadsafe(settle, error, value, is_dead)

        give_up = self._master.peers.pull(step_id, key, done)
        try:
            return await arrival
        finally:
            give_up()

    def _forget(self, step_id: int) -> None:
        """Have the worker forget a step, whether it hears of that or not."""
        request = request_class("CleanupGraph")(step_id=step_id)
        self._worker.start(
            "CleanupGraph", request, lambda _error, _answer: None, timeout=ASIDE_SECONDS
        )


class _RemoteRun:
    """One run of a part by another worker; an activity of the step."""

    def __init__(
        self,
        task: str,
        wanted: Sequence[str],
        step: StepState,
        stats: list[Message] | None,
        done: DoneCallback,
    ) -> None:
        self._task = task
        self._wanted = wanted
        self._step = step
        self._stats = stats
        self._done = done
        self._token = step.cancellation_manager.get_cancellation_token()

    def start(self, worker: Stub, request: Message, heartbeat: Heartbeat) -> None:
        step = self._step
        step.interrupt.activities[id(self)] = self
        watch = heartbeat.watch(self._task, worker, self._lost)
        cancel = worker.start("RunGraph", request, partial(self._answered, watch))

        def end() -> None:
            """Cancel the call; but what another part's failure follows from is to be heard of."""
            if _is_derived(step):
                _later(cancel)
            else:
                cancel()

        if not step.cancellation_manager.register_callback(self._token, end):
            end()

    def _lost(self, error: OpError) -> None:
        """The worker is no longer there: nobody need wait for its answer."""
        self._step.end(error)

    def _answered(self, watch: object, error: OpError | None, answer: Any) -> None:
        Heartbeat.forget(watch)
        step = self._step
        step.cancellation_manager.try_deregister_callback(self._token)
        step.interrupt.activities.pop(id(self), None)
        if error is None and answer.status_code:
            error = from_wire(answer.status_code, answer.status_error_message)
        if error is None:
            error = self._noted(answer)
        if error is not None:
            error = self._judged(error)
        self._done(error)

    def _noted(self, answer: Any) -> OpError | None:
        """Take what came with an answer; the error, if it is not acceptable."""
        rendezvous = self._step.rendezvous
        assert isinstance(rendezvous, TaskRendezvous)
        if self._stats is not None:
            self._stats.append(answer.step_stats)
        if answer.is_over:
            rendezvous.over_at.add(self._task)
        missing = set(self._wanted)
        try:
            for item in answer.passed:
                missing.remove(item.name)
                rendezvous.send(item.name, from_proto(item.tensor))
        except Exception as cause:  # noqa: BLE001  (whatever a stranger sent)
            return from_exception(cause)
        for key in missing:
            rendezvous.ask_for(key)
        return None

    def _judged(self, error: OpError) -> OpError:
        """What the step is to know of an error; the other parts end with it."""
        reason = self._step.interrupt.reason
        if reason is not None:
            return self._step.interrupt.verdict()
        if isinstance(error, CancelledError) and self._step.cancellation_manager.is_cancelled:
            error.derived = True
        error = says_task(error, self._task)
        if error.derived:
            # Whatever it follows from is on its way, and must not be cancelled.
            _later(partial(self._end_others, error))
        else:
            self._step.interrupt.blame(error)
            self._end_others(error)
        return error

    def _end_others(self, error: OpError) -> None:
        rendezvous = self._step.rendezvous
        assert rendezvous is not None
        rendezvous.start_abort(error)
        self._step.cancellation_manager.start_cancel()

    # -- as an activity --------------------------------------------------------------------

    def dump_state(self) -> str:
        """Who runs what."""
        return f"  running  a part of the graph on {self._task}"

    def forget_threads(self) -> None:
        """The child of a fork gets no answer; its step fails for that reason already."""

    def leave(self, seconds: float) -> Sequence[str]:  # noqa: ARG002
        """Calls end when they are cancelled, whatever the worker does."""
        return ()


def _is_derived(step: StepState) -> bool:
    """Whether all that is known of a step's failure is what follows from it."""
    rendezvous = step.rendezvous
    assert isinstance(rendezvous, TaskRendezvous)
    reason = rendezvous.aborted
    return step.interrupt.reason is None and reason is not None and reason.derived


def _later(work: Callable[[], object]) -> None:
    """Do something when what others have to say should have come."""
    timer = Timer(_ROOT_SECONDS, work)
    timer.daemon = True
    timer.start()


def says_task(error: OpError, task: str) -> OpError:
    """The same error, which says which task it comes from."""
    return error.with_details([f"From {task}:"]) if task not in error.message else error
