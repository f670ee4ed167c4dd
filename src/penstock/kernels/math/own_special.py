"""Special functions in float64 without SciPy, by its names for them.

In:   arrays of float64, broadcast against each other.
Out:  an array of float64.
Not:  registers no kernel; who has SciPy is not served here.

``docs/dependencies.md`` has the errors that were measured.  Sources: NIST Digital Library of
Mathematical Functions (DLMF), and M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.errors import UnimplementedError

#: Terms that are added before the asymptotic expansions begin, and terms of these.
_BEFORE: Final = 12
_TERMS: Final = 12
#: Where digamma is zero, in two parts; near it a power series keeps the digits.
_ROOT: Final = (1.4616321449683622, 9.549995429965697e-17)
_NEAR_ROOT: Final = 0.3
_POWERS: Final = 34
#: Larger shape parameters take too many terms.
_LARGEST_SHAPE: Final = 1e6
_LEAST: Final = 1e-300
_EPSILON: Final = 2.3e-16
_MOST_STEPS: Final = 100_000


@functools.cache
def _bernoulli() -> tuple[float, ...]:
    """B(2), B(4), … by their recurrence (DLMF 24.5.3)."""
    found = [Fraction(1)]
    for n in range(1, 2 * _TERMS + 1):
        total = sum((math.comb(n + 1, k) * found[k] for k in range(n)), Fraction(0))
        found.append(-total / (n + 1))
    return tuple(float(found[n]) for n in range(2, 2 * _TERMS + 1, 2))


# -- zeta and digamma --------------------------------------------------------------------


def zeta(s: Any, q: Any) -> Array:
    """Hurwitz' zeta function: Euler and Maclaurin's formula (DLMF 25.11.5, 25.11.28).

    For q < 0 only whole s mean something; the terms below zero are the difference of two such
    functions of positive numbers.
    """
    s, q = np.broadcast_arrays(np.float64(s), np.float64(q))
    with np.errstate(all="ignore"):
        steps = np.where(q < 0, -np.floor(q), 0)
        rest = q + steps
        found = _zeta_of_positive(s, np.where(rest == 0, np.nan, rest))
        is_odd = np.where(s % 2 == 0, 1.0, -1.0)
        below = _zeta_of_positive(s, 1 - rest) - _zeta_of_positive(s, 1 - rest + steps)
        found = np.where(steps > 0, found + is_odd * below, found)
        found = np.where((q < 0) & (s != np.floor(s)), np.nan, found)
        found = np.where((q <= 0) & (q == np.floor(q)), np.inf, found)
    return np.where(s < 1, np.nan, np.where(s == 1, np.inf, found))


def _zeta_of_positive(s: Array, q: Array) -> Array:
    total = sum(((q + k) ** -s for k in range(_BEFORE)), np.zeros(s.shape))
    at = q + _BEFORE
    power = at**-s
    total = total + power * at / (s - 1) + power / 2
    factor, falling = s.copy(), power / at
    for n, number in enumerate(_bernoulli(), start=1):
        total = total + number / math.factorial(2 * n) * factor * falling
        factor = factor * (s + 2 * n - 1) * (s + 2 * n)
        falling = falling / at**2
    return np.where(np.isinf(at), 0.0, total)


@functools.cache
def _powers_at_root() -> tuple[float, ...]:
    """Coefficients of digamma's power series at its zero (DLMF 25.11.12), highest first."""
    orders = np.arange(_POWERS, 0, -1)
    signs = np.where(orders % 2 == 1, 1.0, -1.0)
    return tuple((signs * zeta(orders + 1.0, np.full(_POWERS, _ROOT[0]))).tolist())


def psi(x: Any) -> Array:
    """Digamma: recurrence, then the asymptotic expansion (DLMF 5.5.2, 5.11.2, 5.5.4).

    Near its positive zero a power series, so that the error is relative there, too.
    """
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        positive = np.where(x > 0, x, 1 - x)
        at = positive + np.where(positive < _BEFORE, _BEFORE, 0)
        before = sum((1 / (positive + k) for k in range(_BEFORE)), np.zeros(x.shape))
        inverse = 1 / at**2
        series = np.zeros(x.shape)
        for n in range(_TERMS, 0, -1):
            series = (series + _bernoulli()[n - 1] / (2 * n)) * inverse
        found = np.log(at) - 0.5 / at - series - np.where(positive < _BEFORE, before, 0)
        distance = (positive - _ROOT[0]) - _ROOT[1]
        near = np.zeros(x.shape)
        for coefficient in _powers_at_root():
            near = (near + coefficient) * distance
        found = np.where(np.abs(distance) < _NEAR_ROOT, near, found)
        # The tangent of what is left of whole numbers, which is exact.
        part = x - np.round(x)
        found = np.where(x > 0, found, found - np.pi / np.tan(np.pi * part))
        found = np.where((x < 0) & (x == np.floor(x)), np.nan, found)
        return np.where(np.isposinf(x), np.inf, np.where(np.isneginf(x), np.nan, found))


# -- the normal distribution's inverse -------------------------------------------------------

#: Numerators and denominators of Wichura's three rational functions, highest powers first.
_CENTRAL: Final = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
_OUTER: Final = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR: Final = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def ndtri(p: Any) -> Array:
    """The inverse of the normal distribution function (AS 241)."""
    p = np.asarray(p, np.float64)
    return _quantile(p - 0.5, np.minimum(p, 1 - p))


