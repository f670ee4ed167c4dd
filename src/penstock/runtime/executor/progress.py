"""How far is this step?  What is ready, runs and waits in each frame, as numbers.

In:   the root frame of a step, and the activations whose kernels are running.
Out:  counts by frame.
Not:  changes nothing; reads state that a driver may be changing, and so tries again when a
      dictionary changes under its hands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from penstock.kernels.api.context import OpKernelContext
from penstock.runtime.executor.dump import iterations_of
from penstock.runtime.executor.pending_counts import PENDING
from penstock.runtime.executor.state import FrameState, IterationState, TaggedNode
from penstock.tracing.recorder import Now

_ATTEMPTS: Final = 5


def progress(
    root: FrameState, running: Sequence[tuple[TaggedNode, OpKernelContext | None]]
) -> list[Now]:
    """Counts for each iteration that is alive; those of one loop have the same ``frame``.

    Args:
        root: the frame outside of all loops.
        running: what the driver is at, and what goes on elsewhere or waits, with its context.

    """
    for _ in range(_ATTEMPTS):
        try:
            return _progress(root, running)
        except RuntimeError:  # A dictionary changed while we walked over it.
            continue
    return []


def _progress(
    root: FrameState, running: Sequence[tuple[TaggedNode, OpKernelContext | None]]
) -> list[Now]:
    computing, waiting = Counter[int](), Counter[int]()
    for (_, _, iteration, _), context in running:
        waits = context is not None and bool(context.waits_for)
        (waiting if waits else computing)[id(iteration)] += 1
    found = []
    for frame, iteration in iterations_of(root):
        own = id(iteration)
        ready = iteration.outstanding - computing[own] - waiting[own]
        missing = waiting[own] + _half_there(frame, iteration)
        found.append(Now(frame.path, frame.iteration_count, max(0, ready), computing[own], missing))
    return found


def _half_there(frame: FrameState, iteration: IterationState) -> int:
    """How many nodes have got some of their inputs, but not all."""
    initial, counts = frame.info.pending_counts.initial, iteration.counts
    return sum(
        1
        for item in frame.info.nodes
        if counts[item.pending_id] & PENDING and counts[item.pending_id] != initial[item.pending_id]
    )
