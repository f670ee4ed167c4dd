"""Gradients of convolutions over two and three spatial dimensions.

In:   gradients of what a convolution gave; the images, or the filters, that it was given; the
      size of the other.
Out:  the gradient of the other.
Not:  no gradients for filters in groups, other than depthwise.

The gradient of images is itself a convolution, or several if windows have strides.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.nn.conv_ops import (
    check_rank,
    in_precision,
    window_maker,
)
from penstock.kernels.nn.correlation import (
    correlate,
    filter_gradient,
    framed,
    is_few,
    spread_few,
)
from penstock.kernels.nn.depthwise import pieces_for, slide_weights, weight_gradient
from penstock.kernels.nn.stride_phases import StridePhase, ways_along
from penstock.kernels.parallel.image_tiles import in_bands
from penstock.kernels.parallel.products import matrix_product
from penstock.kernels.values.arrays import check_new, shape_text
from penstock.kernels.values.windows import Fit, Window, cut, pad, tap

_Shape: TypeAlias = tuple[int, ...]
#: (gradients, filters, windows, shape of the images) to the gradient of the images.
_InputGrad: TypeAlias = Callable[[Array, Array, Sequence[Window], _Shape], Array]
#: (images, gradients, windows, shape of the filters) to the gradient of the filters.
_FilterGrad: TypeAlias = Callable[[Array, Array, Sequence[Window], _Shape], Array]
_WIDE: Final = FLOATS - {dtypes.bfloat16}


# -- gradients of images ---------------------------------------------------------------------


def _input_grad(grads: Array, filters: Array, windows: Sequence[Window], shape: _Shape) -> Array:
    """What each place got, times the filters, goes back to where the place looked.

    Along a dimension an element of the images is in one of ``stride`` ways under the windows.
    For those that are so in the same way, the gradient is a convolution of what the places
    got, with the filters' elements that meet them, turned around.
    """
    check_new(shape, grads.dtype)
    dilations = [w.dilation for w in windows]
    if not grads.size or not prod(shape):
        return np.zeros(shape, grads.dtype)
    if max(w.stride for w in windows) == 1 and is_few(shape, filters.shape):
        return cut(spread_few(grads, filters, dilations), _fits(windows, shape), shape)
    ways = [
        ways_along(*facts) for facts in zip(windows, shape[1:-1], grads.shape[1:-1], strict=True)
    ]
    if any(way.is_odd for way in itertools.chain(*ways)):
        return _input_grad_by_elements(grads, filters, windows, shape)
    turned = filters.swapaxes(-1, -2)
    if all(len(along) == 1 for along in ways):
        return _sent_back(grads, turned, [along[0] for along in ways], dilations)
    result = np.zeros(shape, grads.dtype)
    for way in itertools.product(*ways):
        if all(one.taps and one.size for one in way):
            where = (slice(None), *(slice(one.first, None, one.stride) for one in way))
            result[where] = _sent_back(grads, turned, way, dilations)
    return result


def _sent_back(
    grads: Array, filters: Array, ways: Sequence[StridePhase], dilations: Sequence[int]
) -> Array:
    """What comes back to elements that are under the windows in some way."""
    some = filters[tuple(slice(way.at, None, way.stride) for way in ways)]
    turned = np.ascontiguousarray(np.flip(some, tuple(range(len(ways)))))
    wider = framed(grads, [way.margins for way in ways])
    return correlate(wider, turned, [1] * len(ways), dilations)


def _input_grad_by_elements(
    grads: Array, filters: Array, windows: Sequence[Window], shape: _Shape
) -> Array:
    """The same, added up element by element of the windows."""
    depth, count = filters.shape[-2:]
    rows = grads.reshape(prod(grads.shape[:-1]), count)

    def sent_back(element: tuple[int, ...]) -> Array:
        product = matrix_product(rows, filters[element].T)
        return product.reshape(*grads.shape[:-1], depth)

    return _spread(sent_back, windows, shape, grads.dtype)


def _depthwise_input_grad(
    grads: Array, filters: Array, windows: Sequence[Window], shape: _Shape
) -> Array:
    depth, multiplier = filters.shape[-2:]
    if multiplier == 1 and grads.size:
        routes = _routes(tuple(windows), shape[1:-1], grads.shape[1:-1])
        if routes is not None:
            return _depthwise_by_ways(grads, filters[..., 0], routes, shape)
    apart = grads.reshape(*grads.shape[:-1], depth, multiplier)

    def sent_back(element: tuple[int, ...]) -> Array:
        return np.asarray(np.einsum("...cm,cm->...c", apart, filters[element]))

    return _spread(sent_back, windows, shape, grads.dtype)


class _Route(NamedTuple):
    """The way back to elements that are under the windows in one way."""

    #: The weights that meet them, turned around.
    weights: tuple[slice, ...]
    #: What they see of the gradients with the margins.
    seen: tuple[slice, ...]
    windows: tuple[Window, ...]
    #: Where they are.
    places: tuple[slice, ...]


class _Routes(NamedTuple):
    """All ways back, and margins that are enough for each of them."""

    margins: list[tuple[int, int]]
    routes: list[_Route]
    #: Whether each element is at the end of one of them.
    is_all_seen: bool


@functools.lru_cache(maxsize=256)
def _routes(windows: tuple[Window, ...], sizes: _Shape, places: _Shape) -> _Routes | None:
    """The ways back to images of these sizes; None if convolutions do not give all of them."""
    along = [ways_along(*facts) for facts in zip(windows, sizes, places, strict=True)]
    if any(way.is_odd for way in itertools.chain(*along)):
        return None
    margins = [_widest(ways) for ways in along]
    routes = [
        _Route(
            # Backwards to the first; before that one there is none.
            tuple(slice(one.at + (one.taps - 1) * one.stride, None, -one.stride) for one in way),
            tuple(map(_seen_along, way, margins, windows)),
            tuple(Window(one.taps, 1, w.dilation) for one, w in zip(way, windows, strict=True)),
            tuple(slice(one.first, None, one.stride) for one in way),
        )
        for way in itertools.product(*along)
        if all(one.taps and one.size for one in way)
    ]
    return _Routes(margins, routes, all(one.taps for one in itertools.chain(*along)))


def _widest(ways: Sequence[StridePhase]) -> tuple[int, int]:
    """Margins that are enough for all ways along a dimension, and never negative."""
    before, after = zip(*(one.margins for one in ways), strict=True)
    return max(0, *before), max(0, *after)


def _seen_along(way: StridePhase, margins: tuple[int, int], window: Window) -> slice:
    """What the way's own margins would have made, of what has wider ones."""
    start = margins[0] - way.margins[0]
    return slice(start, start + way.size + (way.taps - 1) * window.dilation)


