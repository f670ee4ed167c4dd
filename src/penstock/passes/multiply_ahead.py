"""Tell products in a loop of the list that their factors come from, so that they go ahead.

In:   a GraphRewriter.
Out:  its graph, in which products by such elements are told where their first factor comes from;
      how many are.
Not:  touches no product by what a loop changes, nor any outside of loops.

A layer of a recurrent network multiplies what comes in at each step by the same weights, and only
the product with its state has to wait for the step before.  Told of the list, a product's kernel
(``kernels/math/item_product_op.py``) multiplies many elements at once.  The element is still
read, so that whoever reads it without right is told so at the same node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.core import dtypes
from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.passes.graph_rewriter import GraphRewriter

#: Without one of these there is nothing to do.
LIST_READERS: Final = frozenset({"TensorListGetItem"})
_OP: Final = "_ItemMatMul"
_TYPES: Final = frozenset({dtypes.float32, dtypes.float64})
#: The output of a Switch that goes on with its loop.
_GOES_ON: Final = 1


def multiply_ahead(draft: GraphRewriter) -> int:
    """Tell products where their factors come from; returns how many."""
    found = [node for node in draft.graph if node.op.name == "MatMul"]
    return sum(_tell(draft, node) for node in found)


def _tell(draft: GraphRewriter, product: Node) -> int:
    """Put a product that knows of the list in the place of one that does not."""
    item = _origin(product.input(0)).src
    if item.op.name not in LIST_READERS or not _may_be_told(draft, product, item):
        return 0
    attrs = {name: product.attrs[name] for name in ("T", "transpose_b")}
    made = draft.take_name(product, _OP, attrs)
    sources = [product.input(0), product.input(1), item.input(0), item.input(1)]
    for slot, edge in enumerate(sources):
        draft.graph.add_edge(edge.src, edge.src_slot, made, slot)
    draft.graph.add_control_edges([edge.src for edge in product.control_inputs], made)
    draft.replace({product: [(made, 0)]})
    return 1


def _may_be_told(draft: GraphRewriter, product: Node, item: Node) -> bool:
    return (
        draft.is_pure(product)
        and product.output_types[0] in _TYPES
        and not product.attrs["transpose_a"]
        and draft.device(product) == draft.device(item)
        and _is_unchanged(item.input(0))
        and not _is_constant(item.input(1))
    )


def _origin(edge: Edge) -> Edge:
    """Where a value comes from, that may only be handed on."""
    while edge.src.op.name == "Identity":
        edge = edge.src.input(0)
    return edge


def _is_constant(edge: Edge) -> bool:
    """Whether all turns of a loop read the same element."""
    src = _origin(edge).src
    return src.role is Role.CONSTANT or src.role is Role.ENTER


def _is_unchanged(edge: Edge) -> bool:
    """Whether a value is, in each turn of a loop, what it was before the loop."""
    edge = _origin(edge)
    if edge.src.role is Role.ENTER:
        return bool(edge.src.attrs["is_constant"])
    if edge.src.role is not Role.SWITCH or edge.src_slot != _GOES_ON:
        return False
    switch = edge.src
    merge = _origin(switch.input(0)).src
    return merge.role is Role.MERGE and all(
        before.role is Role.ENTER or _goes_back(before, switch) for before in _sources(merge)
    )


def _sources(merge: Node) -> Iterator[Node]:
    return (edge.src for edge in merge.inputs if edge is not None)


def _goes_back(node: Node, switch: Node) -> bool:
    """Whether a node takes what a Switch gives into the next turn."""
    if node.role is not Role.NEXT_ITERATION:
        return False
    edge = _origin(node.input(0))
    return edge.src is switch and edge.src_slot == _GOES_ON
