"""The largest or smallest along an axis, where a few may be missed; here none is.

In:   numbers.
Out:  the best of them, in order, and where they stand.
Not:  saves no time by missing any.
"""

from __future__ import annotations

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS


@kernel("ApproxTopK", types={"T": FLOATS - {dtypes.float64}})
def make_approx_top_k(attrs: Attrs) -> Kernel:
    """The k best along an axis; equal ones in the order they stand."""
    count, axis = attrs.int("k"), attrs.int("reduction_dimension")
    is_max = attrs.bool("is_max_k")

    def approx_top_k(values: Array) -> tuple[Array, Array]:
        if not -values.ndim <= axis < values.ndim or values.shape[axis] < count:
            raise InvalidArgumentError(
                f"input must have at least k={count} elements along axis {axis}, got shape "
                f"{list(values.shape)}"
            )
        ranked = np.argsort(-values if is_max else values, axis=axis, kind="stable")
        chosen = np.take(ranked, range(count), axis=axis)
        return np.take_along_axis(values, chosen, axis), chosen.astype(np.int32)

    return approx_top_k