def _depthwise_by_ways(grads: Array, weights: Array, routes: _Routes, shape: _Shape) -> Array:
    """Like ``_input_grad``, channel by channel."""
    check_new(shape, grads.dtype)
    result = np.empty(shape, grads.dtype) if routes.is_all_seen else np.zeros(shape, grads.dtype)
    batch = len(grads)
    # All ways of some images on each thread: less waiting than all images of each way.
    pieces = pieces_for(grads.size * prod(weights.shape[:2])) if batch > 1 else 1

    def some_images(part: slice, _: slice) -> None:
        wider = framed(grads[part], routes.margins)
        for route in routes.routes:
            seen, some = wider[(slice(None), *route.seen)], weights[route.weights]
            there = result[(part, *route.places)]
            slide_weights(seen, some, route.windows, there, is_alone=pieces > 1)

    in_bands(batch, 1, batch, pieces, some_images)
    return result


def _spread(
    sent_back: Callable[[tuple[int, ...]], Array],
    windows: Sequence[Window],
    shape: _Shape,
    dtype: np.dtype[Any],
) -> Array:
    """Add up what the places send back for each element of the window."""
    fits = _fits(windows, shape)
    sizes = shape[1:-1]
    outer = [n + fit.before + fit.after for n, fit in zip(sizes, fits, strict=True)]
    padded_shape = (shape[0], *outer, shape[-1])
    check_new(padded_shape, dtype)
    padded = np.zeros(padded_shape, dtype)
    for element, where in _taps(windows, fits):
        padded[where] += sent_back(element)
    return cut(padded, fits, shape)


