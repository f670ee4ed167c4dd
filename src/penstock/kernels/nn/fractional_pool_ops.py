"""Pooling by a ratio that is no whole number.

In:   images, [batch, rows, columns, depth], and ratios of their sizes before and after.
Out:  the greatest or the mean of each part, and where parts begin along rows and columns.
Not:  the parts are drawn by numpy's generator: the same seeds give other ones than TensorFlow.

Graham, Fractional max-pooling, 2014.  Parts are one or the other of two sizes that differ by
one; overlapping ones share their borders.
"""

from __future__ import annotations

from math import ceil
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import shape_text

_TYPES: Final = {"T": frozenset({dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64})}


@kernel("FractionalMaxPool", "FractionalAvgPool", types=_TYPES)
def make_fractional_pool(attrs: Attrs) -> Kernel:
    """The greatest or the mean of parts of about the size that is asked for."""
    ratios = _checked_ratios(attrs)
    is_max, is_overlapping = attrs.op.name == "FractionalMaxPool", attrs.bool("overlapping")
    join = np.maximum if is_max else np.add
    draw_borders = _Borders(attrs)

    def pool(images: Value) -> tuple[Array, Array, Array]:
        if images.ndim != 4:
            raise ValueError(f"tensor_in must be 4-dimensional: {shape_text(images.shape)}")
        if not images.size:
            raise ValueError(f"tensor_in must not be empty: {shape_text(images.shape)}")
        joined, count, borders = images, np.ones((1, 1, 1), np.int64), []
        for axis, ratio in zip((1, 2), ratios, strict=True):
            parts = draw_borders(images.shape[axis], ratio)
            ends = np.minimum(parts[1:] + is_overlapping, images.shape[axis])
            joined = _join(join, joined, axis, parts[:-1], ends)
            along = (-1, *(1,) * (3 - axis))
            count = count * (ends - parts[:-1]).reshape(along)
            borders.append(parts)
        if not is_max:
            joined = _divided(joined, count)
        return joined, borders[0], borders[1]

    return pool


def _checked_ratios(attrs: Attrs) -> tuple[float, float]:
    ratios = attrs.list("pooling_ratio")
    if len(ratios) != 4 or min(ratios) < 1:
        raise ValueError(f"pooling_ratio field must specify 4 dimensions, each >= 1: {ratios}")
    if ratios[0] != 1 or ratios[3] != 1:
        raise UnimplementedError(
            "Fractional pooling is not yet supported on the batch nor channel dimension."
        )
    if not attrs.bool("deterministic") and (attrs.int("seed") or attrs.int("seed2")):
        raise ValueError("Both seed and seed2 should be 0 if deterministic is false.")
    return ratios[1], ratios[2]


class _Borders:
    """Draws where parts begin; the same ones in every call if that is asked for."""

    def __init__(self, attrs: Attrs) -> None:
        self._is_pseudo_random: Final = attrs.bool("pseudo_random")
        seeds = [attrs.int("seed") % 2**64, attrs.int("seed2") % 2**64]
        self._seeds: Final = seeds if attrs.bool("deterministic") or any(seeds) else None
        self._chance: Final = attrs.chance()

    def __call__(self, length: int, ratio: float) -> Array:
        """Borders of the parts of a dimension, its end included."""
        count = int(length / ratio)
        if count < 1:
            raise ValueError(f"output_size must be positive: {length} / {ratio}")
        draw = np.random.default_rng(self._seeds or self._chance.seed())
        size = length / count
        if self._is_pseudo_random:
            shift = draw.random()
            inner = [ceil(size * (place + shift)) for place in range(count)]
            first = inner[0]
            borders = np.array([*inner, first + length], np.int64) - first
        else:
            longer = length - count * int(size)
            sizes = np.full(count, int(size), np.int64)
            sizes[:longer] += 1
            draw.shuffle(sizes)
            borders = np.concatenate([[0], np.cumsum(sizes)])
        return borders.astype(np.int64)


def _join(join: np.ufunc, images: Array, axis: int, starts: Array, ends: Array) -> Array:
    """What the parts along a dimension come to."""
    bounds = np.stack([starts, ends], -1).ravel()
    # reduceat takes no bound at the very end: one more element moves it, and is not looked at
    longer = np.concatenate([images, images.take([0], axis)], axis)
    joined = join.reduceat(longer, bounds, axis)
    return np.asarray(joined.take(np.arange(0, len(bounds), 2), axis))


def _divided(sums: Array, count: Array) -> Array:
    """Means; those of integers are rounded towards zero."""
    if sums.dtype.kind == "f":
        return np.asarray(sums / count, sums.dtype)
    return np.asarray((np.abs(sums) // count) * np.sign(sums), sums.dtype)
