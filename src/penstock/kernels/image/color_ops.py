"""Colours of images.

In:   images whose last dimension is red, green and blue, or hue, saturation and value.
Out:  images of the same shape.
Not:  changes no sizes.

Hue goes round a circle of six parts, red, yellow, green, cyan, blue and magenta; saturation is
how far a colour is from grey, value how bright its brightest part is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS, REALS
from penstock.kernels.c.channels import column_sums, scaled
from penstock.kernels.c.colors import recolored
from penstock.kernels.narrow.precision import NARROW, in_float32
from penstock.kernels.values.arrays import shape_text

_FLOAT: Final = frozenset({dtypes.float32})
#: Pixels that fill vectors together, whatever their channels.
_TOGETHER: Final = 8


def _to_hue(colors: Array) -> tuple[Array, Array, Array]:
    """Hue from 0 to 1, and the greatest and least of the three parts."""
    red, green, blue = np.moveaxis(colors, -1, 0)
    most, least = colors.max(-1), colors.min(-1)
    spread = most - least
    number = colors.dtype.type
    step = number(1) / (number(6) * spread)
    third = number(1) / number(3)
    hue = np.where(
        red == most,
        step * (green - blue),
        np.where(green == most, step * (blue - red) + third, step * (red - green) + third + third),
    )
    hue = np.where(spread > 0, hue, number(0))
    return np.where(hue < 0, hue + number(1), hue), most, least


def _from_hue(hue: Array) -> Array:
    """The pure colour, from 0 to 1, of a hue."""
    place, number = hue * hue.dtype.type(6), hue.dtype.type
    parts = (
        np.abs(place - number(3)) - number(1),
        number(2) - np.abs(place - number(2)),
        number(2) - np.abs(place - number(4)),
    )
    return np.asarray(np.clip(np.stack(parts, -1), number(0), number(1)))


def _colored(hue: Array, saturation: Array, value: Array) -> Array:
    """The colour of hue, saturation and value."""
    grey = (hue.dtype.type(1) - saturation)[..., None]
    mixed: Array = (grey + saturation[..., None] * _from_hue(hue)) * value[..., None]
    return mixed


def _rgb_to_hsv(colors: Array) -> Array:
    hue, most, least = _to_hue(colors)
    return np.stack([hue, _saturation(most, least), most], -1)


def _saturation(most: Array, least: Array) -> Array:
    return np.where(most > 0, (most - least) / most, most.dtype.type(0))


def _hsv_to_rgb(colors: Array) -> Array:
    hue, saturation, value = np.moveaxis(colors, -1, 0)
    return _colored(hue, saturation, value)


#: By numpy; and what the library in C calls it.
_CONVERSIONS: Final[dict[str, tuple[Callable[[Array], Array], str]]] = {
    "RGBToHSV": (_rgb_to_hsv, "to_hsv"),
    "HSVToRGB": (_hsv_to_rgb, "from_hsv"),
}


@kernel(*_CONVERSIONS, types={"T": FLOATS})
def make_color_conversion(attrs: Attrs) -> Kernel:
    """Red, green and blue as hue, saturation and value, or back."""
    (convert, way), dtype = _CONVERSIONS[attrs.op.name], attrs.dtype("T")

    def checked(images: Value) -> Array:
        if images.ndim < 1:
            raise ValueError(f"input must be at least 1D{shape_text(images.shape)}")
        _check_depth(images)
        in_c = recolored(images, way) if attrs.accelerate else None
        return convert(images) if in_c is None else in_c

    return in_float32(checked, dtype) if dtype in NARROW else checked


def _check_depth(images: Value) -> None:
    if images.shape[-1] != 3:
        raise ValueError(f"input must have 3 channels but instead has {images.shape[-1]}")


def _shift_hue(colors: Array, delta: np.float32) -> Array:
    hue, most, least = _to_hue(colors)
    pure = _from_hue(np.mod(hue + delta, np.float32(1)))
    shifted: Array = least[..., None] + (most - least)[..., None] * pure
    return shifted


def _scale_saturation(colors: Array, scale: np.float32) -> Array:
    hue, most, least = _to_hue(colors)
    scaled = np.clip(_saturation(most, least) * scale, np.float32(0), np.float32(1))
    return _colored(hue, scaled, most)


#: The same.
_ADJUSTMENTS: Final[dict[str, tuple[Callable[[Array, np.float32], Array], str]]] = {
    "AdjustHue": (_shift_hue, "shift_hue"),
    "AdjustSaturation": (_scale_saturation, "scale_saturation"),
}


@kernel(*_ADJUSTMENTS, types={"T": _FLOAT})
def make_adjust_color(attrs: Attrs) -> Kernel:
    """Colours with their hue turned, or their saturation multiplied."""
    adjust, way = _ADJUSTMENTS[attrs.op.name]

    def adjusted(images: Value, amount: Value) -> Array:
        _check_image(images)
        if np.ndim(amount):
            raise ValueError(f"delta and scale must be scalar: {shape_text(np.shape(amount))}")
        _check_depth(images)
        in_c = recolored(images, way, float(amount)) if attrs.accelerate else None
        return adjust(images, np.float32(amount)) if in_c is None else in_c

    return adjusted


def _check_image(images: Value) -> None:
    if images.ndim < 3:
        raise ValueError(f"input must be at least 3-D, got shape{shape_text(images.shape)}")


@kernel("AdjustContrastv2", types={"T": _FLOAT})
def make_adjust_contrast_v2(attrs: Attrs) -> Kernel:
    """Each channel's distance from its mean, multiplied."""

    def adjust_contrast(images: Value, factor: Value) -> Array:
        _check_image(images)
        if np.ndim(factor):
            raise ValueError(f"contrast_factor must be scalar: {shape_text(np.shape(factor))}")
        in_c = _stretched_in_c(images, np.float32(factor)) if attrs.accelerate else None
        return _stretched(images, np.float32(factor)) if in_c is None else in_c

    return adjust_contrast


