"""Functions that are formulas of several steps.

In:   arrays and numpy scalars of one floating or complex type, broadcast against each other.
Out:  an array (a scalar, if all inputs are) of the same type.
Not:  no activation functions of networks alone, and no gradients (activation_ops).

Products with a logarithm or a quotient are 0 where their first factor is, whatever the second.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.values import Value, freeze
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX, FLOATS
from penstock.kernels.c.functions import in_c
from penstock.kernels.narrow.precision import (
    NARROW,
    Kind,
    MakeFormula,
    Step,
    exactly,
    formula,
    in_float32,
)
from penstock.kernels.values.complex_arithmetic import product, quotient, reciprocal

_FLOATS_AND_COMPLEX: Final = FLOATS | COMPLEX
#: Numbers of float16 or bfloat16 that TensorFlow takes at a time.
_NARROW_AT_ONCE: Final = 8


def _rsqrt(kind: Kind, step: Step) -> Kernel:
    one = kind(1)

    def rsqrt(x: Value) -> Value:
        root = step(np.sqrt(x))
        return np.reciprocal(root, root) if type(root) is np.ndarray else one / root

    return rsqrt


def _narrow_rsqrt(dtype: DType) -> Kernel:
    """Rounded once where TensorFlow takes several numbers at a time, else the root, too."""
    of_many, of_few = in_float32(_rsqrt(np.float32, exactly), dtype), formula(_rsqrt, dtype)

    def compute(x: Value) -> Value:
        left_over = x.size % _NARROW_AT_ONCE
        if left_over == x.size:
            return of_few(x)
        result = of_many(x)
        if left_over:
            result.reshape(-1)[-left_over:] = of_few(x.reshape(-1)[-left_over:])
        return result

    return compute


def _complex_rsqrt(x: Value) -> Value:
    root, kind = np.sqrt(x), x.dtype.type
    edge = np.where(np.isinf(root), kind(0), kind(complex(math.inf, math.nan)))
    return np.where(np.isinf(root) | (root == 0), edge, reciprocal(root))[()]


def _sigmoid(kind: Kind) -> Kernel:
    # To an array, a scalar is added in twice the time that an array of rank 0 takes.
    one, one_array = kind(1), freeze(np.ones((), kind))
    negative, exp, add, divide = np.negative, np.exp, np.add, np.divide

    def of_any(x: Value) -> Value:
        return one / (one + exp(-x))

    def sigmoid(x: Value) -> Value:
        if type(x) is kind:
            return one / (one + exp(-x))
        result = negative(x)
        if type(result) is kind:  # an array of rank 0
            return of_any(x)
        exp(result, result)
        add(result, one_array, result)
        return divide(one_array, result, result)  # a sixth faster than the reciprocal

    return sigmoid


def _narrow_sigmoid(kind: Kind, step: Step) -> Kernel:
    one, infinity = kind(1), kind(math.inf)

    def sigmoid(x: Value) -> Value:
        power = step(np.exp(x))
        return np.where(power == infinity, one, power / step(one + power))[()]

    return sigmoid


def _complex_sigmoid(x: Value) -> Value:
    power = np.exp(x)
    return np.where(x.real == math.inf, x.dtype.type(1), quotient(power, 1 + power))[()]


@kernel("Rsqrt", types={"T": _FLOATS_AND_COMPLEX})
def make_rsqrt(attrs: Attrs) -> Kernel:
    """1 / sqrt(x)."""
    dtype = attrs.dtype("T")
    if dtype.is_complex:
        return _complex_rsqrt
    return _narrow_rsqrt(dtype) if dtype in NARROW else formula(_rsqrt, dtype)


@kernel("Sigmoid", types={"T": _FLOATS_AND_COMPLEX})
def make_sigmoid(attrs: Attrs) -> Kernel:
    """1 / (1 + exp(-x)), or what is the same, exp(x) / (1 + exp(x))."""
    dtype = attrs.dtype("T")
    if dtype.is_complex:
        return _complex_sigmoid
    if dtype in NARROW:
        return formula(_narrow_sigmoid, dtype)
    return in_c(attrs) or _sigmoid(dtype.numpy.type)


def _xlogy(_: Kind, step: Step) -> Kernel:
    return lambda x, y: _where_zero(x, x, x * step(np.log(y)))


def _xlog1py(_: Kind, step: Step) -> Kernel:
    return lambda x, y: _where_zero(x, x, x * step(np.log1p(y)))


def _xdivy(_: Kind, _step: Step) -> Kernel:
    return lambda x, y: _where_zero(x, x, x / y)


def _mul_no_nan(kind: Kind, _: Step) -> Kernel:
    zero = kind(0)
    return lambda x, y: _where_zero(y, zero, x * y)


def _where_zero(factor: Value, zero: Value, product_of_it: Value) -> Value:
    chosen: Any = np.where(factor == 0, zero, product_of_it)
    return chosen[()]


_ZERO_AT_ZERO: Final[dict[str, tuple[MakeFormula, Kernel]]] = {
    "Xlogy": (_xlogy, lambda x, y: _where_zero(x, x, product(x, np.log(y)))),
    "Xlog1py": (_xlog1py, lambda x, y: _where_zero(x, x, product(x, np.log1p(y)))),
    "Xdivy": (_xdivy, lambda x, y: _where_zero(x, x, quotient(x, y))),
    "MulNoNan": (_mul_no_nan, lambda x, y: _where_zero(y, y.dtype.type(0), product(x, y))),
}


@kernel(*_ZERO_AT_ZERO, types={"T": _FLOATS_AND_COMPLEX})
def make_zero_at_zero(attrs: Attrs) -> Kernel:
    """The products x log(y), x log(1 + y), x / y, 0 where x is; or x y, 0 where y is."""
    (make, of_complex), dtype = _ZERO_AT_ZERO[attrs.op.name], attrs.dtype("T")
    return of_complex if dtype.is_complex else formula(make, dtype)
