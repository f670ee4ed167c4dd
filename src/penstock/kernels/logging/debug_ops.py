"""Ops that debuggers put into graphs.

In:   a tensor.
Out:  the tensor, or what a debugger wants to know of it.
Not:  tells no debugger: the addresses in the attributes are not called, no file is written.
"""

from __future__ import annotations

import numpy as np

from penstock.core.values import Array, Value, dtype_of, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.forwarding import forward
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.traits import FORWARDS
from penstock.kernels.api.types import FLOATS, PLAIN
from penstock.kernels.values.arrays import as_array


@kernel(
    "DebugGradientIdentity",
    "DebugGradientRefIdentity",
    "DebugIdentity",
    "DebugIdentityV2",
    "DebugIdentityV3",
    cost=Cost.CHEAP,
    traits=FORWARDS,
)
def make_debug_identity(_: Attrs) -> Kernel:
    """The tensor itself."""
    return forward


@kernel("DebugNanCount", types={"T": PLAIN})
def make_debug_nan_count(attrs: Attrs) -> Kernel:
    """How many elements are not a number."""
    if attrs.dtype("T") not in FLOATS:
        return lambda _: np.zeros(1, np.int64)
    return lambda value: np.array([np.count_nonzero(np.isnan(value))], np.int64)


@kernel("DebugNumericSummary", types={"T": PLAIN})
def make_debug_numeric_summary(attrs: Attrs) -> Kernel:
    """Counts of kinds of numbers, extremes, mean and variance, type and shape."""
    low, high = attrs.float("lower_bound"), attrs.float("upper_bound")

    def summary(value: Value) -> Array:
        numbers = as_array(value).astype(np.float64)
        counts = _counts(numbers, low, high)
        finite = numbers[np.isfinite(numbers)]
        facts = [np.inf, -np.inf, np.nan, np.nan]
        if finite.size:
            facts = [finite.min(), finite.max(), finite.mean(), finite.var()]
        shape = shape_of(value)
        tail = [dtype_of(value).number, len(shape), *shape]
        return np.array([1.0, numbers.size, *counts, *facts, *tail], np.float64)

    return summary


def _counts(numbers: Array, low: float, high: float) -> list[int]:
    """Not a number; at or below the bound; negative; zero; positive; at or above the bound."""
    is_low, is_high = numbers <= low, numbers >= high
    inside = ~(np.isnan(numbers) | is_low | is_high)
    kinds = (
        np.isnan(numbers),
        is_low,
        inside & (numbers < 0),
        inside & (numbers == 0),
        inside & (numbers > 0),
        is_high,
    )
    return [int(np.count_nonzero(kind)) for kind in kinds]
