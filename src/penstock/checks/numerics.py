"""PS112: places where rounding takes more than it must, or that give NaN or infinity.

In:   a subject.
Out:  a remark for each logarithm of what may be zero by underflow, and each quotient or root of a
      difference.
Not:  knows no values: it looks at which op reads which.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.checks.rule import Remark
from penstock.checks.subject import Subject, origin
from penstock.checks.values import value_of
from penstock.graph.graph import Node
from penstock.graph.roles import Role

#: By a logarithm's argument: what computes the same without losing it.
_LOGS: Final = {
    "Softmax": "LogSoftmax, or SoftmaxCrossEntropyWithLogits, computes this exactly",
    "Sigmoid": "-Softplus(-x) is the logarithm of Sigmoid(x)",
}
_QUOTIENTS: Final = frozenset({"Div", "RealDiv"})
_ROOTS: Final = frozenset({"Sqrt", "Rsqrt"})


def look(subject: Subject) -> Iterator[Remark]:
    """Places where precision is lost."""
    for node in subject.graph:
        if node.op.name == "Log":
            inner = _source(node, 0)
            if inner is not None and inner.op.name in _LOGS:
                yield Remark(
                    node,
                    f"is the logarithm of the {inner.op.name} '{inner.name}', which is 0 where it "
                    "is small: infinity comes out, and NaN of its gradient",
                    _LOGS[inner.op.name],
                    (inner,),
                )
        elif node.op.name in _QUOTIENTS or node.op.name in _ROOTS:
            inner = _source(node, 1 if node.op.name in _QUOTIENTS else 0)
            if inner is not None and inner.op.name == "Sub" and _is_open(inner):
                does = "divides by" if node.op.name in _QUOTIENTS else "takes the root of"
                yield Remark(
                    node,
                    f"{does} the difference '{inner.name}', which is zero where its operands are "
                    "equal, and has few exact digits near there",
                    "bound it from below by Maximum, or add a small number to it",
                    (inner,),
                )


def _source(node: Node, slot: int) -> Node | None:
    edge = node.inputs[slot]
    return None if edge is None else origin(edge, lambda n: n.role is Role.IDENTITY).src


def _is_open(difference: Node) -> bool:
    """Whether both operands are computed: a constant less something is often safe."""
    return all(edge is not None and value_of(edge) is None for edge in difference.inputs)
