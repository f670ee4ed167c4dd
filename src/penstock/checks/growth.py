"""PS111: loop variables that every iteration copies, and makes longer.

In:   a subject.
Out:  a remark for each concatenation of a loop variable with something that becomes it.
Not:  measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.checks.rule import Remark
from penstock.checks.subject import Subject, origin
from penstock.graph.graph import Node
from penstock.graph.roles import Role

_JOINS: Final = frozenset({"Concat", "ConcatV2", "Pad", "PadV2"})
_ON: Final = frozenset({Role.IDENTITY, Role.SWITCH, Role.NEXT_ITERATION})


def look(subject: Subject) -> Iterator[Remark]:
    """Concatenations that grow."""
    for node in subject.graph:
        if node.role is not Role.MERGE:
            continue
        for edge in node.inputs:
            if edge is None or edge.src.role is not Role.NEXT_ITERATION:
                continue
            last = origin(edge, _hands_on).src
            if last.op.name in _JOINS and any(
                e is not None and origin(e, _hands_on).src is node for e in last.inputs
            ):
                yield Remark(
                    last,
                    f"copies all of the loop variable '{node.name}' in every iteration to make it "
                    "longer, which takes time as the square of the number of iterations",
                    "write into a TensorArray, and stack it behind the loop",
                    (node,),
                )


def _hands_on(node: Node) -> bool:
    return node.role in _ON
