"""Where the largest or the smallest element along an axis stands.

In:   an array and one axis, which must not be empty unless the result is.
Out:  positions; of equal elements the first.  NaN counts as worst, so it is found only
      where there is nothing else, and then at position 0.
Not:  does not return the elements (reduction_ops, top_k_ops).
"""

from __future__ import annotations

import math

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.types import REALS


@kernel("ArgMax", "ArgMin", types={"T": REALS | {dtypes.bool_}})
def make_arg_extremum(attrs: Attrs) -> Kernel:
    """The position of the first largest (ArgMax) or smallest (ArgMin) element."""
    largest = attrs.op.name == "ArgMax"
    # The bare method: numpy's function around it takes four times as long.
    find = np.ndarray.argmax if largest else np.ndarray.argmin
    dtype = attrs.dtype("T")
    worst = dtype.numpy.type(-math.inf if largest else math.inf) if dtype.is_floating else None
    position = attrs.dtype("output_type").numpy

    def compute(x: Value, axis: Value) -> Value:
        if x.ndim == 0:
            raise _complaint(x, axis)
        try:
            if worst is not None and x.size and np.isnan(np.maximum.reduce(x, None)):
                x = np.where(np.isnan(x), worst, x)
            return find(x, axis).astype(position)
        except (ValueError, TypeError):
            raise _complaint(x, axis) from None

    return compute


def _complaint(x: Value, axis: Value) -> InvalidArgumentError:
    """Why there is no such position."""
    rank = x.ndim
    if axis.ndim:
        return InvalidArgumentError(
            f"dim must be a scalar, but received tensor of shape: {shape_text(axis.shape)}"
        )
    if not -rank <= axis < rank:
        return InvalidArgumentError(
            f"Expected dimension in the range [{-rank}, {rank}), but got {axis}"
        )
    return InvalidArgumentError(
        f"Reduction axis {axis % rank} is empty in shape {shape_text(x.shape)}"
    )
