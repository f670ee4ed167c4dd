"""A graph under rewriting, and what every rewriting pass must know of it.

In:   the graph of one request, or of a function's body, and the devices of its nodes.
Out:  ``GraphRewriter``: which nodes must stay, which are nothing but functions of their inputs, and
      the few ways in which a pass may change the graph.
Not:  rewrites nothing by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value, freeze, has_dtype
from penstock.defs.attrs import Attr, TensorAttr
from penstock.errors import OpError
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import COMPUTES, NEEDS_READER, Role

#: Nodes to be replaced, each with the endpoints that take the place of its outputs.
Moves: TypeAlias = Mapping[Node, Sequence[tuple[Node, int]]]

_VALUES: Final = frozenset(dtypes.ALL)
_PLAIN: Final = _VALUES - {dtypes.resource, dtypes.variant}


class GraphRewriter:
    """A graph under rewriting."""

    def __init__(self, graph: Graph, device_of: Mapping[int, str]) -> None:
        self.graph = graph
        #: Full device name by node id; of the nodes of a function's body, nothing.
        self.device_of = dict(device_of)
        #: What runs for its own sake: fetches, targets, and whatever has effects.
        self._roots = {n for n in graph if not n.out_edges or n.op.is_stateful}
        #: Whether nodes of an op may be functions of their inputs, by its name.
        self._is_pure_op: dict[str, bool] = {}
        #: Nodes that get a reference, or an Identity of one: what they see may change.
        self._readers = _readers(graph)
        #: Values of constants of rank 0 by their messages: most numbers stand in many nodes.
        self._numbers: dict[bytes, Value | None] = {}
        #: Nodes that a pass tried in vain, by the pass.
        self.given_up: dict[str, set[Node]] = {}

    def is_pure(self, node: Node) -> bool:
        """Whether a node is a function of its inputs, and these are plain values."""
        return self.has_no_effects(node) and node not in self._readers

    def has_no_effects(self, node: Node) -> bool:
        """Whether all that a node does is to compute plain values from plain values.

        Unlike those of a pure node, its inputs may be read from a variable as it runs.
        """
        known = self._is_pure_op.get(node.op.name)
        if known is None:
            known = self._is_pure_op[node.op.name] = _is_pure_op(node)
        return (
            known and _PLAIN.issuperset(node.output_types) and _PLAIN.issuperset(node.input_types)
        )

    def is_root(self, node: Node) -> bool:
        """Whether a node runs for its own sake."""
        return node in self._roots

    def may_bypass(self, node: Node, edge: Edge) -> bool:
        """Whether consumers of a node's output may read what an earlier edge brings instead.

        Not if the node waits for something, is itself asked for, reads a reference, or runs on
        another device; nor if it is what tells that a branch was taken or a value received.
        """
        src = edge.src
        if node.control_inputs or node in self._roots or src.role in NEEDS_READER:
            return False
        if edge.dst in self._readers or self.device(node) != self.device(src):
            return False
        is_awaited = any(out.is_control for out in node.out_edges)
        return not is_awaited or self.is_pure(src)

    def number(self, node: Node) -> Value | None:
        """The value of a constant of rank 0 that waits for nothing; None for anything else."""
        if node.role is not Role.CONSTANT or node.control_inputs:
            return None
        encoded = node.attrs["value"].scalar_bytes
        if encoded is None:
            value = value_of(node)
            return None if isinstance(value, np.ndarray) else value
        if encoded not in self._numbers:
            self._numbers[encoded] = value_of(node)
        return self._numbers[encoded]

    def device(self, node: Node) -> str:
        """Where a node runs; empty in a function's body, which runs in one place."""
        return self.device_of.get(node.id, "")

    def add(self, like: Node, name: str, op: str, attrs: Mapping[str, Attr]) -> Node:
        """A node on the device of another, under a name that resembles ``name``."""
        while name in self.graph:
            name += "_"
        node = self.graph.add_node(
            name,
            get_op(op),
            attrs,
            device=like.requested_device,
            assigned_device=like.assigned_device,
        )
        return self._placed(node, like)

    def add_const(self, like: Node, name: str, value: Value, dtype: DType) -> Node:
        """A constant on the device of another node."""
        return self.add(like, name, "Const", const_attrs(value, dtype))

    def take_name(self, old: Node, op: str, attrs: Mapping[str, Attr]) -> Node:
        """A node instead of ``old``, which is to be replaced."""
        node = self._placed(self.graph.take_name(old, get_op(op), attrs), old)
        if old in self._roots:
            self._roots.add(node)
        return node

    def replace(self, moves: Moves) -> None:
        """Let others take the place of some nodes, which leave the graph."""
        self.graph.redirect(moves)
        for old, endpoints in moves.items():
            if old in self._roots:
                self._roots.add(endpoints[0][0])
        self._remove(moves)

    def release(self, nodes: Collection[Node]) -> None:
        """Let nodes be replaced whose effects nobody outside of what replaces them can see."""
        self._roots.difference_update(nodes)

    def discard(self, nodes: Collection[Node]) -> None:
        """Remove nodes that nothing reads but each other."""
        self._remove(nodes)

    def drop_unused(self) -> int:
        """Remove what nothing needs any more; returns how many nodes that were."""
        unused = [n for n in self.graph if not n.out_edges and n not in self._roots]
        left: dict[Node, int] = {}
        for node in unused:  # grows
            for edge in node.in_edges():
                src = edge.src
                left[src] = left.get(src, len(src.out_edges)) - 1
                if not left[src] and src not in self._roots:
                    unused.append(src)
        self._remove(unused)
        return len(unused)

    def _remove(self, nodes: Collection[Node]) -> None:
        self.graph.remove_nodes(nodes)
        for node in nodes:
            self.device_of.pop(node.id, None)

    def _placed(self, node: Node, like: Node) -> Node:
        if like.id in self.device_of:
            self.device_of[node.id] = self.device_of[like.id]
        return node


def value_of(node: Node) -> Value | None:
    """The value of a constant; None if the node is none, or cannot be read."""
    if node.role is not Role.CONSTANT:
        return None
    try:
        value = node.attrs["value"].value
    except (OpError, ValueError, ArithmeticError):
        return None  # running it will say why
    return freeze(value) if has_dtype(value, node.output_types[0]) else None


def const_attrs(value: Value, dtype: DType) -> dict[str, Any]:
    """The attributes of a constant."""
    return {"value": TensorAttr(value=freeze(value)), "dtype": dtype}


def _is_pure_op(node: Node) -> bool:
    return node.role in COMPUTES and node.op.only_computes


def _readers(graph: Graph) -> set[Node]:
    """The nodes that get a reference, directly or through Identities."""
    readers: set[Node] = set()
    waiting = [n for n in graph if not _VALUES.issuperset(n.output_types)]
    for node in waiting:  # grows
        for edge in node.out_edges:
            dst = edge.dst
            is_ref = node in readers or node.output_types[edge.src_slot].is_ref
            if edge.is_control or not is_ref or dst in readers:
                continue
            readers.add(dst)
            if dst.op.name == "Identity":
                waiting.append(dst)
    return readers
