"""Make one node of the gates of a recurrent cell: products, bias, parts and their functions.

In:   a GraphRewriter.
Out:  the GraphRewriter with fused nodes where parts of a product with constants are gates; how many
      nodes went.
Not:  touches no product, sum or part that anybody else reads.

A cell makes all its gates with one product, adds a bias, splits the sum and applies functions
to the parts, some of them after adding a number (the forget bias).  That number goes into the
bias, so results differ from those of the single ops by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import field
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.dataclass import dataclass
from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.kernels.api.registry import find_kernel
from penstock.passes.graph_rewriter import GraphRewriter, value_of

#: Without one of these there is nothing to do.
SPLITS: Final = frozenset({"Split"})
_SUMS: Final = frozenset({"Add", "AddV2"})
#: What the fused kernel can apply to a part.
_FUNCTIONS: Final = frozenset({"Sigmoid", "Tanh", "Relu"})
#: How many inputs may be joined for the product.
_JOINED: Final = 2
#: Fewer functions are not worth a node of their own.
_FEWEST: Final = 2


@dataclass(slots=True)
class _Gates:
    """What becomes one node."""

    split: Node
    #: The edges that bring what is multiplied, and what it is multiplied by.
    xs: list[Edge] = field(default_factory=list)
    factor: Edge | None = None
    #: Where the bias comes from; None if there is none.
    bias: Edge | None = None
    #: All nodes that go, but for ``split``, each with the part that it is about.
    gone: dict[Node, int | None] = field(default_factory=dict)
    #: The function of each part; empty for none.
    functions: list[str] = field(default_factory=list)
    #: What is added to each part.
    added: list[Value | None] = field(default_factory=list)


def fuse_gates(draft: GraphRewriter) -> int:
    """Fuse gates; returns how many nodes went."""
    found = [node for node in draft.graph if node.op.name in SPLITS]
    return sum(_fuse(draft, node) for node in found)


def _fuse(draft: GraphRewriter, split: Node) -> int:
    gates = _Gates(split)
    if not _is_plain(draft, split) or split.attrs["num_split"] < _FEWEST:
        return 0
    if not _is_last_of_two(split.input(0)) or not _find_sum(draft, gates, split.input(1)):
        return 0
    _find_inputs(draft, gates)
    _find_functions(draft, gates)
    if len(gates.functions) - gates.functions.count("") < _FEWEST:
        return 0
    bias = _new_bias(gates)
    if bias is None or find_kernel("_FusedGates", "CPU", _attrs(gates)) is None:
        return 0
    _put_in_place(draft, gates, bias)
    return len(gates.gone)


def _is_plain(draft: GraphRewriter, node: Node) -> bool:
    """Whether a node waits for nothing but its inputs, and only its values matter."""
    is_awaited = any(edge.is_control for edge in node.out_edges)
    return (
        draft.is_pure(node)
        and not (node.control_inputs or is_awaited or draft.is_root(node))
        and all(node.inputs)
    )


def _reads_alone(draft: GraphRewriter, edge: Edge) -> bool:
    """Whether an edge's source has no other reader, and runs in the same place."""
    src = edge.src
    is_only = sum(out.src_slot == edge.src_slot for out in src.out_edges) == 1
    return is_only and draft.device(src) == draft.device(edge.dst)


# -- before the Split ------------------------------------------------------------------------


def _find_sum(draft: GraphRewriter, gates: _Gates, edge: Edge) -> bool:
    """Take apart what is split: a product with a constant, and at most one bias."""
    node = edge.src
    if not (_is_plain(draft, node) and _reads_alone(draft, edge)):
        return False
    gates.gone[node] = None
    if node.op.name == "MatMul":
        gates.xs, gates.factor = [node.input(0)], node.input(1)
        return _is_stackable(node, gates.split.attrs["num_split"])
    if gates.bias is not None or node.op.name not in _SUMS | {"BiasAdd"}:
        return False
    first, second = node.input(0), node.input(1)
    if node.op.name == "BiasAdd":
        gates.bias = second
        return node.attrs["data_format"] == b"NHWC" and _find_sum(draft, gates, first)
    for term, other in ((first, second), (second, first)):
        if np.ndim(_constant(other)) == 1:
            gates.bias = other
            return _find_sum(draft, gates, term)
    return False


def _is_stackable(product: Node, count: int) -> bool:
    """Whether a product has a constant second factor of so many equal parts."""
    factor = _constant(product.input(1))
    is_turned = product.attrs["transpose_a"] or product.attrs["transpose_b"]
    return np.ndim(factor) == 2 and not is_turned and np.shape(factor)[1] % count == 0


def _waits(edge: Edge) -> set[Node]:
    """What a constant waits for, or what brings it into a loop: it is alive when they are."""
    return {control.src for control in edge.src.control_inputs}


def _constant(edge: Edge) -> Any:
    """The value of a constant, also of one that comes from outside of a loop; or None."""
    src = edge.src
    if src.role is Role.ENTER and src.attrs["is_constant"]:
        src = src.input(0).src
    return value_of(src)


