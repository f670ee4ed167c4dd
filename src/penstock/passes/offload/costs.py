"""What a region takes by ONNX Runtime and by the kernels in C, as far as shapes tell.

In:   the nodes of a region, and the shapes that are known before a step.
Out:  how many products it takes, and how many products' time ONNX Runtime saves.
Not:  measures nothing: what is computed where must not depend on how busy a machine is, or else
      answers would not repeat.

The unit is the time that ONNX Runtime takes for a product in a convolution.  The numbers were
fitted to whole networks on processors with AVX2 and with AVX-512 (``docs/performance.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Final

from penstock.graph.graph import Edge, Node
from penstock.passes.offload.heavy_ops import CONVOLUTIONS
from penstock.passes.region_node import Output
from penstock.passes.tiles import is_in_tiles
from penstock.shapes.infer import Shapes

#: A product by the kernels in C...
_DIRECT: Final = 1.1
#: ... in windows of three by three, of which they compute four by four results at once...
_IN_TILES: Final = 0.4
#: ... in windows of so many places or more...
_LARGE_WINDOW: Final = 64
_IN_LARGE_WINDOW: Final = 0.75
#: ... and where each channel is by itself.
_BY_CHANNEL: Final = 3.0
#: What it takes more for each number that a node hands to the next one: by way of memory, and not
#: in a layout that ONNX Runtime chooses.
_NUMBER: Final = 12.0
#: A product by ONNX Runtime where the channels of results are no multiple of so many, of which its
#: layout has a block.
_BLOCK: Final = 8
_IN_NO_BLOCKS: Final = 1.6
#: What it takes more for each number that comes into a region or leaves it, in another layout.
_HANDED_OVER: Final = 20.0


def products_of(nodes: Sequence[Node], shapes: Shapes, ops: Set[str]) -> int:
    """How many products of numbers some ops take in a region; sizes not known count as 1."""
    return sum(_products_of(node, shapes) for node in nodes if node.op.name in ops)


def saved_products(
    nodes: Sequence[Node], shapes: Shapes, ops: Set[str], is_fixed: Callable[[Edge], bool]
) -> float:
    """How many products' time ONNX Runtime saves; below 0 if the kernels in C take less.

    Args:
        nodes: a region.
        shapes: what is known of shapes; sizes that are not count as 1.
        ops: those whose products count.
        is_fixed: whether what an edge brings is handed over once for all steps.

    """
    saved = 0.0
    for node in nodes:
        if node.op.name in ops:
            price = _price_in_c(node, shapes) - _price_in_onnx(node, shapes)
            saved += _products_of(node, shapes) * price
    within, across = _handed_over(nodes, is_fixed)
    return saved + _numbers(within, shapes) * _NUMBER - _numbers(across, shapes) * _HANDED_OVER


def _handed_over(
    nodes: Sequence[Node], is_fixed: Callable[[Edge], bool]
) -> tuple[set[Output], set[Output]]:
    """What the nodes of a region hand to each other; and what comes into it or leaves it."""
    inside = frozenset(nodes)
    within, across = set[Output](), set[Output]()
    for node in nodes:
        for edge in node.inputs:
            if edge is not None and edge.src not in inside and not is_fixed(edge):
                across.add((edge.src, edge.src_slot))
        for edge in node.out_edges:  # of which none is a control edge
            (within if edge.dst in inside else across).add((node, edge.src_slot))
    return within, across


def _numbers(outputs: Iterable[Output], shapes: Shapes) -> int:
    return sum(math.prod(_sizes(node, slot, shapes)) for node, slot in outputs)


def _price_in_onnx(node: Node, shapes: Shapes) -> float:
    """What a product of some node takes by ONNX Runtime."""
    return _IN_NO_BLOCKS if math.prod(_sizes(node, 0, shapes)[-1:]) % _BLOCK else 1.0


def _price_in_c(node: Node, shapes: Shapes) -> float:
    """What a product of some node takes by the kernels in C."""
    if "Depthwise" in node.op.name:
        return _BY_CHANNEL
    filters = _sizes_read(node, 1, shapes)
    if math.prod(filters[:-2]) >= _LARGE_WINDOW:
        return _IN_LARGE_WINDOW
    return _IN_TILES if is_in_tiles(node, filters, _sizes(node, 0, shapes)) else _DIRECT


def _products_of(node: Node, shapes: Shapes) -> int:
    """The products of one node, or more where matrices come in batches."""
    x, w, y = _sizes_read(node, 0, shapes), _sizes_read(node, 1, shapes), _sizes(node, 0, shapes)
    if node.op.name in CONVOLUTIONS:
        return math.prod(y[:-1]) * math.prod(w)  # the filter, at each place of each image
    return math.isqrt(math.prod(x) * math.prod(w) * math.prod(y))


def _sizes_read(node: Node, slot: int, shapes: Shapes) -> Sequence[int]:
    edge = node.input(slot)
    return _sizes(edge.src, edge.src_slot, shapes)


def _sizes(node: Node, slot: int, shapes: Shapes) -> Sequence[int]:
    """The sizes of what a node gives, 1 where they are not known; none if the rank is not."""
    return [size or 1 for size in shapes.shape(node, slot).dims or ()]
