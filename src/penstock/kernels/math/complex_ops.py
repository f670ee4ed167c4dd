"""Complex numbers and their parts.

In:   real or complex arrays.
Out:  the numbers made of two parts, or one part, or the conjugates.
Not:  no arithmetic (cwise_ops).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value, as_value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX


@kernel("Complex", types={"T": {dtypes.float32}, "Tout": {dtypes.complex64}})
@kernel("Complex", types={"T": {dtypes.float64}, "Tout": {dtypes.complex128}})
def make_complex(attrs: Attrs) -> Kernel:
    """The numbers with the given real and imaginary parts, which are broadcast."""
    target: np.dtype[Any] = attrs.dtype("Tout").numpy

    def combine(real: Value, imag: Value) -> Value:
        out = np.empty(np.broadcast_shapes(real.shape, imag.shape), target)
        out.real = real
        out.imag = imag
        return as_value(out)

    return combine


@kernel("Real", "Imag", "Angle", types={"T": {dtypes.complex64}, "Tout": {dtypes.float32}})
@kernel("Real", "Imag", "Angle", types={"T": {dtypes.complex128}, "Tout": {dtypes.float64}})
def make_part(attrs: Attrs) -> Kernel:
    """The real part, the imaginary part, or the angle in the plane."""
    if attrs.op.name == "Angle":
        return np.angle
    return operator.attrgetter(attrs.op.name.lower())


@kernel("ComplexAbs", types={"T": COMPLEX})
def make_complex_abs(_: Attrs) -> Kernel:
    """The distance from zero."""
    return operator.abs


@kernel("Conj", types={"T": COMPLEX})
def make_conj(_: Attrs) -> Kernel:
    """The complex conjugate."""
    return np.conj
