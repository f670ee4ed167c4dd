"""Where the places of a resized dimension take from.

In:   attributes; how many elements the dimension has, and how many places it is to have.
Out:  for each place, which elements it takes, and how much of each.
Not:  touches no image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.kernels.api.attrs import Attrs


class Blend(NamedTuple):
    """For each place of a dimension, [places, taps]: where it takes from, and how much."""

    sources: Array
    weights: Array


#: (size before, size after) to how the dimension is blended.
Method: TypeAlias = Callable[[int, int], Blend]

_ONE: Final = np.float32(1)
HALF: Final = np.float32(0.5)
#: Bicubic weights come from a table with so many steps between two elements.
_STEPS: Final = 1024


def scale_of(before: int, after: int, *, has_corners: bool) -> np.float32:
    """How many elements a step is worth; corners can be made to fall on corners."""
    if has_corners and after > 1:
        return np.float32((before - 1) / (after - 1))
    return np.float32(before) / np.float32(after)


def _origins(attrs: Attrs, before: int, after: int) -> Array:
    """Where each place comes from; pixels are points, or squares around their centres."""
    places = np.arange(after, dtype=np.float32)
    scale = scale_of(before, after, has_corners=attrs.bool("align_corners"))
    if attrs.values.get("half_pixel_centers"):
        return (places + HALF) * scale - HALF
    return places * scale


def bilinear_method(attrs: Attrs) -> Method:
    """Two neighbours, by how near they are."""

    def bilinear(before: int, after: int) -> Blend:
        origins = _origins(attrs, before, after)
        lower = np.floor(origins)
        part = origins - lower
        sources = np.stack([np.maximum(lower, 0), np.minimum(np.ceil(origins), before - 1)], -1)
        return Blend(sources.astype(np.intp), np.stack([_ONE - part, part], -1))

    return bilinear


def cubic(distance: Array, sharpness: float) -> Array:
    """Keys, Cubic convolution interpolation for digital image processing, 1981."""
    x, a = np.abs(distance).astype(np.float64), sharpness
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0)).astype(np.float32)


def bicubic_method(attrs: Attrs) -> Method:
    """Four neighbours, by a cubic spline."""
    is_centred = attrs.bool("half_pixel_centers")

    def bicubic(before: int, after: int) -> Blend:
        origins = _origins(attrs, before, after)
        lower = np.floor(origins)
        part = np.rint((origins - lower) * _STEPS) / _STEPS
        sources = lower[:, None].astype(np.intp) + np.arange(-1, 3)
        weights = cubic(part[:, None] - np.arange(-1, 3), -0.5 if is_centred else -0.75)
        inside = np.clip(sources, 0, before - 1)
        if is_centred:  # what lies outside does not count
            weights = np.where(sources == inside, weights, np.float32(0))
            weights /= weights.sum(-1, keepdims=True)
        return Blend(inside, weights)

    return bicubic


def area_method(attrs: Attrs) -> Method:
    """All elements that a place covers, by how much of them it does."""

    def area(before: int, after: int) -> Blend:
        scale = scale_of(before, after, has_corners=attrs.bool("align_corners"))
        start = np.arange(after, dtype=np.float32) * scale
        end = np.arange(1, after + 1, dtype=np.float32) * scale
        first, last = np.floor(start).astype(np.intp), np.ceil(end).astype(np.intp)
        sources = first[:, None] + np.arange(max(int((last - first).max()), 1))
        covered = np.minimum(sources + 1, end[:, None]) - np.maximum(sources, start[:, None])
        weights = np.maximum(covered, 0).astype(np.float32) / scale
        return Blend(np.clip(sources, 0, before - 1), weights)

    return area
