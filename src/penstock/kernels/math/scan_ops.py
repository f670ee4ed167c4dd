"""Running sums, products and logarithms of sums along one axis.

In:   an array of rank 1 or more, and the axis.
Out:  an array of the same shape: what came up to each element, itself included, or
      ``exclusive`` of it; from the end if ``reverse``.
Not:  no reduction to one element (reduction_ops).

Integers wrap around.  float16 and bfloat16 run in float32 and are rounded once each.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS, NUMBERS
from penstock.kernels.math.reduction_ops import accumulator
from penstock.kernels.values.arrays import shape_text

#: By op: how two elements are combined, and what comes before the first one.
_SCANS: Final[dict[str, tuple[np.ufunc, float]]] = {
    "Cumsum": (np.add, 0),
    "Cumprod": (np.multiply, 1),
    "CumulativeLogsumexp": (np.logaddexp, -math.inf),
}


@kernel("CumulativeLogsumexp", types={"T": FLOATS})
@kernel("Cumsum", "Cumprod", types={"T": NUMBERS})
def make_scan(attrs: Attrs) -> Kernel:
    """The running sum, product, or logarithm of the sum of exponentials."""
    ufunc, neutral = _SCANS[attrs.op.name]
    dtype, exclusive, reverse = attrs.dtype("T"), attrs.bool("exclusive"), attrs.bool("reverse")
    wide = accumulator(dtype)
    scan = _shifted(ufunc, neutral, wide) if exclusive else _plain(ufunc, wide)
    narrow = dtype.numpy

    def compute(x: Value, axis: Value) -> Value:
        _check(x, axis)
        if reverse:
            return np.flip(scan(np.flip(x, axis), axis), axis).astype(narrow, copy=False)
        return scan(x, axis).astype(narrow, copy=False)

    return compute


def _plain(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Kernel:
    return lambda x, axis: ufunc.accumulate(x, axis, dtype)


def _shifted(ufunc: np.ufunc, neutral: float, dtype: np.dtype[Any]) -> Kernel:
    """Like ``_plain``, one place later, and the neutral element first."""

    def shifted(x: Array, axis: Value) -> Array:
        result = np.empty(x.shape, dtype)
        if result.size:
            later, earlier = result.swapaxes(0, axis), x.swapaxes(0, axis)
            later[0] = neutral
            ufunc.accumulate(earlier[:-1], 0, dtype, later[1:])
        return result

    return shifted


def _check(x: Value, axis: Value) -> None:
    if axis.ndim:
        raise InvalidArgumentError(f"ScanOp: axis must be a scalar, not {shape_text(axis.shape)}")
    if not -x.ndim <= axis < x.ndim:
        raise InvalidArgumentError(
            f"ScanOp: Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {axis}"
        )
