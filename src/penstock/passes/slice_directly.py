"""Let what takes one slice by its number have the number, and not vectors that are made of it.

In:   a GraphRewriter.
Out:  its graph, in which ``x[:, i]`` is one node of ``x`` and ``i``; how many such nodes there are.
Not:  touches no slice of which anything else depends on what only a step knows.

TensorFlow's front end writes a begin and an end for each axis, so that an iteration of a recurrent
network packs two vectors for one slice.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.passes.graph_rewriter import GraphRewriter, value_of

#: Without one of these there is nothing to do.
SLICES: Final = frozenset({"StridedSlice"})
_OP: Final = "_SliceAt"
_SUMS: Final = frozenset({"Add", "AddV2"})


def slice_directly(draft: GraphRewriter) -> int:
    """Have slices read their numbers; returns how many do."""
    found = [node for node in draft.graph if node.op.name in SLICES]
    return sum(_shorten(draft, node) for node in found)


def _shorten(draft: GraphRewriter, node: Node) -> int:
    place = _place_of_number(node)
    if place is None or not draft.is_pure(node):
        return 0
    begin, end, strides = (node.input(slot).src for slot in (1, 2, 3))
    number = _packed(draft, begin, place)
    if number is None or not _fits(draft, begin, end, strides, place):
        return 0
    # Who waits for the same is alive in the same branch, and iteration.
    passed = [node, strides, *_sources(begin, number), *_sources(end, number)]
    waits = dict.fromkeys(edge.src for one in passed for edge in one.control_inputs)
    axis = -1 if node.attrs["ellipsis_mask"] else place
    attrs = {"T": node.attrs["T"], "Tidx": node.attrs["Index"], "axis": axis}
    values = node.input(0)
    made = draft.take_name(node, _OP, attrs)
    for slot, edge in enumerate((values, number)):
        draft.graph.add_edge(edge.src, edge.src_slot, made, slot)
    draft.graph.add_control_edges(list(waits), made)
    draft.replace({node: [(made, 0)]})
    return 1


def _place_of_number(node: Node) -> int | None:
    """The place in the spec where one slice is taken, if all others take everything."""
    strides = value_of(node.input(3).src)
    if not isinstance(strides, np.ndarray) or strides.ndim != 1 or node.attrs["new_axis_mask"]:
        return None
    whole = node.attrs["begin_mask"] & node.attrs["end_mask"]
    dots, shrunk = node.attrs["ellipsis_mask"], node.attrs["shrink_axis_mask"]
    places = [at for at in range(len(strides)) if shrunk >> at & 1 and not dots >> at & 1]
    if len(places) != 1 or dots not in (0, 1) or (dots and len(strides) != 2):
        return None
    [place] = places
    others = [at for at in range(len(strides)) if at != place and not dots >> at & 1]
    is_all = all(whole >> at & 1 and strides[at] == 1 for at in others)
    return place if is_all and strides[place] > 0 else None


def _packed(draft: GraphRewriter, vector: Node, place: int) -> Edge | None:
    """The number in a vector that is made of it and of constants."""
    if vector.op.name != "Pack" or vector.attrs["axis"] or not draft.is_pure(vector):
        return None
    edges = [vector.input(slot) for slot in range(len(vector.input_types))]
    others = [edge for slot, edge in enumerate(edges) if slot != place]
    return edges[place] if place < len(edges) and all(map(_is_constant, others)) else None


def _fits(draft: GraphRewriter, begin: Node, end: Node, strides: Node, place: int) -> bool:
    """Whether begin, end and strides have one length; at no number of the end anybody looks."""
    count = len(begin.input_types)
    if not _has_length(strides, count):
        return False
    if end.role is Role.CONSTANT:
        return _has_length(end, count)
    number, last = _packed(draft, begin, place), _packed(draft, end, place)
    if number is None or last is None or len(end.input_types) != count:
        return False
    return _is_constant(last) or _is_same(last, number) or _is_sum(draft, last.src, number)


def _has_length(constant: Node, count: int) -> bool:
    value = value_of(constant)
    return isinstance(value, np.ndarray) and value.shape == (count,)


def _is_sum(draft: GraphRewriter, node: Node, number: Edge) -> bool:
    """Whether a node adds a constant to a number."""
    if node.op.name not in _SUMS or not draft.is_pure(node):
        return False
    parts = [node.input(0), node.input(1)]
    return any(_is_same(part, number) for part in parts) and any(map(_is_constant, parts))


def _sources(vector: Node, number: Edge) -> list[Node]:
    """A vector, and what it is made of but for the number."""
    sources = [vector]
    for node in sources:  # grows
        if node.role is not Role.CONSTANT:
            sources += [edge.src for edge in node.inputs if edge and not _is_same(edge, number)]
    return sources


def _is_constant(edge: Edge) -> bool:
    """Whether an edge brings the same number in every step."""
    return isinstance(value_of(edge.src), np.generic)


def _is_same(edge: Edge, other: Edge) -> bool:
    return (edge.src, edge.src_slot) == (other.src, other.src_slot)
