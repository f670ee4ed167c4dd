"""The laws of frames and iterations, as a check of their state between two activations.

In:   the root frame of a step, and the activations that are ready or running.
Out:  nothing, or one AssertionError with every breach.
Not:  changes nothing; knows no rule by which the state came about.

``runtime/executor/state.py`` says the laws in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from penstock.runtime.executor.graph_view import Flow, NodeItem
from penstock.runtime.executor.pending_counts import PENDING, PENDING_BITS
from penstock.runtime.executor.state import FrameState, IterationState, TaggedNode


def check_frames(root: FrameState, active: Collection[TaggedNode]) -> None:
    """Raise AssertionError unless all frames, and their iterations, obey the laws."""
    breaches = [f"{where}: {what}" for where, what in _breaches(root, active)]
    assert not breaches, "\n".join(breaches)


def _breaches(root: FrameState, active: Collection[TaggedNode]) -> Iterator[tuple[str, str]]:
    frames = [*_frames(root)]
    alive = {id(iteration) for frame in frames for iteration in frame.iterations.values()}
    for item, frame, iteration, _ in active:
        if id(iteration) not in alive or frame.iterations.get(iteration.number) is not iteration:
            yield (
                frame.label,
                f"{item.name} is active in iteration {iteration.number}, which is gone",
            )
    outstanding = Counter(id(tagged[2]) for tagged in active)
    working = {(tagged[0].id, id(tagged[2])) for tagged in active}
    for frame in frames:
        for what in _of_frame(frame):
            yield frame.label, what
        for number, iteration in frame.iterations.items():
            where = f"{frame.label}[{number}]"
            for what in _of_iteration(frame, iteration, outstanding[id(iteration)]):
                yield where, what
            for item in frame.info.nodes:
                is_active = (item.id, id(iteration)) in working
                for what in _of_node(item, iteration, is_active=is_active):
                    yield where, what


def _frames(root: FrameState) -> Iterator[FrameState]:
    yield root
    for iteration in root.iterations.values():
        for child in iteration.children.values():
            yield from _frames(child)


def _of_frame(frame: FrameState) -> Iterator[str]:
    numbers, newest = [*frame.iterations], frame.iteration_count
    if numbers and numbers != [*range(numbers[0], newest + 1)]:
        yield f"iterations {numbers} are not those up to the newest, {newest}, oldest first"
    if len(numbers) > max(1, frame.max_parallel_iterations):
        yield f"{len(numbers)} iterations, of at most {frame.max_parallel_iterations}"
    if frame.deferred and len(numbers) < frame.max_parallel_iterations:
        yield "values are kept back though one more iteration may start"
    if not 0 <= frame.num_pending_inputs <= frame.info.input_count:
        yield f"{frame.num_pending_inputs} of {frame.info.input_count} Enters are to come"
    if frame.parent is not None and not numbers:
        yield "alive without an iteration"
    exits = [item.name for item in frame.dead_exits]
    if len(set(exits)) < len(exits) or (not numbers and exits):
        yield f"dead exits {exits} are not those of one iteration"
    if any(item.flow != Flow.EXIT or item not in frame.info.nodes for item in frame.dead_exits):
        yield f"dead exits {exits} are not the frame's"
    constants = [item.name for item, _ in frame.invariants]
    if len(set(constants)) < len(constants):
        yield f"loop constants {constants} came twice"
    if any(
        item.flow != Flow.CONSTANT_ENTER or item.child_frame is not frame.info
        for item, _ in frame.invariants
    ):
        yield f"loop constants {constants} are not the frame's"


def _of_iteration(frame: FrameState, iteration: IterationState, active: int) -> Iterator[str]:
    if iteration.outstanding != active:
        yield f"{iteration.outstanding} outstanding, but {active} are ready or running"
    if iteration.child_frames != len(iteration.children):
        yield f"{iteration.child_frames} inner frames, but {len(iteration.children)} are alive"
    for name, child in iteration.children.items():
        if (child.info.name, child.parent, child.parent_iteration) != (name, frame, iteration):
            yield f"inner frame {name} is another one's"
    is_oldest = iteration.number == next(iter(frame.iterations))
    waits_for_enters = iteration.number == 0 and frame.num_pending_inputs > 0
    if is_oldest and not (iteration.outstanding or iteration.child_frames or waits_for_enters):
        yield "done, but not collected"
    if len(iteration.counts) != len(frame.info.pending_counts.initial):
        yield f"{len(iteration.counts)} counts"
    if len(iteration.inputs) != frame.info.total_inputs:
        yield f"{len(iteration.inputs)} input places"


def _of_node(item: NodeItem, iteration: IterationState, *, is_active: bool) -> Iterator[str]:
    count = iteration.counts[item.pending_id]
    pending, dead = count & PENDING, count >> PENDING_BITS
    inputs = iteration.inputs[item.input_start : item.input_start + item.num_inputs]
    if count < 0 or (dead > item.num_inputs and item.is_merge):
        yield f"{item.name} has been told more than it was to be told"
    if is_active and pending and not item.is_merge:
        yield f"{item.name} is active and waits for {pending} more"
    if not (pending or dead or is_active) and any(value is not None for value in inputs):
        yield f"{item.name} has run, and its inputs are kept"
