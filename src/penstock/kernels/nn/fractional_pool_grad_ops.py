"""Gradients of pooling by a ratio that is no whole number.

In:   what the pooling took and gave, where its parts begin, and the gradient of its result.
Out:  the gradient of the images.
Not:  draws no parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import as_array, check_new, shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel

_TYPES: Final = {"T": frozenset({dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64})}


@kernel("FractionalAvgPoolGrad", types=_TYPES)
def make_fractional_avg_pool_grad(attrs: Attrs) -> Kernel:
    """Each part's gradient, spread evenly over what the part covers."""
    overlap = int(attrs.bool("overlapping"))

    def avg_pool_grad(sizes: Value, grads: Array, rows: Value, columns: Value) -> Array:
        shape = as_array(sizes).tolist()
        _check(shape, grads)
        check_new(shape, grads.dtype)
        total = np.zeros(shape, np.float64)
        for at, part in _parts(shape, rows, columns, overlap):
            covered = total[:, part[0], part[1]]
            count = covered.shape[1] * covered.shape[2]
            covered += (grads[:, at[0], at[1]] / count)[:, None, None]
        return total.astype(grads.dtype)

    return avg_pool_grad


@kernel("FractionalMaxPoolGrad", types=_TYPES)
def make_fractional_max_pool_grad(attrs: Attrs) -> Kernel:
    """Each part's gradient, where the part's greatest number first stands."""
    overlap = int(attrs.bool("overlapping"))

    def max_pool_grad(
        images: Array, pooled: Array, grads: Array, rows: Value, columns: Value
    ) -> Array:
        _check(images.shape, grads)
        if pooled.shape != grads.shape:
            raise InvalidArgumentError(
                f"orig_output and out_backprop have different shapes: {shape_text(pooled.shape)} "
                f"and {shape_text(grads.shape)}"
            )
        total = np.zeros(images.shape, grads.dtype)
        for at, part in _parts(images.shape, rows, columns, overlap):
            covered = images[:, part[0], part[1]]
            batch, high, wide, depth = covered.shape
            first = covered.reshape(batch, high * wide, depth).argmax(axis=1)
            row, column = part[0].start + first // wide, part[1].start + first % wide
            place = np.arange(batch)[:, None], row, column, np.arange(depth)[None, :]
            total[place] += grads[:, at[0], at[1]]
        return total

    return max_pool_grad


def _check(shape: tuple[int, ...] | list[int], grads: Array) -> None:
    if len(shape) != 4 or grads.ndim != 4 or min(shape) < 0:
        raise InvalidArgumentError(
            f"images and gradients must be 4-dimensional, got {shape_text(shape)} and "
            f"{shape_text(grads.shape)}"
        )


def _parts(
    shape: tuple[int, ...] | list[int], rows: Value, columns: Value, overlap: int
) -> Iterator[tuple[tuple[int, int], tuple[slice, slice]]]:
    """Where each part's result is, and what the part covers."""
    borders = as_array(rows).tolist(), as_array(columns).tolist()
    for sizes, border in zip(shape[1:3], borders, strict=True):
        if len(border) < 2 or min(border) < 0 or max(border) > sizes:
            raise InvalidArgumentError(f"pooling sequence {border} does not fit size {sizes}")
    for row, (top, bottom) in enumerate(zip(borders[0], borders[0][1:], strict=False)):
        for column, (left, right) in enumerate(zip(borders[1], borders[1][1:], strict=False)):
            down, across = min(bottom + overlap, shape[1]), min(right + overlap, shape[2])
            yield (row, column), (slice(top, down), slice(left, across))
