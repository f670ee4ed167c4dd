"""Why does this step hang?  What every unfinished node waits for, as text.

In:   the root frame of a step and the activations whose kernels are running.
Out:  lines for people, whatever the graph calls its nodes and frames.
Not:  changes nothing; reads state that a driver may be changing, and so tries again when
      a dictionary changes under its hands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.printable import printable
from penstock.runtime.executor.graph_view import NodeItem
from penstock.runtime.executor.pending_counts import MERGE_WAITS_FOR_DATA, PENDING
from penstock.runtime.executor.state import FrameState, IterationState, TaggedNode

_ATTEMPTS: Final = 20
#: More lines than this help nobody.
_MAX_LINES: Final = 50


def dump(root: FrameState, running: list[TaggedNode], device: str) -> str:
    """One line per node that runs, and per node that waits although some input has come."""
    for _ in range(_ATTEMPTS):
        try:
            return _dump(root, running, device)
        except RuntimeError:  # A dictionary changed while we walked over it.
            continue
    return f"{device}: the step is changing too quickly to be described"


def _dump(root: FrameState, running: list[TaggedNode], device: str) -> str:
    lines = [f"{device}:"]
    for item, frame, iteration, _ in running:
        lines.append(f"  running  {item.name} ({item.op}){_turn(frame, iteration)}")
    busy = {(item.id, id(iteration)) for item, _, iteration, _ in running}
    for frame, iteration in _iterations(root):
        lines += _waiting(frame, iteration, busy)
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES:] = [f"  … and {len(lines) - _MAX_LINES} more"]
    return "\n".join(map(printable, lines))


def _iterations(root: FrameState) -> Iterator[tuple[FrameState, IterationState]]:
    """All iterations that are alive, outer ones first."""
    waiting = [root]
    while waiting:
        frame = waiting.pop()
        for iteration in list(frame.iterations.values()):
            yield frame, iteration
            waiting.extend(iteration.children.values())


def _waiting(
    frame: FrameState, iteration: IterationState, busy: set[tuple[int, int]]
) -> Iterator[str]:
    """Nodes of one iteration that got some of their inputs but not all."""
    initial = frame.info.pending_counts.initial
    for item in frame.info.nodes:
        count = iteration.counts[item.pending_id]
        if count == initial[item.pending_id] or not count & PENDING:
            continue
        if item.is_merge and count & PENDING == MERGE_WAITS_FOR_DATA:
            missing = "a live input"
        else:
            missing = ", ".join(_missing(item, iteration, busy)) or "a control input"
        yield f"  waiting  {item.name} ({item.op}){_turn(frame, iteration)} for {missing}"


def _missing(
    item: NodeItem, iteration: IterationState, busy: set[tuple[int, int]]
) -> Iterator[str]:
    """Names of the inputs that have not come."""
    for source, slot in item.in_edges:
        same_frame = source.frame is item.frame
        unfinished = iteration.counts[source.pending_id] & PENDING if same_frame else 0
        if unfinished or (source.id, id(iteration)) in busy:
            yield f"^{source.name}" if slot < 0 else f"{source.name}:{slot}"


def _turn(frame: FrameState, iteration: IterationState) -> str:
    return f" in {frame.label}, iteration {iteration.number}" if frame.parent else ""
