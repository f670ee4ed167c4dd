"""Leave out arithmetic that changes nothing, to the last bit.

In:   a GraphRewriter.
Out:  the GraphRewriter with fewer nodes to run; how many changed.
Not:  reorders nothing, and guesses no shapes: only constants of rank 0 count, since those
      change no shape.

x + 0 is not x if x is -0.0, but x + -0.0 and x - 0 are x for all floating-point numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.passes.graph_rewriter import GraphRewriter, value_of

#: What a node may be replaced by: an edge that brings the same; None if there is none.
_Rule = Callable[[GraphRewriter, Node], Edge | None]


def simplify_arithmetic(draft: GraphRewriter) -> int:
    """Let consumers read what they would get anyway; returns how many nodes changed."""
    moves: dict[Node, list[tuple[Node, int]]] = {}
    shortened = 0
    for node in draft.graph:
        rule = _RULES.get(node.op.name)
        if rule is None or not all(node.inputs):
            continue
        edge = rule(draft, node)
        if edge is not None and draft.is_pure(node) and draft.may_bypass(node, edge):
            moves[node] = [(edge.src, edge.src_slot)]
        elif node.op.name in _SHORTENED:
            shortened += _SHORTENED[node.op.name](draft, node)
    if moves:
        draft.replace(moves)
    return len(moves) + shortened


def _neutral(draft: GraphRewriter, node: Node) -> Edge | None:
    """The operand that the result equals, because the other one is 0 or 1."""
    first, second = node.inputs
    if first is None or second is None:
        return None
    name = node.op.name
    if second.src.role is Role.CONSTANT and _is_neutral(name, draft.number(second.src)):
        return first
    if not node.op.traits.commutes or first.src.role is not Role.CONSTANT:
        return None
    return second if _is_neutral(name, draft.number(first.src)) else None


def _is_neutral(op: str, number: Value | None) -> bool:
    if not isinstance(number, np.generic) or number.dtype.kind in "cb":
        return False
    if op not in ("Add", "AddV2", "Sub"):
        return bool(number == 1)
    if number.dtype.kind in "iu":
        return bool(number == 0)
    is_negative = bool(np.signbit(np.float64(number)))
    return bool(number == 0) and is_negative is (op != "Sub")


def _constant(edge: Edge) -> Value | None:
    return None if edge.src.control_inputs else value_of(edge.src)


def _undone(_draft: GraphRewriter, node: Node) -> Edge | None:
    """What the input was before the same function was applied to it once before."""
    inner = node.input(0).src
    is_same = inner.op.name == node.op.name and not inner.control_inputs
    return inner.inputs[0] if is_same else None


def _cast(_draft: GraphRewriter, node: Node) -> Edge | None:
    return node.input(0) if node.input_types == node.output_types else None


def _only_one(_draft: GraphRewriter, node: Node) -> Edge | None:
    return node.input(0) if len(node.inputs) == 1 else None


def _transposed_back(_draft: GraphRewriter, node: Node) -> Edge | None:
    """What the input was before it was transposed the other way."""
    inner = node.input(0).src
    if inner.op.name != "Transpose" or inner.control_inputs or inner.inputs[0] is None:
        return None
    before, after = _order(inner), _order(node)
    if before is None or after is None or len(before) != len(after):
        return None
    return inner.inputs[0] if (before[after] == np.arange(len(after))).all() else None


def _order(node: Node) -> Array | None:
    """The constant permutation of a Transpose; None if it is none."""
    order = _constant(node.input(1))
    if not isinstance(order, np.ndarray) or order.ndim != 1:
        return None
    return order if sorted(order.tolist()) == list(range(len(order))) else None


def _reshape_once(draft: GraphRewriter, node: Node) -> int:
    """Let the second of two Reshapes read what the first one reads."""
    inner = node.input(0).src
    if inner.op.name != "Reshape" or inner.control_inputs or inner.inputs[0] is None:
        return 0
    edge = inner.inputs[0]
    if draft.device(inner) != draft.device(node):
        return 0
    if not (draft.is_pure(inner) and draft.is_pure(node)):
        return 0
    if not _always_fits(_constant(inner.input(1)), _constant(node.input(1))):
        return 0
    draft.graph.remove_edge(node.input(0))
    draft.graph.add_edge(edge.src, edge.src_slot, node, 0)
    return 1


def _always_fits(first: Value | None, second: Value | None) -> bool:
    """Whether what can be reshaped to ``second`` can be reshaped to ``first`` as well."""
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        return False
    known, wanted = ([int(n) for n in sizes.ravel() if n != -1] for sizes in (first, second))
    if min([*known, *wanted, 1]) < 1 or first.ndim != 1 or second.ndim != 1:
        return False
    part, whole = int(np.prod(known)), int(np.prod(wanted))
    if -1 in first:
        return len(known) == len(first) - 1 and whole % part == 0
    return -1 not in second and part == whole


_RULES: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(("Add", "AddV2", "Sub", "Mul", "RealDiv", "Div"), _neutral),
    **dict.fromkeys(("Neg", "LogicalNot", "Invert", "Conj"), _undone),
    "Cast": _cast,
    "AddN": _only_one,
    "Transpose": _transposed_back,
    "Reshape": lambda _draft, _node: None,
}
#: What is done to nodes that stay.
_SHORTENED: Final[Mapping[str, Callable[[GraphRewriter, Node], int]]] = {"Reshape": _reshape_once}
