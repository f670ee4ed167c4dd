"""Ops that work element by element.

In:   one value, or two that are broadcast.
Out:  the result in the layout of the operands.
Not:  nothing that mixes elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.passes.offload.model_writer import Tensor, UnsupportedError, channels_first
from penstock.passes.offload.rules import Written, rule

#: Functions that ONNX has under another name, or the same.
_UNARY: Final = {
    "Abs": "Abs", "Cos": "Cos", "Erf": "Erf", "Exp": "Exp", "Floor": "Floor", "Ceil": "Ceil",
    "Log": "Log", "Neg": "Neg", "Relu": "Relu", "Sigmoid": "Sigmoid", "Sin": "Sin",
    "Softplus": "Softplus", "Softsign": "Softsign", "Sqrt": "Sqrt", "Tanh": "Tanh",
    "Reciprocal": "Reciprocal", "Inv": "Reciprocal", "Selu": "Selu", "Elu": "Elu",
}  # fmt: skip
_BINARY: Final = {
    "Add": "Add", "AddV2": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div",
    "Maximum": "Max", "Minimum": "Min", "Pow": "Pow",
}  # fmt: skip
_SUMS: Final = frozenset({"Add", "AddV2"})
_FLOATS: Final = frozenset({dtypes.float32})


def apply(node: Written, op_type: str, x: Tensor, **attributes: Any) -> Tensor:
    """A function of each element, in the layout that the value has."""
    return node.writer.op(op_type, [x], x.shape, x.dtype, is_turned=x.is_turned, **attributes)


def _number(node: Written, number: float) -> Tensor:
    return node.writer.constant(np.float32(number))


@rule(*_UNARY)
def _unary(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS)
    return apply(node, _UNARY[node.op], node.inputs[0])


@rule("Identity", "StopGradient", "Snapshot", "PreventGradient")
def _same(node: Written) -> Tensor:
    return node.inputs[0]


@rule("IdentityN")
def _all_the_same(node: Written) -> Sequence[Tensor]:
    return node.inputs


@rule("Erfc")
def _erfc(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS and node.is_gate())
    x = node.inputs[0]
    parts = [_number(node, 1), apply(node, "Erf", x)]
    return node.writer.op("Sub", parts, x.shape, x.dtype, is_turned=x.is_turned)


@rule("Relu6")
def _relu6(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS)
    x = node.inputs[0]
    return replace(clipped(node, x), of_hard_sigmoid=x.less_three)


def clipped(node: Written, x: Tensor) -> Tensor:
    """Between 0 and 6."""
    ends = [_number(node, 0), _number(node, 6)]
    return node.writer.op("Clip", [x, *ends], x.shape, is_turned=x.is_turned)


@rule("LeakyRelu")
def _leaky_relu(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS)
    return apply(node, "LeakyRelu", node.inputs[0], alpha=node.attrs["alpha"])


@rule("Square")
def _square(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS)
    x = node.inputs[0]
    return node.writer.op("Mul", [x, x], x.shape, is_turned=x.is_turned)


@rule("Rsqrt")
def _rsqrt(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS)
    return apply(node, "Reciprocal", apply(node, "Sqrt", node.inputs[0]))


@rule(*_BINARY)
def _binary(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS)
    fewer = _normalised(node) if node.op in _SUMS else _hard_sigmoid(node)
    if fewer is not None:
        return fewer
    result = broadcast(node, _BINARY[node.op], node.inputs[0], node.inputs[1])
    if node.op == "Mul":
        return replace(result, factors=_with_numbers_of_channels(node))
    return replace(result, less_three=_beside(node, 3)) if node.op in _SUMS else result


def _hard_sigmoid(node: Written) -> Tensor | None:
    """``relu6(x + 3) / 6`` as one operator, where it is a gate: it has lost digits near -3."""
    six = _beside(node, np.float32(1 / 6)) if node.op == "Mul" else None
    if node.op == "RealDiv" and _is_number(node.values[1], 6):
        six = node.inputs[0]
    x = six.of_hard_sigmoid if six is not None else None
    if x is None or not node.is_gate():
        return None
    return apply(node, "HardSigmoid", x, alpha=1 / 6, beta=0.5)


def _beside(node: Written, number: Any) -> Tensor | None:
    """What a single number is the other operand of; None if that number is not there."""
    for slot in (0, 1):
        if _is_number(node.values[slot], number):
            return node.inputs[1 - slot]
    return None


def _is_number(value: Any, number: Any) -> bool:
    return value is not None and np.ndim(value) == 0 and bool(value == number)


def _normalised(node: Written) -> Tensor | None:
    """``x * factor + term``, both by channel, as one operator.

    ONNX Runtime computes that in its own layout of images; for a product and a sum it leaves it.
    """
    found = _with_numbers_of_channels(node)
    if found is None or found[0].factors is None:
        return None
    (x, factor), term = found[0].factors, found[1]
    none, one = (
        node.writer.constant(np.full(term.size(-1), number, np.float32)) for number in (0, 1)
    )
    numbers = [_flat(node, factor), _flat(node, term), none, one]
    return node.make_turned("BatchNormalization", [x, *numbers], epsilon=0.0)


def _with_numbers_of_channels(node: Written) -> tuple[Tensor, Tensor] | None:
    """An input with channels first, and the other one, if that is a fixed number for each."""
    for slot in (0, 1):
        x, numbers = node.inputs[slot], node.inputs[1 - slot]
        sizes = numbers.shape.dims
        if not (x.is_turned and node.fixed[1 - slot] and sizes and sizes[-1]):
            continue
        if sizes[-1] == x.size(-1) and set(sizes[:-1]) <= {1} and len(sizes) <= x.rank:
            return x, numbers
    return None


def _flat(node: Written, numbers: Tensor) -> Tensor:
    count = numbers.size(-1)
    form = node.writer.constant(np.array([count], np.int64))
    return node.writer.op("Reshape", [numbers, form], TensorShape.of([count]))


@rule("SquaredDifference")
def _squared_difference(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS)
    x = broadcast(node, "Sub", node.inputs[0], node.inputs[1])
    return node.writer.op("Mul", [x, x], x.shape, is_turned=x.is_turned)


@rule("AddN")
def _add_n(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS)
    total = node.inputs[0]
    for term in node.inputs[1:]:
        total = broadcast(node, "Add", total, term)
    return total


@rule("BiasAdd")
def _bias_add(node: Written) -> Tensor:
    node.need(node.types[0] in _FLOATS and node.attrs["data_format"] == b"NHWC")
    return with_bias(node, node.inputs[0], node.inputs[1])


def with_bias(node: Written, x: Tensor, bias: Tensor) -> Tensor:
    """Something for each channel added."""
    node.need(bias.rank == 1 and x.rank >= 2 and x.size(-1) in (None, bias.size(0)))
    return broadcast(node, "Add", x, bias, x.shape)


def broadcast(
    node: Written, op_type: str, x: Tensor, y: Tensor, shape: TensorShape | None = None
) -> Tensor:
    """A function of two values; channels stay first if they are so in the larger one."""
    shape = node.shapes[0] if shape is None else shape
    writer = node.writer
    if not (x.is_turned or y.is_turned):
        return writer.op(op_type, [x, y], shape, node.types[0])
    rank = max(x.rank, y.rank)
    try:
        parts = [_as_turned(node, one, rank) for one in (x, y)]
    except UnsupportedError:
        return writer.op(op_type, [writer.plain(x), writer.plain(y)], shape, node.types[0])
    return writer.op(op_type, parts, shape, node.types[0], is_turned=True)


def _as_turned(node: Written, x: Tensor, rank: int) -> Tensor:
    """A value as it is broadcast against one of some rank with channels first."""
    if x.rank == rank:
        return node.writer.turned(x)
    if x.rank == 0:
        return x
    if x.rank == 1:  # something for each channel
        form = np.array([1, -1] + [1] * (rank - 2), np.int64)
        sizes = [1] * (rank - 1) + [x.size(0)]
        shape = TensorShape.of([sizes[axis] for axis in channels_first(rank)])
        return node.writer.op("Reshape", [x, node.writer.constant(form)], shape)
    raise UnsupportedError


def _comparison(op_type: str) -> Callable[[Written], Tensor]:
    def compare(node: Written) -> Tensor:
        node.need(node.inputs[0].dtype in _FLOATS)
        return broadcast(node, op_type, node.inputs[0], node.inputs[1])

    return compare


for _op, _type in (
    ("Greater", "Greater"),
    ("GreaterEqual", "GreaterOrEqual"),
    ("Less", "Less"),
    ("LessEqual", "LessOrEqual"),
):
    rule(_op)(_comparison(_type))
