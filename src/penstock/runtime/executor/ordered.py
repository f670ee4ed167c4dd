"""One step on one device in an order that somebody notes or demands.

In:   what ``driver`` takes, and a ``StepOrder``.
Out:  the same effects, one after the other.
Not:  knows no order; it asks before it does anything.

It is a class of its own, like ``recorded.py``, so that a step without an order has not one
instruction more.  What a kernel gives does not travel at once: that is asked for by itself, so
that an order has each node twice, where it takes effect and where its outputs travel.

With a pool, kernels run there: those that only compute at the same time, those with effects one
at a time, as they get hold of the order's lock.  So threads race for it as they do for variables,
and what is noted is the order in which all effects happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.errors import OpError
from penstock.runtime.executor.driver import ExecutorState, Prepared
from penstock.runtime.executor.graph_view import DispatchKind, NodeItem
from penstock.runtime.executor.params import DoneCallback, ExecutorArgs
from penstock.runtime.executor.state import TaggedNode
from penstock.runtime.outputs import as_outputs
from penstock.state.step_order import NodeRun, Outcome, StepOrder
from penstock.state.step_state import Runner

_ASYNC: Final = int(DispatchKind.ASYNC)


class OrderedState(ExecutorState):
    """One step on one device, in an order."""

    def __init__(
        self,
        executor: Prepared,
        args: ExecutorArgs,
        runner: Runner,
        done: DoneCallback,
        order: StepOrder,
    ) -> None:
        super().__init__(executor, args, runner, done)
        self._order = order
        # What follows belongs to the driver, like what it inherits.
        #: What is ready, in the order in which it came to be.
        self._waiting: dict[NodeRun, TaggedNode] = {}
        #: Outcomes that have not travelled yet; their nodes count as running.
        self._came: dict[NodeRun, tuple[TaggedNode, Outcome]] = {}
        with order.lock:
            self._number = order.join(self)

    # -- for the order -------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether the outcome of something is still to come."""
        return len(self._running) > len(self._came)

    def wake(self) -> None:
        """Ask the order again, soon, what may go on."""
        if self.inbox.post(_WAKE):
            self._runner(self._drive)

    def end_step(self, error: OpError) -> None:
        """End the step."""
        self._args.step.end(error)

    def leave(self, seconds: float) -> Sequence[str]:
        """Be done, also with what is ready and was never chosen."""
        if self._waiting or self._came:
            self.wake()
        return super().leave(seconds)

    # -- the driver ----------------------------------------------------------------------------

    def _run_ready(self) -> None:
        order, interrupt = self._order, self._interrupt
        while True:
            with order.lock:
                if interrupt.reason is not None:
                    self._drop_all()
                    return
                while self._ready:
                    tagged = self._ready.popleft()
                    self._waiting[self._node_run(tagged)] = tagged
                chosen = order.choose(self._number, self._waiting.keys(), self._came.keys())
                if chosen is None:
                    return
                if chosen in self._came:
                    self._end(chosen)
                else:
                    self._begin(chosen, self._waiting.pop(chosen))

    def _drop_all(self) -> None:
        self._ready.clear()
        self._waiting.clear()
        for tagged, _ in self._came.values():
            del self._running[id(tagged)]
        self._came.clear()
        self._abort(self._interrupt.verdict())

    def _node_run(self, tagged: TaggedNode) -> NodeRun:
        item, frame, iteration, _ = tagged
        return NodeRun(self._number, item.name, frame.name, iteration.number)

    def _begin(self, node_run: NodeRun, tagged: TaggedNode) -> None:
        """Call a kernel, or have it called."""
        item, frame, iteration, is_dead = tagged
        if is_dead and item.takes_dead:
            is_dead, tagged = False, (item, frame, iteration, False)
        if is_dead and not item.is_transfer:
            if item.takes_locks:
                start = item.input_start
                iteration.inputs[start : start + item.num_inputs] = item.no_inputs
            self._order.begins(node_run, has_effects=False)
            self._arrived(node_run, tagged, None)
            return
        if not self._is_for_pool(item):
            self._order.begins(node_run, has_effects=_has_effects(item))
        try:
            outcome: Outcome = self._activate(tagged)
        except BaseException as cause:  # noqa: BLE001  (the one border of kernels)
            outcome = self.failure(tagged, cause)
        self._at = None
        if outcome is not None:
            self._arrived(node_run, tagged, outcome)

    def _arrived(self, node_run: NodeRun, tagged: TaggedNode, outcome: Outcome) -> None:
        self._running[id(tagged)] = tagged, None
        self._came[node_run] = tagged, outcome

    def _end(self, node_run: NodeRun) -> None:
        """Let an outcome travel."""
        tagged, outcome = self._came.pop(node_run)
        del self._running[id(tagged)]
        item, frame, iteration, is_dead = tagged
        self._order.ends(node_run, outcome)
        if isinstance(outcome, OpError):
            self._abort(outcome)
        else:
            self._propagator.propagate(item, frame, iteration, None if is_dead else outcome)

    def _take_completions(self) -> None:
        """Note what came through the inbox; it travels when it is chosen."""
        with self._order.lock:
            while (came := self.inbox.take()) is not None:
                if came is not _WAKE:
                    tagged, _, result = came
                    self._arrived(self._node_run(tagged), tagged, self._outcome(tagged, result))

    def _outcome(self, tagged: TaggedNode, result: object) -> Outcome:
        """What a kernel gave that ran elsewhere."""
        if isinstance(result, OpError):  # judged where it came up
            return result
        try:
            outputs = as_outputs(tagged[0], result)
            return self._observe(tagged, outputs)
        except BaseException as cause:  # noqa: BLE001  (the one border of kernels)
            return self.failure(tagged, cause)

    def _finish(self) -> None:
        """Report the outcome, unless something is ready that was not chosen yet."""
        if not self._waiting:
            with self._order.lock:
                self._order.leave(self._number)
            super()._finish()

    # -- kernels elsewhere ---------------------------------------------------------------------

    def _is_for_pool(self, item: NodeItem) -> bool:
        """Whether a kernel runs on the pool: a reference is read where an effect is noted."""
        has_pool = self._args.step.pool is not None
        return has_pool and item.is_measured and item.dispatch != _ASYNC and not item.has_refs

    def _goes_elsewhere(self, item: NodeItem, cost: float, inputs: Sequence[Any]) -> bool:  # noqa: ARG002
        return self._is_for_pool(item)

    def _run_on_pool(self, pool: Runner, tagged: TaggedNode, inputs: Sequence[Any]) -> None:
        order, node_run = self._order, self._node_run(tagged)
        if not _has_effects(tagged[0]):
            order.begins(node_run, has_effects=False)
            super()._run_on_pool(pool, tagged, inputs)
            return

        def in_order(run: Callable[[], None]) -> None:
            def run_alone() -> None:
                with order.lock:
                    order.begins(node_run, has_effects=True)
                    run()

            pool(run_alone)

        super()._run_on_pool(in_order, tagged, inputs)


def _has_effects(item: NodeItem) -> bool:
    """Whether a node may notice what others do, or they what it does."""
    return item.patience == math.inf or item.dispatch == _ASYNC or item.has_refs


#: What comes through an inbox to no other end than that somebody drives.
_WAKE: Final[Any] = (None, 0.0, None)
