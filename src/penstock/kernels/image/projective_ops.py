"""Images seen through a projective transform.

In:   images, eight numbers of a transform for each of them or for all, a size.
Out:  images of that size.
Not:  inverts no transform: it says where in the input each place of the output looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.values.arrays import as_array, check_new, shape_text, sizes_in

_IMAGES: Final = FLOATS - {dtypes.bfloat16} | {dtypes.uint8, dtypes.int32, dtypes.int64}


@kernel("ImageProjectiveTransformV2", "ImageProjectiveTransformV3", types={"dtype": _IMAGES})
def make_image_projective_transform(attrs: Attrs) -> Kernel:
    """Each place of the output takes what is at its transformed place in the input."""
    within = _WITHIN.get(attrs.str("fill_mode"))
    interpolate = _INTERPOLATIONS.get(attrs.str("interpolation"))
    if within is None:
        raise InvalidArgumentError(f"Invalid mode {attrs.str('fill_mode')}.")
    if interpolate is None:
        raise InvalidArgumentError(
            f"Invalid interpolation {attrs.str('interpolation')}, not NEAREST or BILINEAR"
        )

    def transform(images: Value, matrices: Value, size: Value, *fill: Value) -> Array:
        _check(images, matrices)
        rows, columns = _size(size)
        background = images.dtype.type(fill[0] if fill else 0)
        shape = len(images), rows, columns, images.shape[3]
        check_new(shape, images.dtype)
        result = np.empty(shape, images.dtype)
        for number, image in enumerate(images):
            matrix = matrices[number if len(matrices) > 1 else 0]
            x, y, is_seen = _places(matrix, rows, columns)
            y, x = within(y, image.shape[0]), within(x, image.shape[1])
            seen = interpolate(image, y, x, background)
            seen[~is_seen] = background
            result[number] = seen.astype(images.dtype)
        return result

    return transform


def _check(images: Array, matrices: Array) -> None:
    if images.ndim != 4:
        raise InvalidArgumentError("Input images must have rank 4")
    sizes = shape_of(matrices)
    if len(sizes) != 2 or sizes[1] != 8 or sizes[0] not in (1, len(images)):
        raise InvalidArgumentError(
            f"Input transform should be num_images x 8 or 1 x 8, got {shape_text(sizes)}"
        )


def _size(size: Value) -> list[int]:
    if as_array(size).shape != (2,):
        raise InvalidArgumentError(
            f"output shape must have two elements{shape_text(shape_of(size))}"
        )
    sizes = sizes_in(size)
    if min(sizes) <= 0:
        raise InvalidArgumentError("output dimensions must be positive")
    return sizes


def _places(matrix: Array, rows: int, columns: int) -> tuple[Array, Array, Array]:
    """Where each place of the output looks, and whether it looks anywhere."""
    a0, a1, a2, b0, b1, b2, c0, c1 = matrix.astype(np.float32)
    y, x = np.mgrid[:rows, :columns].astype(np.float32)
    depth = c0 * x + c1 * y + np.float32(1)
    return (a0 * x + a1 * y + a2) / depth, (b0 * x + b1 * y + b2) / depth, depth != 0


_Within = Callable[[Array, int], Array]


def _as_it_is(at: Array, _size: int) -> Array:
    return at


def _clamped(at: Array, size: int) -> Array:
    return np.asarray(np.clip(at, np.float32(0), np.float32(size - 1)))


def _reflected(at: Array, size: int) -> Array:
    """At an end the image goes on backwards, with the last pixel twice."""
    if size <= 1:
        return np.zeros_like(at)
    period = np.float32(2 * size)
    low = np.where(at < -period, at + period * np.trunc(-at / period), at)
    low = np.where(low < -size, low + period, -low - 1)
    high = at - period * np.trunc(at / period)
    high = np.where(high >= size, period - high - 1, high)
    inside: Array = np.where(at < 0, low, np.where(at > size - 1, high, at))
    return _clamped(inside, size)


def _wrapped(at: Array, size: int) -> Array:
    """At an end the image begins anew."""
    if size <= 1:
        return np.zeros_like(at)
    last = np.float32(size - 1)
    low = at + size * (np.trunc(-at / last) + 1)
    high = at - size * np.trunc(at / last)
    inside: Array = np.where(at < 0, low, np.where(at > last, high, at))
    return _clamped(inside, size)


_WITHIN: Final[Mapping[str, _Within]] = {
    "CONSTANT": _as_it_is,
    "NEAREST": _clamped,
    "REFLECT": _reflected,
    "WRAP": _wrapped,
}


def _read(image: Array, y: Array, x: Array, background: np.generic) -> Array:
    """The pixels at whole places; the background outside."""
    height, width = image.shape[:2]
    is_inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    rows, columns = np.where(is_inside, y, 0).astype(int), np.where(is_inside, x, 0).astype(int)
    pixels: Array = image[rows, columns]
    pixels[~is_inside] = background
    return pixels


def _nearest(image: Array, y: Array, x: Array, background: np.generic) -> Array:
    """The pixel next to the place; halves go away from zero."""
    rows, columns = (np.copysign(np.floor(np.abs(at) + np.float32(0.5)), at) for at in (y, x))
    return _read(image, rows, columns, background)


def _bilinear(image: Array, y: Array, x: Array, background: np.generic) -> Array:
    """The four pixels around the place, each by how near it is."""
    top, left = np.floor(y), np.floor(x)
    bottom, right = top + 1, left + 1

    def pixels(row: Array, column: Array) -> Array:
        return _read(image, row, column, background).astype(np.float32)

    def between(row: Array) -> Array:
        near: Array = (right - x)[..., None] * pixels(row, left)
        near += (x - left)[..., None] * pixels(row, right)
        return near

    result: Array = (bottom - y)[..., None] * between(top) + (y - top)[..., None] * between(bottom)
    return result


_INTERPOLATIONS: Final[Mapping[str, Callable[[Array, Array, Array, np.generic], Array]]] = {
    "NEAREST": _nearest,
    "BILINEAR": _bilinear,
}
