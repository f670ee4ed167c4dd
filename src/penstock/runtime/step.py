"""One run of a request by executors: feeds in, results out.

In:   a ``PreparedRequest``, the ``StepState`` of this run, and the values to feed.
Out:  the fetched values, or the step's error.
Not:  parses no names and no nestings; that is the session's.

The calling thread does what it can itself.  It sleeps only while kernels run elsewhere, and
a deadline, ``cancel`` or Ctrl-C ends its step: what is ready is dropped, what waits is
woken, and when nothing runs any more the error is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from threading import current_thread, main_thread
from time import perf_counter

from penstock.config import Tier
from penstock.core.denormals import flushing
from penstock.core.quiet import quiet
from penstock.core.values import Value
from penstock.errors import CancelledError, FailedPreconditionError, OpError
from penstock.runtime.compiler.suspended import Suspended
from penstock.runtime.compiler.trial import Trying
from penstock.runtime.ctrl_c import NotingCtrlC
from penstock.runtime.deadline import Alarm, timed_out
from penstock.runtime.executor.barrier import ExecutorBarrier
from penstock.runtime.executor.node_outputs import NodeOutputsCallback
from penstock.runtime.executor.params import ExecutorArgs
from penstock.runtime.flushing import Flushes
from penstock.runtime.noted_region import run_noted
from penstock.runtime.prepare import PreparedRequest
from penstock.runtime.stats import StatsCollector
from penstock.runtime.step_loop import POLL_SECONDS, StepLoop
from penstock.runtime.unfinished import Unfinished
from penstock.state.call_frame import CallFrame
from penstock.state.step_state import StepState


class Step:
    """One run of one request by executors; used once."""

    def __init__(
        self,
        prepared: PreparedRequest,
        state: StepState,
        flushes: Flushes,
        *,
        tier: Tier = Tier.COMPILED,
        stats: StatsCollector | None = None,
        node_outputs: NodeOutputsCallback | None = None,
    ) -> None:
        """Say what is run, and who looks.

        Args:
            prepared: the request.
            state: the step's own.
            flushes: whether denormal numbers are zeros, by what is fed.
            tier: the dataflow tier if each node is to be seen by itself.
            stats: where it is recorded; None if it is not.
            node_outputs: is told of the outputs of each node.

        """
        self._prepared = prepared
        self._state = state
        #: What is recorded; None if nothing is.
        self.stats = stats
        self._flushes = flushes
        self._tier = tier
        self._node_outputs = node_outputs
        self._loop = StepLoop()
        #: Whether somebody may go before the step is done, though no deadline is given.
        self.is_async = False
        self._error: OpError | None = None
        #: Whether this is the copy of a step that goes on in the parent of this process.
        self._is_forked = False

    # -- from any thread -------------------------------------------------------------

    def cancel(self, reason: OpError | None = None) -> None:
        """End the step early; ``run`` raises ``reason``, unless it is done already."""
        self._state.end(reason or CancelledError("Run call was cancelled"))
        self._loop.start_polling()

    def dump_state(self) -> str:
        """What every unfinished node waits for."""
        return self._state.report()

    def forget_threads(self) -> None:
        """Fail, in the child of a fork, when what this thread is at has been done.

        Whatever was under way elsewhere will never be done.
        """
        self._is_forked = True
        self._loop.forget_threads()
        self._state.forget_threads()

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
        state, interrupt = self._state, self._state.interrupt
        interrupt.may_be_left = self.is_async or timeout_in_ms > 0
        state.flush = self._flushes(feeds)
        start = perf_counter()
        try:
            with Alarm(timeout_in_ms, self._expire), NotingCtrlC(interrupt):
                tried = self._tried(feeds)
                if isinstance(tried, tuple):
                    interrupt.check()
                    return list(tried)
                self._start(frame, feeds, tried)
                with flushing(state.flush):
                    self._work()
        except OpError:
            state.raise_escaping()
            raise
        finally:
            state.close()
            if self.stats is not None:
                self.stats.recording.step_ended(int(start * 1e9))
        state.raise_escaping()
        if self._error is not None:
            raise state.told(self._error)
        is_usual = self.stats is None and tried is None and self._tier is Tier.COMPILED
        if is_usual:  # nobody watched it
            self._prepared.runnable.note(None, perf_counter() - start, interrupt)
        return list(frame.consume_retvals(allow_dead=True))

    def keep_fetched(self, fetches: Iterable[str]) -> None:
        """Let the session keep the tensors whose handles were fetched."""
        self._state.keep_fetched(fetches)

    def _tried(self, feeds: Sequence[Value]) -> tuple[Value | None, ...] | Unfinished | None:
        """The results if kernels need not wait; or what is done, if it was tried and they must."""
        trials, interrupt = self._prepared.runnable.trials, self._state.interrupt
        # A kernel that computes for long on this thread cannot be left behind.
        if trials is None or interrupt.may_be_left or self._tier is Tier.DATAFLOW:
            return None
        trial = trials.take(interrupt)
        if trial is None:
            return None
        activity = Trying(trial)
        interrupt.activities[id(activity)] = activity
        start = perf_counter()
        try:
            with flushing(self._state.flush), quiet():
                context = self._prepared.params.context(self._state)
                run, recorder = trial.region.run, self._state.recorder
                if recorder is None:
                    results = run(context, *feeds)
                else:
                    results = run_noted(recorder, trial.region, partial(run, context, *feeds))
        except Suspended as left:
            trials.note_left()
            return trial.unfinished(left)
        finally:
            del interrupt.activities[id(activity)]
        trials.note_done(perf_counter() - start)
        return results

    def _start(self, frame: CallFrame, feeds: Sequence[Value], begun: Unfinished | None) -> None:
        """Start all executors; they run when the loop does."""
        state, stats = self._state, self.stats
        tier = self._tier if begun is None else Tier.DATAFLOW
        executors = self._prepared.runnable.executors(state.interrupt, tier)
        remote = self._prepared.remote if self._prepared.meets_others else ()
        barrier = ExecutorBarrier(len(executors) + len(remote), state.rendezvous, self._finished)
        for part in remote:
            noted = stats.remote if stats is not None else None
            part.run_async(state, feeds, noted, barrier.arrive)
        for executor in executors:
            args = ExecutorArgs(
                state,
                frame,
                self._loop.schedule,
                recorder=state.recorder,
                begun=begun,
                node_outputs_callback=self._node_outputs,
                hook=state.hook,
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
        self._state.look_up()

    def _expire(self) -> None:
        self.cancel(timed_out(instead="feed what is missing"))
