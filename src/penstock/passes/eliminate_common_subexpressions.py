"""Compute equal things once.

In:   a GraphRewriter.
Out:  the GraphRewriter without nodes that equal an earlier one; how many were removed.
Not:  merges nothing that has effects, reads a reference, or runs elsewhere.

Two nodes are equal if their ops, attributes, devices, data inputs and control inputs are:
then they are in one frame, and alive together.  Names and wishes for colocation do not count.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.values import size_in_bytes
from penstock.defs.attrs import Attr, FuncAttr, PlaceholderAttr, TensorAttr
from penstock.graph.graph import INLINED_FROM, Node
from penstock.graph.roles import Role
from penstock.passes.graph_rewriter import GraphRewriter, value_of

#: Constants of more bytes than this are not compared.
_MAX_BYTES: Final = 64
#: Facts that change nothing about what a node computes.
_IGNORED: Final = frozenset({INLINED_FROM, "_class", "_output_shapes", "_XlaHasReferenceVars"})


def eliminate_common_subexpressions(draft: GraphRewriter) -> int:
    """Let the consumers of equal nodes read the first of them; returns how many went."""
    merging = _Merging(draft)
    nodes = list(draft.graph)
    # Constants first: those that folding made come last in the graph.
    merging.look_at_constants([node for node in nodes if node.role is Role.CONSTANT])
    for node in nodes:
        if node.inputs and merging.may_have_equals(node):
            merging.look_at(node)
    if merging.moves:
        draft.replace(merging.moves)
    return len(merging.moves)


class _Merging:
    """One pass over a graph, sources first as far as ids tell."""

    def __init__(self, draft: GraphRewriter) -> None:
        self.draft = draft
        self.moves: dict[Node, list[tuple[Node, int]]] = {}
        #: Nodes that others were merged into, with their endpoints.
        self.kept: dict[Node, list[tuple[Node, int]]] = {}
        #: Nodes that none equals, by what makes them equal.
        self.known: dict[Hashable, Node] = {}

    def look_at_constants(self, nodes: Iterable[Node]) -> None:
        """Compare numbers as they are written, which is cheap, and the rest by their values."""
        written, rest = [], []
        for node in nodes:
            encoded = node.attrs["value"].scalar_bytes
            if encoded is None:
                rest.append(node)
            elif not self.merge(node, self.full_key(node, (node.output_types[0], encoded))):
                written.append(node)
        keys = [(node, _constant_key(node)) for node in rest]
        if any(type(key) is tuple and key[1] == () for _, key in keys):
            # Numbers that folding made: they may equal those that are written.
            keys += [(node, _constant_key(node)) for node in written]
        for node, key in keys:
            if key is not None:
                self.merge(node, self.full_key(node, key))

    def may_have_equals(self, node: Node) -> bool:
        """Whether every input is also read by another node."""
        for edge in node.inputs:
            if edge is None:
                return False
            src = edge.src
            if len(src.out_edges) == 1 and src not in self.moves and src not in self.kept:
                return False
        return True

    def look_at(self, node: Node) -> None:
        """Compare a node with those that went before."""
        if node.output_types and self.draft.is_pure(node):
            self.merge(node, self.full_key(node, _attrs_key(node.attrs)))

    def merge(self, node: Node, key: Hashable) -> bool:
        """Let a node that went before stand for this one, if they are equal."""
        other = self.known.setdefault(key, node)
        if other is node:
            return False
        ends = self.kept.get(other)
        if ends is None:
            ends = self.kept[other] = [(other, slot) for slot in range(len(node.output_types))]
        self.moves[node] = ends
        return True

    def full_key(self, node: Node, facts: Hashable) -> Hashable:
        """All that makes two nodes equal, with what their attributes say."""
        if not node.inputs and not node.control_inputs:
            return node.op.name, self.draft.device(node), facts
        moves = self.moves
        ends: list[object] = []
        for edge in node.inputs:
            if edge is not None:
                src = edge.src
                ends += (moves[src][0][0] if src in moves else src, edge.src_slot)
        waits = node.control_inputs and frozenset(
            moves[e.src][0][0] if e.src in moves else e.src for e in node.control_inputs
        )
        return node.op.name, self.draft.device(node), facts, waits or None, *ends


def _constant_key(node: Node) -> Hashable:
    """Type, shape and bits of a small constant; None for others."""
    value = value_of(node)
    if value is None or size_in_bytes(value) > _MAX_BYTES:
        return None
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        return node.output_types[0], np.shape(value), value.tobytes()
    if isinstance(value, bytes):
        return node.output_types[0], (), value
    return None


def _attrs_key(attrs: Mapping[str, Attr]) -> Hashable:
    facts: list[object] = []
    for name in sorted(attrs):
        if name not in _IGNORED:
            facts += (name, _attr_key(attrs[name]))
    return tuple(facts)


def _attr_key(value: Attr) -> Hashable:
    """An attribute as something to compare; -0.0 is not 0.0, and NaN is itself."""
    if type(value) is DType:
        return value
    if isinstance(value, float):
        return value, math.copysign(1.0, value)
    if isinstance(value, tuple):
        return tuple(map(_attr_key, value))
    if isinstance(value, (TensorAttr, FuncAttr, PlaceholderAttr)):
        return id(value)
    hashable: Hashable = value
    return hashable
