"""PS103, PS104: loops that cannot end, and loops that never begin.

In:   a subject.
Out:  a remark for the LoopCond of such a loop, or for a Merge where the loop has none.
Not:  proves nothing of loops in general: it follows constants, values that no iteration changes,
      and counters that are compared with a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from penstock.checks.rule import Remark
from penstock.checks.subject import Subject, origin
from penstock.checks.values import value_of
from penstock.dataclass import dataclass
from penstock.errors import OpError
from penstock.graph.frames import ControlFlowInfo, Frame
from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role

_BORDERS: Final = frozenset({Role.ENTER, Role.MERGE, Role.CONSTANT})
#: Whether a comparison goes on being true if its first operand moves this way.
_UP: Final = frozenset({"Greater", "GreaterEqual"})
_DOWN: Final = frozenset({"Less", "LessEqual"})
_SUMS: Final = {"Add": 1, "AddV2": 1, "Sub": -1}


@dataclass(frozen=True, slots=True)
class _Loop:
    """One loop that has a predicate."""

    frame: Frame
    condition: Node
    #: What goes from iteration to iteration.
    merges: list[Node]

    @property
    def predicate(self) -> Edge:
        return self.condition.input(0)

    @property
    def starts(self) -> dict[Node, Any]:
        """What is known of the loop's variables before the first iteration."""
        return {merge: value_of(_entering(merge)) for merge in self.merges}


def endless(subject: Subject) -> Iterator[Remark]:
    """Loops that cannot end."""
    yield from _unguarded(subject)
    for loop in _loops(subject):
        first = _first(loop)
        if first is False:
            continue
        why = _why_endless(loop, first)
        if why:
            yield Remark(loop.condition, f"the loop '{loop.frame.name}' cannot end: {why}",
                         "change what the predicate reads in the loop's body",
                         (loop.predicate.src,))  # fmt: skip


def idle(subject: Subject) -> Iterator[Remark]:
    """Loops that never begin."""
    for loop in _loops(subject):
        if _first(loop) is False:
            yield Remark(
                loop.condition,
                f"the loop '{loop.frame.name}' never runs: its predicate "
                f"'{loop.predicate.src.name}' is false at the beginning",
                "leave the loop out, or begin with other values",
                (loop.predicate.src,),
            )


def _loops(subject: Subject) -> Iterator[_Loop]:
    flow = subject.flow
    if isinstance(flow, OpError):
        return
    merges = _merges(subject, flow)
    for node in subject.graph:
        frame = flow.frame_of.get(node.id)
        if node.role is Role.LOOP_COND and frame is not None and node.inputs[0] is not None:
            yield _Loop(frame, node, merges.get(frame, []))


def _merges(subject: Subject, flow: ControlFlowInfo) -> dict[Frame, list[Node]]:
    found: dict[Frame, list[Node]] = {}
    for node in subject.graph:
        frame = flow.frame_of.get(node.id)
        if frame is not None and node.role is Role.MERGE and _returning(node) is not None:
            found.setdefault(frame, []).append(node)
    return found


def _returning(merge: Node) -> Edge | None:
    """The edge that brings the next iteration's value."""
    return next((e for e in merge.inputs if e and e.src.role is Role.NEXT_ITERATION), None)


def _entering(merge: Node) -> Edge:
    """The edge that brings the first iteration's value."""
    return next(e for e in merge.inputs if e and e.src.role is not Role.NEXT_ITERATION)


def _first(loop: _Loop) -> bool | None:
    """The predicate at the beginning; None if it is not known."""
    value = value_of(loop.predicate, loop.starts)
    return bool(value.reshape(())) if value is not None and value.size == 1 else None


