"""The op ``Polynomial``: a polynomial of each element, with the coefficients in an attribute."""

from __future__ import annotations

import numpy as np

import penstock as ps
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel

ps.register_op(
    "Polynomial(x: T) -> (y: T) [coefficients: list(float) >= 1, T: type{float32 float64}]"
)


@ps.kernel("Polynomial")
def make_polynomial(attrs: Attrs) -> Kernel:
    """c0 + c1 x + c2 x² + …, by Horner's rule."""
    number = attrs.dtype("T").numpy.type
    first, *others = [number(c) for c in reversed(attrs.list("coefficients"))]

    def polynomial(x):  # type: ignore[no-untyped-def]
        y = np.full_like(x, first)
        for coefficient in others:
            y = y * x + coefficient
        return y

    return polynomial
