"""Make one node of a mean and a variance.

In:   a GraphRewriter.
Out:  its graph, in which the mean of something and the mean square of the distances from it are one
      node; how many nodes went.
Not:  touches no mean that drops its axis, nor one over several axes.

Normalisation by rows, as in every layer of a transformer, goes through its input four times where
these are single nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.graph.graph import Edge, Node
from penstock.passes.graph_rewriter import GraphRewriter, value_of

#: Without one of these there is nothing to do.
DISTANCES: Final = frozenset({"SquaredDifference"})
_OP: Final = "_Moments"


def fuse_moments(draft: GraphRewriter, is_wanted: Callable[[], bool] = lambda: True) -> int:
    """Fuse means and variances; returns how many nodes went.

    Args:
        draft: the graph.
        is_wanted: asked if there may be some.

    """
    found = [node for node in draft.graph if node.op.name in DISTANCES]
    return sum(_fuse(draft, node) for node in found) if found and is_wanted() else 0


def _fuse(draft: GraphRewriter, square: Node) -> int:
    for x, mean in ((square.input(0), square.input(1)), (square.input(1), square.input(0))):
        variance = _variance(square)
        if variance is not None and _are_moments(draft, x, mean.src, square, variance):
            _put_in_place(draft, mean.src, square, variance)
            return 2
    return 0


def _variance(square: Node) -> Node | None:
    """The mean of the distances' squares, if nothing else reads these."""
    if len(square.out_edges) != 1 or square.out_edges[0].is_control:
        return None
    reader = square.out_edges[0].dst
    return reader if reader.op.name == "Mean" and reader.input(0).src is square else None


def _are_moments(draft: GraphRewriter, x: Edge, mean: Node, square: Node, variance: Node) -> bool:
    if mean.op.name != "Mean" or mean.output_types[0] is not dtypes.float32:
        return False
    read = mean.input(0)
    if (read.src, read.src_slot) != (x.src, x.src_slot):
        return False
    if square.control_inputs or variance.control_inputs or draft.is_root(square):
        return False
    axes = [_axis(node) for node in (mean, variance)]
    nodes = mean, square, variance
    are_near = len({draft.device(node) for node in nodes}) == 1
    return (
        axes[0] is not None and axes[0] == axes[1] and are_near and all(map(draft.is_pure, nodes))
    )


def _axis(mean: Node) -> int | None:
    """The only axis, which stays with size 1; None for other means."""
    axes: Any = value_of(mean.input(1).src)
    if axes is None or np.size(axes) != 1 or not mean.attrs["keep_dims"]:
        return None
    return int(np.reshape(axes, ()))


def _put_in_place(draft: GraphRewriter, mean: Node, square: Node, variance: Node) -> None:
    """One node, under the name of the mean; whatever that waited for, it waits for."""
    attrs = {name: mean.attrs[name] for name in ("T", "Tidx")}
    waits = [edge.src for edge in mean.control_inputs]
    made = draft.add(mean, f"{mean.name}/{_OP}", _OP, attrs)
    for slot in (0, 1):
        edge = mean.input(slot)
        draft.graph.add_edge(edge.src, edge.src_slot, made, slot)
    draft.graph.add_control_edges(waits, made)
    draft.replace({square: (), mean: [(made, 0)], variance: [(made, 1)]})