def _fits(windows: Sequence[Window], shape: _Shape) -> list[Fit]:
    return [w.fit(n) for w, n in zip(windows, shape[1:-1], strict=True)]


def _taps(
    windows: Sequence[Window], fits: Sequence[Fit]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each element of the window, and where the padded images meet it."""
    for element in itertools.product(*(range(w.size) for w in windows)):
        facts = zip(windows, fits, element, strict=True)
        yield element, (slice(None), *(tap(*fact) for fact in facts))


# -- gradients of filters ----------------------------------------------------------------------


def _filter_grad(images: Array, grads: Array, windows: Sequence[Window], shape: _Shape) -> Array:
    """What the windows saw times what their places got."""
    padded = pad(images, _fits(windows, images.shape), 0)
    strides, dilations = [w.stride for w in windows], [w.dilation for w in windows]
    return filter_gradient(padded, grads, shape[:-2], strides, dilations)


def _depthwise_filter_grad(
    images: Array, grads: Array, windows: Sequence[Window], shape: _Shape
) -> Array:
    multiplier = shape[-1]
    if multiplier != 1:
        images = np.repeat(images, multiplier, -1)
    return weight_gradient(images, grads, windows).reshape(shape)


# -- registration -----------------------------------------------------------------------------


@kernel("Conv2DBackpropInput", types={"T": FLOATS | {dtypes.int32}})
@kernel("Conv3DBackpropInputV2", types={"T": FLOATS})
@kernel("Conv3DBackpropInput", types={"T": _WIDE})
def make_conv_backprop_input(attrs: Attrs) -> Kernel:
    """The gradient of the images; their shape is given, or images that have it."""
    return _for_images(attrs, _input_grad, _check_depth)


@kernel("DepthwiseConv2dNativeBackpropInput", types={"T": FLOATS})
def make_depthwise_backprop_input(attrs: Attrs) -> Kernel:
    """The gradient of the images that each channel's own filters saw."""
    return _for_images(attrs, _depthwise_input_grad, _check_depthwise)


@kernel("Conv2DBackpropFilter", types={"T": FLOATS})
@kernel("Conv3DBackpropFilterV2", types={"T": FLOATS})
@kernel("Conv3DBackpropFilter", types={"T": _WIDE})
def make_conv_backprop_filter(attrs: Attrs) -> Kernel:
    """The gradient of the filters; their shape is given, or filters that have it."""
    return _for_filters(attrs, _filter_grad, _check_depth)


@kernel("DepthwiseConv2dNativeBackpropFilter", types={"T": FLOATS})
def make_depthwise_backprop_filter(attrs: Attrs) -> Kernel:
    """The gradient of each channel's own filters."""
    return _for_filters(attrs, _depthwise_filter_grad, _check_depthwise)


_CheckDepth: TypeAlias = Callable[[int, _Shape, int], None]


def _for_images(attrs: Attrs, gradient: _InputGrad, check_depth: _CheckDepth) -> Kernel:
    make_windows, layout = window_maker(attrs), _layout(attrs)
    read_shape = _shape_reader(attrs, "input_sizes", layout)

    def backprop(sizes: Value, filters: Array, grads: Array) -> Array:
        shape = read_shape(sizes, grads, filters)
        check_rank(len(layout), filter=filters)
        windows = make_windows(filters.shape[:-2])

        def compute(filters: Array, grads: Array) -> Array:
            _check(shape, filters.shape, grads.shape, windows, check_depth)
            return gradient(grads, filters, windows, shape)

        return in_precision(attrs, compute)(filters, grads)

    return _last_channels(layout, backprop, places=(2,), is_image=True)


def _for_filters(attrs: Attrs, gradient: _FilterGrad, check_depth: _CheckDepth) -> Kernel:
    make_windows, layout = window_maker(attrs), _layout(attrs)
    read_shape = _shape_reader(attrs, "filter_sizes", "")

    def backprop(images: Array, sizes: Value, grads: Array) -> Array:
        shape = read_shape(sizes, grads, images)
        check_new(shape, grads.dtype)
        check_rank(len(layout), input=images, filter=np.broadcast_to(0, shape))
        windows = make_windows(shape[:-2])

        def compute(images: Array, grads: Array) -> Array:
            _check(images.shape, shape, grads.shape, windows, check_depth)
            return gradient(images, grads, windows, shape)

        return in_precision(attrs, compute)(images, grads)

    return _last_channels(layout, backprop, places=(0, 2), is_image=False)


def _layout(attrs: Attrs) -> str:
    return attrs.str("data_format") if "data_format" in attrs.values else "NDHWC"


_ReadShape: TypeAlias = Callable[[Value, Array, Array], _Shape]


def _shape_reader(attrs: Attrs, name: str, layout: str) -> _ReadShape:
    """What reads the shape of the result, with the depth last, out of the op's input."""
    if attrs.op.name in ("Conv3DBackpropInput", "Conv3DBackpropFilter"):
        return lambda like, _grads, _other: shape_of(like)

    def read(sizes: Value, grads: Array, other: Array) -> _Shape:
        if np.ndim(sizes) != 1:
            raise ValueError(f"{attrs.op.name}: {name} input must be 1-dim, not {np.ndim(sizes)}")
        numbers = sizes.tolist()
        if layout and len(numbers) == 2 and np.ndim(other) == 4:  # rows and columns only
            return (grads.shape[0], *numbers, other.shape[2])
        if layout and len(numbers) != len(layout):
            raise ValueError(
                f"{attrs.op.name} requires {name} to contain {len(layout)} values, "
                f"but got: {len(numbers)}"
            )
        if layout[1:2] == "C":
            numbers.append(numbers.pop(1))
        if min(numbers, default=0) < 0:
            raise ValueError(f"Dimension {min(numbers)} must be >= 0")
        return tuple(numbers)

    return read


def _check(
    images: _Shape, filters: _Shape, grads: _Shape, windows: Sequence[Window], depth: _CheckDepth
) -> None:
    """Raise unless the convolution of such images and filters gives such results."""
    if len(grads) != len(images):
        raise ValueError(
            f"out_backprop must be {len(images)}-dimensional: shape {shape_text(grads)}"
        )
    if images[0] != grads[0]:
        raise ValueError(
            "input and out_backprop must have the same batch size. "
            f"Input batch: {images[0]}, outbackprop batch: {grads[0]}"
        )
    depth(images[-1], filters, grads[-1])
    for axis, (window, fit) in enumerate(zip(windows, _fits(windows, images), strict=True), 1):
        if fit.places != grads[axis]:
            raise ValueError(
                f"Size of out_backprop doesn't match computed: actual = {grads[axis]}, "
                f"computed = {fit.places} spatial_dim: {axis} input: {images[axis]} "
                f"filter: {window.size} output: {grads[axis]} stride: {window.stride} "
                f"dilation: {window.dilation}"
            )


def _check_depth(depth: int, filters: _Shape, count: int) -> None:
    if depth != filters[-2]:
        raise ValueError(
            "Gradients for grouped convolutions are not supported: input depth "
            f"{depth} doesn't match filter input depth {filters[-2]}"
        )
    if count != filters[-1]:
        raise ValueError(
            f"filter and out_backprop must have the same out_depth: {filters[-1]} vs {count}"
        )


def _check_depthwise(depth: int, filters: _Shape, count: int) -> None:
    if depth != filters[-2]:
        raise ValueError(f"input and filter must have the same in_depth: {depth} vs {filters[-2]}")
    if depth * filters[-1] != count:
        raise ValueError(
            "depth_multiplier * in_depth not equal to out_depth: "
            f"{filters[-1]} * {depth} vs {count}"
        )


def _last_channels(
    layout: str, backprop: Kernel, *, places: tuple[int, ...], is_image: bool
) -> Kernel:
    """The kernel for a layout; ``places`` tells which inputs are images."""
    if layout[1] != "C":
        return backprop

    def channels_first(*inputs: Value) -> Array:
        turned = [_to_last(x) if place in places else x for place, x in enumerate(inputs)]
        result = backprop(*turned)
        return _to_first(result) if is_image else result

    return channels_first


def _to_last(images: Value) -> Array:
    array = np.asarray(images)
    return np.moveaxis(array, 1, -1) if array.ndim > 1 else array


def _to_first(images: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(images, -1, 1))
