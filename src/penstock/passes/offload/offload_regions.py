"""Let ONNX Runtime compute regions of heavy work.

In:   a GraphRewriter.
Out:  the GraphRewriter, in which such regions are single nodes; how many nodes went.
Not:  asks nobody whether ONNX Runtime is there, and runs nothing.

What decides is how many products a region takes, as far as shapes are known before a step: below
some number, handing arrays over costs more than is saved.  Where there are kernels in C, these are
faster for products of matrices, which do not count, and for some convolutions: a region of mostly
such is left to them (``costs.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, Final

import numpy as np

from penstock.core.limits import DEFAULT_LIMITS
from penstock.graph.graph import Node
from penstock.passes.graph_rewriter import GraphRewriter, value_of
from penstock.passes.offload.batches import Cut, cut_of
from penstock.passes.offload.costs import products_of, saved_products
from penstock.passes.offload.find_regions import find_regions
from penstock.passes.offload.heavy_ops import HEAVY, OF_MATRICES, PRODUCTS
from penstock.passes.offload.write_model import Exporter, RegionModel
from penstock.passes.region_node import Output, listed, names_of, put_in_place, types_of

_OP: Final = "_OnnxRegion"
#: Times as many products as a region must have it must save, where there are kernels in C: arrays
#: are handed over.
_SAVED: Final = 4
#: How many rows a matrix may well have.
_ROWS: Final = 8


def offload_regions(
    draft: GraphRewriter,
    min_products: int,
    are_in_c: Callable[[], bool] = lambda: False,
    most_at_once: int = DEFAULT_LIMITS.entries_at_once,
) -> int:
    """Make single nodes of regions that take so many products; returns how many nodes went.

    Args:
        draft: the graph.
        min_products: of numbers; with 0, whatever can be in a region is.
        are_in_c: whether there are kernels in C; asked if there may be something for them.
        most_at_once: elements of the largest array that some entries of a batch may have.

    """
    heavy = {node.op.name for node in draft.graph if node.op.name in HEAVY}
    if not heavy:
        return 0
    is_in_c = bool(min_products) and are_in_c()
    counted = heavy - OF_MATRICES if is_in_c else heavy
    if not _may_be_worth_it(draft, min_products, counted):
        return 0
    exporter = Exporter(draft.graph)

    def is_worth_it(nodes: Sequence[Node]) -> bool:
        of_region = nodes, exporter.shapes, counted
        if is_in_c and saved_products(*of_region, exporter.is_fixed) < _SAVED * min_products:
            return False
        return products_of(*of_region) >= min_products

    worthy = filter(is_worth_it, find_regions(draft, exporter.can_write))
    made = []
    for nodes in worthy:
        model = exporter.model_of(nodes)
        made.append((nodes, model, cut_of(nodes, model, exporter.shapes, most_at_once)))
    return sum(_put_in_place(draft, *region) for region in made)


def _may_be_worth_it(draft: GraphRewriter, min_products: int, ops: Set[str]) -> bool:
    """Whether shapes are worth being inferred: a look at ops, and at how large constants are."""
    heavy = [node for node in draft.graph if node.op.name in ops]
    if any(node.op.name not in PRODUCTS for node in heavy):
        return True
    # numpy's products are as fast; what is gained is around them, and needs large ones.
    factors = [value_of(edge.src) for node in heavy for edge in node.inputs if edge]
    elements = sum(np.size(value) for value in factors if value is not None)
    return bool(heavy) and elements * _ROWS >= min_products


def _put_in_place(draft: GraphRewriter, nodes: Sequence[Node], model: RegionModel, cut: Cut) -> int:
    """One node, under the name of the last of the region that others read."""
    edges = [reader.input(slot) for reader, slot in (*model.inputs, *model.weights)]
    reads = [(edge.src, edge.src_slot) for edge in edges]
    made = draft.take_name(model.outputs[-1][0], _OP, _attrs(nodes, model, cut, reads))
    put_in_place(draft, nodes, made, reads, model.outputs)
    return len(nodes) - 1


def _attrs(
    nodes: Sequence[Node], model: RegionModel, cut: Cut, reads: Sequence[Output]
) -> dict[str, Any]:
    types = types_of(reads)
    return {
        "Tin": types[: len(model.inputs)],
        "Tweights": types[len(model.inputs) :],
        "Tout": types_of(model.outputs),
        "model": model.model,
        "reads": names_of(reads),
        "gives": names_of(model.outputs),
        "nodes": listed((*model.constants, *nodes)),
        "by_entries": cut.by_entries,
        "at_once": cut.at_once,
    }
