"""Convolution over two or three spatial dimensions.

In:   images and filters; filters are [sizes..., input depth, output depth].
Out:  at each place of the sliding window, its product with each filter, summed up.
Not:  no gradients.

Half precision is summed up in float32.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.c.convolution import (
    BY_CHANNEL,
    NO_LIMITS,
    Convolver,
    Limits,
    MakeWindows,
    convolver_for,
)
from penstock.kernels.c.sliding import is_tiled
from penstock.kernels.narrow.precision import NARROW, in_float32
from penstock.kernels.nn.correlation import correlate
from penstock.kernels.nn.depthwise import slide_weights
from penstock.kernels.parallel.products import matrix_product
from penstock.kernels.values.arrays import check_new
from penstock.kernels.values.windows import (
    Window,
    centred,
    margins_of,
    pad,
    per_dimension,
    seen_by,
)

Convolve = Callable[[Array, Array], Array]

#: Numbers of three-dimensional images that are convolved at once, but for one slice at least.
_NUMBERS_AT_ONCE: Final = 1 << 21


@kernel("Conv2D", types={"T": FLOATS | {dtypes.int32}})
def make_conv2d(attrs: Attrs) -> Kernel:
    """Each output is the sum of a window times a filter; depth may fall into groups.

    With filters of less depth than the images, group g of the outputs sees group g of the
    inputs only.
    """
    make_windows = window_maker(attrs)
    has_margins = any(attrs.list("explicit_paddings"))
    with_c = Convolver(make_windows) if attrs.accelerate else _nobody

    def conv2d(images: Array, filters: Array) -> Array:
        if images.ndim != 4 or filters.ndim != 4:
            check_rank(4, input=images, filter=filters)
        rows, columns, deep, count = filters.shape
        if not (rows and columns and deep):
            raise ValueError(
                "filter must not have zero elements (i.e. all dimensions must be non-zero), "
                f"got shape {filters.shape}"
            )
        result = with_c(images, filters)
        if result is not None:
            return result
        groups = 1 if images.shape[3] == deep else _groups(images.shape[3], deep, count)
        windows = make_windows((rows, columns))
        if groups > 1:
            return _grouped(images, filters, windows, groups)
        if rows == columns == 1 and not has_margins:
            return _pointwise(images, filters, windows)
        return windowed(images, filters, windows)

    return _in_layout(attrs, in_precision(attrs, conv2d))


@kernel("Conv3D", types={"T": FLOATS})
def make_conv3d(attrs: Attrs) -> Kernel:
    """Each output is the sum of a window, of three dimensions, times a filter."""
    make_windows = window_maker(attrs)

    def conv3d(images: Array, filters: Array) -> Array:
        check_rank(5, input=images, filter=filters)
        if images.shape[4] != filters.shape[3]:
            raise ValueError(
                f"Number of channels in filter ({filters.shape[3]}) must match last dimension "
                f"of input ({images.shape[4]})"
            )
        windows = make_windows(filters.shape[:3])
        seen = centred(images, windows)
        result = convolve_volumes(seen, filters, windows) if attrs.accelerate else None
        return windowed(seen, filters, windows) if result is None else result

    convolve = in_precision(attrs, conv3d)
    if attrs.str("data_format") == "NDHWC":
        return convolve

    def convolve_ncdhw(images: Array, filters: Array) -> Array:
        check_rank(5, input=images)
        return np.ascontiguousarray(
            np.moveaxis(convolve(np.moveaxis(images, 1, -1), filters), -1, 1)
        )

    return convolve_ncdhw


@kernel("DepthwiseConv2dNative", types={"T": FLOATS})
def make_depthwise_conv2d(attrs: Attrs) -> Kernel:
    """Each output is the sum of one channel of a window times one channel of a filter."""
    make_windows = window_maker(attrs)
    with_c = Convolver(make_windows, rank=BY_CHANNEL) if attrs.accelerate else _nobody

    def depthwise_conv2d(images: Array, filters: Array) -> Array:
        check_rank(4, input=images, filter=filters)
        if images.shape[3] != filters.shape[2]:
            raise ValueError(
                "input and filter must have the same depth: "
                f"{images.shape[3]} vs {filters.shape[2]}"
            )
        if filters.shape[3] == 1:
            result = with_c(images, filters[..., 0])
            if result is not None:
                return result
        return _depthwise(images, filters, make_windows(filters.shape[:2]))

    return _in_layout(attrs, in_precision(attrs, depthwise_conv2d))


def _nobody(_images: Array, _filters: Array) -> None:
    """Stands for a way that nobody wants."""


def window_maker(attrs: Attrs) -> MakeWindows:
    """What makes the windows for filters of some size, over any number of dimensions."""
    layout = attrs.str("data_format") if attrs.has("data_format") else "NDHWC"
    strides = _spatial(attrs, "strides", layout)
    dilations = _spatial(attrs, "dilations", layout)
    margins = margins_of(attrs, layout)
    if attrs.str("padding") != "EXPLICIT" and attrs.values.get("explicit_paddings"):
        raise ValueError(
            "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"
        )

    @functools.lru_cache(maxsize=16)
    def make_windows(sizes: tuple[int, ...]) -> tuple[Window, ...]:
        facts = zip(sizes, strides, dilations, margins, strict=True)
        return tuple(Window(*fact) for fact in facts)

    return make_windows


def _spatial(attrs: Attrs, name: str, layout: str) -> list[int]:
    """The spatial numbers of an attribute, which must be positive."""
    of_letter = per_dimension(attrs, name, layout)
    if of_letter.pop("N") != 1 or of_letter.pop("C") != 1:
        raise UnimplementedError(
            f"Current implementation does not yet support {name} in the batch and depth dimensions."
        )
    if min(of_letter.values()) < 1:
        raise ValueError(f"Row and column {name} should be larger than 0: {of_letter}")
    return list(of_letter.values())


def in_precision(attrs: Attrs, convolve: Convolve) -> Convolve:
    """The function, in float32 if the type is narrow."""
    dtype = attrs.dtype("T")
    return in_float32(convolve, dtype) if dtype in NARROW else convolve


def _in_layout(attrs: Attrs, convolve: Convolve) -> Convolve:
    """Let a function of images with the depth last serve those with the depth second."""
    if attrs.str("data_format") == "NHWC":
        return convolve

    def convolve_nchw(images: Array, filters: Array) -> Array:
        if np.ndim(images) != 4:
            raise ValueError(f"input must be 4-dimensional: shape {np.shape(images)}")
        result = convolve(images.transpose(0, 2, 3, 1), filters)
        return np.ascontiguousarray(result.transpose(0, 3, 1, 2))

    return convolve_nchw


def check_rank(rank: int, **values: Value) -> None:
    """Raise unless the values, given by their names, are of this rank."""
    for word, value in values.items():
        if np.ndim(value) != rank:
            raise ValueError(f"{word} must be {rank}-dimensional: shape {np.shape(value)}")


def _groups(depth: int, filter_depth: int, filter_count: int) -> int:
    """Into how many groups the depth falls."""
    if depth % filter_depth:
        raise ValueError(
            f"input depth must be evenly divisible by filter depth: {depth} vs {filter_depth}"
        )
    groups = depth // filter_depth
    if groups > 1 and filter_count % groups:
        raise ValueError(
            f"output depth must be evenly divisible by number of groups: {filter_count} vs {groups}"
        )
    return groups


def _pointwise(images: Array, filters: Array, windows: Sequence[Window]) -> Array:
    """Windows of one pixel: a product of matrices, and nothing to lay out."""
    strides = windows[0].stride, windows[1].stride
    seen = images if strides == (1, 1) else images[:, :: strides[0], :: strides[1]]
    depth, count = filters.shape[2:]
    batch, rows, columns, _ = seen.shape
    matrix = filters.reshape(depth, count)
    product = matrix_product(seen.reshape(batch * rows * columns, depth), matrix)
    return product.reshape(batch, rows, columns, count)


def windowed(images: Array, filters: Array, windows: Sequence[Window]) -> Array:
    """Convolve over any number of spatial dimensions."""
    fits = [w.fit(n) for w, n in zip(windows, images.shape[1:-1], strict=True)]
    strides, dilations = [w.stride for w in windows], [w.dilation for w in windows]
    return correlate(pad(images, fits, 0), filters, strides, dilations)


def convolve_volumes(
    images: Array,
    filters: Array,
    windows: Sequence[Window],
    bias: Array | None = None,
    limits: Limits = NO_LIMITS,
    *,
    into: Array | None = None,
    numbers_at_once: int = _NUMBERS_AT_ONCE,
) -> Array | None:
    """Three dimensions, in C; None if it has no way for that.

    Of large images some places are computed at once, so that what is around them, which they are
    put into, stays in the caches; or all, if they are seen where they are.

    Args:
        images: [batch, planes, rows, columns, depth].
        filters: [planes, rows, columns, depth, count].
        windows: how they slide.
        bias: a number for each filter.
        limits: what results are kept between.
        into: where to put the results, if that is not to be new; those of a place follow each
            other.
        numbers_at_once: of images.

    """
    deep, *flat = windows
    fits = [window.fit(length) for window, length in zip(windows, images.shape[1:4], strict=True)]
    shape = (len(images), *(fit.places for fit in fits), filters.shape[-1])
    if not math.prod(shape) or not filters.size or images.dtype != np.float32:
        return None
    check_new(shape, images.dtype)
    result = np.empty(shape, images.dtype) if into is None else into
    length, in_plane = images.shape[1], max(math.prod(images.shape[2:]), 1)
    step = max(numbers_at_once // in_plane, 1)
    if is_tiled(shape[1:], filters.shape[3], windows, changes=not is_constant(filters)):
        step = shape[1]
    for number, first in itertools.product(range(len(images)), range(0, shape[1], step)):
        places = slice(first, min(first + step, shape[1]))
        seen, here = seen_by(places, deep, fits[0], length)
        near = replace(deep, margins=(here.before, here.after)), *flat
        planes, there = images[number, seen], result[number, places]
        if convolver_for(near, limits)(planes, filters, bias, into=there) is None:
            return None
    return result


def _grouped(images: Array, filters: Array, windows: Sequence[Window], groups: int) -> Array:
    """Convolve each group of the depth with its filters."""
    rows, columns, deep, count = filters.shape
    wide = count // groups
    if deep == 1:
        return _depthwise(images, filters.reshape(rows, columns, groups, wide), windows)
    parts = [
        windowed(
            images[..., group * deep : (group + 1) * deep],
            np.ascontiguousarray(filters[..., group * wide : (group + 1) * wide]),
            windows,
        )
        for group in range(groups)
    ]
    return np.concatenate(parts, -1)


def _depthwise(images: Array, filters: Array, windows: Sequence[Window]) -> Array:
    """Convolve each channel with its own filters, of which there are equally many."""
    rows, columns, depth, multiplier = filters.shape
    if multiplier != 1:
        images = np.repeat(images, multiplier, -1)
    weights = filters.reshape(rows, columns, depth * multiplier)
    return slide_weights(images, weights, windows)
