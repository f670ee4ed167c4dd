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
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS, REALS
from penstock.kernels.c.weighing import weighed
from penstock.kernels.image.linear_resize import AxisBlend, blend, line_of
from penstock.kernels.image.resize_in_c import line_by, resized_in_c, weighed_in_c
from penstock.kernels.image.resize_methods import (
    HALF,
    Blend,
    Method,
    area_method,
    bicubic_method,
    bilinear_method,
    cubic,
    scale_of,
)
from penstock.kernels.parallel.image_tiles import in_bands
from penstock.kernels.parallel.intra_op import HELPERS, parallel_for
from penstock.kernels.parallel.products import multiply_into
from penstock.kernels.parallel.tiles import by_images
from penstock.kernels.values.arrays import check_new, shape_text

#: Images of so many elements are worth several threads.
_MANY: Final = 1 << 18
_ONE: Final = np.float32(1)


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


_METHODS: Final[dict[str, Callable[[Attrs], Method]]] = {
    "ResizeBilinear": bilinear_method,
    "ResizeBicubic": bicubic_method,
    "ResizeArea": area_method,
}


@kernel("ResizeBilinear", types={"T": REALS})
def make_resize_bilinear(attrs: Attrs) -> Kernel:
    """Rows and columns blended from the two nearest ones."""
    _check_centres(attrs)
    method = bilinear_method(attrs)
    lines_of = functools.lru_cache(maxsize=64)(functools.partial(_lines, method))
    line_of_c = functools.lru_cache(maxsize=64)(functools.partial(line_by, method))

    def resize(images: Value, size: Value) -> Array:
        rows, columns = _sizes(images, size)
        batch, height, width, depth = images.shape
        if attrs.accelerate:
            by = line_of_c(height, rows), line_of_c(width, columns)
            in_c = resized_in_c(images, *by)
            if in_c is not None:
                return in_c
        result = np.empty((batch, rows, columns, depth), np.float32)
        _, by_column = lines_of(width, columns)

        def some(part: slice, places: slice) -> None:
            seen, by_row = lines_of(height, rows, places.start, places.stop)
            wide: Array = images[part, seen].astype(np.float32, copy=False)
            _blend_both(wide, by_row, by_column, result[part, places])

        pieces = HELPERS + 1 if max(result.size, images.size) >= _MANY else 1
        in_bands(batch, rows, result.size, pieces, some)
        return result

    return resize


def _lines(
    method: Method, before: int, after: int, first: int = 0, last: int | None = None
) -> tuple[slice, AxisBlend | None]:
    """What some places of a dimension see, and how they are blended from that, if at all.

    If these are all places, they are taken to see everything.
    """
    if before == after:
        return slice(first, last), None
    by = method(before, after)
    if first == 0 and last in {None, after}:
        return slice(0, before), line_of(by.sources, by.weights[:, 1], before)
    sources, parts = by.sources[first:last], by.weights[first:last, 1]
    seen = slice(int(sources.min()), int(sources.max()) + 1)
    return seen, line_of(sources - seen.start, parts, seen.stop - seen.start)


def _blend_both(
    images: Array, by_row: AxisBlend | None, by_column: AxisBlend | None, result: Array
) -> None:
    """Blend along both dimensions, first along the one that leaves less to do."""
    stages = [(axis, line) for axis, line in ((2, by_column), (1, by_row)) if line is not None]
    if result.shape[1] < images.shape[1]:
        stages.reverse()
    if not stages:
        result[...] = images
    for place, (axis, line) in enumerate(stages, 1):
        shape = (*images.shape[:axis], len(line.first), *images.shape[axis + 1 :])
        out = result if place == len(stages) else np.empty(shape, images.dtype)
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        blend(images.reshape(outer, -1, inner), line, out.reshape(outer, -1, inner))
        images = out


