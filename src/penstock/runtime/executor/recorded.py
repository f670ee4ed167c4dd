"""One step on one device, recorded: what the driver does, with a note of when.

In:   what ``driver`` takes, and a ``Recorder``.
Out:  the same effects, and events in a lane of the recorder.
Not:  gives events no meaning; changes nothing about what runs, or in which order.

It is a class of its own, so that a step that nobody records has not one instruction more.  Ready
nodes are counted rather than timed: a node's place in the queue tells, later, when it came there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from typing import Any, Final

from penstock.errors import OpError
from penstock.kernels.api.context import Waiting
from penstock.runtime.executor.costs import CHEAP
from penstock.runtime.executor.driver import PLAIN, ExecutorState, Prepared
from penstock.runtime.executor.params import DoneCallback, ExecutorArgs
from penstock.runtime.executor.progress import progress
from penstock.runtime.executor.state import TaggedNode
from penstock.runtime.outputs import as_outputs, check_outputs
from penstock.state.step_state import Runner
from penstock.tracing.described import described
from penstock.tracing.recorder import Event, Now, Recorder
from penstock.tracing.watching import Watched

# As plain integers: to look up the member of an enumeration takes as long as to make the event.
_RAN: Final = int(Event.RAN)
_DEAD: Final = int(Event.DEAD)


class RecordedState(ExecutorState):
    """One step on one device, which a recorder is told of."""

    def __init__(
        self,
        executor: Prepared,
        args: ExecutorArgs,
        runner: Runner,
        done: DoneCallback,
        recorder: Recorder,
    ) -> None:
        super().__init__(executor, args, runner, done)
        self._recorder = recorder
        view = executor.view
        self._note = recorder.lane(view.device, view.function, self._progress).note

    def _progress(self) -> Sequence[Now]:
        """What is ready, runs and waits; from any thread, best effort."""
        running, at = list(self._running.values()), self._at
        if at is not None:
            running.append((at, None))
        return progress(self._propagator.root, running)

    def _drive(self) -> None:
        self._note((Event.THREAD, get_ident(), perf_counter_ns(), len(self._ready)))
        self._run_watched(super()._drive)

    def _run_watched(self, run: Callable[[], None]) -> None:
        with Watched(self._recorder, self._note):
            run()

    def _run_ready(self) -> None:  # noqa: C901, PLR0912, PLR0915  (an innermost loop)
        ready, interrupt, note = self._ready, self._interrupt, self._note
        propagate, costs, clock = self._propagate, self._known_costs(), perf_counter_ns
        outputs: Sequence[Any] | None
        end = begin = now = clock()
        while ready:
            if interrupt.reason is not None:
                ready.clear()
                note((Event.DROPPED, now))
                self._abort(interrupt.verdict())
                return
            tagged = ready.popleft()
            item, frame, iteration, is_dead = tagged
            number, start = iteration.number, now
            if is_dead:
                if item.takes_dead:
                    is_dead, tagged = False, (item, frame, iteration, False)
                elif not item.is_transfer:
                    if item.takes_locks:
                        at = item.input_start
                        iteration.inputs[at : at + item.num_inputs] = item.no_inputs
                    propagate(item, frame, iteration, None)
                    now = clock()
                    note((_DEAD, item, frame, number, start, len(ready)))
                    continue
            try:
                if item.dispatch == PLAIN and costs[item.id] <= CHEAP:
                    inputs: Sequence[Any] | None = self._take_inputs(item, iteration)
                    begin = clock()
                    result = item.compute(*inputs)  # type: ignore[misc]  # it is set just above
                    end = clock()
                    inputs = None
                    outputs = (result,) if item.has_bare_output else as_outputs(item, result)
                    if item.is_checked:
                        check_outputs(item, outputs, may_omit=item.may_omit_outputs)
                else:
                    begin = clock()
                    is_prompt = item.try_compute is not None
                    outputs = self._attempt(tagged) if is_prompt else self._activate(tagged)
                    end = now = clock()
                    self._at = None
                    if outputs is None:
                        self._note_left(tagged, start, begin, end)
                        continue
            except BaseException as cause:  # noqa: BLE001  (the one border of kernels)
                now = clock()
                self._at = None
                error = self.failure(tagged, cause)
                code, failed = error.code.name, Event.FAILED
                note((failed, item, frame, number, start, begin, now, len(ready), 0, code))
                self._abort(error)
                continue
            if is_dead:
                propagate(item, frame, iteration, None)
                now = clock()
                note((_RAN, item, frame, number, start, begin, end, now, None, len(ready)))
            else:
                seen = described(outputs)
                propagate(item, frame, iteration, outputs)
                now = clock()
                note((_RAN, item, frame, number, start, begin, end, now, seen, len(ready)))

    def _note_left(self, tagged: TaggedNode, start: int, begin: int, end: int) -> None:
        """A kernel goes on elsewhere, or waits."""
        item, frame, iteration, _ = tagged
        _, context = self._running[id(tagged)]
        wanted: object = context.waits_for if context is not None else None
        if isinstance(wanted, Waiting):
            wanted = wanted.describe()
        self._note(
            (Event.LEFT, item, frame, iteration.number, start, begin, end, len(self._ready),
             id(tagged), wanted)
        )  # fmt: skip

    # -- kernels elsewhere ------------------------------------------------------------------

    def _run_on_pool(self, pool: Runner, tagged: TaggedNode, inputs: Sequence[Any]) -> None:
        def watched_pool(run: Any) -> None:
            pool(partial(self._run_watched, run))

        super()._run_on_pool(watched_pool, tagged, inputs)

    def _ran_elsewhere(self, tagged: TaggedNode, begin: float) -> None:
        ends = int(begin * 1e9), perf_counter_ns()
        self._note((Event.ELSEWHERE, id(tagged), *ends, get_ident()))

    def finished(self, tagged: TaggedNode, start: float, result: object) -> None:
        """An asynchronous kernel is done, on any thread; called once for each."""
        self._note((Event.POSTED, id(tagged), perf_counter_ns(), get_ident()))
        super().finished(tagged, start, result)

    def _take_completions(self) -> None:
        """Propagate what came through the inbox."""
        while (came := self.inbox.take()) is not None:
            tagged, _, result = came
            del self._running[id(tagged)]
            item, frame, iteration, is_dead = tagged
            at = perf_counter_ns()
            try:
                if isinstance(result, OpError):  # judged where it came up
                    raise result
                outputs = self._observe(tagged, as_outputs(item, result))
            except BaseException as cause:  # noqa: BLE001  (the one border of kernels)
                error = cause if cause is result else self.failure(tagged, cause)
                assert isinstance(error, OpError)
                self._note(
                    (Event.FAILED, item, frame, iteration.number, at, at, perf_counter_ns(),
                     len(self._ready), id(tagged), error.code.name)
                )  # fmt: skip
                self._abort(error)
                continue
            seen = None if is_dead else described(outputs)
            self._propagate(item, frame, iteration, None if is_dead else outputs)
            now = perf_counter_ns()
            self._note((Event.DONE, id(tagged), at, now, seen, len(self._ready)))