def _why_endless(loop: _Loop, first: Any) -> str:
    """Why the loop does not end once it has begun, as a clause; empty if it may."""
    read = _read_by(loop.predicate)
    if read is None:
        return ""
    name = loop.predicate.src.name
    variables = [node for node in read if node.role is Role.MERGE]
    if not any(map(_changes, variables)):
        once = "it is true at first" if first else "if it is true at first"
        return f"no iteration changes what its predicate '{name}' reads; {once}"
    if first is True and len(variables) == 1 and _moves_away(loop, variables[0]):
        return f"'{variables[0].name}' moves away from the end that '{name}' compares it with"
    return ""


def _read_by(predicate: Edge) -> set[Node] | None:
    """What the predicate is computed from, at the loop's border; None if that cannot be told."""
    found, seen, waiting = set(), {predicate.src}, [predicate.src]
    while waiting:
        node = waiting.pop()
        if node.role in _BORDERS:
            found.add(node)
            continue
        if node.op.is_stateful or node.op.is_function or node.op.traits.is_impure:
            return None
        if node.role is Role.RECV or (not node.inputs and node.role is not Role.CONSTANT):
            return None
        new = {edge.src for edge in node.inputs if edge is not None} - seen
        seen |= new
        waiting += new
    return found


def _changes(merge: Node) -> bool:
    """Whether some iteration may change a loop variable."""
    returning = _returning(merge)
    if returning is None:
        # A branch's Merge: it says nothing of iterations.
        return True
    hands_on = (Role.IDENTITY, Role.SWITCH, Role.NEXT_ITERATION)
    return origin(returning, lambda node: node.role in hands_on).src is not merge


def _moves_away(loop: _Loop, merge: Node) -> bool:
    """Whether a counter that is compared with a constant moves to the wrong side, or stands."""
    comparison = origin(loop.predicate, lambda node: node.role is Role.IDENTITY).src
    returning, start = _returning(merge), loop.starts[merge]
    if comparison.op.name not in _UP | _DOWN or returning is None or start is None:
        return False
    left, right = comparison.inputs
    if left is None or right is None:
        return False
    is_left, is_right = (origin(e, _hands_on).src is merge for e in (left, right))
    if is_left == is_right or value_of(right if is_left else left) is None:
        return False
    step = _step_of(merge, returning)
    upwards = (comparison.op.name in _UP) == is_left
    return step is not None and bool(np.all(step >= 0 if upwards else step <= 0))


def _step_of(merge: Node, returning: Edge) -> Any:
    """By how much an iteration changes a counter; None if that is no constant."""
    last = origin(returning, lambda n: n.role in (Role.IDENTITY, Role.NEXT_ITERATION)).src
    sign = _SUMS.get(last.op.name)
    if sign is None or None in last.inputs:
        return None
    operands = [last.input(0), last.input(1)]
    is_counter = [origin(edge, _hands_on).src is merge for edge in operands]
    if is_counter == [True, False]:
        step = value_of(operands[1])
        return None if step is None else sign * step
    if is_counter == [False, True] and sign == 1:
        return value_of(operands[0])
    return None


def _hands_on(node: Node) -> bool:
    return node.role in (Role.IDENTITY, Role.SWITCH)


def _unguarded(subject: Subject) -> Iterator[Remark]:
    """Ways from iteration to iteration on which no Switch can end the loop."""
    if isinstance(subject.flow, OpError):
        return
    for node in subject.graph:
        returning = _returning(node) if node.role is Role.MERGE else None
        if returning is not None and not _is_guarded(returning.src):
            yield Remark(
                node,
                "the frame never finishes: no Switch stands between this Merge and "
                f"'{returning.src.name}', so that each iteration starts another one",
                "let a Switch on the loop's LoopCond end it",
                (returning.src,),
            )


def _is_guarded(last: Node) -> bool:
    """Whether something in an iteration can keep a NextIteration from running."""
    seen, waiting = {last}, [last]
    while waiting:
        node = waiting.pop()
        if node.role in (Role.SWITCH, Role.RECV):
            return True
        if node.role is Role.ENTER or (node.role is Role.MERGE and _returning(node) is not None):
            continue
        new = {edge.src for edge in node.in_edges()} - seen
        seen |= new
        waiting += new
    return False
