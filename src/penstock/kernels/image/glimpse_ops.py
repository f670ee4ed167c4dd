"""Boxes drawn into images, and small parts cut out of them.

In:   images, [batch, rows, columns, depth]; boxes in parts of their size; places.
Out:  images with boxes in them; the parts.
Not:  resizes nothing (crop_and_resize_ops).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import check_new, shape_text

#: Yellow, blue, red, lime, purple, olive, maroon, navy, aqua and fuchsia.
_COLORS: Final = np.array(
    [
        (1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1),
        (0.5, 0.5, 0, 1), (0.5, 0, 0, 1), (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1),
    ],
    np.float32,
)  # fmt: skip


@kernel("DrawBoundingBoxes", "DrawBoundingBoxesV2", types={"T": {dtypes.float16, dtypes.float32}})
def make_draw_bounding_boxes(_attrs: Attrs) -> Kernel:
    """The images with each box as four lines; colours take turns."""

    def draw(images: Value, boxes: Value, colors: Value | None = None) -> Array:
        _check_drawing(images, boxes)
        table = _color_table(images.shape[3], colors)
        drawn: Array = images.copy()
        for image, around in zip(drawn, boxes, strict=True):
            for number, box in enumerate(around):
                _draw(image, box, table[number % len(table)])
        return drawn

    return draw


def _check_drawing(images: Value, boxes: Value) -> None:
    shapes = f"{shape_text(images.shape)} and {shape_text(boxes.shape)}"
    if images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise ValueError(f"The images should be 4-D with channel size 1, 3 or 4: {shapes}")
    if boxes.ndim != 3 or boxes.shape[2] != 4 or len(boxes) != len(images):
        raise ValueError(f"The boxes should be [batch, count, 4]: {shapes}")


def _color_table(depth: int, colors: Value | None) -> Array:
    if colors is not None:
        if colors.ndim != 2 or colors.shape[1] < depth or not len(colors):
            raise ValueError(
                "colors must be a 2-D matrix and have equal or more channels than the image "
                f"provided: {shape_text(colors.shape)} for {depth}"
            )
        return np.asarray(colors[:, :depth])
    return np.ones((1, 1), np.float32) if depth == 1 else _COLORS[:, :depth]


def _draw(image: Array, box: Array, color: Array) -> None:
    """Draw what is inside the image of a box's four lines, in place."""
    rows, columns = image.shape[:2]
    if not np.isfinite(box).all():
        return
    scale = np.array([rows - 1, columns - 1] * 2, np.float32)
    top, left, bottom, right = np.trunc(box * scale).astype(np.int64).tolist()
    if top > bottom or left > right or top >= rows or bottom < 0 or left >= columns or right < 0:
        return
    down = slice(max(top, 0), min(bottom, rows - 1) + 1)
    across = slice(max(left, 0), min(right, columns - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < rows:
            image[row, across] = color
    for column in (left, right):
        if 0 <= column < columns:
            image[down, column] = color


@kernel("ExtractGlimpse", "ExtractGlimpseV2")
def make_extract_glimpse(attrs: Attrs) -> Kernel:
    """A part of each image around a place; what lies outside of the image is noise."""
    starts_of, noise = _start_maker(attrs), _noise(attrs)

    def extract(images: Value, size: Value, offsets: Value) -> Array:
        _check_glimpse(images, size, offsets)
        height, width = size.tolist()
        shape = (len(images), height, width, images.shape[3])
        check_new(shape, np.dtype(np.float32))
        glimpses: Array = noise(shape, images)
        lengths = np.array(images.shape[1:3], np.float32)
        starts = starts_of(offsets, lengths, np.array([height, width], np.float32))
        for image, found, start in zip(images, glimpses, starts, strict=True):
            _copy_part(image, found, np.trunc(start).astype(np.int64).tolist())
        return glimpses

    return extract


def _start_maker(attrs: Attrs) -> Callable[[Array, Array, Array], Array]:
    """What finds where glimpses start, given offsets, the images' sizes and the glimpses'.

    Centred offsets count from the middle, normalised ones in sizes of the image.  The first
    form of the op takes half of centred offsets even if they are no parts of the size; the
    second puts the middle of the glimpse there only if they are centred and normalised.
    """
    is_centred, is_normalized = attrs.bool("centered"), attrs.bool("normalized")
    is_new = attrs.op.name.endswith("V2")
    has_middle = not is_new or (is_centred and is_normalized)
    is_halved = is_centred and (is_normalized or not is_new)

    def starts_of(offsets: Array, lengths: Array, glimpse: Array) -> Array:
        starts: Array = offsets * lengths if is_normalized else offsets
        if is_halved:
            starts = starts / 2
        if is_centred:
            starts = starts + lengths / 2
        return starts - glimpse / 2 if has_middle else starts

    return starts_of


def _check_glimpse(images: Value, size: Value, offsets: Value) -> None:
    if images.ndim != 4:
        raise ValueError(f"input must be 4-dimensional{shape_text(images.shape)}")
    if np.shape(size) != (2,) or size.min() <= 0:
        raise ValueError(f"input must be a vector of 2 positive sizes: {size}")
    if offsets.shape != (len(images), 2):
        raise ValueError(f"input must be a matrix [batch, 2]: {shape_text(offsets.shape)}")


def _noise(attrs: Attrs) -> Any:
    """What makes a new array of noise of a shape, for some images."""
    kind = attrs.str("noise")
    if kind == "uniform" and not attrs.bool("uniform_noise"):
        kind = "gaussian"
    if kind not in ("zero", "uniform", "gaussian"):
        raise ValueError(f"noise could only be uniform, gaussian, or zero, got {kind}")

    chance = attrs.chance()

    def noise(shape: tuple[int, ...], images: Array) -> Array:
        if kind == "zero":
            return np.zeros(shape, np.float32)
        draw = np.random.default_rng(chance.seed())
        if kind == "uniform":
            low, high = float(images.min(initial=0)), float(images.max(initial=0))
            return draw.uniform(low, high, shape).astype(np.float32)
        return draw.normal(size=shape).astype(np.float32)

    return noise


def _copy_part(image: Array, glimpse: Array, start: list[int]) -> None:
    """Copy what of the glimpse lies within the image."""
    source, target = [], []
    for first, length, size in zip(start, image.shape, glimpse.shape, strict=False):
        low, high = max(first, 0), min(first + size, length)
        source.append(slice(low, max(high, low)))
        target.append(slice(low - first, max(high, low) - first))
    if all(part.start < part.stop for part in source):
        glimpse[tuple(target)] = image[tuple(source)]
