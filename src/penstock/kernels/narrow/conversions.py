"""What rounds numbers of float32 to float16 or bfloat16, and what widens these.

In:   a type of 16 bits.
Out:  a function over arrays and single numbers; all its ways give the same bits.
Not:  no other types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value
from penstock.kernels.c.narrow import Way, converted
from penstock.kernels.narrow.half_floats import from_half, to_half

#: A function of one array or number.
Convert = Callable[[Value], Value]
#: Fewer numbers are left to numpy.
_MANY: Final = 1 << 11
_SINGLE: Final = np.dtype(np.float32)


def narrowing(dtype: DType) -> Convert:
    """What rounds numbers of float32 to the nearest ones of a narrow type, ties to even."""
    if dtype is dtypes.float16:
        return _in_c(Way.TO_FLOAT16, dtype.numpy, to_half)
    return _in_c(Way.TO_BFLOAT16, dtype.numpy, lambda x: x.astype(dtype.numpy))


def widening(dtype: DType) -> Convert:
    """What makes numbers of float32 out of those of a narrow type; numpy does so of bfloat16."""
    if dtype is dtypes.float16:
        return _in_c(Way.FROM_FLOAT16, _SINGLE, from_half)
    return lambda x: x.astype(_SINGLE)


def _in_c(way: Way, target: np.dtype[Any], otherwise: Convert) -> Convert:
    def convert(x: Value) -> Value:
        if x.size < _MANY:
            return x.astype(target)
        found = converted(x, way, target)
        return otherwise(x) if found is None else found

    return convert
