"""Ops that work element by element.

In:   arrays, which are broadcast.
Out:  an array.
Not:  no powers of integers, and no other op whose error depends on values but for quotients.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.core import dtypes
from penstock.kernels.native.list_rules import Elements, sum_of_lists, zeros_like
from penstock.kernels.native.parts import Operand
from penstock.kernels.native.rules import (
    FLOATS,
    INTEGERS,
    Written,
    broadcast_shape,
    of_types,
    rule,
)

_REALS: Final = FLOATS | INTEGERS
#: Functions of one number, as operations are called.
_UNARY: Final = {
    "Ceil": "ceil", "Cos": "cos", "Exp": "exp", "Expm1": "expm1", "Floor": "floor",
    "Inv": "reciprocal", "Log": "log", "Log1p": "log1p", "Reciprocal": "reciprocal",
    "Relu": "relu", "Relu6": "relu6", "Rsqrt": "rsqrt", "Sigmoid": "sigmoid", "Sin": "sin",
    "Sqrt": "sqrt", "Tanh": "tanh",
}  # fmt: skip
_SIGNED: Final = {"Abs": "abs", "Neg": "neg", "Square": "square"}
_BINARY: Final = {
    "Add": "add", "AddV2": "add", "Maximum": "maximum", "Minimum": "minimum", "Mul": "mul",
    "SquaredDifference": "squared_difference", "Sub": "sub",
}  # fmt: skip
_COMPARISONS: Final = {
    "Equal": "equal", "Greater": "greater", "GreaterEqual": "greater_equal", "Less": "less",
    "LessEqual": "less_equal", "NotEqual": "not_equal",
}  # fmt: skip
_LOGICAL: Final = {"LogicalAnd": "and", "LogicalOr": "or"}


@rule(*_UNARY, admits=of_types(FLOATS))
def _unary(node: Written) -> Operand:
    return node.emitter.same(_UNARY[node.op], node.array(0))


@rule("Erf", "Erfc", admits=of_types(frozenset({dtypes.float32})))
def _error_function(node: Written) -> Operand:
    return node.emitter.same(node.op.lower(), node.array(0))


@rule(*_SIGNED, admits=of_types(_REALS))
def _sign(node: Written) -> Operand:
    return node.emitter.same(_SIGNED[node.op], node.array(0))


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


@rule("FloorDiv", "FloorMod", admits=of_types(INTEGERS))
def _divide_whole(node: Written) -> Operand:
    x, y = _pair(node)
    zeros = node.emitter.full(0, y.dtype, y.shape)
    differ = node.emitter.compare("not_equal", y, zeros)
    node.emitter.need(node.emitter.reduce("all", differ, range(len(y.shape))))
    return node.emitter.same("floor_div" if node.op == "FloorDiv" else "floor_mod", x, y)


@rule("RealDiv", admits=of_types(FLOATS))
def _divide(node: Written) -> Operand:
    return node.emitter.same("div", *_pair(node))


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
        return _select_alike(node)
    shape = broadcast_shape(condition.shape, x.shape, y.shape)
    return node.emitter.select(*[node.emitter.broadcast(one, shape) for one in node.inputs])


def _select_alike(node: Written) -> Operand:
    """Two of one shape; the condition has it, too, or says one thing for each row, or for all."""
    condition, x, y = node.inputs
    by_row = len(condition.shape) == 1 and condition.shape == x.shape[:1]
    node.need(x.shape == y.shape and (by_row or condition.shape in (x.shape, ())))
    axes = [0] if by_row else None
    return node.emitter.select(node.emitter.broadcast(condition, x.shape, axes), x, y)


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
    return softmax_of(node, node.array(0))


def softmax_of(node: Written, x: Operand) -> Operand:
    """exp(x) / sum(exp(x)) along the last axis."""
    emitter = node.emitter
    node.need(len(x.shape) >= 1 and 0 not in x.shape)
    last, kept = len(x.shape) - 1, range(len(x.shape) - 1)
    most = emitter.reduce("max", x, [last])
    powers = emitter.same("exp", emitter.same("sub", x, emitter.broadcast(most, x.shape, kept)))
    total = emitter.reduce("sum", powers, [last])
    return emitter.same("div", powers, emitter.broadcast(total, x.shape, kept))
