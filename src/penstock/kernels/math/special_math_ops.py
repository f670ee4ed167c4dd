"""Special functions, most of them from SciPy.

In:   arrays of one floating type, broadcast against each other.
Out:  an array of the same type.
Not:  imports SciPy only when a kernel is made that needs it.

The error function and the logarithm of gamma are in Python itself: without SciPy they are
computed number by number, fifty times more slowly; but not the error function in float32.  Some
others are in ``own_special``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value, as_value
from penstock.errors import UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.extras import require
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.c.functions import in_c
from penstock.kernels.math.error_function import erf, erfc
from penstock.kernels.math.own_special import FUNCTIONS
from penstock.kernels.narrow.precision import NARROW, in_float32
from penstock.kernels.values.arrays import shape_text

_WIDE: Final = frozenset({dtypes.float32, dtypes.float64})
#: Ops of one number that are one of SciPy's functions.
_UNARY: Final = {
    "Digamma": "psi",
    "Erfinv": "erfinv",
    "Ndtri": "ndtri",
    "Dawsn": "dawsn",
    "Expint": "expi",
    "Spence": "spence",
    "BesselI0": "i0",
    "BesselI0e": "i0e",
    "BesselI1": "i1",
    "BesselI1e": "i1e",
    "BesselJ0": "j0",
    "BesselJ1": "j1",
    "BesselK0": "k0",
    "BesselK0e": "k0e",
    "BesselK1": "k1",
    "BesselK1e": "k1e",
    "BesselY0": "y0",
    "BesselY1": "y1",
}
#: Ops of several numbers that are one of SciPy's functions.
_OF_SEVERAL: Final = {
    "Igamma": "gammainc",
    "Igammac": "gammaincc",
    "Zeta": "zeta",
    "Betainc": "betainc",
}
#: Where TensorFlow has a number of its own, or none: the condition and what stands there.
_EDGES: Final[dict[str, tuple[Callable[..., Value], float | Callable[..., Value]]]] = {
    "Digamma": (lambda x: x == 0, math.nan),
    "Expint": (lambda x: x < 0, math.nan),
    "BesselK0": (lambda x: x < 0, math.inf),
    "BesselK0e": (lambda x: x < 0, math.inf),
    "BesselK1": (lambda x: x < 0, math.inf),
    "BesselK1e": (lambda x: x < 0, math.inf),
    "BesselY0": (lambda x: x < 0, -math.inf),
    "BesselY1": (lambda x: x < 0, -math.inf),
    "Igamma": (lambda a, _: a == 0, lambda _, x: np.where(x == 0, 0.0, math.nan)),
    "Igammac": (lambda a, _: a == 0, math.nan),
    "Betainc": (lambda a, b, _: (a <= 0) | (b <= 0), math.nan),
}
#: Which of the pair that SciPy's ``fresnel`` returns.
_FRESNEL: Final = {"FresnelSin": 0, "FresnelCos": 1}


@kernel(*_UNARY, types={"T": FLOATS})
def make_special(attrs: Attrs) -> Kernel:
    """The special function that the op is named after."""
    op = attrs.op.name
    return _in_precision(_with_edge(op, _scipy(_UNARY[op])), attrs.dtype("T"))


@kernel(*_OF_SEVERAL, types={"T": _WIDE})
def make_special_of_several(attrs: Attrs) -> Kernel:
    """Incomplete gamma functions, Hurwitz' zeta function, incomplete beta function."""
    op = attrs.op.name
    compute = _in_precision(_with_edge(op, _scipy(_OF_SEVERAL[op])), attrs.dtype("T"))
    return _same_shape_or_scalar(compute) if op == "Betainc" else compute


def _with_edge(op: str, function: Kernel) -> Kernel:
    if op not in _EDGES:
        return function
    is_edge, value = _EDGES[op]
    there = value if callable(value) else lambda *_: value
    return lambda *inputs: as_value(np.where(is_edge(*inputs), there(*inputs), function(*inputs)))


