"""Let sums by column follow products at once, so that they can be fused.

In:   a GraphRewriter.
Out:  its graph, in which products of batches by one matrix are products of two matrices, and a
      number for each column is added before they are given another shape; how many sums moved.
Not:  touches nothing in branches and loops, and nothing whose sizes are not known well enough.

Layers of transformers write ``reshape(x @ w) + b``, with rows in batches and columns in heads.
That is the sum of one product and a bias, of which ``fuse_convolutions`` makes one node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.dataclass import dataclass
from penstock.graph.graph import Edge, Node
from penstock.passes.graph_rewriter import GraphRewriter
from penstock.passes.offload.find_regions import in_order
from penstock.shapes.infer import Shapes, infer_shapes

_PRODUCTS: Final = frozenset({"MatMul", "BatchMatMulV2"})
_SUMS: Final = frozenset({"Add", "AddV2", "BiasAdd"})
#: An output of a node.
_End: TypeAlias = tuple[Node, int]


@dataclass(frozen=True, slots=True)
class _Chain:
    """A product, perhaps in another shape, and the sum that follows it."""

    product: Node
    reshape: Node | None
    total: Node
    #: Which of the sum's inputs is added.
    slot: int

    @property
    def nodes(self) -> list[Node]:
        return [node for node in (self.product, self.reshape, self.total) if node is not None]

    @property
    def bias(self) -> Edge:
        """What is added; other chains may have taken the place of what it was."""
        return self.total.input(self.slot)


@dataclass(frozen=True, slots=True)
class _Flat:
    """A chain whose sum can follow its product at once."""

    chain: _Chain
    #: How many numbers each row has before the product, if rows come in batches.
    depth: int | None
    #: The shape of the result; -1 for a size that is not known.
    result: tuple[int, ...]
    #: Whether what is added is one number after the other.
    is_bias_flat: bool


def flatten_products(draft: GraphRewriter) -> int:
    """Let sums follow their products at once; returns how many do."""
    sure, shapes = in_order(draft.graph), infer_shapes(draft.graph)
    chains = [_chain(draft, node) for node in sure if node.op.name in _PRODUCTS]
    found = [_flat(chain, shapes) for chain in chains if chain is not None]
    # Of two chains that are added up, one goes.
    flat = {one.chain.total: one for one in found if one is not None}
    for one in flat.values():
        _put_in_place(draft, one)
    return len(flat)


def _chain(draft: GraphRewriter, product: Node) -> _Chain | None:
    reader, reshape = _next(draft, product), None
    if reader is not None and reader.op.name == "Reshape":
        reader, reshape = _next(draft, reader), reader
    before = reshape or product
    if reader is None or reader.op.name not in _SUMS or before.op.name == "MatMul":
        return None
    if reader.attrs.get("data_format", b"NHWC") != b"NHWC":
        return None
    chain = _Chain(product, reshape, reader, 1 if reader.input(0).src is before else 0)
    is_float = product.output_types[0] is dtypes.float32
    return chain if is_float and all(map(draft.is_pure, chain.nodes)) else None


def _next(draft: GraphRewriter, node: Node) -> Node | None:
    """The only consumer of a node, if it waits for nothing else and runs in the same place."""
    if len(node.out_edges) != 1 or node.out_edges[0].is_control or draft.is_root(node):
        return None
    reader = node.out_edges[0].dst
    is_near = not reader.control_inputs and draft.device(reader) == draft.device(node)
    return reader if is_near else None


def _flat(chain: _Chain, shapes: Shapes) -> _Flat | None:
    """What is known of a chain; None if that is not enough."""
    bias = shapes.shape(chain.bias.src, chain.bias.src_slot)
    before = shapes.shape(chain.reshape or chain.product, 0).dims or ()
    columns = (shapes.shape(chain.product, 0).dims or (None,))[-1]
    if not bias.is_fully_defined or not columns or columns != bias.num_elements():
        return None
    if before[len(before) - len(bias.as_tuple()) :] != bias.dims:
        return None
    result = tuple(-1 if size is None else size for size in before)
    if chain.reshape is None and (result.count(-1) > 1 or 0 in result):
        return None
    depth = None
    if chain.product.op.name != "MatMul":
        depth = _depth(chain.product, shapes)
        if depth is None:
            return None
    return _Flat(chain, depth, result, bias.rank == 1)


def _depth(product: Node, shapes: Shapes) -> int | None:
    """The length of rows that come in batches and are multiplied by one matrix; None for others."""
    x, y = (
        shapes.shape(edge.src, edge.src_slot).dims for edge in (product.input(0), product.input(1))
    )
    if product.attrs["adj_x"] or product.attrs["adj_y"] or not x or y is None or len(y) != 2:
        return None
    return x[-1] if x[-1] == y[0] and x[-1] else None


def _put_in_place(draft: GraphRewriter, flat: _Flat) -> None:
    """The product of matrices, the sum, and the shape, under the names that they had."""
    chain = flat.chain
    product, total = chain.product, chain.total
    x, y, bias = map(_end, (product.input(0), product.input(1), chain.bias))
    shape = None if chain.reshape is None else _end(chain.reshape.input(1))
    waits = [edge.src for edge in product.control_inputs]
    if flat.depth is not None:
        x = _reshape(draft, product, x, (-1, flat.depth))
    if not flat.is_bias_flat:
        bias = _reshape(draft, total, bias, (-1,))
    attrs = {name: product.attrs.get(name, False) for name in ("transpose_a", "transpose_b")}
    flat_product = _add(draft, product, "MatMul", attrs, x, y)
    draft.graph.add_control_edges(waits, flat_product[0])
    flat_total = _add(draft, total, "BiasAdd", {"data_format": b"NHWC"}, flat_product, bias)
    shape = shape or _constant(draft, total, flat.result)
    types = {"T": dtypes.float32, "Tshape": shape[0].output_types[shape[1]]}
    made = draft.take_name(total, "Reshape", types)
    for slot, end in enumerate((flat_total, shape)):
        draft.graph.add_edge(*end, made, slot)
    draft.replace({**dict.fromkeys(chain.nodes[:-1], ()), total: [(made, 0)]})


def _end(edge: Edge) -> _End:
    return edge.src, edge.src_slot


def _reshape(draft: GraphRewriter, like: Node, x: _End, sizes: tuple[int, ...]) -> _End:
    shape = _constant(draft, like, sizes)
    return _add(draft, like, "Reshape", {"Tshape": dtypes.int32}, x, shape)


def _constant(draft: GraphRewriter, like: Node, sizes: tuple[int, ...]) -> _End:
    value = np.array(sizes, np.int32)
    return draft.add_const(like, f"{like.name}/shape", value, dtypes.int32), 0


def _add(
    draft: GraphRewriter, like: Node, op: str, attrs: Mapping[str, Any], *inputs: _End
) -> _End:
    """A node of float32, where another one is."""
    made = draft.add(like, f"{like.name}/{op}", op, {"T": dtypes.float32, **attrs})
    for slot, end in enumerate(inputs):
        draft.graph.add_edge(*end, made, slot)
    return made, 0
