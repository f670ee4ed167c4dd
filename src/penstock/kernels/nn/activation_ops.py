"""Activation functions and their gradients, and the gradients of a few others.

In:   features of one floating type; gradients of the same shape.
Out:  activations or back-propagated gradients, of the same type and shape.
Not:  no normalisation over an axis, such as a softmax.

A gradient op gets either the function's input (features) or its output (y, outputs), and
is written in terms of that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value, as_value, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX, FLOATS, REALS
from penstock.kernels.c.functions import in_c, leaky_relu
from penstock.kernels.narrow.precision import Kind, MakeFormula, Step, formula, many_in_float32
from penstock.kernels.parallel.tiles import by_elements
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.complex_arithmetic import product, quotient, square
from penstock.kernels.values.select_clip import MANY, at_least, at_most, between, choose

#: Scale and scale times alpha of the self-normalising ELU (Klambauer et al., 2017).
_SELU_SCALE: Final = 1.0507009873554804935
_SELU_SCALE_ALPHA: Final = 1.7580993408473768599
#: What Eigen, TensorFlow's library, takes for the distance of 1 and the next number.
_EPSILONS: Final = {
    dtypes.float16: 2.0**-13,
    dtypes.bfloat16: 2.0**-7,
    dtypes.float32: 2.0**-23,
    dtypes.float64: 2.0**-52,
}


def _relu(kind: Kind) -> Kernel:
    zero = kind(0)
    return lambda x: np.maximum(x, zero) if x.size < MANY else at_least(x, zero)


def _relu6(kind: Kind) -> Kernel:
    zero, six = kind(0), kind(6)
    return lambda x: between(x, zero, six)


def _elu(kind: Kind, step: Step) -> Kernel:
    zero, one = kind(0), kind(1)

    def elu(x: Value) -> Value:
        negative = step(np.exp(at_most(x, zero)))
        negative -= one
        if x.size < MANY:
            return as_value(np.where(x < zero, negative, x))
        # One of the two is zero.  What is lost is the sign of x where that is zero, too.
        negative += at_least(x, zero)
        return negative

    return elu


def _selu(kind: Kind, step: Step) -> Kernel:
    zero, one, scale, scale_alpha = map(kind, (0, 1, _SELU_SCALE, _SELU_SCALE_ALPHA))

    def selu(x: Value) -> Value:
        negative = step(np.exp(at_most(x, zero)))
        negative -= one
        negative = step(negative)
        negative *= scale_alpha
        if x.size < MANY:
            return as_value(np.where(x < zero, negative, scale * x))
        positive = at_least(x, zero)
        positive *= scale
        positive += negative
        return positive

    return selu


def _softplus(epsilon: float, kind: Kind, step: Step) -> Kernel:
    # Beyond the limits, x or exp(x) is so near that more would only lose digits.
    limit = step(-np.log(kind(epsilon))) - kind(2)

    def softplus(x: Value) -> Value:
        power = step(np.exp(x))
        result = np.asarray(np.log1p(power))
        np.copyto(result, power, where=x < -limit)
        np.copyto(result, x, where=x > limit)
        return as_value(result)

    return softplus


def _softsign(kind: Kind, step: Step) -> Kernel:
    one = kind(1)
    return lambda x: x / step(one + abs(x))


def _relu_grad(kind: Kind) -> Kernel:
    zero = kind(0)
    return lambda gradients, x: gradients * (x > zero)


def _relu6_grad(kind: Kind) -> Kernel:
    zero, six = kind(0), kind(6)
    return lambda gradients, x: gradients * ((x > zero) & (x < six))


def _elu_grad(kind: Kind, step: Step) -> Kernel:
    one = kind(1)

    def elu_grad(gradients: Value, y: Value) -> Value:
        # No number counts as zero.
        slope = np.fmin(y, np.zeros_like(y))
        slope += one
        return gradients * step(slope)

    return elu_grad


def _selu_grad(kind: Kind, step: Step) -> Kernel:
    zero, scale, scale_alpha = map(kind, (0, _SELU_SCALE, _SELU_SCALE_ALPHA))

    def selu_grad(gradients: Value, y: Value) -> Value:
        slope = choose(y < zero, step(y + scale_alpha), np.broadcast_to(scale, y.shape))
        return gradients * slope

    return selu_grad


def _softplus_grad(kind: Kind, step: Step) -> Kernel:
    one = kind(1)

    def softplus_grad(gradients: Value, x: Value) -> Value:
        power = step(np.exp(-x))
        power += one
        return gradients / step(power)

    return softplus_grad


def _softsign_grad(kind: Kind, step: Step) -> Kernel:
    one = kind(1)
    return lambda gradients, x: gradients / step(np.square(step(one + abs(x))))


def _sigmoid_grad(kind: Kind, step: Step) -> Kernel:
    one = kind(1)
    return lambda y, dy: dy * step(y * step(one - y))


def _tanh_grad(kind: Kind, step: Step) -> Kernel:
    one = kind(1)
    return lambda y, dy: dy * step(one - step(np.square(y)))


def _sqrt_grad(kind: Kind, step: Step) -> Kernel:
    zero, half = kind(0), kind(0.5)
    return lambda y, dy: _zero_where(dy, dy * step(half / y), zero)


def _rsqrt_grad(kind: Kind, step: Step) -> Kernel:
    zero, minus_half = kind(0), kind(-0.5)

    def rsqrt_grad(y: Value, dy: Value) -> Value:
        gradient = step(dy * y) * step(minus_half * step(y * y))
        return _zero_where(dy, gradient, zero)

    return rsqrt_grad


def _reciprocal_grad(kind: Kind, step: Step) -> Kernel:
    zero = kind(0)
    return lambda y, dy: _zero_where(dy, -dy * step(np.square(y)), zero)


def _zero_where(dy: Value, gradient: Value, zero: Any) -> Value:
    """The gradient, but 0 where nothing comes back, however steep the function is there."""
    return as_value(np.where(dy == zero, zero, gradient))


# -- complex numbers -------------------------------------------------------------------


def _complex_sigmoid_grad(y: Value, dy: Value) -> Value:
    return product(dy, product(y, 1 - y))


def _complex_tanh_grad(y: Value, dy: Value) -> Value:
    return product(dy, 1 - square(y))


def _complex_sqrt_grad(y: Value, dy: Value) -> Value:
    half, zero = dy.dtype.type(0.5), dy.dtype.type(0)
    return _zero_where(dy, product(dy, quotient(half, np.conj(y))), zero)


def _complex_rsqrt_grad(y: Value, dy: Value) -> Value:
    minus_half, zero = dy.dtype.type(-0.5), dy.dtype.type(0)
    conjugate = np.conj(y)
    slope = product(minus_half, square(conjugate))
    return _zero_where(dy, product(product(dy, conjugate), slope), zero)


def _complex_reciprocal_grad(y: Value, dy: Value) -> Value:
    return _zero_where(dy, product(-dy, square(np.conj(y))), dy.dtype.type(0))


_RECTIFIERS: Final[dict[str, Callable[[Kind], Kernel]]] = {"Relu": _relu, "Relu6": _relu6}
_ACTIVATIONS: Final[dict[str, MakeFormula]] = {
    "Elu": _elu,
    "Selu": _selu,
    "Softsign": _softsign,
}
_RECTIFIER_GRADS: Final[dict[str, Callable[[Kind], Kernel]]] = {
    "ReluGrad": _relu_grad,
    "Relu6Grad": _relu6_grad,
}
_GRADS: Final[dict[str, MakeFormula]] = {
    "EluGrad": _elu_grad,
    "SeluGrad": _selu_grad,
    "SoftplusGrad": _softplus_grad,
    "SoftsignGrad": _softsign_grad,
}
_GRADS_OF_OUTPUTS: Final[dict[str, tuple[MakeFormula, Kernel]]] = {
    "SigmoidGrad": (_sigmoid_grad, _complex_sigmoid_grad),
    "TanhGrad": (_tanh_grad, _complex_tanh_grad),
    "SqrtGrad": (_sqrt_grad, _complex_sqrt_grad),
    "RsqrtGrad": (_rsqrt_grad, _complex_rsqrt_grad),
    "ReciprocalGrad": (_reciprocal_grad, _complex_reciprocal_grad),
    "InvGrad": (_reciprocal_grad, _complex_reciprocal_grad),
}


@kernel(*_RECTIFIERS, types={"T": REALS})
def make_rectifier(attrs: Attrs) -> Kernel:
    """The number clipped to 0 and above, or to 0 and 6; NaN stays."""
    dtype = attrs.dtype("T")
    return in_c(attrs) or many_in_float32(_RECTIFIERS[attrs.op.name](dtype.numpy.type), dtype)


@kernel(*_ACTIVATIONS, types={"T": FLOATS})
def make_activation(attrs: Attrs) -> Kernel:
    """The activation function that the op is named after."""
    return in_c(attrs) or by_elements(formula(_ACTIVATIONS[attrs.op.name], attrs.dtype("T")))


@kernel("Softplus", types={"T": FLOATS})
def make_softplus(attrs: Attrs) -> Kernel:
    """log(1 + exp(x)), which is x where that is large and exp(x) where it is small."""
    dtype = attrs.dtype("T")
    return in_c(attrs) or by_elements(formula(partial(_softplus, _EPSILONS[dtype]), dtype))


@kernel("LeakyRelu", types={"T": REALS})
def make_leaky_relu(attrs: Attrs) -> Kernel:
    """The number where it is positive, alpha times it elsewhere."""
    alpha, dtype = attrs.float("alpha"), attrs.dtype("T")
    by_c = leaky_relu(alpha) if attrs.accelerate and dtype is dtypes.float32 else None
    if by_c is not None:
        return by_c
    leak = dtype.numpy.type(alpha)
    if alpha <= 1:
        return lambda x: np.maximum(x, leak * x)
    return lambda x: np.minimum(x, leak * x)


@kernel(*_RECTIFIER_GRADS, types={"T": REALS})
def make_rectifier_grad(attrs: Attrs) -> Kernel:
    """The gradient where the features are inside the range, 0 elsewhere."""
    dtype = attrs.dtype("T")
    compute = many_in_float32(_RECTIFIER_GRADS[attrs.op.name](dtype.numpy.type), dtype)
    return _same_shape(in_c(attrs) or by_elements(compute), attrs.op.name)


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
    compute = in_c(attrs) or by_elements(formula(_GRADS[attrs.op.name], attrs.dtype("T")))
    return _same_shape(compute, attrs.op.name)


@kernel(*_GRADS_OF_OUTPUTS, types={"T": FLOATS | COMPLEX})
def make_grad_of_output(attrs: Attrs) -> Kernel:
    """The gradient times the derivative, in terms of the function's value y."""
    (make, of_complex), dtype = _GRADS_OF_OUTPUTS[attrs.op.name], attrs.dtype("T")
    compute = of_complex if dtype.is_complex else formula(make, dtype)
    return _same_shape(in_c(attrs) or by_elements(compute), attrs.op.name)


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
