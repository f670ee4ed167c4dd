"""Ops that work element by element.

In:   arrays, which are broadcast.
Out:  an array.
Not:  no division of integers and no other op whose error depends on values.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.kernels.native.emitter import Operand
from penstock.kernels.native.list_rules import Elements, sum_of_lists, zeros_like
from penstock.kernels.native.rules import (
    FLOATS,
    INTEGERS,
    Written,
    broadcast_shape,
    of_types,
    rule,
)

_REALS: Final = FLOATS | INTEGERS
#: Functions of one number that StableHLO has.
_UNARY: Final = {
    "Ceil": "ceil", "Cos": "cosine", "Exp": "exponential", "Expm1": "exponential_minus_one",
    "Floor": "floor", "Log": "log", "Log1p": "log_plus_one", "Rsqrt": "rsqrt",
    "Sigmoid": "logistic", "Sin": "sine", "Sqrt": "sqrt", "Tanh": "tanh",
}  # fmt: skip
_BINARY: Final = {
    "Add": "add", "AddV2": "add", "Maximum": "maximum", "Minimum": "minimum", "Mul": "multiply",
    "Sub": "subtract",
}  # fmt: skip
_COMPARISONS: Final = {
    "Equal": "EQ", "Greater": "GT", "GreaterEqual": "GE", "Less": "LT", "LessEqual": "LE",
    "NotEqual": "NE",
}  # fmt: skip
_LOGICAL: Final = {"LogicalAnd": "and", "LogicalOr": "or"}


@rule(*_UNARY, admits=of_types(FLOATS))
def _unary(node: Written) -> Operand:
    return node.emitter.same(_UNARY[node.op], node.array(0))


@rule("Neg", "Abs", admits=of_types(_REALS))
def _sign(node: Written) -> Operand:
    return node.emitter.same("negate" if node.op == "Neg" else "abs", node.array(0))


@rule("Square", admits=of_types(_REALS))
def _square(node: Written) -> Operand:
    return node.emitter.same("multiply", node.array(0), node.array(0))


@rule("Relu", "Relu6", admits=of_types(FLOATS))
def _relu(node: Written) -> Operand:
    x, emitter = node.array(0), node.emitter
    y: Operand = emitter.same("maximum", x, emitter.full(0, x.dtype, x.shape))
    if node.op == "Relu6":
        y = emitter.same("minimum", y, emitter.full(6, x.dtype, x.shape))
    return y


@rule("Reciprocal", "Inv", admits=of_types(FLOATS))
def _reciprocal(node: Written) -> Operand:
    x = node.array(0)
    return node.emitter.same("divide", node.emitter.full(1, x.dtype, x.shape), x)


@rule("OnesLike", admits=of_types(_REALS))
def _ones(node: Written) -> Operand:
    x = node.array(0)
    return node.emitter.full(1, x.dtype, x.shape)


@rule("ZerosLike", admits=of_types(_REALS | {dtypes.variant}))
def _zeros(node: Written) -> Any:
    if isinstance(node.inputs[0], Elements):
        return zeros_like(node)
    x = node.array(0)
    return node.emitter.full(0, x.dtype, x.shape)


def _pair(node: Written, first: int = 0) -> tuple[Operand, Operand]:
    """Two inputs in their common shape."""
    x, y = node.array(first), node.array(first + 1)
    shape = broadcast_shape(x.shape, y.shape)
    return node.emitter.broadcast(x, shape), node.emitter.broadcast(y, shape)


@rule(*_BINARY, admits=of_types(_REALS))
def _binary(node: Written) -> Operand:
    return node.emitter.same(_BINARY[node.op], *_pair(node))


@rule("RealDiv", admits=of_types(FLOATS))
def _divide(node: Written) -> Operand:
    return node.emitter.same("divide", *_pair(node))


@rule("SquaredDifference", admits=of_types(_REALS))
def _squared_difference(node: Written) -> Operand:
    difference = node.emitter.same("subtract", *_pair(node))
    return node.emitter.same("multiply", difference, difference)


@rule("AddN", admits=of_types(_REALS | {dtypes.variant}))
def _add_n(node: Written) -> Any:
    if isinstance(node.inputs[0], Elements):
        return sum_of_lists(node)
    node.need(len({term.shape for term in node.inputs}) == 1)
    total = node.array(0)
    for term in node.inputs[1:]:
        total = node.emitter.same("add", total, term)
    return total


@rule("BiasAdd", admits=lambda a, i, _: i[0] in _REALS and a["data_format"] == b"NHWC")
def _bias_add(node: Written) -> Operand:
    x, bias = node.array(0), node.array(1)
    node.need(len(x.shape) >= 2 and len(bias.shape) == 1 and x.shape[-1] == bias.shape[0])
    return node.emitter.same("add", x, node.emitter.broadcast(bias, x.shape))


@rule(*_COMPARISONS, admits=lambda a, i, _: i[0] in _REALS and a.get("incompatible_shape_error", 1))
def _compare(node: Written) -> Operand:
    return node.emitter.compare(_COMPARISONS[node.op], *_pair(node))


@rule(*_LOGICAL)
def _logical(node: Written) -> Operand:
    return node.emitter.same(_LOGICAL[node.op], *_pair(node))


@rule("LogicalNot")
def _not(node: Written) -> Operand:
    return node.emitter.same("not", node.array(0))


def _is_exact_cast(attrs: Any, inputs: Any, outputs: Any) -> bool:
    """Whether every number has one meaning in the other type: no float is made an integer."""
    is_known = inputs[0] in _REALS | {dtypes.bool_} and outputs[0] in _REALS
    return is_known and not attrs["Truncate"] and (inputs[0] not in FLOATS or outputs[0] in FLOATS)


@rule("Cast", admits=_is_exact_cast)
def _cast(node: Written) -> Operand:
    return node.emitter.convert(node.array(0), node.types[0].numpy)


@rule("Select", "SelectV2", admits=lambda _a, i, _: i[1] in _REALS | {dtypes.bool_})
def _select(node: Written) -> Operand:
    condition, x, y = node.inputs
    if node.op == "Select":
        node.need(condition.shape == x.shape == y.shape)
    shape = broadcast_shape(condition.shape, x.shape, y.shape)
    return node.emitter.select(*[node.emitter.broadcast(one, shape) for one in node.inputs])


@rule(
    "Identity", "StopGradient", "PreventGradient", "Snapshot",
)  # fmt: skip
def _same(node: Written) -> Any:
    return node.inputs[0]


@rule("IdentityN")
def _all_the_same(node: Written) -> Any:
    return list(node.inputs)


@rule("Softmax", admits=of_types(FLOATS))
def _softmax(node: Written) -> Operand:
    x, emitter = node.array(0), node.emitter
    node.need(len(x.shape) >= 1 and 0 not in x.shape)
    last, kept = len(x.shape) - 1, range(len(x.shape) - 1)
    most = emitter.reduce("maximum", x, -np.inf, [last])
    powers = emitter.same(
        "exponential", emitter.same("subtract", x, emitter.broadcast(most, x.shape, kept))
    )
    total = emitter.reduce("add", powers, 0, [last])
    return emitter.same("divide", powers, emitter.broadcast(total, x.shape, kept))
