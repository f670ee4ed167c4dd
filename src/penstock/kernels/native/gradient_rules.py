"""Rules for the gradients of functions that work element by element, and of what they share."""

from __future__ import annotations

from penstock.kernels.native.emitter import Operand
from penstock.kernels.native.rules import FLOATS, Written, of_types, rule


def _pair(node: Written) -> tuple[Operand, Operand]:
    """Two inputs of one shape."""
    x, y = node.array(0), node.array(1)
    node.need(x.shape == y.shape)
    return x, y


@rule("TanhGrad", admits=of_types(FLOATS))
def _tanh(node: Written) -> Operand:
    (y, gradient), emitter = _pair(node), node.emitter
    # As long as it may be below -1, the square is rounded before it is subtracted.
    squares = emitter.same("multiply", y, y)
    squares = emitter.same("maximum", squares, emitter.full(-1, y.dtype, y.shape))
    slope = emitter.same("subtract", emitter.full(1, y.dtype, y.shape), squares)
    return emitter.same("multiply", gradient, slope)


@rule("SigmoidGrad", admits=of_types(FLOATS))
def _sigmoid(node: Written) -> Operand:
    (y, gradient), emitter = _pair(node), node.emitter
    rest = emitter.same("subtract", emitter.full(1, y.dtype, y.shape), y)
    return emitter.same("multiply", gradient, emitter.same("multiply", y, rest))


@rule("ReluGrad", "Relu6Grad", admits=of_types(FLOATS))
def _relu(node: Written) -> Operand:
    (gradient, x), emitter = _pair(node), node.emitter
    passes: Operand = emitter.compare("GT", x, emitter.full(0, x.dtype, x.shape))
    if node.op == "Relu6Grad":
        below = emitter.compare("LT", x, emitter.full(6, x.dtype, x.shape))
        passes = emitter.same("and", passes, below)
    return emitter.same("multiply", gradient, emitter.convert(passes, x.dtype))


@rule("BiasAddGrad", admits=lambda a, i, _: i[0] in FLOATS and a["data_format"] == b"NHWC")
def _bias_add(node: Written) -> Operand:
    gradient = node.array(0)
    node.need(len(gradient.shape) >= 2)
    return node.emitter.reduce("add", gradient, 0, range(len(gradient.shape) - 1))
