"""Make one node of a softmax and the number that its input is multiplied by.

In:   a GraphRewriter.
Out:  its graph, in which the softmax of x c, or of x / c, is one node; how many nodes went.
Not:  touches no product that somebody else reads.

That is how attention scales its scores, of which there are as many as pairs of words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.graph.graph import Edge, Node
from penstock.passes.graph_rewriter import GraphRewriter

#: Without one of these there is nothing to do.
SOFTMAXES: Final = frozenset({"Softmax"})
_OP: Final = "_ScaledSoftmax"
_QUOTIENTS: Final = frozenset({"Div", "RealDiv"})


def fuse_scaled_softmax(draft: GraphRewriter, is_wanted: Callable[[], bool] = lambda: True) -> int:
    """Fuse softmaxes and the scales before them; returns how many nodes went.

    Args:
        draft: the graph.
        is_wanted: asked if there may be some.

    """
    found = [node for node in draft.graph if node.op.name in SOFTMAXES]
    return sum(_fuse(draft, node) for node in found) if found and is_wanted() else 0


def _fuse(draft: GraphRewriter, softmax: Node) -> int:
    before = softmax.input(0).src
    found = _scaled(draft, before)
    if found is None or len(before.out_edges) != 1 or not _may_go(draft, before, softmax):
        return 0
    edge, scale = found
    waits = [each.src for each in softmax.control_inputs]
    made = draft.take_name(softmax, _OP, {"T": dtypes.float32, "scale": scale})
    draft.graph.add_edge(edge.src, edge.src_slot, made, 0)
    draft.graph.add_control_edges(waits, made)
    draft.replace({before: (), softmax: [(made, 0)]})
    return 1


def _may_go(draft: GraphRewriter, before: Node, softmax: Node) -> bool:
    is_free = not draft.is_root(before) and not before.control_inputs
    is_near = draft.device(before) == draft.device(softmax)
    return is_free and is_near and draft.is_pure(before)


def _scaled(draft: GraphRewriter, node: Node) -> tuple[Edge, float] | None:
    """What a node multiplies by which number greater than 0; None if it does something else."""
    name = node.op.name
    if name not in _QUOTIENTS and name != "Mul":
        return None
    if node.output_types[0] is not dtypes.float32:
        return None
    for slot in (1, 0) if name == "Mul" else (1,):
        number = draft.number(node.input(slot).src)
        if isinstance(number, np.generic):
            scale = _inverse(float(number)) if name in _QUOTIENTS else float(number)
            return (node.input(1 - slot), scale) if 0 < scale < math.inf else None
    return None


def _inverse(number: float) -> float:
    """What to multiply by instead of dividing by a power of 2; 0 for other numbers."""
    return 1 / number if math.frexp(number)[0] == 1 / 2 else 0.0
