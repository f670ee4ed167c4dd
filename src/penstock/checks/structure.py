"""PS106 to PS110: what cannot run at all, and edges that do nothing.

In:   a subject.
Out:  remarks.
Not:  places nothing, and infers no more than shapes.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks.rule import Remark
from penstock.checks.subject import Subject
from penstock.errors import InvalidArgumentError, OpError
from penstock.graph.graph import Node
from penstock.kernels.api.registry import kernels_of
from penstock.shapes.infer import infer_shapes


def mixed_frames(subject: Subject) -> Iterator[Remark]:
    """Frames that do not fit together."""
    if isinstance(subject.flow, OpError):
        yield Remark(_named(subject, subject.flow.reason), subject.flow.reason,
                     str(subject.flow.next_step or ""))  # fmt: skip


def _named(subject: Subject, text: str) -> Node | None:
    """The node that an error speaks of, if it is one of the graph."""
    name = text.partition("{{node ")[2].partition("}}")[0]
    return subject.graph.find(name)


def missing_kernels(subject: Subject) -> Iterator[Remark]:
    """Ops that nothing here computes."""
    for node in subject.graph:
        if not node.op.is_function and not kernels_of(node.op.name):
            yield Remark(
                node,
                f"the op {node.op.name} has no kernel here",
                "docs/add-an-op.md adds one; what does not need this node runs",
            )


def unfitting_shapes(subject: Subject) -> Iterator[Remark]:
    """Inputs of shapes that their ops cannot take."""
    shapes = infer_shapes(subject.graph)
    for node in subject.graph:
        shapes.facts(node)
        error = shapes.errors.get(node.id)
        if isinstance(error, InvalidArgumentError):
            yield Remark(node, error.reason, str(error.next_step or ""))


def idle_control_edges(subject: Subject) -> Iterator[Remark]:
    """Control edges beside a data edge between the same nodes."""
    for node in subject.graph:
        read = {edge.src for edge in node.inputs if edge is not None}
        for edge in node.control_inputs:
            if edge.src in read:
                yield Remark(
                    node,
                    f"the control edge from '{edge.src.name}' does nothing: the node reads an "
                    "output of it, and waits for it in any case",
                    "leave it out",
                    (edge.src,),
                )
