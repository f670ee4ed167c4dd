"""Formulas in the precision that TensorFlow computes them in.

In:   a maker of a formula, which gets the scalar type of its constants; the element type.
Out:  a function over arrays of that element type.
Not:  registers nothing.

float16 and bfloat16 have too few digits for a formula of several steps: it is computed in
float32 and rounded once, at the end.  A formula's constants are numpy scalars of its own
type, since before numpy 2 a Python number beside a numpy scalar makes a float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value
from penstock.kernels.half_floats import from_half, to_half

#: Given a scalar type such as ``np.float32``, the formula for arrays of that type.
MakeFormula: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Value]]

#: Types whose formulas are computed in float32.
NARROW: Final[frozenset[DType]] = frozenset({dtypes.float16, dtypes.bfloat16})


def formula(make: MakeFormula, dtype: DType) -> Callable[..., Value]:
    """The formula for arrays of ``dtype``, in float32 if that is narrow."""
    if dtype in NARROW:
        return in_float32(make(np.float32), dtype)
    return make(dtype.numpy.type)


def in_float32(function: Callable[..., Value], dtype: DType) -> Callable[..., Value]:
    """The function with its inputs widened to float32 and its result rounded to ``dtype``."""
    narrow = dtype.numpy
    if dtype is dtypes.float16:
        return lambda *inputs: to_half(function(*[from_half(x) for x in inputs]))

    def widened(*inputs: Value) -> Value:
        return function(*[x.astype(np.float32) for x in inputs]).astype(narrow)

    return widened
