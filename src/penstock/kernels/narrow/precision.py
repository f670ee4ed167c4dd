"""Formulas in the precision that TensorFlow computes them in.

In:   a maker of a formula, which gets what makes its constants and what rounds its steps; the
      element type.
Out:  a function over arrays of that element type.
Not:  registers nothing.

float16 and bfloat16 are arithmetic of float32 whose result is rounded, after each step: TensorFlow
computes a formula's steps that way one by one, while a function such as a matrix product or an
error function is one step to it.  A formula's constants are numpy scalars of its own type, since
before numpy 2 a Python number beside a numpy scalar makes a float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value
from penstock.kernels.narrow.conversions import narrowing, widening

#: Makes a formula's constants out of Python's numbers, as a scalar type such as ``np.float32``.
Kind: TypeAlias = Callable[..., Any]
#: Rounds what a formula's step gives; the last step need not be rounded.
Step: TypeAlias = Callable[[Value], Value]
#: Given both, the formula.
MakeFormula: TypeAlias = Callable[[Kind, Step], Callable[..., Value]]

#: Of fewer elements, numpy's own loops over narrow types take no longer.
_MANY: Final = 4096
#: Types whose formulas are computed in float32.
NARROW: Final[frozenset[DType]] = frozenset({dtypes.float16, dtypes.bfloat16})


def exactly(value: Value) -> Value:
    """What a step gives, where nothing has to be rounded."""
    return value


def formula(make: MakeFormula, dtype: DType) -> Callable[..., Value]:
    """The formula for arrays of ``dtype``, rounded step by step if that is narrow."""
    kind = dtype.numpy.type
    if dtype not in NARROW:
        return make(kind, exactly)
    return in_float32(make(lambda number: np.float32(kind(number)), _rounding(dtype)), dtype)


def _rounding(dtype: DType) -> Step:
    """What rounds numbers of float32 to those that a narrow type has."""
    narrow, widen = narrowing(dtype), widening(dtype)
    return lambda x: widen(narrow(x))


def in_float32(function: Callable[..., Value], dtype: DType) -> Callable[..., Value]:
    """The function with its inputs widened to float32 and its result rounded to ``dtype``."""
    narrow, widen = narrowing(dtype), widening(dtype)
    return lambda *inputs: narrow(function(*[widen(x) for x in inputs]))


def many_in_float32(function: Callable[..., Value], dtype: DType) -> Callable[..., Value]:
    """The same of many numbers of a narrow type; of others it is the function itself.

    For one operation, such as a sum or a quotient: to round twice gives what to round once does,
    since float32 has more than twice as many digits (Figueroa, When is double rounding innocuous?,
    1995).
    """
    if dtype not in NARROW:
        return function
    of_many = in_float32(function, dtype)

    def of_any(*inputs: Value) -> Value:
        is_many = any(np.size(x) >= _MANY for x in inputs)
        return of_many(*inputs) if is_many else function(*inputs)

    return of_any
