"""How large a node's outputs will be, before it runs.

In:   the partitions of a step; a node and its inputs.
Out:  bytes; 0 where nobody knows.
Not:  runs no kernel, and knows nothing of nodes inside of functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from penstock.core.shapes import TensorShape
from penstock.core.values import Value, shape_of
from penstock.dataclass import dataclass
from penstock.graph.graph import Node
from penstock.graph.stages import Partition
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.partial_values import PartialValue
from penstock.kernels.api.shape_context import Held, ShapeContext
from penstock.kernels.api.shape_rules import shape_rule_of

#: Ops whose outputs may be views of inputs that are smaller.
_VIEWS: Final = frozenset({"BroadcastTo", "Gather", "GatherV2"})


class ComingOutputs:
    """The sizes of what the nodes of one request are about to give."""

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self._graphs: Final = {part.device: part.graph for part in partitions}

    def size(self, device: str, name: str, inputs: Sequence[Value]) -> int:
        """The bytes of all outputs of a node with such inputs, as far as they are known."""
        graph = self._graphs.get(device)
        node = None if graph is None else graph.find(name)
        if node is None or node.op.name in _VIEWS or any(value is None for value in inputs):
            return 0
        rule = shape_rule_of(node.op.name)
        if rule is None:
            return 0
        attrs = Attrs(node.op, node.attrs, node.input_types, node.output_types, node.name)
        shapes = [TensorShape.of(shape_of(value)) for value in inputs]
        try:
            found = rule(ShapeContext(attrs, shapes, _GivenInputs(inputs)))
        except Exception:  # noqa: BLE001  (what is wrong with its inputs, the kernel says)
            return 0
        return _bytes(node, (found,) if isinstance(found, TensorShape) else found)


@dataclass(frozen=True, slots=True)
class _GivenInputs:
    """What a rule may ask about inputs that are there; see ``InputFacts``."""

    inputs: Sequence[Value]

    def value(self, slot: int) -> PartialValue | None:
        """All of an input's value."""
        return PartialValue(self.inputs[slot])

    def held(self, _slot: int) -> Held | None:
        """Nobody looks behind handles."""
        return None


def _bytes(node: Node, shapes: Sequence[TensorShape]) -> int:
    size = 0
    for shape, dtype in zip(shapes, node.output_types, strict=False):
        sizes = [length for length in shape.dims or () if length is not None]
        if shape.is_fully_defined and not dtype.is_object:
            size += math.prod(sizes) * dtype.numpy.itemsize
    return size
