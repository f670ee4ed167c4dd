"""The rule for sums of products by an equation, such as ``btd,bd->bt``.

In:   an Einsum of two arrays, each label of which is in two of the equation's three parts or all.
Out:  a product of matrices or of batches of them, with its axes in the equation's order.
Not:  nothing with ``...``, a label twice in one part, or a sum over what only one array has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from penstock.core.dtypes import DType
from penstock.dataclass import dataclass
from penstock.kernels.native.parts import Operand
from penstock.kernels.native.products import product
from penstock.kernels.native.rules import FLOATS, Written, rule


@dataclass(frozen=True, slots=True)
class _Equation:
    """The labels of both arrays and of the result."""

    x: str
    y: str
    out: str

    @property
    def batch(self) -> list[str]:
        """Labels of all three."""
        return [label for label in self.x if label in self.y and label in self.out]

    @property
    def summed(self) -> list[str]:
        """Labels that the result does not have."""
        return [label for label in self.x if label not in self.out]

    def own(self, labels: str) -> list[str]:
        """Labels of one array that the other one does not have."""
        return [label for label in labels if (label in self.x) != (label in self.y)]


def _read(text: bytes) -> _Equation | None:
    """An equation; None if it is none of those that are products of matrices."""
    try:
        (x, y), out = (side.split(",") for side in text.decode().split("->"))
    except ValueError:  # other numbers of parts, or no text
        return None
    found = _Equation(x, y, ",".join(out))
    parts = (found.x, found.y, found.out)
    labels = "".join(parts)
    is_plain = all(len(set(part)) == len(part) for part in parts) and "." not in labels
    return found if is_plain and 1 not in Counter(labels).values() else None


def _admits(attrs: Mapping[str, Any], inputs: Sequence[DType], _outputs: Sequence[DType]) -> bool:
    return inputs[0] in FLOATS and len(inputs) == 2 and _read(attrs["equation"]) is not None


@rule("Einsum", admits=_admits)
def _einsum(node: Written) -> Operand:
    equation = _read(node.attrs["equation"])
    assert equation is not None
    x, y = node.array(0), node.array(1)
    sizes: dict[str, int] = {}
    for labels, operand in ((equation.x, x), (equation.y, y)):
        node.need(len(labels) == len(operand.shape))
        for label, size in zip(labels, operand.shape, strict=True):
            node.need(sizes.setdefault(label, size) == size)
    batch, summed = equation.batch, equation.summed
    rows, columns = equation.own(equation.x), equation.own(equation.y)
    left = _arranged(node, x, equation.x, [batch, rows, summed])
    right = _arranged(node, y, equation.y, [batch, summed, columns])
    made = product(node.emitter, left, right)
    order = [*batch, *rows, *columns]
    made = node.emitter.reshape(made, [sizes[label] for label in order])
    return node.emitter.transpose(made, [order.index(label) for label in equation.out])


def _arranged(node: Written, x: Operand, labels: str, groups: Sequence[Sequence[str]]) -> Operand:
    """An array with as many axes as there are groups of labels."""
    order = [labels.index(label) for group in groups for label in group]
    turned = node.emitter.transpose(x, order)
    shape, at = [], 0
    for group in groups:
        shape.append(prod(turned.shape[at : at + len(group)]))
        at += len(group)
    return node.emitter.reshape(turned, shape)
