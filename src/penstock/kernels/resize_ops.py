"""Images of other sizes.

In:   images, [batch, rows, columns, depth], and how many rows and columns they are to have;
      for gradients what is sent back, and the images' own size.
Out:  images of that size, in float32 unless elements are only picked.
Not:  no parts of images (crop_and_resize_ops).

Every method makes a row of the result from some rows of the image with fixed weights, and
then does the same with columns.  So a method is a function that gives, for each place of one
dimension, the places that it takes from and their weights; its gradient is the transpose.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.arrays import check_new, shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.intra_op import parallel_for
from penstock.kernels.portions import by_images
from penstock.kernels.products import multiply_into
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.types import FLOATS, REALS


class Blend(NamedTuple):
    """For each place of a dimension, [places, taps]: where it takes from, and how much."""

    sources: Array
    weights: Array


#: (size before, size after) to how the dimension is blended.
_Method: TypeAlias = Callable[[int, int], Blend]

_ONE: Final = np.float32(1)
_HALF: Final = np.float32(0.5)
#: Bicubic weights come from a table with so many steps between two elements.
_STEPS: Final = 1024


def _scale(before: int, after: int, *, has_corners: bool) -> np.float32:
    """How many elements a step is worth; corners can be made to fall on corners."""
    if has_corners and after > 1:
        return np.float32((before - 1) / (after - 1))
    return np.float32(before) / np.float32(after)


def _origins(attrs: Attrs, before: int, after: int) -> Array:
    """Where each place comes from; pixels are points, or squares around their centres."""
    places = np.arange(after, dtype=np.float32)
    scale = _scale(before, after, has_corners=attrs.bool("align_corners"))
    if attrs.values.get("half_pixel_centers"):
        return (places + _HALF) * scale - _HALF
    return places * scale


def _bilinear(attrs: Attrs) -> _Method:
    def bilinear(before: int, after: int) -> Blend:
        origins = _origins(attrs, before, after)
        lower = np.floor(origins)
        part = origins - lower
        sources = np.stack([np.maximum(lower, 0), np.minimum(np.ceil(origins), before - 1)], -1)
        return Blend(sources.astype(np.intp), np.stack([_ONE - part, part], -1))

    return bilinear


def _cubic(distance: Array, sharpness: float) -> Array:
    """Keys, Cubic convolution interpolation for digital image processing, 1981."""
    x, a = np.abs(distance).astype(np.float64), sharpness
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0)).astype(np.float32)


def _bicubic(attrs: Attrs) -> _Method:
    is_centred = attrs.bool("half_pixel_centers")

    def bicubic(before: int, after: int) -> Blend:
        origins = _origins(attrs, before, after)
        lower = np.floor(origins)
        part = np.rint((origins - lower) * _STEPS) / _STEPS
        sources = lower[:, None].astype(np.intp) + np.arange(-1, 3)
        weights = _cubic(part[:, None] - np.arange(-1, 3), -0.5 if is_centred else -0.75)
        inside = np.clip(sources, 0, before - 1)
        if is_centred:  # what lies outside does not count
            weights = np.where(sources == inside, weights, np.float32(0))
            weights /= weights.sum(-1, keepdims=True)
        return Blend(inside, weights)

    return bicubic


def _area(attrs: Attrs) -> _Method:
    def area(before: int, after: int) -> Blend:
        scale = _scale(before, after, has_corners=attrs.bool("align_corners"))
        start = np.arange(after, dtype=np.float32) * scale
        end = np.arange(1, after + 1, dtype=np.float32) * scale
        first, last = np.floor(start).astype(np.intp), np.ceil(end).astype(np.intp)
        sources = first[:, None] + np.arange(max(int((last - first).max()), 1))
        covered = np.minimum(sources + 1, end[:, None]) - np.maximum(sources, start[:, None])
        weights = np.maximum(covered, 0).astype(np.float32) / scale
        return Blend(np.clip(sources, 0, before - 1), weights)

    return area


def _blend(images: Array, axis: int, by: Blend) -> Array:
    """Blend along one dimension of float32 images."""
    along = (-1, *(1,) * (images.ndim - axis - 1))
    total: Any = None
    for sources, weights in zip(by.sources.T, by.weights.T, strict=True):
        part = images.take(sources, axis)
        part *= weights.reshape(along)
        total = part if total is None else np.add(total, part, out=total)
    return np.asarray(total)


def _blend_back(grads: Array, axis: int, by: Blend, before: int) -> Array:
    """The transpose of ``_blend``."""
    after = len(by.sources)
    matrix = np.zeros((before, after), grads.dtype)
    np.add.at(matrix, (by.sources, np.arange(after)[:, None]), by.weights.astype(grads.dtype))
    outer, inner = grads.shape[:axis], grads.shape[axis + 1 :]
    rows = grads.reshape(math.prod(outer), after, math.prod(inner))
    result = np.empty((len(rows), before, rows.shape[2]), grads.dtype)
    step = -(-max(len(rows), 1) // 8)

    def some(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        multiply_into(matrix, rows[part], result[part])

    parallel_for(-(-len(rows) // step), some)
    return result.reshape(*outer, before, *inner)


_METHODS: Final[dict[str, Callable[[Attrs], _Method]]] = {
    "ResizeBilinear": _bilinear,
    "ResizeBicubic": _bicubic,
    "ResizeArea": _area,
}


@kernel(*_METHODS, types={"T": REALS})
def make_resize(attrs: Attrs) -> Kernel:
    """Rows and columns blended from the nearest ones, or from those that they cover."""
    _check_centres(attrs)
    method = functools.lru_cache(maxsize=16)(_METHODS[attrs.op.name](attrs))

    def resize(images: Value, size: Value) -> Array:
        rows, columns = _sizes(images, size)
        batch, before_rows, before_columns, depth = images.shape
        has_rows = rows != before_rows or attrs.op.name != "ResizeBilinear"
        has_columns = columns != before_columns or attrs.op.name != "ResizeBilinear"
        by_row = method(before_rows, rows) if has_rows else None
        by_column = method(before_columns, columns) if has_columns else None

        def of_some(images: Array) -> Array:
            wide: Array = images.astype(np.float32, copy=False)
            if by_row is not None:
                wide = _blend(wide, 1, by_row)
            return wide if by_column is None else _blend(wide, 2, by_column)

        shape = (batch, rows, columns, depth)
        return by_images(of_some, shape, np.dtype(np.float32), images)

    return resize


@kernel("ResizeBilinearGrad", types={"T": FLOATS})
@kernel("ResizeBicubicGrad", types={"T": {dtypes.float32, dtypes.float64}})
def make_resize_grad(attrs: Attrs) -> Kernel:
    """What each element gave to others, times what is sent back to those."""
    _check_centres(attrs)
    method = _METHODS[attrs.op.name.removesuffix("Grad")](attrs)
    dtype = attrs.dtype("T")
    wide = np.float64 if dtype is dtypes.float64 else np.float32

    def resize_grad(grads: Value, images: Value) -> Array:
        if grads.ndim != 4 or images.ndim != 4:
            raise ValueError(
                "input_grad and original_image must be 4-dimensional: "
                f"{shape_text(grads.shape)} and {shape_text(images.shape)}"
            )
        if 0 in grads.shape[1:3] or 0 in images.shape[1:3]:
            raise ValueError("output dimensions must be positive, and images of non-zero size")
        result = grads.astype(wide, copy=False)
        for axis in (1, 2):
            before, after = images.shape[axis], grads.shape[axis]
            result = _blend_back(result, axis, method(before, after), before)
        return np.ascontiguousarray(result.astype(dtype.numpy, copy=False))

    return resize_grad


@kernel("ResizeNearestNeighbor", types={"T": REALS})
def make_resize_nearest(attrs: Attrs) -> Kernel:
    """Rows and columns picked from the image."""
    _check_centres(attrs)

    def resize(images: Value, size: Value) -> Array:
        rows, columns = _sizes(images, size)
        picked = images.take(_nearest(attrs, images.shape[1], rows), 1)
        return np.asarray(picked.take(_nearest(attrs, images.shape[2], columns), 2))

    return resize


@kernel("ResizeNearestNeighborGrad", types={"T": REALS})
def make_resize_nearest_grad(attrs: Attrs) -> Kernel:
    """The sum of what is sent back to all places that an element was picked for."""
    _check_centres(attrs)

    def resize_grad(grads: Value, size: Value) -> Array:
        sizes = _sizes(grads, size)
        result = grads
        for axis, before in enumerate(sizes, 1):
            sources = _nearest(attrs, before, grads.shape[axis])
            result = _picked_back(result, axis, sources, before)
        return np.asarray(result)

    return resize_grad


def _picked_back(grads: Array, axis: int, sources: Array, before: int) -> Array:
    """What comes back to each element from all places that it was picked for."""
    shape = (*grads.shape[:axis], before, *grads.shape[axis + 1 :])
    summed = np.zeros(shape, grads.dtype)
    # Sources never go back: first the first place of each, then the second, and so on.
    _, starts, which = np.unique(sources, return_index=True, return_inverse=True)
    turns = np.arange(len(sources)) - starts[which]
    for turn in range(int(turns.max()) + 1):
        places = np.flatnonzero(turns == turn)
        where: Any = (slice(None),) * axis + (sources[places],)
        summed[where] += grads.take(places, axis)
    return summed


def _nearest(attrs: Attrs, before: int, after: int) -> Array:
    """The nearest element for each place."""
    has_corners = attrs.bool("align_corners")
    scale = _scale(before, after, has_corners=has_corners)
    places = np.arange(after, dtype=np.float32)
    if attrs.bool("half_pixel_centers"):
        places += _HALF
    origins = places * scale
    whole = np.floor(origins + _HALF) if has_corners else np.floor(origins)
    return np.asarray(np.clip(whole, 0, before - 1), np.intp)


def _check_centres(attrs: Attrs) -> None:
    if attrs.values.get("half_pixel_centers") and attrs.bool("align_corners"):
        raise ValueError("If half_pixel_centers is True, align_corners must be False.")


def _sizes(images: Value, size: Value) -> tuple[int, int]:
    """Rows and columns of the result; raises ValueError unless it can be made."""
    if images.ndim != 4:
        raise ValueError(f"input must be 4-dimensional{shape_text(images.shape)}")
    if np.shape(size) != (2,):
        raise ValueError(f"shape_t must be 1-dimensional with 2 elements{shape_text(size.shape)}")
    rows, columns = size.tolist()
    if rows <= 0 or columns <= 0:
        raise ValueError(f"output dimensions must be positive, got {rows} and {columns}")
    if 0 in images.shape[1:]:
        raise ValueError(f"input image must be of non-zero size: {shape_text(images.shape)}")
    check_new((images.shape[0], rows, columns, images.shape[3]), np.dtype(np.float32))
    return rows, columns


# -- any scale and offset -----------------------------------------------------------------------


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def lanczos(x: Array) -> Array:
        return np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0)

    return lanczos


def _mitchell(x: Array) -> Array:
    """Mitchell and Netravali, Reconstruction filters in computer graphics, 1988."""
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _box(x: Array) -> Array:
    return np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))


#: Radius, and weight by distance.
_FILTERS: Final[dict[str, tuple[float, Callable[[Array], Array]]]] = {
    "lanczos1": (1, _lanczos(1)),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, lambda x: np.where(x < 1.5, np.exp(-2 * x * x), 0)),
    "box": (1, _box),
    "triangle": (1, lambda x: np.maximum(1 - x, 0)),
    "keyscubic": (2, lambda x: _cubic(x, -0.5)),
    "mitchellcubic": (2, _mitchell),
}


@kernel("ScaleAndTranslate", types={"T": REALS})
def make_scale_and_translate(attrs: Attrs) -> Kernel:
    """Images scaled and moved; each place blends what is near where it comes from."""
    blend_for = _filtered(attrs)

    def scale_and_translate(images: Value, size: Value, scale: Value, moved: Value) -> Array:
        result: Array = images.astype(np.float32, copy=False)
        for axis, after in enumerate(_sizes(images, size)):
            by = blend_for(images.shape[1 + axis], after, scale[axis], moved[axis])
            result = _blend(result, 1 + axis, by)
        return result

    return scale_and_translate


@kernel("ScaleAndTranslateGrad", types={"T": {dtypes.float32}})
def make_scale_and_translate_grad(attrs: Attrs) -> Kernel:
    """What each element gave to others, times what is sent back to those."""
    blend_for = _filtered(attrs)

    def scale_and_translate_grad(grads: Value, images: Value, scale: Value, moved: Value) -> Array:
        if grads.ndim != 4 or images.ndim != 4:
            raise ValueError(f"input_grad must be 4-dimensional{shape_text(grads.shape)}")
        result = grads
        for axis in (0, 1):
            before, after = images.shape[1 + axis], grads.shape[1 + axis]
            by = blend_for(before, after, scale[axis], moved[axis])
            result = _blend_back(result, 1 + axis, by, before)
        return np.ascontiguousarray(result)

    return scale_and_translate_grad


def _filtered(attrs: Attrs) -> Callable[[int, int, Any, Any], Blend]:
    name, is_smoothed = attrs.str("kernel_type"), attrs.bool("antialias")
    if name not in _FILTERS:
        raise ValueError(f"Unrecognized kernel type: {name}")
    radius, weigh = _FILTERS[name]

    def blend_for(before: int, after: int, scale: Any, moved: Any) -> Blend:
        if not scale > 0:
            raise ValueError(f"Scale and translation must be finite, and scale > 0, got {scale}")
        inverse = _ONE / np.float32(scale)
        wider = max(inverse, _ONE) if is_smoothed else _ONE
        origins = (np.arange(after, dtype=np.float32) + _HALF) * inverse - inverse * moved
        reach = np.float32(radius) * wider
        first = np.ceil(origins - reach - _HALF).astype(np.intp)
        sources = first[:, None] + np.arange(math.ceil(2 * float(reach)) + 1)
        away = np.abs(sources + _HALF - origins[:, None]) / wider
        inside = np.clip(sources, 0, before - 1)
        weights = np.where(sources == inside, weigh(away), 0).astype(np.float32)
        total = weights.sum(-1, keepdims=True)
        is_within = (origins >= 0) & (origins <= before)
        known = (np.abs(total) > 1000 * np.finfo(np.float32).tiny) & is_within[:, None]
        return Blend(inside, np.where(known, weights / total, np.float32(0)).astype(np.float32))

    return blend_for