@kernel("ResizeBicubic", "ResizeArea", types={"T": REALS})
def make_resize(attrs: Attrs) -> Kernel:
    """Rows and columns blended from the nearest ones, or from those that they cover."""
    _check_centres(attrs)
    method = functools.lru_cache(maxsize=16)(_METHODS[attrs.op.name](attrs))

    def resize(images: Value, size: Value) -> Array:
        rows, columns = _sizes(images, size)
        batch, before_rows, before_columns, depth = images.shape
        by_row, by_column = method(before_rows, rows), method(before_columns, columns)
        in_c = weighed_in_c(images, by_row, by_column) if attrs.accelerate else None
        if in_c is not None:
            return in_c

        def of_some(images: Array) -> Array:
            wide: Array = images.astype(np.float32, copy=False)
            return _blend(_blend(wide, 1, by_row), 2, by_column)

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
        picked = images.take(nearest(attrs, images.shape[1], rows), 1)
        return np.asarray(picked.take(nearest(attrs, images.shape[2], columns), 2))

    return resize


@kernel("ResizeNearestNeighborGrad", types={"T": REALS})
def make_resize_nearest_grad(attrs: Attrs) -> Kernel:
    """The sum of what is sent back to all places that an element was picked for."""
    _check_centres(attrs)

    def resize_grad(grads: Value, size: Value) -> Array:
        sizes = _sizes(grads, size)

        def of_some(grads: Array) -> Array:
            for axis, before in enumerate(sizes, 1):
                sources = nearest(attrs, before, grads.shape[axis])
                grads = _picked_back(grads, axis, sources, before)
            return grads

        shape = (grads.shape[0], *sizes, grads.shape[3])
        return by_images(of_some, shape, grads.dtype, grads)

    return resize_grad


def _picked_back(grads: Array, axis: int, sources: Array, before: int) -> Array:
    """What comes back to each element from all places that it was picked for."""
    shape = (*grads.shape[:axis], before, *grads.shape[axis + 1 :])
    times, rest = divmod(len(sources), before)
    if not rest and (sources == np.repeat(np.arange(before), times)).all():
        return _sum_of_neighbours(grads, axis, times)
    summed = np.zeros(shape, grads.dtype)
    # Sources never go back: first the first place of each, then the second, and so on.
    _, starts, which = np.unique(sources, return_index=True, return_inverse=True)
    turns = np.arange(len(sources)) - starts[which]
    for turn in range(int(turns.max()) + 1):
        places = np.flatnonzero(turns == turn)
        where: Any = (slice(None),) * axis + (sources[places],)
        summed[where] += grads.take(places, axis)
    return summed


def _sum_of_neighbours(grads: Array, axis: int, count: int) -> Array:
    """The sums of so many places each that are side by side."""
    if count == 1:
        return grads
    outer: Any = (slice(None),) * axis
    parts = [grads[(*outer, slice(place, None, count))] for place in range(count)]
    summed: Array = parts[0] + parts[1]
    for part in parts[2:]:
        summed += part
    return summed


def nearest(attrs: Attrs, before: int, after: int) -> Array:
    """The nearest element for each place."""
    has_corners = attrs.bool("align_corners")
    scale = scale_of(before, after, has_corners=has_corners)
    places = np.arange(after, dtype=np.float32)
    if attrs.bool("half_pixel_centers"):
        places += HALF
    origins = places * scale
    whole = np.floor(origins + HALF) if has_corners else np.floor(origins)
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
    "keyscubic": (2, lambda x: cubic(x, -0.5)),
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
            in_c = weighed(result, 1 + axis, *by) if attrs.accelerate else None
            result = _blend(result, 1 + axis, by) if in_c is None else in_c
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
        origins = (np.arange(after, dtype=np.float32) + HALF) * inverse - inverse * moved
        reach = np.float32(radius) * wider
        first = np.ceil(origins - reach - HALF).astype(np.intp)
        sources = first[:, None] + np.arange(math.ceil(2 * float(reach)) + 1)
        away = np.abs(sources + HALF - origins[:, None]) / wider
        inside = np.clip(sources, 0, before - 1)
        weights = np.where(sources == inside, weigh(away), 0).astype(np.float32)
        total = weights.sum(-1, keepdims=True)
        is_within = (origins >= 0) & (origins <= before)
        known = (np.abs(total) > 1000 * np.finfo(np.float32).tiny) & is_within[:, None]
        return Blend(inside, np.where(known, weights / total, np.float32(0)).astype(np.float32))

    return blend_for
