"""One step on one device: the driver that takes ready nodes and calls their kernels.

In:   a ``GraphView``, what its kernels cost, and the ``ExecutorArgs`` of the step.
Out:  effects on the call frame and the rendezvous; ``done`` is called once, with None or
      the first error.
Not:  knows no session, no other partition and no device but its own.

How threads meet.  A step's state is changed by one *driver* at a time.  Whoever finishes a
kernel elsewhere puts the result into the inbox; if nobody is driving then, it becomes the
driver or asks the runner for one.  So propagation takes no lock per node, in any kind of
Python, and a step that never leaves its thread pays for none.

Cheap kernels run in the driver.  A kernel that proves slow runs on the pool, unless it is
the only thing that goes on.  Asynchronous kernels are started by the driver and come back
through the inbox, unless they are done at once.  A failing kernel does not stop its step: the
first error aborts the rendezvous and cancels the step, and what is ready still runs, as in
TensorFlow.  An *interrupt* (deadline, cancellation by the user, closed session) drops what is
ready.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Final, Protocol

from penstock.core.denormals import flushing
from penstock.core.quiet import quiet
from penstock.core.values import Value
from penstock.errors import CancelledError, OpError, Where
from penstock.kernels.api.context import OpKernelContext, Waiting
from penstock.kernels.api.try_kernel import WOULD_BLOCK
from penstock.kernels.c.blocks import keep_large_memory
from penstock.runtime.executor.completion import Completion
from penstock.runtime.executor.costs import CHEAP, KernelCosts
from penstock.runtime.executor.dump import dump, waits_of
from penstock.runtime.executor.graph_view import DispatchKind, GraphView, NodeItem
from penstock.runtime.executor.inbox import Inbox
from penstock.runtime.executor.inputs import prepare_refs
from penstock.runtime.executor.params import DoneCallback, ExecutorArgs, LocalExecutorParams
from penstock.runtime.executor.propagate import Propagator
from penstock.runtime.executor.state import IterationState, ReadyQueue, TaggedNode
from penstock.runtime.failure import judged
from penstock.runtime.outputs import as_outputs, check_outputs
from penstock.state.step_state import Runner

PLAIN: Final = int(DispatchKind.PLAIN)
_CONTEXT: Final = int(DispatchKind.CONTEXT)
_ASYNC: Final = int(DispatchKind.ASYNC)
_LOOP_COND: Final = int(DispatchKind.LOOP_COND)


class Prepared(Protocol):
    """What the steps of one partition have in common; an ``Executor``."""

    params: LocalExecutorParams
    view: GraphView
    costs: KernelCosts


class ExecutorState:
    """One step on one device."""

    def __init__(
        self, executor: Prepared, args: ExecutorArgs, runner: Runner, done: DoneCallback
    ) -> None:
        self._executor = executor
        self._args = args
        self._runner = runner
        self._done = done
        self._interrupt = args.step.interrupt
        self._step = executor.params.context(args.step, args.call_frame, runner, args.call_depth)
        #: Kernels that finished elsewhere: (tagged node, start, result or exception).
        self.inbox: Inbox[tuple[TaggedNode, float, object]] = Inbox()
        # What follows belongs to the driver alone.
        self._ready: ReadyQueue = executor.params.make_ready_queue()
        self._propagator = Propagator(executor.view, self._ready, args.begun)
        #: Hands outputs on.  Set once: who watches a step puts itself in between.
        self._propagate = self._propagator.propagate
        #: Activations whose kernel is on the pool or asynchronous, by identity; with the
        #: context of those that are asynchronous.
        self._running: dict[int, tuple[TaggedNode, OpKernelContext | None]] = {}
        #: The activation whose kernel the driver has called, unless that is known to be quick.
        self._at: TaggedNode | None = None
        #: The first error.  Set once.
        self._error: OpError | None = None

    def start(self) -> None:
        """Hand the first driver to the runner."""
        self._interrupt.activities[id(self)] = self
        self.inbox.claim()
        self._runner(self._drive)

    def dump_state(self) -> str:
        """What every unfinished node waits for, as text; from any thread, best effort."""
        view, running, at = self._executor.view, list(self._running.values()), self._at
        if at is not None:
            running.append((at, None))
        told = [(tagged, self._told_by(tagged[0], context)) for tagged, context in running]
        deadlock = self._executor.params.explain_deadlock(waits_of(running))
        return dump(self._propagator.root, told, view.title, deadlock)

    def _told_by(self, item: NodeItem, context: OpKernelContext | None) -> str:
        """What a running kernel says of itself."""
        if item.explain is not None:
            return item.explain(self._step)
        waits_for = context.waits_for if context is not None else ""
        if isinstance(waits_for, Waiting):
            waits_for = self._executor.params.explain_wait(waits_for)
        return f", waits for {waits_for}" if waits_for else ""

    def forget_threads(self) -> None:
        """See ``Activity``."""
        self.inbox.forget_threads()

    def leave(self, seconds: float) -> Sequence[str]:
        """Be done without kernels that do not answer; see ``Activity``."""
        inbox = self.inbox
        with inbox.lock:
            running = [tagged[0] for tagged, _ in self._running.values()]
            is_silent = running and all(item.patience <= seconds for item in running)
            if inbox.is_driven or not is_silent:
                return ()
            inbox.close()  # who drives from now on would find nothing to do
        self._abort(self._interrupt.verdict())
        self._finish()
        return [_silence(item) for item in running]

    # -- the driver --------------------------------------------------------------------

    def _drive(self) -> None:
        """Run whatever is ready until there is nothing to do but wait."""
        inbox, is_finished = self.inbox, False
        inbox.begin()
        keep_large_memory()
        with flushing(self._args.step.flush), quiet():
            while True:
                try:
                    self._take_completions()
                    self._run_ready()
                    is_finished = not self._running
                    if inbox.end():
                        break
                except BaseException as crash:  # noqa: BLE001  (a signal handler's, say)
                    self._abort(self._judged(crash, lambda: None))
                    if not inbox.goes_on():
                        return
        if is_finished:
            self._finish()

    def _run_ready(self) -> None:  # noqa: C901  (the innermost loop: a call per node would cost)
        ready, interrupt = self._ready, self._interrupt
        propagate, costs = self._propagate, self._known_costs()
        outputs: Sequence[Value] | None
        while ready:
            if interrupt.reason is not None:
                ready.clear()
                self._abort(interrupt.verdict())
                return
            tagged = ready.popleft()
            item, frame, iteration, is_dead = tagged
            if is_dead:
                if item.takes_dead:
                    is_dead, tagged = False, (item, frame, iteration, False)
                elif not item.is_transfer:
                    if item.takes_locks:
                        start = item.input_start
                        iteration.inputs[start : start + item.num_inputs] = item.no_inputs
                    propagate(item, frame, iteration, None)
                    continue
            try:
                if item.dispatch == PLAIN and costs[item.id] <= CHEAP:
                    result = item.compute(*self._take_inputs(item, iteration))
                    outputs = (result,) if item.has_bare_output else as_outputs(item, result)
                    if item.is_checked:
                        check_outputs(item, outputs, may_omit=item.may_omit_outputs)
                else:
                    is_prompt = item.try_compute is not None
                    outputs = self._attempt(tagged) if is_prompt else self._activate(tagged)
                    self._at = None
                    if outputs is None:
                        continue
            except BaseException as cause:  # noqa: BLE001  (the one border of kernels)
                self._at = None
                self._abort(self.failure(tagged, cause))
                continue
            propagate(item, frame, iteration, outputs if not is_dead else None)

    def _take_inputs(self, item: NodeItem, iteration: IterationState) -> Sequence[Any]:
        """A node's inputs, taken out of their places so that memory is freed early."""
        start, inputs = item.input_start, iteration.inputs
        count = item.num_inputs
        if count == 1:
            taken: Sequence[Any] = (inputs[start],)
            inputs[start] = None
        else:
            taken = inputs[start : start + count]
            inputs[start : start + count] = item.no_inputs
        if item.has_refs:
            return prepare_refs(item, taken)
        return taken

    def _attempt(self, tagged: TaggedNode) -> Sequence[Value] | None:
        """Run a node that mostly need not wait; None if its outputs will come later."""
        item, _, iteration, _ = tagged
        assert item.try_compute is not None
        inputs = self._take_inputs(item, iteration)
        result = item.try_compute(self._step, *inputs)
        if result is WOULD_BLOCK:
            return self._start_async(tagged, inputs, perf_counter())
        outputs = as_outputs(item, result)
        if item.is_checked:
            check_outputs(item, outputs, may_omit=item.may_omit_outputs)
        return outputs

    def _activate(self, tagged: TaggedNode) -> Sequence[Value] | None:
        """Run one node in full; None if its outputs will come through the inbox."""
        item, _, iteration, _ = self._at = tagged
        start = perf_counter()
        step = item.dispatch
        outputs: Sequence[Value]
        if step == PLAIN or item.is_measured:
            inputs = self._take_inputs(item, iteration)
            if step == _CONTEXT:
                inputs = (self._context(tagged, inputs), *inputs)
            cost, pool = self._executor.costs.by_item[item.id], self._args.step.pool
            if pool is not None and self._goes_elsewhere(item, cost, inputs):
                self._run_on_pool(pool, tagged, inputs)
                return None
            outputs = as_outputs(item, item.compute(*inputs))
            self._executor.costs.note(item, cost, perf_counter() - start)
        elif step == _LOOP_COND:
            if self._args.step.cancellation_manager.is_cancelled:
                raise CancelledError("Loop execution was cancelled.", derived=True)
            outputs = self._take_inputs(item, iteration)
        elif step == _CONTEXT:
            inputs = self._take_inputs(item, iteration)
            outputs = as_outputs(item, item.compute(self._context(tagged, inputs), *inputs))
        elif step == _ASYNC:
            started = self._start_async(tagged, self._take_inputs(item, iteration), start)
            if started is None:
                return None
            outputs = started
        else:
            outputs = ()
        return self._observe(tagged, outputs)

    def _known_costs(self) -> Sequence[float]:
        """What is known of the cost of each kernel; there is no other thread for slow ones."""
        costs = self._executor.costs
        return costs.by_item if self._args.step.pool is not None else costs.of_nobody

    def _goes_elsewhere(self, item: NodeItem, cost: float, inputs: Sequence[Any]) -> bool:
        """Whether a kernel is to run on the pool."""
        costs = self._executor.costs
        if (self._ready or self._running) and costs.is_slow(cost, inputs):
            return True
        # This thread may have to go before the kernel is done.
        may_leave = self._interrupt.may_be_left and item.patience < math.inf
        return may_leave and costs.may_be_slow(cost)

    def _observe(self, tagged: TaggedNode, outputs: Sequence[Value]) -> Sequence[Value]:
        """Check outputs if they are to be checked; who watches the step may change them."""
        item = tagged[0]
        if item.is_checked:
            check_outputs(item, outputs, may_omit=item.may_omit_outputs)
        return outputs

    def _context(self, tagged: TaggedNode, inputs: Sequence[Any]) -> OpKernelContext:
        item, frame, iteration, _ = tagged
        is_input_dead = item.is_transfer and item.num_inputs == 1 and inputs[0] is None
        return OpKernelContext(
            self._step, item.name, item.op, frame, iteration.number, is_input_dead
        )

    # -- kernels elsewhere ----------------------------------------------------------------

    def _run_on_pool(self, pool: Runner, tagged: TaggedNode, inputs: Sequence[Any]) -> None:
        item, start = tagged[0], perf_counter()
        compute, cost = item.compute, self._executor.costs.by_item[item.id]
        flush = self._args.step.flush

        def run() -> None:
            begin = perf_counter()
            keep_large_memory()
            try:
                with flushing(flush), quiet():
                    result = compute(*inputs)
            except BaseException as cause:  # noqa: BLE001  (the one border of kernels)
                result = self.failure(tagged, cause)
            self._ran_elsewhere(tagged, begin)
            self._executor.costs.note(item, cost, perf_counter() - begin)
            if self.inbox.post((tagged, start, result)):
                self._drive()

        pool(run)  # raises if the pool is shut down, and then nothing runs
        self._running[id(tagged)] = tagged, None

    def _ran_elsewhere(self, tagged: TaggedNode, begin: float) -> None:
        """A kernel ran on the pool, on this thread, and began then; for who records that."""

    def _start_async(
        self, tagged: TaggedNode, inputs: Sequence[Any], start: float
    ) -> Sequence[Value] | None:
        """Start a kernel; its outputs if it is done at once, otherwise None."""
        item = tagged[0]
        done, context = Completion(self, tagged, start), self._context(tagged, inputs)
        try:
            item.compute(context, done, *inputs)
        except BaseException as cause:  # noqa: BLE001  (the one border of kernels)
            done(cause)
        if not done.is_called and not done.leave():
            # Only a driver takes completions, and that is this thread until it leaves.
            self._running[id(tagged)] = tagged, context
            return None
        result = done.result
        if isinstance(result, BaseException):
            raise result
        return as_outputs(item, result)

    def finished(self, tagged: TaggedNode, start: float, result: object) -> None:
        """An asynchronous kernel is done, on any thread; called once for each."""
        if self.inbox.post((tagged, start, result)):
            self._runner(self._drive)

    def _take_completions(self) -> None:
        """Propagate what came through the inbox."""
        while (came := self.inbox.take()) is not None:
            tagged, _, result = came
            del self._running[id(tagged)]
            item, frame, iteration, is_dead = tagged
            if isinstance(result, OpError):  # judged where it came up
                self._abort(result)
                continue
            try:
                outputs = self._observe(tagged, as_outputs(item, result))
            except BaseException as cause:  # noqa: BLE001  (the one border of kernels)
                self._abort(self.failure(tagged, cause))
                continue
            self._propagate(item, frame, iteration, None if is_dead else outputs)

    # -- errors and the end -----------------------------------------------------------------

    def failure(self, tagged: TaggedNode, cause: BaseException) -> OpError:
        """The error of a node; asked for on the thread, and at the moment, where it comes up."""
        item, frame, iteration, _ = tagged
        device = self._executor.view.device
        return self._judged(cause, lambda: item.where(device, frame.label, iteration.number))

    def _judged(self, cause: BaseException, find_place: Callable[[], Where | None]) -> OpError:
        interrupt, manager = self._interrupt, self._args.step.cancellation_manager
        is_late = interrupt.loops_end or manager.is_cancelled or manager.is_cancelling
        return judged(cause, interrupt, find_place, is_late=is_late)

    def _abort(self, error: OpError) -> None:
        """Something failed: keep the first error, and cancel what can be cancelled."""
        step = self._args.step
        if self._error is not None:
            # What a function's error cancels may be heard of before the function itself.
            if self._error.derived and not error.derived:
                self._error = error
            return
        self._error = error
        self._interrupt.loops_end = True
        # Those who are told may fail in turn; the error that matters is known already.
        if step.rendezvous is not None:
            with contextlib.suppress(Exception):
                step.rendezvous.start_abort(error)
        with contextlib.suppress(Exception):
            step.cancellation_manager.start_cancel()

    def _finish(self) -> None:
        """Report the outcome; nothing of this step runs any more."""
        self._interrupt.activities.pop(id(self), None)
        if self._error is None and self._args.sync_on_finish:
            sync = self._executor.params.sync_device
            if sync is not None:
                try:
                    sync()
                except BaseException as cause:  # noqa: BLE001  (the one border of devices)
                    self._error = self._judged(cause, lambda: None)
        self._done(self._error)


def _silence(item: NodeItem) -> str:
    """What a kernel does that is left behind."""
    if item.dispatch == _ASYNC:
        return f"{item.name} ({item.op}) has not called done, as docs/add-an-op.md asks for"
    return f"{item.name} ({item.op}) still computes"
