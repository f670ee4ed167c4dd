"""Derivatives by the shape parameter of the gamma distribution.

In:   the shape parameter and a point, of one type, broadcast against each other.
Out:  the derivative of the distribution function, or of a sample.
Not:  no derivative by the point itself, which is the density.

There is no closed form.  A five-point difference quotient of SciPy's incomplete gamma
functions, with a step of a small part of the scale on which they change, is right to nine
digits.  Above the mean the complement is taken, which keeps its digits in the tail.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.extras import require
from penstock.kernels.api.registry import Kernel, kernel

_WIDE = frozenset({dtypes.float32, dtypes.float64})
#: Steps from the middle and weights of the five-point formula for the first derivative.
_STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


@kernel("IgammaGradA", types={"T": _WIDE})
def make_igamma_grad_a(attrs: Attrs) -> Kernel:
    """The derivative by a of the regularised lower incomplete gamma function P(a, x)."""
    special: Any = require("scipy.special", "special")
    numpy = attrs.dtype("T").numpy

    def igamma_grad_a(a: Value, x: Value) -> Value:
        slope = _slope(special, np.asarray(a, np.float64), np.asarray(x, np.float64))
        return as_value(slope.astype(numpy))

    return igamma_grad_a


@kernel("RandomGammaGrad", types={"T": _WIDE})
def make_random_gamma_grad(attrs: Attrs) -> Kernel:
    """The derivative of a gamma sample by its shape parameter: -(dP / da) / density."""
    special: Any = require("scipy.special", "special")
    numpy = attrs.dtype("T").numpy

    def random_gamma_grad(alpha: Value, sample: Value) -> Value:
        a, x = np.asarray(alpha, np.float64), np.asarray(sample, np.float64)
        log_density = (a - 1) * np.log(x) - x - special.gammaln(a)
        return as_value((-_slope(special, a, x) / np.exp(log_density)).astype(numpy))

    return random_gamma_grad


def _slope(special: Any, a: Array, x: Array) -> Array:
    step = np.minimum(a, np.sqrt(a)) / 300
    lower, upper = np.zeros(()), np.zeros(())
    for places, weight in _STENCIL:
        lower = lower + weight * special.gammainc(a + places * step, x)
        upper = upper + weight * special.gammaincc(a + places * step, x)
    slope = np.where(x < a, lower, -upper) / step
    return np.where((a > 0) & (x >= 0), slope, np.nan)
