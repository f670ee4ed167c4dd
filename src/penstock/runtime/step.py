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
import signal
import threading
from collections.abc import Callable, Sequence
from time import perf_counter
from types import FrameType
from typing import Any, Final

from penstock.advice import MoreTime
from penstock.config import RunOptions, Tier, TraceLevel
from penstock.core.values import Value
from penstock.errors import CancelledError, DeadlineExceededError, OpError
from penstock.kernels.context import Interrupt, Runner
from penstock.runtime.executor.barrier import ExecutorBarrier
from penstock.runtime.executor.executor import ExecutorState
from penstock.runtime.executor.params import ExecutorArgs
from penstock.runtime.prepare import PreparedStep
from penstock.runtime.stats import StatsCollector
from penstock.runtime.step_loop import StepLoop, start_timer
from penstock.state.call_frame import CallFrame
from penstock.state.cancellation import CancellationManager
from penstock.state.rendezvous import Rendezvous
from penstock.state.resources import StepContainer
from penstock.state.session_state import SessionState, TensorStore

#: Numbers steps throughout the process; taken under ``_step_ids_lock``, since ``next`` is not
#: atomic on every Python.
_step_ids: Final = itertools.count(1)
_step_ids_lock: Final = threading.Lock()
#: Seconds between two looks at whether Ctrl-C was pressed, while the caller sleeps.
_POLL_SECONDS: Final = 0.05


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
        is_traced = options.trace_level > TraceLevel.NO_TRACE
        self._executors = prepared.executors(Tier.DATAFLOW if is_traced else Tier.COMPILED)
        self._prepared = prepared
        self._options = options
        self._pool = pool
        self._session_state = session_state
        self._interrupt = Interrupt()
        self._cancellation = CancellationManager()
        #: None if nothing in this step sends or receives.
        has_transfers = any(executor.view.has_transfers for executor in self._executors)
        self._rendezvous = Rendezvous() if has_transfers else None
        self._loop = StepLoop()
        self.tensor_store = TensorStore()
        #: What was recorded, if the options ask for it.
        self.stats: StatsCollector | None = None
        #: The executors' runs, in the order of the partitions; empty before ``run``.
        self._states: list[ExecutorState] = []
        self._error: OpError | None = None
        #: Set by a signal handler on the main thread.
        self._was_ctrl_c = False

    # -- from any thread -------------------------------------------------------------

    def cancel(self, reason: OpError | None = None) -> None:
        """End the step early; ``run`` raises ``reason``, unless it is done already."""
        if self._interrupt.reason is None:
            self._interrupt.end(reason or CancelledError("Run call was cancelled"))
        assert self._interrupt.reason is not None
        self._wake_waiting(self._interrupt.reason)

    def _wake_waiting(self, reason: OpError) -> None:
        """Tell kernels that wait; those of Recv hear of it by the rendezvous alone."""
        if self._rendezvous is not None:
            self._rendezvous.start_abort(reason)
        self._cancellation.start_cancel()

    def dump_state(self) -> str:
        """What every unfinished node waits for."""
        return "\n".join(state.dump_state() for state in self._states)

    # -- on the calling thread ---------------------------------------------------------

    def run(self, feeds: Sequence[Value], timeout_in_ms: int) -> list[Value | None]:
        """Run to the end; returns fetched values, None for dead ones.

        Raises:
            OpError: the step's first error, DeadlineExceededError or CancelledError included.
            KeyboardInterrupt: Ctrl-C was pressed.

        """
        frame = CallFrame(self._prepared.feed_types, self._prepared.fetch_types)
        frame.set_args(feeds)
        timer = start_timer(timeout_in_ms, self._expire)
        handler = self._catch_ctrl_c()
        container = StepContainer()
        start = perf_counter()
        try:
            self._start(frame, container)
            self._work(self._poll if handler else None)
        finally:
            if handler is not None:
                signal.signal(signal.SIGINT, handler)
            if timer is not None:
                timer.cancel()
            self._states.clear()  # breaks a cycle, so that memory is freed at once
            container.close()
        if self._was_ctrl_c:
            raise KeyboardInterrupt
        if self._error is not None:
            raise self._error
        if self.stats is None:  # nobody watched each node
            self._prepared.note(None, perf_counter() - start)
        return list(frame.consume_retvals(allow_dead=True))

    def _start(self, frame: CallFrame, container: StepContainer) -> None:
        """Start all executors; they run when the loop does."""
        executors = self._executors
        if self._options.trace_level > TraceLevel.NO_TRACE:
            self.stats = StatsCollector([part.device for part in self._prepared.partitions])
        barrier = ExecutorBarrier(len(executors), self._rendezvous, self._finished)
        step_id = take_step_id()
        for executor in executors:
            device = executor.params.device
            args = ExecutorArgs(
                step_id=step_id,
                rendezvous=self._rendezvous,
                stats_collector=self.stats.devices[device] if self.stats else None,
                call_frame=frame,
                cancellation_manager=self._cancellation,
                session_state=self._session_state,
                tensor_store=self.tensor_store,
                step_container=container,
                runner=self._loop.schedule,
                interrupt=self._interrupt,
                pool=self._pool,
            )
            self._states.append(executor.run_async(args, barrier.arrive))

    def _work(self, poll: Callable[[], None] | None) -> None:
        """Do what can be done on this thread, until all executors are done."""
        try:
            self._loop.run(poll=poll, period=_POLL_SECONDS)
        except BaseException:
            # A handler of the program's own raised.  A step that was left alone would go on
            # by itself, and take what it waits for from others.
            self.cancel()
            self._loop.run()
            raise

    def _finished(self, error: OpError | None) -> None:
        # An interrupt that comes when all work is done comes too late to matter.
        self._error = error
        self._loop.stop()

    def _expire(self) -> None:
        self.cancel(
            DeadlineExceededError(
                "Timed out waiting for notification",
                details=self.dump_state().split("\n"),
                next_step=MoreTime("timeout_in_ms", instead="feed what is missing"),
            )
        )

    # -- Ctrl-C ------------------------------------------------------------------------

    def _catch_ctrl_c(self) -> Any:
        """Turn Ctrl-C into a cancelled step; returns the handler to put back, or None.

        Python's own handler raises between any two lines, also inside a queue's critical
        section.  This one only leaves a note, so that state stays whole.  A handler that
        the program has set itself is left alone.
        """
        if threading.current_thread() is not threading.main_thread():
            return None
        current = signal.getsignal(signal.SIGINT)
        if current is not signal.default_int_handler:
            return None
        signal.signal(signal.SIGINT, self._note_ctrl_c)
        return current

    def _note_ctrl_c(self, _signal: int, _frame: FrameType | None) -> None:
        self._was_ctrl_c = True
        self._interrupt.end(CancelledError("Run call was cancelled by Ctrl-C"))

    def _poll(self) -> None:
        if self._was_ctrl_c and self._interrupt.reason is not None:
            self._wake_waiting(self._interrupt.reason)
