"""The sum of rows, their mean and variance, and what these make of rows, by the library in C.

In:   an array of float32.
Out:  sums along the last axis, or both of the others, or normalised rows; None where there is no
      library, or nothing to compute.
Not:  no other axis, no running statistics.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Rows, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: With fewer elements no other thread is asked to help.
_SHARED: Final = 1 << 17
_SHARED_NORMALIZED: Final = 1 << 15


def moments(x: Array) -> tuple[Array, Array] | None:
    """Means and mean squares of distances from them, [..., 1]; None if that is for others to do."""
    with_c = library()
    if with_c is None or x.dtype is not FLOAT or not x.ndim or not x.size:
        return None
    x = np.ascontiguousarray(x)
    mean, variance = np.empty((2, *x.shape[:-1], 1), FLOAT)
    rows = Rows(
        from_=address(x), to=address(mean), also_to=address(variance),
        count=mean.size, length=x.shape[-1],
    )  # fmt: skip
    with_c.moments(rows, contention.helpers(HELPERS) if x.size >= _SHARED else 0)
    return mean, variance


def sums(x: Array, length: int) -> Array | None:
    """The sums of so many neighbouring numbers each; None if that is for others to do."""
    with_c = library()
    if with_c is None or x.dtype is not FLOAT or not x.size or not x.flags.c_contiguous:
        return None
    result = np.empty(x.size // length, FLOAT)
    rows = Rows(from_=address(x), to=address(result), count=result.size, length=length)
    with_c.sums(rows, contention.helpers(HELPERS) if x.size >= _SHARED else 0)
    return result


def normalized(
    x: Array,
    added: Array | None,
    scale: Array | None,
    offset: Array | None,
    epsilon: float,
    *,
    is_centered: bool,
) -> Array | None:
    """Rows with mean 0 and variance 1, times a scale and plus an offset.

    Args:
        x: [..., length].
        added: as many rows, which are added to these first.
        scale: [length], perhaps with axes of size 1 before it.
        offset: the same.
        epsilon: what is added to variances.
        is_centered: the mean m goes first, (x - m) s + o; otherwise x s + (o - m s).

    Returns:
        An array like ``x``; None if that is for others to do.

    """
    with_c = library()
    if with_c is None or not x.ndim or not x.size:
        return None
    length = x.shape[-1]
    if not (_are_rows(x, added) and all(_is_a_row(one, x) for one in (scale, offset))):
        return None
    x, added, scale, offset = map(_side_by_side, (x, added, scale, offset))
    result = np.empty(x.shape, FLOAT)
    rows = Rows(
        from_=address(x), to=address(result), added=_place(added), scale=_place(scale),
        offset=_place(offset), count=x.size // length, length=length, is_centered=is_centered,
        epsilon=epsilon,
    )  # fmt: skip
    helps = x.size >= _SHARED_NORMALIZED
    with_c.normalize(rows, contention.helpers(HELPERS) if helps else 0)
    return result


def _are_rows(x: Array, added: Array | None) -> bool:
    is_alike = added is None or (added.dtype is FLOAT and added.shape == x.shape)
    return x.dtype is FLOAT and is_alike


def _is_a_row(numbers: Array | None, x: Array) -> bool:
    """Whether there are none, or one number for each place in a row."""
    if numbers is None:
        return True
    is_row = numbers.dtype is FLOAT and numbers.size == x.shape[-1] and 0 < numbers.ndim <= x.ndim
    return is_row and numbers.shape[-1] == numbers.size


def _side_by_side(numbers: Any) -> Any:
    return None if numbers is None else np.ascontiguousarray(numbers)


def _place(numbers: Array | None) -> int | None:
    return None if numbers is None else address(numbers)
