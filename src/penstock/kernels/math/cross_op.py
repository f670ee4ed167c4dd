"""The cross product of vectors in space.

In:   two arrays of one shape, whose last dimension has size 3.
Out:  an array of that shape.
Not:  broadcasts nothing.
"""

from __future__ import annotations

import numpy as np

from penstock.core.values import Value
from penstock.errors import FailedPreconditionError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS
from penstock.kernels.values.arrays import shape_text

_NEXT = (1, 2, 0)
_AFTER_NEXT = (2, 0, 1)


@kernel("Cross", types={"T": REALS})
def make_cross(_: Attrs) -> Kernel:
    """The vectors perpendicular to both; integers wrap around."""
    return _cross


def _cross(a: Value, b: Value) -> Value:
    if a.shape != b.shape:
        raise ValueError(
            f"Both inputs must be of same shape: {shape_text(a.shape)} vs. {shape_text(b.shape)}"
        )
    if a.ndim == 0:
        raise ValueError("Input must be at least 1D: []")
    if a.shape[-1] != 3:
        raise FailedPreconditionError("Cross-products are only defined for 3-element vectors.")
    left = np.multiply(a[..., _NEXT], b[..., _AFTER_NEXT])
    return left - np.multiply(a[..., _AFTER_NEXT], b[..., _NEXT])
