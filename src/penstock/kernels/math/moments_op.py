"""The mean and the variance along some axes, as one op.

In:   an array of float32, and the axes.
Out:  both, with sizes 1 in the place of the axes.
Not:  no gradient; no running statistics.
"""

from __future__ import annotations

from penstock.core import dtypes
from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import remembering
from penstock.kernels.api.part import kernel_of_part
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.c.moments import moments as moments_in_c
from penstock.kernels.math.reduction_ops import axes_in


@kernel("_Moments", types={"T": {dtypes.float32}})
def make_moments(attrs: Attrs) -> Kernel:
    """The mean along an axis, and the mean square of the distances from it; the axis stays."""
    mean_of = kernel_of_part(attrs, "Mean", keep_dims=True)
    square = kernel_of_part(attrs, "SquaredDifference")

    def by_steps(x: Value, axes: Value) -> tuple[Value, Value]:
        mean = mean_of(x, axes)
        return mean, mean_of(square(x, mean), axes)

    if not attrs.accelerate:
        return by_steps
    axes_of = remembering(lambda axes: axes_in(axes, -1))

    def moments(x: Value, axes: Value) -> tuple[Value, Value]:
        is_of_rows = axes_of(axes) in ((-1,), (x.ndim - 1,))
        found = moments_in_c(x) if is_of_rows else None
        return by_steps(x, axes) if found is None else found

    return moments