def _same_shape_or_scalar(compute: Kernel) -> Kernel:
    """The kernel, which broadcasts nothing but scalars."""

    def checked(a: Value, b: Value, x: Value) -> Value:
        shapes = {name: v.shape for name, v in (("a", a), ("b", b), ("x", x)) if v.shape}
        if len(set(shapes.values())) > 1:
            listed = " vs. ".join(map(shape_text, shapes.values()))
            raise ValueError(f"Shapes of {' and '.join(shapes)} are inconsistent: {listed}")
        return compute(a, b, x)

    return checked


@kernel(*_FRESNEL, types={"T": _WIDE})
def make_fresnel(attrs: Attrs) -> Kernel:
    """Fresnel's integrals, of sin(pi t^2 / 2) or of the cosine."""
    fresnel, which = _scipy("fresnel"), _FRESNEL[attrs.op.name]
    return _in_precision(lambda x: fresnel(x)[which], attrs.dtype("T"))


def _scipy(name: str) -> Kernel:
    """SciPy's function; without SciPy, our own if there is one."""
    try:
        function: Kernel = getattr(require("scipy.special", "special"), name)
    except UnimplementedError:
        own = FUNCTIONS.get(name)
        if own is None:
            raise
        return own
    return function


def _in_precision(function: Kernel, dtype: DType) -> Kernel:
    if dtype in NARROW:
        return in_float32(function, dtype)
    numpy = dtype.numpy
    # Some of SciPy's functions have no float32 form and answer in float64.
    return lambda *inputs: as_value(function(*inputs).astype(numpy, copy=False))


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except ValueError:  # at zero and at the negative integers
        return math.inf


#: Functions that Python has as well: SciPy's name, and Python's own of one number.
_WITH_FALLBACK: Final[dict[str, tuple[str, Callable[[float], float]]]] = {
    "Erf": ("erf", math.erf),
    "Erfc": ("erfc", math.erfc),
    "Lgamma": ("gammaln", _lgamma),
}
#: Of float32 and what is narrower our own are faster than SciPy's.
_IN_FLOAT32: Final[dict[str, Kernel]] = {"erf": erf, "erfc": erfc}


@kernel(*_WITH_FALLBACK, types={"T": FLOATS})
def make_special_with_fallback(attrs: Attrs) -> Kernel:
    """Error function, its complement, or the logarithm of the absolute gamma function."""
    name, of_one = _WITH_FALLBACK[attrs.op.name]
    dtype = attrs.dtype("T")
    function = in_c(attrs)
    if function is not None:
        return function
    if name in _IN_FLOAT32 and dtype is not dtypes.float64:
        return _in_precision(_IN_FLOAT32[name], dtype)
    try:
        return _in_precision(_scipy(name), dtype)
    except UnimplementedError:
        return one_by_one(of_one, dtype)


def one_by_one(of_one: Callable[[float], float], dtype: DType) -> Kernel:
    """A function of Python's floats as a function of arrays."""
    of_objects = np.frompyfunc(of_one, 1, 1)
    numpy = dtype.numpy
    return lambda x: as_value(np.asarray(of_objects(x), np.float64).astype(numpy))


@kernel("Polygamma", types={"T": _WIDE})
def make_polygamma(attrs: Attrs) -> Kernel:
    """The derivative of the digamma function of order a; NaN unless a is a natural number."""
    psi, zeta, gamma = _scipy("psi"), _scipy("zeta"), _scipy("gamma")

    def polygamma(a: Value, x: Value) -> Value:
        order = np.asarray(a, np.float64)
        sign = np.where(order % 2 == 0, -1.0, 1.0)
        value = sign * gamma(order + 1) * zeta(order + 1, x)
        value = np.where(order == 0, psi(x), value)
        return np.where((order >= 0) & (order == np.floor(order)), value, np.nan)

    return _in_precision(polygamma, attrs.dtype("T"))