def erfinv(x: Any) -> Array:
    """The inverse of the error function: that of the normal distribution, by another scale."""
    x = np.asarray(x, np.float64)
    return _quantile(x / 2, (1 - np.abs(x)) / 2) / math.sqrt(2)


def _quantile(middle: Array, tail: Array) -> Array:
    """The quantile by the distance from a half, and by that from the nearer end."""
    with np.errstate(all="ignore"):
        central = middle * _ratio(_CENTRAL, 0.180625 - middle * middle)
        depth = np.sqrt(-np.log(tail))
        outer = np.where(depth <= 5, _ratio(_OUTER, depth - 1.6), _ratio(_FAR, depth - 5))
        found = np.where(np.abs(middle) <= 0.425, central, np.copysign(outer, middle))
        found = np.where(tail == 0, np.copysign(np.inf, middle), found)
        return np.where(tail < 0, np.nan, found)


def _ratio(parts: Any, x: Array) -> Array:
    numerator, denominator = (np.polyval(np.array(part), x) for part in parts)
    ratio: Array = numerator / denominator
    return ratio


# -- incomplete gamma functions --------------------------------------------------------------


def gammainc(a: Any, x: Any) -> Array:
    """P(a, x): its series below a + 1 (DLMF 8.11.4), else what Q leaves."""
    return _incomplete(a, x)[0]


def gammaincc(a: Any, x: Any) -> Array:
    """Q(a, x): its continued fraction above a + 1 (DLMF 8.9.2), else what P leaves."""
    return _incomplete(a, x)[1]


def _incomplete(a: Any, x: Any) -> tuple[Array, Array]:
    a, x = np.broadcast_arrays(np.float64(a), np.float64(x))
    if np.any((a > _LARGEST_SHAPE) & np.isfinite(a)):
        raise UnimplementedError(
            f"Incomplete gamma functions of shapes above {_LARGEST_SHAPE:g} need scipy, which is "
            "not installed",
            next_step="pip install 'penstock[special]'",
        )
    is_plain = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    shape, point = np.where(is_plain, a, 1.0), np.where(is_plain, x, 1.0)
    with np.errstate(all="ignore"):
        scale, is_below = _scale(shape, point), point < shape + 1
        lower = scale * _series(shape, np.where(is_below, point, shape / 2))
        upper = scale * _fraction(shape, np.where(is_below, shape + 2, point))
    low, high = np.where(is_below, lower, 1 - upper), np.where(is_below, 1 - lower, upper)
    is_none = (a < 0) | (x < 0) | np.isnan(a) | np.isnan(x) | (np.isinf(a) & np.isinf(x))
    # At the ends all of the distribution is on one side.
    at_end = np.where(np.isinf(a) | (x == 0), 0.0, 1.0)
    low = np.where(is_plain, low, np.where(is_none | ((a == 0) & (x == 0)), np.nan, at_end))
    high = np.where(is_plain, high, np.where(is_none | ((a == 0) & (x == 0)), np.nan, 1 - at_end))
    return low, high


def _scale(a: Array, x: Array) -> Array:
    """x**a exp(-x) / gamma(a + 1); for large a by Stirling's series (DLMF 5.11.1)."""
    part = (x - a) / a
    near = np.log1p(part) - part
    small = part**2 * np.polyval([(-1.0) ** (k + 1) / k for k in range(30, 1, -1)], part)
    near = np.where(np.abs(part) < 0.2, small, near)
    rest = sum(
        (number / (2 * n * (2 * n - 1)) / a ** (2 * n - 1)
         for n, number in enumerate(_bernoulli()[:8], start=1)), np.zeros(a.shape),
    )  # fmt: skip
    large = np.exp(a * near - rest) / np.sqrt(2 * np.pi * a)
    little = np.minimum(a, 50.0)
    plain = x**little * np.exp(-x) / gamma(little + 1)
    return np.where(a > 12, large, plain)


def _series(a: Array, x: Array) -> Array:
    total = term = np.ones(a.shape)
    at = a
    while True:
        at = at + 1
        term = term * x / at
        total = total + term
        if not np.any(term > total * 1e-17):
            return total


def _fraction(a: Array, x: Array) -> Array:
    """The continued fraction of Q times a, by Lentz' method (DLMF 3.10(iii))."""
    b = x + 1 - a
    c, d = np.full(a.shape, 1 / _LEAST), 1 / b
    value, n = d, 0
    is_going = np.ones(a.shape, np.bool_)
    while np.any(is_going) and n < _MOST_STEPS:
        n += 1
        number = -n * (n - a)
        b = b + 2
        d = number * d + b
        c = b + number / c
        d = 1 / np.where(np.abs(d) < _LEAST, _LEAST, d)
        c = np.where(np.abs(c) < _LEAST, _LEAST, c)
        change = c * d
        # What has come to its end stays: each more step would add an error.
        value = np.where(is_going, value * change, value)
        is_going = is_going & (np.abs(change - 1) > _EPSILON)
    return value * a


def gamma(x: Any) -> Array:
    """Gamma of positive numbers, one by one, as Python has it; infinite where it is too large."""
    return np.asarray(np.frompyfunc(_gamma, 1, 1)(np.asarray(x, np.float64)), np.float64)


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:  # at zero and at the negative integers
        return math.nan


#: By SciPy's names.
FUNCTIONS: Final[Mapping[str, Callable[..., Array]]] = {
    "psi": psi, "zeta": zeta, "ndtri": ndtri, "erfinv": erfinv, "gammainc": gammainc,
    "gammaincc": gammaincc, "gamma": gamma,
}  # fmt: skip
