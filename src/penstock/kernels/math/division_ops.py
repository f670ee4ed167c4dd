"""Quotients and remainders.

In:   dividend and divisor of one element type, broadcast against each other.
Out:  quotient or remainder of the same type, rounded down or towards zero.
Not:  no plain arithmetic (cwise_ops).

Integers are not divided by zero: that is an error, unless the result has no element.
Floats follow IEEE, so their quotient is infinite and their remainder is NaN.
"""

from __future__ import annotations

import operator
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import remembering
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX, FLOATS, INTEGERS, NUMBERS, REALS
from penstock.kernels.narrow.precision import many_in_float32
from penstock.kernels.values.complex_arithmetic import quotient


def _truncated_quotient(x: Value, y: Value) -> Value:
    return (x - np.fmod(x, y)) // y


def _floor_of_quotient(x: Value, y: Value) -> Value:
    # numpy's own floor division derives the quotient from the remainder: 9 for 1 / 0.1,
    # where TensorFlow has 10.
    return np.floor(x / y)


def _truncation_of_quotient(x: Value, y: Value) -> Value:
    return np.trunc(x / y)


def _floored_remainder(x: Value, y: Value) -> Value:
    # Where the remainder is zero, it has the sign of y in numpy, and of x in TensorFlow.
    remainder = x % y
    if remainder.ndim == 0:
        return remainder or np.copysign(remainder, x)
    if np.count_nonzero(remainder) < remainder.size:
        np.copysign(remainder, x, out=remainder, where=remainder == 0)
    return remainder


#: By op: what it does to integers, and to floats.
_DIVISIONS: Final[dict[str, tuple[Kernel, Kernel]]] = {
    "Div": (_truncated_quotient, operator.truediv),
    "FloorDiv": (operator.floordiv, _floor_of_quotient),
    "TruncateDiv": (_truncated_quotient, _truncation_of_quotient),
    "FloorMod": (operator.mod, _floored_remainder),
    "Mod": (np.fmod, np.fmod),
    "TruncateMod": (np.fmod, np.fmod),
}

_WIDE: Final = frozenset({dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64})


@kernel("FloorDiv", "TruncateDiv", "FloorMod", types={"T": REALS})
@kernel("Mod", "TruncateMod", types={"T": _WIDE})
@kernel("Div", types={"T": NUMBERS})
def make_division(attrs: Attrs) -> Kernel:
    """Quotient or remainder, rounded down (Floor) or towards zero (the others)."""
    of_integers, of_floats = _DIVISIONS[attrs.op.name]
    dtype = attrs.dtype("T")
    if dtype in INTEGERS:
        return _refusing_zero(of_integers, dtype.numpy.type)
    return quotient if dtype.is_complex else of_floats


def _refusing_zero(divide: Kernel, kind: type) -> Kernel:
    has_no_zero = remembering(_has_no_zero)

    # Operators are written out: a call of the function that does the same takes 20 ns more.
    # A scalar is its own truth; asking numpy for it takes a microsecond.
    def floor_div(x: Value, y: Value) -> Value:
        if not (y if type(y) is kind else has_no_zero(y)):
            _check_empty(x, y)
        return x // y

    def floor_mod(x: Value, y: Value) -> Value:
        if not (y if type(y) is kind else has_no_zero(y)):
            _check_empty(x, y)
        return x % y

    def refusing_zero(x: Value, y: Value) -> Value:
        if not (y if type(y) is kind else has_no_zero(y)):
            _check_empty(x, y)
        return divide(x, y)

    written_out = {operator.floordiv: floor_div, operator.mod: floor_mod}
    return written_out.get(divide, refusing_zero)


def _has_no_zero(y: Value) -> bool:
    return bool(np.logical_and.reduce(y, None))


def _check_empty(x: Value, y: Value) -> None:
    if 0 not in np.broadcast_shapes(shape_of(x), shape_of(y)):
        raise ZeroDivisionError("Integer division by zero")


@kernel("RealDiv", types={"T": FLOATS | COMPLEX})
def make_real_div(attrs: Attrs) -> Kernel:
    """The quotient x / y."""
    dtype = attrs.dtype("T")
    return quotient if dtype.is_complex else many_in_float32(operator.truediv, dtype)


@kernel("DivNoNan", types={"T": FLOATS | COMPLEX})
def make_div_no_nan(attrs: Attrs) -> Kernel:
    """The quotient x / y, and 0 where y is 0."""
    divide = quotient if attrs.dtype("T").is_complex else operator.truediv

    def div_no_nan(x: Value, y: Value) -> Value:
        result = divide(x, y)
        if np.count_nonzero(y) == y.size:
            return result
        return np.where(y == 0, result.dtype.type(0), result)[()]

    return div_no_nan
