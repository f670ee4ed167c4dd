"""The error function of float32 numbers, many at a time.

In:   arrays of float32.
Out:  their error function, right to four units of the last digit.
Not:  no other precision.

erf(x) is the hyperbolic tangent of x * p(x * x), where p is smooth: a polynomial, fitted here
at the nodes of Chebyshev's, is as good as float32 is.  Beyond 4, where erf is 1 in float32, p
stays what it is there.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial, chebyshev

from penstock.core.values import Array, Value
from penstock.kernels.parallel.tiles import by_elements

_END: Final = np.float32(4)
_DEGREE: Final = 7
_ROUNDS: Final = 4


def erf(x: Value) -> Value:
    """The error function; of NaN, NaN."""
    if x.ndim == 0:
        return np.float32(math.erf(x))
    return _of_many(x)


def _of_portion(x: Any) -> Any:
    squares = np.square(x)
    # Not ``minimum``, which takes four times as long with a number.
    np.clip(squares, 0, _END * _END, out=squares)
    last, *others, first = _coefficients()
    argument = squares * last
    for coefficient in others:
        argument += coefficient
        argument *= squares
    argument += first
    argument *= x
    return np.tanh(argument, out=argument)


_of_many: Final = by_elements(_of_portion)


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
    powers = _fitted(roots * roots, wanted, worth).convert(
        kind=Polynomial, domain=[-1, 1], window=[-1, 1]
    )
    return tuple(np.float32(c) for c in powers.coef[::-1])


def _fitted(squares: Array, wanted: Array, worth: Array) -> Any:
    """The polynomial whose largest error, times what it is worth, is least (Lawson, 1961)."""
    weights, limits = worth, [0, float(_END) ** 2]
    for _ in range(_ROUNDS):  # what is worst counts more the next time
        found = Chebyshev.fit(squares, wanted, _DEGREE, domain=limits, w=weights)
        weights = weights * np.sqrt(np.abs(found(squares) - wanted) * worth)
        weights /= weights.max()
    return Chebyshev.fit(squares, wanted, _DEGREE, domain=limits, w=weights)
