"""One step: feeds in, results out.

In:   a ``PreparedStep`` and the values to feed.
Out:  the fetched values, or the step's error.
Not:  parses no names and no nestings; that is the session's.

The calling thread does what it can itself.  It sleeps only while kernels run elsewhere, and
a deadline, ``cancel`` or Ctrl-C ends its step: what is ready is dropped, what waits is
woken, and when nothing runs any more the error is raised.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from threading import current_thread, main_thread
from time import perf_counter
from typing import Final

from penstock.advice import MoreTime
from penstock.config import RunOptions, Tier, TraceLevel
from penstock.core.denormals import flushing
from penstock.core.forks import process_lock
from penstock.core.values import Value
from penstock.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
)
from penstock.kernels.context import Runner
from penstock.runtime.ctrl_c import NotingCtrlC
from penstock.runtime.ending import Ending
from penstock.runtime.executor.barrier import ExecutorBarrier
from penstock.runtime.executor.params import ExecutorArgs
from penstock.runtime.prepare import PreparedStep
from penstock.runtime.stats import StatsCollector
from penstock.runtime.step_loop import POLL_SECONDS, Alarm, StepLoop
from penstock.state.call_frame import CallFrame
from penstock.state.rendezvous import Rendezvous
from penstock.state.resources import StepContainer
from penstock.state.session_state import SessionState, TensorStore

#: Numbers steps throughout the process; taken under ``_step_ids_lock``, since ``next`` is not
#: atomic on every Python.
_step_ids: Final = itertools.count(1)
_step_ids_lock: Final = process_lock()


def take_step_id() -> int:
    """A number that no other step of the process has."""
    with _step_ids_lock:
        return next(_step_ids)


class Step:
    """One run of one request by executors; used once."""

    def __init__(
        self,
        prepared: PreparedStep,
        options: RunOptions,
        session_state: SessionState,
        pool: Runner | None,
    ) -> None:
        self._prepared = prepared
        self._options = options
        self._is_traced = options.trace_level > TraceLevel.NO_TRACE
        self._pool = pool
        self._session_state = session_state
        #: Without a rendezvous if nothing in this step sends or receives.
        self._ending = Ending(Rendezvous() if prepared.has_transfers else None)
        self._loop = StepLoop()
        self.tensor_store = TensorStore()
        #: What was recorded, if the options ask for it.
        self.stats: StatsCollector | None = None
        #: Whether somebody may go before the step is done, though no deadline is given.
        self.is_async = False
        self._error: OpError | None = None
        #: Whether this is the copy of a step that goes on in the parent of this process.
        self._is_forked = False

    # -- from any thread -------------------------------------------------------------

    def cancel(self, reason: OpError | None = None) -> None:
        """End the step early; ``run`` raises ``reason``, unless it is done already."""
        self._ending.end(reason or CancelledError("Run call was cancelled"))
        self._loop.start_polling()

    def dump_state(self) -> str:
        """What every unfinished node waits for."""
        return self._ending.report()

    def forget_threads(self) -> None:
        """Fail, in the child of a fork, when what this thread is at has been done.

        Whatever was under way elsewhere will never be done.
        """
        self._is_forked = True
        self._loop.forget_threads()
        for activity in self._ending.interrupt.activities.values():
            activity.forget_threads()

    # -- on the calling thread ---------------------------------------------------------

    def run(self, feeds: Sequence[Value], timeout_in_ms: int) -> list[Value | None]:
        """Run to the end; returns fetched values, None for dead ones.

        Raises:
            OpError: the step's first error, DeadlineExceededError or CancelledError included.
            KeyboardInterrupt: Ctrl-C was pressed.
            BaseException: a kernel raised it on the main thread, and it is no Exception.

        """
        frame = CallFrame(self._prepared.feed_types, self._prepared.fetch_types)
        frame.set_args(feeds)
        interrupt = self._ending.interrupt
        interrupt.may_be_left = self.is_async or timeout_in_ms > 0
        container = StepContainer()
        flush = self._prepared.flushing.on_pool(self._options.inter_op_thread_pool)(feeds)
        start = perf_counter()
        try:
            with Alarm(timeout_in_ms, self._expire), NotingCtrlC(interrupt):
                self._start(frame, container, flush=flush)
                with flushing(flush):
                    self._work()
        except OpError:
            self._ending.let_escape()
            raise
        finally:
            interrupt.activities.clear()  # breaks a cycle: memory is freed at once
            container.close()
        self._ending.let_escape()
        if self._error is not None:
            raise self._ending.told(self._error)
        if self.stats is None:  # nobody watched each node
            self._prepared.note(None, perf_counter() - start, interrupt)
        return list(frame.consume_retvals(allow_dead=True))

    def _start(self, frame: CallFrame, container: StepContainer, *, flush: bool) -> None:
        """Start all executors; they run when the loop does."""
        ending = self._ending
        tier = Tier.DATAFLOW if self._is_traced else Tier.COMPILED
        executors = self._prepared.executors(ending.interrupt, tier)
        if self._is_traced:
            self.stats = StatsCollector([part.device for part in self._prepared.partitions])
        barrier = ExecutorBarrier(len(executors), ending.rendezvous, self._finished)
        step_id = take_step_id()
        for executor in executors:
            device = executor.params.device
            args = ExecutorArgs(
                step_id=step_id,
                rendezvous=ending.rendezvous,
                stats_collector=self.stats.devices[device] if self.stats else None,
                observers=self.stats.functions if self.stats else None,
                call_frame=frame,
                cancellation_manager=ending.cancellation,
                session_state=self._session_state,
                tensor_store=self.tensor_store,
                step_container=container,
                runner=self._loop.schedule,
                interrupt=ending.interrupt,
                pool=self._pool,
                flush=flush,
            )
            executor.run_async(args, barrier.arrive)

    def _work(self) -> None:
        """Do what can be done on this thread, until all executors are done."""
        try:
            # Signals come to the main thread; on others, whoever ends the step starts polling.
            is_main = current_thread() is main_thread()
            self._loop.run(poll=self._poll, period=POLL_SECONDS if is_main else None)
        except BaseException:
            # A handler of the program's own raised.  A step that was left alone would go on
            # by itself, and take what it waits for from others.
            self.cancel()
            self._loop.run(poll=self._poll)
            raise

    def _finished(self, error: OpError | None) -> None:
        # An interrupt that comes when all work is done comes too late to matter.
        self._error = error
        self._loop.stop()

    def _poll(self) -> None:
        if self._is_forked:
            self._finished(FailedPreconditionError("This process was forked while the step ran"))
            return
        if self._ending.interrupt.escaping is not None:
            self._ending.tell()
        self._ending.leave_silent()

    def _expire(self) -> None:
        self.cancel(
            DeadlineExceededError(
                "Timed out waiting for notification",
                next_step=MoreTime("timeout_in_ms", instead="feed what is missing"),
            )
        )
