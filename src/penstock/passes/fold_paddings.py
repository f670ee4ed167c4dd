"""Let convolutions put zeros around what they see, instead of a node before them.

In:   a GraphRewriter.
Out:  its graph, in which a convolution that padded nothing pads explicitly what a constant Pad did
      for it; how many nodes went.
Not:  touches no padding of the batch or the depth, and none by other numbers than zeros.

A Pad copies all of its input; a convolution in C puts zeros around the images anyway.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.graph.graph import Node
from penstock.passes.graph_rewriter import GraphRewriter, value_of

#: Without one of these there is nothing to do.
PADDED: Final = frozenset({"Conv2D", "_FusedConv2D", "DepthwiseConv2dNative"})
#: Which dimensions may be padded, by layout.
_SPATIAL: Final = {b"NHWC": (1, 2), b"NCHW": (2, 3)}


def fold_paddings(draft: GraphRewriter) -> int:
    """Fold Pads into convolutions; returns how many nodes went."""
    found = [node for node in draft.graph if node.op.name in PADDED]
    return sum(_fold(draft, node) for node in found)


def _fold(draft: GraphRewriter, node: Node) -> int:
    pad = node.input(0).src
    if pad.op.name != "Pad" or node.attrs["padding"] != b"VALID":
        return 0
    margins = _margins(pad, node.attrs["data_format"])
    if margins is None or not (draft.is_pure(node) and draft.is_pure(pad)):
        return 0
    if draft.device(pad) != draft.device(node) or len(pad.out_edges) != 1:
        return 0
    attrs = {**node.attrs, "padding": b"EXPLICIT", "explicit_paddings": margins}
    waits = [edge.src for edge in (*pad.control_inputs, *node.control_inputs)]
    edges = [pad.input(0), *(node.input(slot) for slot in range(1, len(node.input_types)))]
    made = draft.take_name(node, node.op.name, attrs)
    for slot, edge in enumerate(edges):
        draft.graph.add_edge(edge.src, edge.src_slot, made, slot)
    draft.graph.add_control_edges(list(dict.fromkeys(waits)), made)
    draft.replace({pad: (), node: [(made, 0)]})
    return 1


def _margins(pad: Node, layout: bytes) -> tuple[int, ...] | None:
    """How many zeros are at either end of each dimension; None if that is no convolution's."""
    value = value_of(pad.input(1).src)
    if layout not in _SPATIAL or not isinstance(value, np.ndarray) or value.shape != (4, 2):
        return None
    others = [axis for axis in range(4) if axis not in _SPATIAL[layout]]
    if value.min() < 0 or value[others].any():
        return None
    return tuple(value.reshape(-1).tolist())
