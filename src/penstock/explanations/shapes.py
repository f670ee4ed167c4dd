"""What a node gives, and since when that is known.

In:   a question.
Out:  the shapes of its outputs; where a size got lost; what does not fit.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import InvalidArgumentError
from penstock.explanations.explanation import Fact, Topic
from penstock.explanations.request import Question
from penstock.graph.graph import Node
from penstock.shapes.infer import Shapes, infer_shapes


def facts(question: Question) -> Iterator[Fact]:
    """The shapes of what it gives."""
    inferred = infer_shapes(question.graph)
    node = question.node
    shapes = inferred.facts(node).shapes
    error = inferred.errors.get(node.id)
    if isinstance(error, InvalidArgumentError):
        yield Fact(Topic.SHAPE, error.reason, is_trouble=True)
    for slot, shape in enumerate(shapes):
        dtype = node.output_types[slot].name
        text = f"{node.name}:{slot} is {dtype}{shape}"
        if not shape.is_fully_defined:
            text += _lost(inferred, node)
        yield Fact(Topic.SHAPE, text)


def _lost(inferred: Shapes, node: Node) -> str:
    """From which node on a size is unknown: as far back as inputs are no better known."""
    at, seen = node, {node}
    while (before := _unknown_input(inferred, at)) is not None and before not in seen:
        at = before
        seen.add(at)
    return "" if at is node else f"; sizes are unknown since '{at.name}' ({at.op.name})"


def _unknown_input(inferred: Shapes, node: Node) -> Node | None:
    for edge in node.inputs:
        if edge is not None and not inferred.facts(edge.src).shapes[edge.src_slot].is_fully_defined:
            return edge.src
    return None
