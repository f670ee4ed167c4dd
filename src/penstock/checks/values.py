"""Values that are known before anything runs: constants, and what simple ops make of them.

In:   an edge, and what some nodes are taken to give.
Out:  the value, or None if it is not known.
Not:  runs no kernel: what a stranger's graph would compute may be large, and there is no end to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role

#: Arrays of more elements are not looked at.
_MAX_SIZE: Final = 16
#: So far is a value followed back.
_MAX_DEPTH: Final = 50
_COMPUTES: Final[Mapping[str, Callable[..., Any]]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalNot": np.logical_not,
}
#: Their output is their first input.
_HANDS_ON: Final = frozenset({Role.IDENTITY, Role.SWITCH, Role.ENTER, Role.LOOP_COND, Role.EXIT})


def value_of(edge: Edge, given: Mapping[Node, Any] | None = None, depth: int = 0) -> Any:
    """What comes along an edge, as a small array; None if that is not known.

    Args:
        edge: a data edge.
        given: what some nodes are taken to give, at their first output.
        depth: how far it was followed back already.

    """
    node = edge.src
    if given is not None and node in given:
        return given[node]
    if depth > _MAX_DEPTH:
        return None
    if node.role is Role.CONSTANT:
        return _small(node.attrs["value"].value)
    if node.role in _HANDS_ON and node.inputs and node.inputs[0] is not None:
        return value_of(node.inputs[0], given, depth + 1)
    compute = _COMPUTES.get(node.op.name)
    if compute is None:
        return None
    inputs = [e and value_of(e, given, depth + 1) for e in node.inputs]
    if any(value is None for value in inputs):
        return None
    with np.errstate(all="ignore"):
        return _small(compute(*inputs))


def _small(value: Any) -> Any:
    array = np.asarray(value)
    return array if array.dtype != object and array.size <= _MAX_SIZE else None