def _stretched_in_c(images: Array, factor: np.float32) -> Array | None:
    """The same by the library; None if that is for numpy."""
    if not images.size:
        return None
    found = [_one_stretched(image, factor) for image in images.reshape(-1, *images.shape[-3:])]
    made = [image for image in found if image is not None]
    if len(made) < len(found):
        return None
    return (made[0] if len(made) == 1 else np.stack(made)).reshape(images.shape)


def _one_stretched(image: Array, factor: np.float32) -> Array | None:
    """An image of which some neighbouring pixels are one, of more channels."""
    rows, columns, depth = image.shape
    pixels = rows * columns
    if pixels % _TOGETHER:
        return None
    wide = image.reshape(-1, _TOGETHER * depth)
    sums = column_sums(wide)
    if sums is None:
        return None
    mean = sums.reshape(_TOGETHER, depth).sum(0, np.float64) / pixels
    means = np.tile(mean.astype(np.float32), _TOGETHER)
    return scaled(wide, means, np.full_like(means, factor), means)


def _stretched(images: Value, factor: np.float32) -> Array:
    wide: Array = images.astype(np.float32, copy=False)
    if not wide.size:
        return wide
    mean = wide.mean((-3, -2), dtype=np.float64, keepdims=True).astype(np.float32)
    stretched: Array = (wide - mean) * factor + mean
    return stretched


@kernel("AdjustContrast", types={"T": REALS - {dtypes.float16, dtypes.bfloat16}})
def make_adjust_contrast(_attrs: Attrs) -> Kernel:
    """The old form: float32, and kept between two limits."""

    def adjust_contrast(images: Value, factor: Value, least: Value, most: Value) -> Array:
        _check_image(images)
        clipped: Any = np.clip(_stretched(images, np.float32(factor)), least, most)
        return np.asarray(clipped)

    return adjust_contrast
