"""Why does this step hang?  What every unfinished node waits for, as text.

In:   the root frame of a step, and the activations whose kernels are running, each with what
      it says of itself.
Out:  lines for people, whatever the graph calls its nodes and frames.
Not:  changes nothing; reads state that a driver may be changing, and so tries again when
      a dictionary changes under its hands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from penstock.kernels.api.context import OpKernelContext, Waiting
from penstock.printable import printable
from penstock.runtime.executor.graph_view import NodeItem
from penstock.runtime.executor.pending_counts import MERGE_WAITS_FOR_DATA, PENDING
from penstock.runtime.executor.state import FrameState, IterationState, TaggedNode

#: An activation whose kernel is running, and what it waits for or is at; empty if it does not say.
Running: TypeAlias = tuple[TaggedNode, str]

_ATTEMPTS: Final = 20
#: More lines than this help nobody.
_MAX_LINES: Final = 50


def dump(root: FrameState, running: Sequence[Running], title: str, deadlock: str = "") -> str:
    """A line for each node that runs, each loop, and each node for which some input has come."""
    for _ in range(_ATTEMPTS):
        try:
            return _dump(root, running, title, deadlock)
        except RuntimeError:  # A dictionary changed while we walked over it.
            continue
    return printable(f"{title}: the step is changing too quickly to be described")


def waits_of(
    running: Sequence[tuple[TaggedNode, OpKernelContext | None]],
) -> list[tuple[str, Waiting]]:
    """The nodes of kernels that wait for others, and what for."""
    return [
        (tagged[0].name, context.waits_for)
        for tagged, context in running
        if context is not None and isinstance(context.waits_for, Waiting)
    ]


def _dump(root: FrameState, running: Sequence[Running], title: str, deadlock: str) -> str:
    lines = [f"{title}:", *([f"  {deadlock}"] if deadlock else [])]
    for (item, frame, iteration, _), says in running:
        lines.append(f"  running  {item.name} ({item.op}){_turn(frame, iteration)}{says}")
    busy = {(item.id, id(iteration)) for (item, _, iteration, _), _ in running}
    alive = list(iterations_of(root))
    lines += _loops(alive)
    for frame, iteration in alive:
        lines += _waiting(frame, iteration, busy)
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES:] = [f"  … and {len(lines) - _MAX_LINES} more"]
    return "\n".join(map(printable, lines))


def iterations_of(root: FrameState) -> Iterator[tuple[FrameState, IterationState]]:
    """All iterations that are alive, outer ones first."""
    waiting = [root]
    while waiting:
        frame = waiting.pop()
        for iteration in list(frame.iterations.values()):
            yield frame, iteration
            waiting.extend(iteration.children.values())


def _loops(alive: Sequence[tuple[FrameState, IterationState]]) -> Iterator[str]:
    """Each loop that goes on, and how far it is."""
    frames = {id(frame): frame for frame, _ in alive if frame.parent is not None}
    for frame in frames.values():
        yield f"  loop     {frame.label}, iteration {frame.iteration_count}"


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
