"""Activation functions and their gradients, and the gradients of a few others.

In:   features of one floating type; gradients of the same shape.
Out:  activations or back-propagated gradients, of the same type and shape.
Not:  no normalisation over an axis, such as a softmax.

A gradient op gets either the function's input (features) or its output (y, outputs), and
is written in terms of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core.values import Value, as_value, shape_of
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.choice import MANY, at_least, at_most, between, choose
from penstock.kernels.portions import by_elements
from penstock.kernels.precision import MakeFormula, formula
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.types import COMPLEX, FLOATS, REALS

_Kind = Callable[..., Any]

#: Scale and scale times alpha of the self-normalising ELU (Klambauer et al., 2017).
_SELU_SCALE: Final = 1.0507009873554805
_SELU_SCALE_ALPHA: Final = 1.7580993408473766


def _relu(kind: _Kind) -> Kernel:
    zero = kind(0)
    return lambda x: np.maximum(x, zero) if x.size < MANY else at_least(x, zero)


def _relu6(kind: _Kind) -> Kernel:
    zero, six = kind(0), kind(6)
    return lambda x: between(x, zero, six)


def _elu(kind: _Kind) -> Kernel:
    zero = kind(0)
    # Where the number is negative, so is exp(x) - 1, but it is greater.
    return lambda x: np.maximum(x, np.expm1(at_most(x, zero)))


def _selu(kind: _Kind) -> Kernel:
    zero, scale, scale_alpha = kind(0), kind(_SELU_SCALE), kind(_SELU_SCALE_ALPHA)

    def selu(x: Value) -> Value:
        result, negative = at_least(x, zero), at_most(np.expm1(x), zero)
        result *= scale
        negative *= scale_alpha
        result += negative
        return result

    return selu


def _softplus(kind: _Kind) -> Kernel:
    zero = kind(0)
    return lambda x: at_least(x, zero) + np.log1p(np.exp(-abs(x)))


def _softsign(kind: _Kind) -> Kernel:
    one = kind(1)
    return lambda x: x / (one + abs(x))


def _relu_grad(kind: _Kind) -> Kernel:
    zero = kind(0)
    return lambda gradients, x: gradients * (x > zero)


def _relu6_grad(kind: _Kind) -> Kernel:
    zero, six = kind(0), kind(6)
    return lambda gradients, x: gradients * ((x > zero) & (x < six))


def _elu_grad(kind: _Kind) -> Kernel:
    one = kind(1)

    def elu_grad(gradients: Value, y: Value) -> Value:
        # Zero too where y is no number.
        slope = np.fmin(y, np.zeros_like(y))
        slope += one
        slope *= gradients
        return slope

    return elu_grad


def _selu_grad(kind: _Kind) -> Kernel:
    zero, scale, scale_alpha = kind(0), kind(_SELU_SCALE), kind(_SELU_SCALE_ALPHA)

    def selu_grad(gradients: Value, y: Value) -> Value:
        slope = choose(y < zero, y + scale_alpha, np.broadcast_to(scale, y.shape))
        return gradients * slope

    return selu_grad


def _softplus_grad(kind: _Kind) -> Kernel:
    one = kind(1)
    return lambda gradients, x: gradients / (one + np.exp(-x))


def _softsign_grad(kind: _Kind) -> Kernel:
    one = kind(1)
    return lambda gradients, x: gradients / np.square(one + abs(x))


def _sigmoid_grad(kind: _Kind) -> Kernel:
    one = kind(1)
    return lambda y, dy: dy * y * (one - y)


def _tanh_grad(kind: _Kind) -> Kernel:
    one = kind(1)
    return lambda y, dy: dy * (one - np.square(y))


def _sqrt_grad(kind: _Kind) -> Kernel:
    half = kind(0.5)
    return lambda y, dy: _zero_where(dy, half * dy / _conj(y))


def _rsqrt_grad(kind: _Kind) -> Kernel:
    minus_half = kind(-0.5)

    def rsqrt_grad(y: Value, dy: Value) -> Value:
        conjugate = _conj(y)
        return _zero_where(dy, minus_half * dy * conjugate * conjugate * conjugate)

    return rsqrt_grad


def _reciprocal_grad(_: _Kind) -> Kernel:
    return lambda y, dy: _zero_where(dy, -dy * np.square(_conj(y)))


def _zero_where(dy: Value, gradient: Value) -> Value:
    """The gradient, but 0 where nothing comes back, however steep the function is there."""
    return as_value(np.where(dy == 0, dy, gradient))


def _conj(y: Value) -> Value:
    return np.conj(y) if y.dtype.kind == "c" else y


_RECTIFIERS: Final[dict[str, MakeFormula]] = {"Relu": _relu, "Relu6": _relu6}
_ACTIVATIONS: Final[dict[str, MakeFormula]] = {
    "Elu": _elu,
    "Selu": _selu,
    "Softplus": _softplus,
    "Softsign": _softsign,
}
_RECTIFIER_GRADS: Final[dict[str, MakeFormula]] = {
    "ReluGrad": _relu_grad,
    "Relu6Grad": _relu6_grad,
}
_GRADS: Final[dict[str, MakeFormula]] = {
    "EluGrad": _elu_grad,
    "SeluGrad": _selu_grad,
    "SoftplusGrad": _softplus_grad,
    "SoftsignGrad": _softsign_grad,
}
_GRADS_OF_OUTPUTS: Final[dict[str, MakeFormula]] = {
    "SigmoidGrad": _sigmoid_grad,
    "TanhGrad": _tanh_grad,
    "SqrtGrad": _sqrt_grad,
    "RsqrtGrad": _rsqrt_grad,
    "ReciprocalGrad": _reciprocal_grad,
    "InvGrad": _reciprocal_grad,
}


@kernel(*_RECTIFIERS, types={"T": REALS})
def make_rectifier(attrs: Attrs) -> Kernel:
    """The number clipped to 0 and above, or to 0 and 6; NaN stays."""
    return _RECTIFIERS[attrs.op.name](attrs.dtype("T").numpy.type)


@kernel(*_ACTIVATIONS, types={"T": FLOATS})
def make_activation(attrs: Attrs) -> Kernel:
    """The activation function that the op is named after."""
    return by_elements(formula(_ACTIVATIONS[attrs.op.name], attrs.dtype("T")))


@kernel("LeakyRelu", types={"T": REALS})
def make_leaky_relu(attrs: Attrs) -> Kernel:
    """The number where it is positive, alpha times it elsewhere."""
    alpha = attrs.float("alpha")
    leak = attrs.dtype("T").numpy.type(alpha)
    if alpha <= 1:
        return lambda x: np.maximum(x, leak * x)
    return lambda x: np.minimum(x, leak * x)


@kernel(*_RECTIFIER_GRADS, types={"T": REALS})
def make_rectifier_grad(attrs: Attrs) -> Kernel:
    """The gradient where the features are inside the range, 0 elsewhere."""
    compute = by_elements(_RECTIFIER_GRADS[attrs.op.name](attrs.dtype("T").numpy.type))
    return _same_shape(compute, attrs.op.name)


@kernel("LeakyReluGrad", types={"T": REALS})
def make_leaky_relu_grad(attrs: Attrs) -> Kernel:
    """The gradient, times alpha where the features are not positive."""
    leak = attrs.dtype("T").numpy.type(attrs.float("alpha"))

    def leaky_relu_grad(gradients: Value, features: Value) -> Value:
        return as_value(choose(features > 0, gradients, leak * gradients))

    return _same_shape(leaky_relu_grad, attrs.op.name)


@kernel(*_GRADS, types={"T": FLOATS})
def make_grad(attrs: Attrs) -> Kernel:
    """The gradient times the derivative of the activation function."""
    compute = by_elements(formula(_GRADS[attrs.op.name], attrs.dtype("T")))
    return _same_shape(compute, attrs.op.name)


@kernel(*_GRADS_OF_OUTPUTS, types={"T": FLOATS | COMPLEX})
def make_grad_of_output(attrs: Attrs) -> Kernel:
    """The gradient times the derivative, in terms of the function's value y."""
    compute = by_elements(_GRADS_OF_OUTPUTS[attrs.op.name](attrs.dtype("T").numpy.type))
    return _same_shape(compute, attrs.op.name)


def _same_shape(compute: Kernel, op: str) -> Kernel:
    """The kernel, which refuses two inputs of different shapes instead of broadcasting."""

    def checked(a: Value, b: Value) -> Value:
        if a.shape != b.shape:
            raise ValueError(
                f"Inputs to operation {op} must have the same size and shape.  Input 0: "
                f"{shape_text(shape_of(a))} != input 1: {shape_text(shape_of(b))}"
            )
        return compute(a, b)

    return checked
