"""Let ONNX Runtime compute regions of heavy work.

In:   a GraphRewriter.
Out:  the GraphRewriter, in which such regions are single nodes; how many nodes went.
Not:  asks nobody whether ONNX Runtime is there, and runs nothing.

What decides is how many products a region takes, as far as shapes are known before a step: below
some number, handing arrays over costs more than is saved.  Where there are kernels in C, these are
faster for products of matrices, which do not count, and for windows of many places: a region of
mostly such convolutions is left to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from typing import Any, Final

import numpy as np

from penstock.graph.graph import Node
from penstock.passes.graph_rewriter import GraphRewriter, value_of
from penstock.passes.offload.find_regions import find_regions
from penstock.passes.offload.heavy_ops import HEAVY, OF_MATRICES, PRODUCTS
from penstock.passes.offload.write_model import Exporter, RegionModel
from penstock.passes.region_node import Output, listed, names_of, put_in_place, types_of
from penstock.shapes.infer import Shapes

_OP: Final = "_OnnxRegion"
#: How many rows a matrix may well have.
_ROWS: Final = 8
#: Windows of so many places take three quarters of the time by the kernels in C.
_LARGE_WINDOW: Final = 64


def offload_regions(
    draft: GraphRewriter, min_products: int, are_in_c: Callable[[], bool] = lambda: False
) -> int:
    """Make single nodes of regions that take so many products; returns how many nodes went.

    Args:
        draft: the graph.
        min_products: of numbers; with 0, whatever can be in a region is.
        are_in_c: whether there are kernels in C; asked if there may be something for them.

    """
    heavy = {node.op.name for node in draft.graph if node.op.name in HEAVY}
    if not heavy:
        return 0
    counted = heavy - OF_MATRICES if min_products and are_in_c() else heavy
    if not _may_be_worth_it(draft, min_products, counted):
        return 0
    exporter = Exporter(draft.graph)
    regions = find_regions(draft, exporter.can_write)
    worthy = [
        nodes
        for nodes in regions
        if _products(nodes, exporter.shapes, counted) >= min_products
        and not (
            min_products and _has_large_windows(nodes, exporter.shapes, counted) and are_in_c()
        )
    ]
    models = [(nodes, exporter.model_of(nodes)) for nodes in worthy]
    return sum(_put_in_place(draft, nodes, model) for nodes, model in models)


def _may_be_worth_it(draft: GraphRewriter, min_products: int, ops: Set[str]) -> bool:
    """Whether shapes are worth being inferred: a look at ops, and at how large constants are."""
    heavy = [node for node in draft.graph if node.op.name in ops]
    if any(node.op.name not in PRODUCTS for node in heavy):
        return True
    # numpy's products are as fast; what is gained is around them, and needs large ones.
    factors = [value_of(edge.src) for node in heavy for edge in node.inputs if edge]
    elements = sum(np.size(value) for value in factors if value is not None)
    return bool(heavy) and elements * _ROWS >= min_products


def _products(nodes: Sequence[Node], shapes: Shapes, ops: Set[str]) -> int:
    """How many products of numbers some ops take in a region; sizes not known count as 1."""
    return sum(_products_of(node, shapes) for node in nodes if node.op.name in ops)


def _has_large_windows(nodes: Sequence[Node], shapes: Shapes, ops: Set[str]) -> bool:
    """Whether most products of a region are those of convolutions with large windows."""
    large = [node for node in nodes if math.prod(_window_of(node, shapes)) >= _LARGE_WINDOW]
    return 2 * _products(large, shapes, ops) > _products(nodes, shapes, ops)


def _window_of(node: Node, shapes: Shapes) -> Sequence[int]:
    """The sizes of a convolution's window; none of other nodes, or if they are not known."""
    if "Conv" not in node.op.name:
        return ()
    *window, _, _ = shapes.shape(node.input(1).src, node.input(1).src_slot).dims or (None,) * 2
    return [size or 1 for size in window]


def _products_of(node: Node, shapes: Shapes) -> int:
    """The products of one node, or more where matrices come in batches."""
    sources = [(edge.src, edge.src_slot) for edge in (node.input(0), node.input(1))]
    x, w, y = (shapes.shape(*place).dims or () for place in (*sources, (node, 0)))
    if "Conv" in node.op.name or "conv" in node.op.name:
        return _count(y[:-1]) * _count(w)  # the filter, at each place of each image
    return math.isqrt(_count(x) * _count(w) * _count(y))


def _count(sizes: Sequence[int | None]) -> int:
    return math.prod(size or 1 for size in sizes)


def _put_in_place(draft: GraphRewriter, nodes: Sequence[Node], model: RegionModel) -> int:
    """One node, under the name of the last of the region that others read."""
    edges = [reader.input(slot) for reader, slot in (*model.inputs, *model.weights)]
    reads = [(edge.src, edge.src_slot) for edge in edges]
    made = draft.take_name(model.outputs[-1][0], _OP, _attrs(nodes, model, reads))
    put_in_place(draft, nodes, made, reads, model.outputs)
    return len(nodes) - 1


def _attrs(nodes: Sequence[Node], model: RegionModel, reads: Sequence[Output]) -> dict[str, Any]:
    types = types_of(reads)
    return {
        "Tin": types[: len(model.inputs)],
        "Tweights": types[len(model.inputs) :],
        "Tout": types_of(model.outputs),
        "model": model.model,
        "reads": names_of(reads),
        "gives": names_of(model.outputs),
        "nodes": listed((*model.constants, *nodes)),
    }
