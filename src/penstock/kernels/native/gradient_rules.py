"""Rules for the gradients of functions that work element by element, and of what they share."""

from __future__ import annotations

import numpy as np

from penstock.kernels.native.parts import Operand
from penstock.kernels.native.rules import FLOATS, Written, of_types, rule


def _pair(node: Written) -> tuple[Operand, Operand]:
    """Two inputs of one shape."""
    x, y = node.array(0), node.array(1)
    node.need(x.shape == y.shape)
    return x, y


@rule("TanhGrad", admits=of_types(FLOATS))
def _tanh(node: Written) -> Operand:
    (y, gradient), emitter = _pair(node), node.emitter
    if y.dtype == np.float32:
        return emitter.same("tanh_grad", y, gradient)
    # One operation might round the square and the difference as one.
    slope = emitter.same("sub", emitter.full(1, y.dtype, y.shape), emitter.same("square", y))
    return emitter.same("mul", gradient, slope)


@rule("SigmoidGrad", admits=of_types(FLOATS))
def _sigmoid(node: Written) -> Operand:
    return node.emitter.same("sigmoid_grad", *_pair(node))


@rule("ReluGrad", "Relu6Grad", admits=of_types(FLOATS))
def _relu(node: Written) -> Operand:
    name = "relu_grad" if node.op == "ReluGrad" else "relu6_grad"
    return node.emitter.same(name, *_pair(node))


@rule("BiasAddGrad", admits=lambda a, i, _: i[0] in FLOATS and a["data_format"] == b"NHWC")
def _bias_add(node: Written) -> Operand:
    gradient = node.array(0)
    node.need(len(gradient.shape) >= 2)
    return node.emitter.reduce("sum", gradient, range(len(gradient.shape) - 1))