def _is_last_of_two(axis: Edge) -> bool:
    """Whether a constant names the second axis of a matrix."""
    number = _constant(axis)
    return np.shape(number) == () and number in (1, -1)


def _find_inputs(draft: GraphRewriter, gates: _Gates) -> None:
    """Take apart what is multiplied, if it is two things joined for that."""
    [edge] = gates.xs
    node = edge.src
    if node.op.name != "ConcatV2" or node.attrs["N"] != _JOINED:
        return
    axis = node.input(_JOINED)
    is_sure = _waits(axis) <= _waits(gates.split.input(0)) and _is_last_of_two(axis)
    if is_sure and _is_plain(draft, node) and _reads_alone(draft, edge):
        gates.gone[node] = None
        gates.xs = [node.input(0), node.input(1)]


# -- after the Split -------------------------------------------------------------------------


def _find_functions(draft: GraphRewriter, gates: _Gates) -> None:
    """Find what is done to each part."""
    waits = _waits(gates.split.input(0))
    for part in range(gates.split.attrs["num_split"]):
        steps = list(_steps(draft, gates.split, part))
        if not steps or steps[-1].op.name not in _FUNCTIONS:
            steps = []
        gates.gone.update(dict.fromkeys(steps, part))
        gates.functions.append(steps[-1].op.name if steps else "")
        gates.added.append(_number(steps[0], waits) if len(steps) > 1 else None)


def _steps(draft: GraphRewriter, split: Node, part: int) -> Iterator[Node]:
    """The function of a part, and perhaps a sum with a number before it."""
    edge = _only_edge(draft, split, part)
    if edge is not None and _number(edge.dst, _waits(split.input(0))) is not None:
        yield edge.dst
        edge = _only_edge(draft, edge.dst, 0)
    if edge is not None and edge.dst.op.name in _FUNCTIONS:
        yield edge.dst


def _only_edge(draft: GraphRewriter, node: Node, slot: int) -> Edge | None:
    edges = [edge for edge in node.out_edges if edge.src_slot == slot]
    if len(edges) != 1 or not _is_plain(draft, edges[0].dst):
        return None
    return edges[0] if _reads_alone(draft, edges[0]) else None


def _number(node: Node, waits: Set[Node]) -> Value | None:
    """The number that a sum adds, if all that it waits for is awaited anyway."""
    if node.op.name not in _SUMS:
        return None
    edges = [edge for edge in node.inputs if edge is not None and _waits(edge) <= waits]
    numbers = [n for n in map(_constant, edges) if isinstance(n, np.generic)]
    return numbers[0] if len(numbers) == 1 else None


# -- the new node ----------------------------------------------------------------------------


def _new_bias(gates: _Gates) -> Array | None:
    """The bias with what was added to the parts; None if it does not fit the product."""
    assert gates.factor is not None
    width = np.shape(_constant(gates.factor))[1]
    # Minus zero changes no number that it is added to, not even itself.
    bias: Array = np.full(width, -0.0, gates.split.output_types[-1].numpy)
    if gates.bias is not None:
        bias = _constant(gates.bias)
    if np.shape(bias) != (width,) or not width:
        return None
    parts = np.split(bias, len(gates.added))
    return np.concatenate(
        [p if n is None else p + n for p, n in zip(parts, gates.added, strict=True)]
    )


def _attrs(gates: _Gates) -> dict[str, Any]:
    return {
        "N": len(gates.xs),
        "T": gates.split.output_types[0],
        "num_split": gates.split.attrs["num_split"],
        "functions": [name.encode() for name in gates.functions],
    }


def _put_in_place(draft: GraphRewriter, gates: _Gates, bias: Array) -> None:
    """One node, under the name of the Split, instead of all of them."""
    split, factor = gates.split, gates.factor
    assert factor is not None
    made = draft.take_name(split, "_FusedGates", _attrs(gates))
    draft.graph.add_control_edges(_waits(split.input(0)), made)
    sources = [(edge.src, edge.src_slot) for edge in (*gates.xs, factor)]
    place = factor if gates.bias is None else gates.bias
    sources.append((_like(draft, place, made, bias), 0))
    for slot, (src, src_slot) in enumerate(sources):
        draft.graph.add_edge(src, src_slot, made, slot)
    moves: dict[Node, list[tuple[Node, int]]] = {
        node: [] if part is None else [(made, part)] for node, part in gates.gone.items()
    }
    draft.replace(moves | {split: [(made, part) for part in range(len(gates.functions))]})


def _like(draft: GraphRewriter, edge: Edge, reader: Node, value: Array) -> Node:
    """A constant where another one is, or that gets into a loop as that one does."""
    src, dtype = edge.src, reader.output_types[0]
    waits = [control.src for control in src.control_inputs]
    if src.role is not Role.ENTER:
        made = draft.add_const(src, f"{reader.name}/Const", value, dtype)
        draft.graph.add_control_edges(waits, made)
        return made
    outside = _like(draft, src.input(0), reader, value)
    made = draft.add(src, f"{reader.name}/Enter", "Enter", src.attrs)
    draft.graph.add_edge(outside, 0, made, 0)
    draft.graph.add_control_edges(waits, made)
    return made
