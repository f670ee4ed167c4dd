"""Take a Relu's gradient before that of the pooling that follows it, where there are fewer numbers.

In:   a GraphRewriter.
Out:  its graph, in which such gradients are in the other order; how many are.
Not:  touches no gradient of a function that does more than to let a number pass, or not.

``MaxPoolGrad`` gives each number to the place where the largest of its window is.  ``ReluGrad``
then looks at what is there: but that is what the pooling has given, so that it may look at this
first.  A pooling by two in each direction has a quarter of the numbers.  Only the signs of zeros
may be others, since what does not pass is a product with zero.
"""

from __future__ import annotations

from typing import Final

from penstock.graph.graph import Edge, Node
from penstock.passes.graph_rewriter import GraphRewriter

#: Without one of these there is nothing to do.
MASKS: Final = frozenset({"ReluGrad", "Relu6Grad"})
#: What a pooling and its gradient agree about.
_FACTS: Final = ("T", "ksize", "strides", "padding", "explicit_paddings", "data_format")


def mask_pooled_gradients(draft: GraphRewriter) -> int:
    """Change the order of such gradients; returns how many nodes changed."""
    found = [node for node in draft.graph if node.op.name in MASKS and _comes_after(draft, node)]
    for mask in found:
        _swap(draft, mask)
    return 2 * len(found)


def _comes_after(draft: GraphRewriter, mask: Node) -> bool:
    """Whether a mask looks at what was pooled, and at nothing but the pooling's gradient."""
    spread = mask.input(0).src
    if spread.op.name != "MaxPoolGrad" or len(spread.out_edges) != 1:
        return False
    if draft.device(spread) != draft.device(mask):
        return False
    pool, pooled = spread.input(1).src, spread.input(0)
    return (
        draft.is_pure(mask)
        and draft.is_pure(spread)
        and pool.op.name == "MaxPool"
        and _is_same(mask.input(1), pooled)
        and _is_same(pool.input(0), pooled)
        and all(pool.attrs[name] == spread.attrs[name] for name in _FACTS)
    )


def _is_same(edge: Edge, other: Edge) -> bool:
    return (edge.src, edge.src_slot) == (other.src, other.src_slot)


def _swap(draft: GraphRewriter, mask: Node) -> None:
    spread = mask.input(0).src
    images, pooled, gradient = (spread.input(slot) for slot in range(3))
    waits = dict.fromkeys(edge.src for node in (mask, spread) for edge in node.control_inputs)
    first = draft.take_name(spread, mask.op.name, {"T": mask.attrs["T"]})
    last = draft.take_name(mask, spread.op.name, spread.attrs)
    for slot, edge in enumerate((gradient, pooled)):
        draft.graph.add_edge(edge.src, edge.src_slot, first, slot)
    for slot, edge in enumerate((images, pooled)):
        draft.graph.add_edge(edge.src, edge.src_slot, last, slot)
    draft.graph.add_edge(first, 0, last, 2)
    draft.graph.add_control_edges(list(waits), first)
    draft.replace({spread: (), mask: [(last, 0)]})
