"""The error function of float32 numbers and its complement, many at a time.

In:   arrays of float32.
Out:  erf, right to four units of the last digit; erfc, right to seven, however small it is.
Not:  no other precision.

erf(x) is the hyperbolic tangent of x * p(x * x), where p is smooth: a polynomial, fitted here
at the nodes of Chebyshev's, is as good as float32 is.  Beyond 4, where erf is 1 in float32, p
stays what it is there.

erfc(x) for x > 0 is exp(-x * x) / (1 + 2 x) * (1 + t q(t)), where q is smooth in t = x / (x + 2),
so that a polynomial will do for all x (after Shepherd and Laframboise, Mathematics of Computation
36, 1981); at 0 it is exactly 1, and for x < 0 what is left of 2.  The square is taken in two parts,
the first of which is exact: its rounding would be all of the error where erfc is small.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial, chebyshev

from penstock.core.values import Array, Value
from penstock.kernels.parallel.tiles import TileSizes, by_elements
from penstock.kernels.values.select_clip import choose

_END: Final = np.float32(4)
_DEGREE: Final = 7
_ROUNDS: Final = 4
#: Where erfc is zero in float32; where t is a half; the degree of q.
_NOTHING: Final = np.float32(11)
_MIDDLE: Final = np.float32(2)
_TAIL_DEGREE: Final = 8
_ONE: Final = np.float32(1)
_TWO: Final = np.float32(2)
#: The leading half of a float32's digits, whose square is exact.
_LEADING: Final = np.int32(-(1 << 12))


def erf(x: Value) -> Value:
    """The error function; of NaN, NaN."""
    if x.ndim == 0:
        return np.float32(math.erf(x))
    return _of_many(x)


def _of_portion(x: Any) -> Any:
    squares = np.square(x)
    # Not ``minimum``, which takes four times as long with a number.
    np.clip(squares, 0, _END * _END, out=squares)
    argument = _polynomial(_coefficients(), squares)
    argument *= x
    return np.tanh(argument, out=argument)


_of_many: Final = by_elements(_of_portion)


def erfc(x: Value) -> Value:
    """One minus the error function; of NaN, NaN."""
    if x.ndim == 0:
        return np.float32(math.erfc(x))
    return _rest_of_many(x)


def _rest_of_portion(x: Any) -> Any:
    size = np.abs(x)
    np.clip(size, 0, _NOTHING, out=size)
    below = size + _MIDDLE
    place = size / below
    rest = _polynomial(_tail_coefficients(), place)
    rest *= place
    rest += _ONE
    np.add(size, size, out=below)
    below += _ONE
    rest /= below
    for exponent in _negative_square(size):
        rest *= np.exp(exponent, out=exponent)
    return choose(x < 0, _TWO - rest, rest)


def _negative_square(x: Any) -> tuple[Any, Any]:
    """-x * x as two numbers: that of the leading digits, which is exact, and what is missing."""
    leading = (x.view(np.int32) & _LEADING).view(np.float32)
    missing = leading - x
    missing *= leading + x
    np.square(leading, out=leading)
    return np.negative(leading, out=leading), missing


#: It takes six arrays at a time: of more elements, they would leave the cache.
_rest_of_many: Final = by_elements(_rest_of_portion, TileSizes(many=1 << 17, portion=1 << 16))


def _polynomial(coefficients: tuple[np.float32, ...], x: Any) -> Any:
    last, *others, first = coefficients
    found = x * last
    for coefficient in others:
        found += coefficient
        found *= x
    found += first
    return found


@functools.cache
def _coefficients() -> tuple[np.float32, ...]:
    """Those of p, the highest power first."""
    nodes = chebyshev.chebpts1(400)
    roots = np.sqrt((nodes + 1) / 2) * float(_END)
    values = np.array([math.erf(x) for x in roots.tolist()])
    rests = np.array([math.erfc(x) for x in roots.tolist()])
    wanted = 0.5 * np.log((1 + values) / rests) / roots
    # What an error of p is worth: where the tangent is flat, next to nothing.
    worth = roots * rests * (1 + values) / values
    return _fitted(roots * roots, wanted, worth, (0, float(_END) ** 2), _DEGREE)


@functools.cache
def _tail_coefficients() -> tuple[np.float32, ...]:
    """Those of q, the highest power first."""
    middle, end = float(_MIDDLE), float(_NOTHING) - 1
    limits = 0.0, end / (end + middle)
    places = (chebyshev.chebpts1(400) + 1) / 2 * limits[1]
    x = middle * places / (1 - places)
    rests = np.array([math.erfc(each) for each in x.tolist()])
    whole = (1 + 2 * x) * np.exp(x * x) * rests
    return _fitted(places, (whole - 1) / places, places / whole, limits, _TAIL_DEGREE)


def _fitted(
    at: Array, wanted: Array, worth: Array, limits: tuple[float, float], degree: int
) -> tuple[np.float32, ...]:
    """The polynomial whose largest error, times what it is worth, is least (Lawson, 1961)."""
    weights = worth
    for _ in range(_ROUNDS):  # what is worst counts more the next time
        found = Chebyshev.fit(at, wanted, degree, domain=limits, w=weights)
        weights = weights * np.sqrt(np.abs(found(at) - wanted) * worth)
        weights /= weights.max()
    best = Chebyshev.fit(at, wanted, degree, domain=limits, w=weights)
    powers = best.convert(kind=Polynomial, domain=[-1, 1], window=[-1, 1])
    return tuple(np.float32(c) for c in powers.coef[::-1])
