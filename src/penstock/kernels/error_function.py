"""The error function of float32 numbers, many at a time.

In:   arrays of float32.
Out:  their error function, right to three units of the last digit.
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
from numpy.polynomial import chebyshev

from penstock.core.values import Value
from penstock.kernels.portions import by_elements

_END: Final = np.float32(4)
_DEGREE: Final = 8


def erf(x: Value) -> Value:
    """The error function; of NaN, NaN."""
    if x.ndim == 0:
        return np.float32(math.erf(x))
    return _of_many(x)


def _of_portion(x: Any) -> Any:
    squares = np.square(x)
    np.minimum(squares, _END * _END, out=squares)
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
    weights = roots * rests * (1 + values) / values
    limits = [0, float(_END) ** 2]
    fitted = chebyshev.Chebyshev.fit(roots * roots, wanted, _DEGREE, domain=limits, w=weights)
    powers = fitted.convert(kind=np.polynomial.Polynomial, domain=[-1, 1], window=[-1, 1])
    return tuple(np.float32(c) for c in powers.coef[::-1])
