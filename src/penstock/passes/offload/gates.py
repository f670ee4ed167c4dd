"""Whether a node is a gate: a factor whose error counts no more than that of what it multiplies.

In:   a node whose values are between 0 and 2.
Out:  whether nobody needs more of it than an absolute error.
Not:  rewrites nothing.

The Gaussian error linear unit is x / 2 * erfc(-x * sqrt(1/2)).  Where erfc is small, ONNX's 1 - erf
has lost its digits; but next to x, which it is multiplied with, what is missing is a last bit.
So it is with the hard swish, x * relu6(x + 3) / 6, where x is near -3.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.graph.graph import Edge, Node
from penstock.passes.graph_rewriter import value_of

#: What gives a multiple of its input, if all others are single numbers; and what a gate may do
#: besides with what it is a function of.
_MULTIPLES: Final = frozenset({"Identity", "Neg", "Mul", "RealDiv"})
_FUNCTIONS: Final = _MULTIPLES | {"Add", "AddV2", "Erfc", "Relu6"}
_PRODUCT: Final = "Mul"


def is_gate(node: Node) -> bool:
    """Whether all that is done with a function of x is to multiply it with multiples of x."""
    source = _argument_of(node)
    readers = [edge for edge in node.out_edges if not edge.is_control]
    return bool(readers) and all(_multiplies(edge, source) for edge in readers)


def _multiplies(edge: Edge, source: tuple[Node, int]) -> bool:
    if edge.dst.op.name != _PRODUCT:
        return False
    return _multiple_of(edge.dst.input(1 - edge.dst_slot)) == source


def _multiple_of(edge: Edge) -> tuple[Node, int]:
    """What an edge brings a multiple of: the first of its kind, seen from the beginning."""
    return _origin(edge.src, edge.src_slot, _MULTIPLES)


def _argument_of(node: Node) -> tuple[Node, int]:
    """What a gate is a function of."""
    return _origin(node, 0, _FUNCTIONS)


def _origin(node: Node, slot: int, ops: frozenset[str]) -> tuple[Node, int]:
    """What comes before all of some ops, each of which has one input that is no single number."""
    while node.op.name in ops:
        slots = range(len(node.inputs))
        varying = [edge for slot in slots if _varies(edge := node.input(slot))]
        if len(varying) != 1 or (node.op.name == "RealDiv" and varying[0].dst_slot):
            break
        node, slot = varying[0].src, varying[0].src_slot
    return node, slot


def _varies(edge: Edge) -> bool:
    value = value_of(edge.src)
    return value is None or np.size(value) != 1
