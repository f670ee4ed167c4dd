"""Make one node of a normalisation by rows, and of the sum before it.

In:   a GraphRewriter whose means and variances are one node each.
Out:  its graph, in which what they are needed for is one node with them; how many nodes went.
Not:  touches nothing of which somebody else reads a part, as gradients do.

There are two forms.  With a mean m, a factor f of the root and perhaps a scale, and an offset o:
x f + (o - m f), which rounds like x f + (-m f + o); and (x - m) f, perhaps scaled and moved by
constants after that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import shape_of
from penstock.dataclass import dataclass
from penstock.graph.graph import Edge, Node
from penstock.passes.graph_rewriter import GraphRewriter, value_of

#: Without one of these there is nothing to do.
MOMENTS: Final = frozenset({"_Moments"})
_OP: Final = "_LayerNorm"
_SUMS: Final = frozenset({"Add", "AddV2"})
_PRODUCT, _ROOT = frozenset({"Mul"}), frozenset({"Rsqrt"})
_DIFFERENCE, _NEGATIVE = frozenset({"Sub"}), frozenset({"Neg"})
#: What may be between a variable that is read and a row of its numbers.
_AS_THEY_ARE: Final = frozenset({"Identity", "Reshape"})


@dataclass(frozen=False, slots=True)
class _LayerNorm:
    """What becomes one node, as far as it is found."""

    moments: Node
    #: What is normalised.
    terms: list[Edge]
    #: All nodes besides the moments, the one that gives the result last.
    nodes: list[Node]
    epsilon: float = 0.0
    is_centered: bool = False
    scale: Edge | None = None
    offset: Edge | None = None

    @property
    def last(self) -> Node:
        """What gives the result."""
        return self.nodes[-1]


class _OtherFormError(Exception):
    """It is not this form of a normalisation, or none."""


def fuse_layer_norms(draft: GraphRewriter, is_wanted: Callable[[], bool] = lambda: True) -> int:
    """Fuse normalisations by rows; returns how many nodes went.

    Args:
        draft: the graph.
        is_wanted: asked if there may be some.

    """
    moments = [node for node in draft.graph if node.op.name in MOMENTS]
    return sum(_fuse(draft, node) for node in moments) if moments and is_wanted() else 0


def _fuse(draft: GraphRewriter, moments: Node) -> int:
    if draft.is_root(moments):
        return 0
    for read in (_read_moved, _read_centered):
        found = _LayerNorm(moments, [moments.input(0)], [])
        try:
            _read_root(found)
            read(found)
        except _OtherFormError:
            continue
        if not all(_may_go(draft, node, found) for node in found.nodes):
            continue
        _take_sum(draft, found)
        _put_in_place(draft, found)
        return len(found.nodes)
    return 0


def _may_go(draft: GraphRewriter, node: Node, found: _LayerNorm) -> bool:
    """Whether a node only computes, at once, in the same place as the moments."""
    is_near = draft.device(node) == draft.device(found.moments)
    is_free = node is found.last or not draft.is_root(node)
    return is_near and is_free and not node.control_inputs and draft.is_pure(node)


# -- the forms ------------------------------------------------------------------------------------


def _read_root(found: _LayerNorm) -> None:
    """1 / sqrt(variance + epsilon)."""
    total = _reader(found.moments, _SUMS, slot=1)
    epsilon = value_of(_other(total, found.moments).src)
    _need(isinstance(epsilon, np.generic))
    found.epsilon = float(np.float32(epsilon))
    found.nodes += [total, _reader(total, _ROOT)]


def _read_moved(found: _LayerNorm) -> None:
    """Products x f and m f, where m comes with its sign turned, or is subtracted."""
    factor, mean = found.last, found.moments
    if len(factor.out_edges) == 1:
        root, factor = factor, _reader(factor, _PRODUCT)
        found.scale = _row(_other(factor, root))
        found.nodes.append(factor)
    products = [edge.dst for edge in _edges(factor)]
    _need(len(products) == 2 and all(node.op.name in _PRODUCT for node in products))
    sources = [_other(node, factor) for node in products]
    scaled, moved = products if _is_same(sources[0], found.terms[0]) else products[::-1]
    _need(_is_same(_other(scaled, factor), found.terms[0]))
    is_turned = _other(moved, factor).src.op.name == "Neg"
    if is_turned:
        mean = _reader(mean, _NEGATIVE)
        found.nodes.append(mean)
    _need(_reader(mean, _PRODUCT) is moved)
    found.nodes += [scaled, moved]
    (_read_sum if is_turned else _read_difference)(found, scaled, moved)


def _read_sum(found: _LayerNorm, scaled: Node, moved: Node) -> None:
    """The sum of both, perhaps with an offset on the side of the mean."""
    total = _reader(scaled, _SUMS)
    if _reader(moved, _SUMS) is not total:
        term = _reader(moved, _SUMS)
        found.offset = _row(_other(term, moved))
        found.nodes.append(term)
        _need(_reader(term, _SUMS) is total)
    found.nodes.append(total)


def _read_difference(found: _LayerNorm, scaled: Node, moved: Node) -> None:
    """The same, where the mean is subtracted: what it is subtracted from is scaled, or a row."""
    difference = _reader(moved, _DIFFERENCE)
    found.nodes.append(difference)
    if difference.input(0).src is scaled:
        return
    found.offset = _row(difference.input(0))
    total = _reader(scaled, _SUMS)
    _need(_reader(difference, _SUMS) is total)
    found.nodes.append(total)


def _read_centered(found: _LayerNorm) -> None:
    """(x - m) f, perhaps times a constant row, perhaps plus another one."""
    root = found.last
    distance, product = _reader(found.moments, _DIFFERENCE), _reader(root, _PRODUCT)
    _need(_is_same(distance.input(0), found.terms[0]) and distance.input(1).src is found.moments)
    _need(_reader(distance, _PRODUCT) is product)
    found.nodes += [distance, product]
    found.is_centered = True
    found.scale = _constant_row_after(found, _PRODUCT)
    found.offset = _constant_row_after(found, _SUMS)


def _constant_row_after(found: _LayerNorm, ops: frozenset[str]) -> Edge | None:
    """What the only reader of the result so far takes besides, if it is a constant row."""
    last = found.last
    try:
        reader = _reader(last, ops)
        edge = _other(reader, last)
        _need(np.ndim(value_of(edge.src)) == 1)  # type: ignore[arg-type]
        row = _row(edge)
    except _OtherFormError:
        return None
    found.nodes.append(reader)
    return row


# -- parts of forms -------------------------------------------------------------------------------


def _need(condition: object) -> None:
    if not condition:
        raise _OtherFormError


def _edges(node: Node, slot: int = 0) -> list[Edge]:
    """Who reads an output, if nobody only waits for the node."""
    _need(not any(edge.is_control for edge in node.out_edges))
    return [edge for edge in node.out_edges if edge.src_slot == slot]


def _reader(node: Node, ops: frozenset[str], slot: int = 0) -> Node:
    """The only reader of an output, which must be one of some ops."""
    edges = _edges(node, slot)
    _need(len(edges) == 1 and edges[0].dst.op.name in ops)
    return edges[0].dst


def _other(node: Node, one: Node) -> Edge:
    """What a node of two inputs reads besides another node."""
    others = [edge for edge in (node.input(0), node.input(1)) if edge.src is not one]
    _need(len(others) == 1)
    return others[0]


def _is_same(one: Edge, other: Edge) -> bool:
    return (one.src, one.src_slot) == (other.src, other.src_slot)


def _row(edge: Edge) -> Edge:
    """An edge that most likely brings one number for each place in a row."""
    source = edge.src
    while source.op.name in _AS_THEY_ARE:
        source = source.input(0).src
    if source.op.name != "ReadVariableOp":
        sizes = shape_of(value_of(edge.src))
        _need(sizes and sizes[-1] > 1 and set(sizes[:-1]) <= {1})
    return edge


# -- one node -------------------------------------------------------------------------------------


def _take_sum(draft: GraphRewriter, found: _LayerNorm) -> None:
    """Take the sum that is normalised, if nobody else reads it."""
    (edge,) = found.terms
    total = edge.src
    gone = {found.moments, *found.nodes}
    if total.op.name not in _SUMS or not {each.dst for each in total.out_edges} <= gone:
        return
    if any(each.is_control for each in total.out_edges) or draft.is_root(total):
        return
    if _may_go(draft, total, found) and total.input(0).src is not total.input(1).src:
        found.terms = [total.input(0), total.input(1)]
        found.nodes.insert(0, total)


def _put_in_place(draft: GraphRewriter, found: _LayerNorm) -> None:
    """One node, under the name of the last one; whatever the moments waited for, it waits for."""
    moments, last = found.moments, found.last
    args = [("Mul", found.scale), ("Add", found.offset)]
    following = [(name.encode(), edge) for name, edge in args if edge is not None]
    attrs: dict[str, Any] = {
        "N": len(found.terms),
        "T": dtypes.float32,
        "Tidx": moments.attrs["Tidx"],
        "num_args": len(following),
        "fused_ops": tuple(name for name, _ in following),
        "epsilon": found.epsilon,
        "is_centered": found.is_centered,
    }
    waits = [edge.src for edge in moments.control_inputs]
    made = draft.take_name(last, _OP, attrs)
    read = [*found.terms, moments.input(1), *(edge for _, edge in following)]
    for slot, edge in enumerate(read):
        draft.graph.add_edge(edge.src, edge.src_slot, made, slot)
    draft.graph.add_control_edges(waits, made)
    gone = dict.fromkeys([moments, *found.nodes[:-1]], ())
    draft.replace({**gone, last: [(made, 0)]})
