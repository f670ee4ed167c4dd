"""Numbers sorted into buckets.

In:   numbers, and boundaries as an attribute.
Out:  the number of each one's bucket.
Not:  counts nothing.
"""

from __future__ import annotations

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel


@kernel(
    "Bucketize",
    types={"T": {dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64}},
)
def make_bucketize(attrs: Attrs) -> Kernel:
    """How many boundaries are at or below each number; NaN is above all."""
    boundaries = np.array(attrs.list("boundaries"), np.float32)
    if (boundaries[:-1] > boundaries[1:]).any():
        raise ValueError("Expected sorted boundaries")

    def bucketize(value: Value) -> Value:
        return np.searchsorted(boundaries, value, side="right").astype(np.int32)

    return bucketize
