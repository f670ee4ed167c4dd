"""Where the largest or the smallest element along an axis stands.

In:   an array and one axis, which must not be empty unless the result is.
Out:  positions; of equal elements the first.  NaN counts as worst, so it is found only
      where there is nothing else, and then at position 0.
Not:  does not return the elements (reduction_ops, top_k_ops).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS
from penstock.kernels.c.extremes import extremes
from penstock.kernels.parallel.blas import ALONE_BY_DOT
from penstock.kernels.parallel.products import sum_of_squares
from penstock.kernels.values.arrays import shape_text


@kernel("ArgMax", "ArgMin", types={"T": REALS | {dtypes.bool_}})
def make_arg_extremum(attrs: Attrs) -> Kernel:
    """The position of the first largest (ArgMax) or smallest (ArgMin) element."""
    largest = attrs.op.name == "ArgMax"
    # The bare method: numpy's function around it takes four times as long.
    find = np.ndarray.argmax if largest else np.ndarray.argmin
    dtype = attrs.dtype("T")
    worst = dtype.numpy.type(-math.inf if largest else math.inf) if dtype.is_floating else None
    has_nan = _HAS_NAN.get(dtype, _has_nan) if dtype.is_floating else _never
    position = attrs.dtype("output_type").numpy
    converts = position != np.intp
    is_in_c = attrs.accelerate and dtype is dtypes.float32

    def compute(x: Value, axis: Value) -> Value:
        if not x.ndim:
            raise _complaint(x, axis)
        try:
            found: Value = extremes(x, axis, least=not largest) if is_in_c else None
            if found is None:
                if has_nan(x):
                    x = np.where(np.isnan(x), worst, x)
                found = find(x, axis)
        except (ValueError, TypeError):
            raise _complaint(x, axis) from None
        return found.astype(position) if converts else found

    return compute


def _never(_: Value) -> bool:
    return False


def _has_nan(x: Value) -> bool:
    return bool(x.size) and bool(np.isnan(np.maximum.reduce(x, None)))


def _has_nan_in_squares(x: Array) -> bool:
    """Squares are never negative, so their sum is NaN only if one of them is."""
    flat = x.ravel()
    # Of few numbers without a call in between: loops are full of these.
    total = flat.dot(flat) if flat.size <= ALONE_BY_DOT else sum_of_squares(flat)
    return bool(total != total)


#: Types for which numpy's dot product is the fastest way through all elements.
_HAS_NAN: Final = dict.fromkeys((dtypes.float32, dtypes.float64), _has_nan_in_squares)


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
