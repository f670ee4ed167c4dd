"""The rules by which values and deadness travel along edges.

In:   a node that is done, its frame and iteration, and its outputs (None if it was dead).
Out:  activations in the ready queue; frames and iterations made and collected.
Not:  calls no kernels, holds no locks, knows no threads: one caller at a time.

A dead value is the absence of a value: it is counted at its destination and not stored.

| node | live | dead |
| --- | --- | --- |
| ordinary | outputs go to the same frame and iteration | deadness does |
| Enter | into iteration 0 of the inner frame | the same |
| constant Enter | into every iteration of the inner frame, present and to come | the same |
| Exit | out to the iteration that the frame stands in | kept until the frame is done |
| NextIteration | into the following iteration, or kept back while too many are alive | nothing |

See docs/semantics.md for each rule's test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.core.values import DEAD, Value
from penstock.runtime.executor.graph_view import Flow, FrameInfo, GraphView, NodeItem
from penstock.runtime.executor.pending_counts import (
    MERGE_WAITS_FOR_DATA,
    ONE_DEAD,
    PENDING,
    PENDING_BITS,
)
from penstock.runtime.executor.state import FrameState, IterationState, ReadyQueue, TaggedNode
from penstock.runtime.unfinished import Unfinished

_ORDINARY: Final = int(Flow.ORDINARY)
_ENTER: Final = int(Flow.ENTER)
_CONSTANT_ENTER: Final = int(Flow.CONSTANT_ENTER)
_EXIT: Final = int(Flow.EXIT)


class Propagator:
    """The frames of one step on one device, and the rules that drive them."""

    __slots__ = ("_ready", "root")

    def __init__(self, view: GraphView, ready: ReadyQueue, begun: Unfinished | None = None) -> None:
        self._ready = ready
        self.root = FrameState(view.root, None, None, 1)
        start = self.root.iterations[0]
        if begun is not None:
            self._go_on(view, start, begun)
            return
        start.outstanding = len(view.roots)
        for item in view.roots:
            ready.append((item, self.root, start, False))

    def _go_on(self, view: GraphView, start: IterationState, begun: Unfinished) -> None:
        """Begin where somebody else has left off."""
        counts, inputs, done, values = start.counts, start.inputs, begun.done, begun.values
        for item in view.items:
            if item.name not in done:
                continue
            for slot, dst, at in item.data_edges:
                if dst.name not in done:
                    inputs[at] = values[item.name, slot]
                    counts[dst.pending_id] -= 1
            for dst in item.control_edges:
                if dst.name not in done:
                    counts[dst.pending_id] -= 1
        for item in view.root.nodes:
            if item.name not in done and not counts[item.pending_id]:
                self._make_ready((item, self.root, start, False))

    def propagate(
        self,
        item: NodeItem,
        frame: FrameState,
        iteration: IterationState,
        outputs: Sequence[Value] | None,
    ) -> None:
        """Apply a node's rule; ``outputs`` is None if the node is dead."""
        flow = item.flow
        if flow == _ORDINARY:
            self._deliver(item, frame, iteration, outputs)
        elif flow in (_ENTER, _CONSTANT_ENTER):
            self._enter(item, frame, iteration, outputs)
        elif flow == _EXIT:
            self._exit(item, frame, iteration, outputs)
        elif outputs is not None:
            self._next_iteration(item, frame, iteration, outputs)
        # Only now: while the node itself is outstanding, nothing that it has just delivered can
        # end the iteration under our hands.
        iteration.outstanding -= 1
        if iteration.outstanding == 0:
            self._collect(frame, iteration.number)

    # -- one node's outputs, to one iteration ----------------------------------------

    def _deliver(
        self,
        item: NodeItem,
        frame: FrameState,
        iteration: IterationState,
        outputs: Sequence[Value] | None,
    ) -> None:
        if outputs is None:
            self._deliver_dead(item, frame, iteration)
            return
        # Locals instead of attributes: this loop runs once per edge of every activation.
        counts, inputs, ready = iteration.counts, iteration.inputs, self._ready
        for slot, dst, at in item.data_edges:
            value = outputs[slot]
            pending_id = dst.pending_id
            count = counts[pending_id]
            if value is DEAD:
                self._deliver_dead_data(item, dst, frame, iteration)
            elif dst.is_merge:
                # The first live input wins; later ones are dropped.
                if count & 1:
                    inputs[at] = value
                    counts[pending_id] = count - 1
                    if count & PENDING == MERGE_WAITS_FOR_DATA:
                        iteration.outstanding += 1
                        ready.append((dst, frame, iteration, False))
            else:
                inputs[at] = value
                counts[pending_id] = count = count - 1
                if not count & PENDING:
                    iteration.outstanding += 1
                    # With nothing pending, what is left of the count is how many were dead.
                    ready.append((dst, frame, iteration, count != 0))
        for dst in item.control_edges:
            self._deliver_control(dst, frame, iteration, 0)

    def _deliver_dead(self, item: NodeItem, frame: FrameState, iteration: IterationState) -> None:
        for _, dst, _ in item.data_edges:
            self._deliver_dead_data(item, dst, frame, iteration)
        for dst in item.control_edges:
            self._deliver_control(dst, frame, iteration, ONE_DEAD)

    def _deliver_control(
        self, dst: NodeItem, frame: FrameState, iteration: IterationState, dead: int
    ) -> None:
        """Tell ``dst`` that a node it waits for is done; ``dead`` is 0 or ONE_DEAD."""
        counts, pending_id = iteration.counts, dst.pending_id
        if dst.is_merge:
            # A dead control input does not kill a Merge; it merely counts as arrived.
            count = counts[pending_id] = counts[pending_id] - 2
            pending, is_dead = count & PENDING, count >> PENDING_BITS == dst.num_inputs
            if pending == 0 or (pending == MERGE_WAITS_FOR_DATA and is_dead):
                self._make_ready((dst, frame, iteration, is_dead and pending != 0))
        else:
            count = counts[pending_id] = counts[pending_id] + dead - 1
            if not count & PENDING:
                # A ControlTrigger waits for everything, and then is always live.
                is_dead = count != 0 and not dst.is_control_trigger
                self._make_ready((dst, frame, iteration, is_dead))

    def _deliver_dead_data(
        self, item: NodeItem, dst: NodeItem, frame: FrameState, iteration: IterationState
    ) -> None:
        counts, pending_id = iteration.counts, dst.pending_id
        if dst.is_merge:
            count = counts[pending_id] = counts[pending_id] + ONE_DEAD
            # A dead Enter kills its loop's Merge at once: no NextIteration will ever come.
            is_dead = count >> PENDING_BITS == dst.num_inputs or item.is_enter
            if is_dead and count & PENDING == MERGE_WAITS_FOR_DATA:
                counts[pending_id] = count - 1  # So that nothing makes it ready again.
                self._make_ready((dst, frame, iteration, True))
        else:
            count = counts[pending_id] = counts[pending_id] + ONE_DEAD - 1
            if not count & PENDING:
                self._make_ready((dst, frame, iteration, True))

    def _make_ready(self, tagged: TaggedNode) -> None:
        tagged[2].outstanding += 1
        self._ready.append(tagged)

    # -- into and out of frames --------------------------------------------------------

    def _enter(
        self,
        item: NodeItem,
        frame: FrameState,
        iteration: IterationState,
        outputs: Sequence[Value] | None,
    ) -> None:
        """Deliver into the inner frame, which the first Enter makes, live or dead."""
        info = item.child_frame
        assert info is not None
        child = iteration.children.get(info.name)
        if child is None:
            child = self._open_frame(info, frame, iteration, item.parallel_iterations)
        if item.flow == _CONSTANT_ENTER:
            child.invariants.append((item, None if outputs is None else tuple(outputs)))
            # It may come late: the others may have started the loop, and iterations that need no
            # constant may be over already.
            for number in range(child.iteration_count + 1):
                if number in child.iterations:
                    self._deliver(item, child, child.iterations[number], outputs)
        else:
            self._deliver(item, child, child.iterations[0], outputs)
        child.num_pending_inputs -= 1
        if child.num_pending_inputs == 0:
            self._collect(child, 0)

    @staticmethod
    def _open_frame(
        info: FrameInfo, frame: FrameState, iteration: IterationState, parallel_iterations: int
    ) -> FrameState:
        child = FrameState(info, frame, iteration, parallel_iterations)
        iteration.children[info.name] = child
        iteration.child_frames += 1
        return child

    def _exit(
        self,
        item: NodeItem,
        frame: FrameState,
        iteration: IterationState,
        outputs: Sequence[Value] | None,
    ) -> None:
        """Deliver to the outer frame; keep a dead exit of the newest iteration."""
        if outputs is not None:
            assert frame.parent is not None
            assert frame.parent_iteration is not None
            self._deliver(item, frame.parent, frame.parent_iteration, outputs)
        elif iteration.number == frame.iteration_count:
            frame.dead_exits.append(item)

    def _next_iteration(
        self,
        item: NodeItem,
        frame: FrameState,
        iteration: IterationState,
        outputs: Sequence[Value],
    ) -> None:
        """Deliver into the following iteration; keep the value if that may not start yet."""
        following = iteration.number + 1
        if iteration.number == frame.iteration_count:
            if len(frame.iterations) == frame.max_parallel_iterations:
                frame.deferred.append((item, tuple(outputs)))
                return
            self._start_iteration(frame)
        self._deliver(item, frame, frame.iterations[following], outputs)

    def _start_iteration(self, frame: FrameState) -> None:
        """Begin the next iteration with the loop's constants and the values kept for it.

        A Merge that takes both has the constant, as in TensorFlow.
        """
        frame.iteration_count += 1
        number = frame.iteration_count
        iteration = frame.iterations[number] = IterationState(frame.info, number)
        frame.dead_exits.clear()
        for item, invariant in frame.invariants:
            self._deliver(item, frame, iteration, invariant)
        while frame.deferred:
            item, outputs = frame.deferred.popleft()
            self._deliver(item, frame, iteration, outputs)

    # -- the end of iterations and frames ------------------------------------------------

    def _collect(self, frame: FrameState, number: int) -> None:
        """Drop iterations that are done, in order, and frames that are done, outwards."""
        current: FrameState | None = frame
        while current is not None:
            self._collect_iterations(current, number)
            if current.num_pending_inputs or current.iterations or current.parent is None:
                return
            parent, iteration = current.parent, current.parent_iteration
            assert iteration is not None
            for item in current.dead_exits:
                self._deliver_dead(item, parent, iteration)
            if iteration.children.pop(current.info.name, None) is not None:
                iteration.child_frames -= 1
            current, number = parent, iteration.number

    def _collect_iterations(self, frame: FrameState, number: int) -> None:
        iterations = frame.iterations
        while number in iterations:
            iteration = iterations[number]
            if iteration.outstanding or iteration.child_frames:
                return
            if number == 0:
                if frame.num_pending_inputs:
                    return  # an Enter that is still to come delivers here, however late
            elif number - 1 in iterations:
                return  # idle, but the one before may yet send something by a NextIteration
            del iterations[number]
            if frame.deferred:  # which waited for this place among the parallel iterations
                self._start_iteration(frame)
            number += 1
