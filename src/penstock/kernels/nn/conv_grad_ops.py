"""Gradients of convolutions over two and three spatial dimensions.

In:   gradients of what a convolution gave; the images, or the filters, that it was given; the
      size of the other.
Out:  the gradient of the other.
Not:  no gradients for filters in groups, other than depthwise; computes nothing itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.c.convolution import channel_convolver_for, convolver_for
from penstock.kernels.c.convolution import correlate as correlate_in_c
from penstock.kernels.c.pooling import filters_gradient, images_gradient
from penstock.kernels.nn.conv_grads import (
    Margins,
    convolve_framed,
    depthwise_filter_grad,
    depthwise_input_grad,
    filter_grad,
    fits_of,
    input_grad,
)
from penstock.kernels.nn.conv_ops import (
    check_rank,
    convolve_volumes,
    in_precision,
    window_maker,
)
from penstock.kernels.nn.correlation import framed
from penstock.kernels.values.arrays import check_new, shape_text
from penstock.kernels.values.windows import Window, turned_windows

_Shape: TypeAlias = tuple[int, ...]
#: (gradients, filters, windows, shape of the images) to the gradient of the images.
_InputGrad: TypeAlias = Callable[[Array, Array, Sequence[Window], _Shape], Array]
#: (images, gradients, windows, shape of the filters) to the gradient of the filters.
_FilterGrad: TypeAlias = Callable[[Array, Array, Sequence[Window], _Shape], Array]
_WIDE: Final = FLOATS - {dtypes.bfloat16}


@kernel("Conv2DBackpropInput", types={"T": FLOATS | {dtypes.int32}})
@kernel("Conv3DBackpropInputV2", types={"T": FLOATS})
@kernel("Conv3DBackpropInput", types={"T": _WIDE})
def make_conv_backprop_input(attrs: Attrs) -> Kernel:
    """The gradient of the images; their shape is given, or images that have it."""
    gradient = functools.partial(input_grad, convolve=_convolve) if attrs.accelerate else input_grad
    return _for_images(attrs, gradient, _check_depth)


@kernel("DepthwiseConv2dNativeBackpropInput", types={"T": FLOATS})
def make_depthwise_backprop_input(attrs: Attrs) -> Kernel:
    """The gradient of the images that each channel's own filters saw."""
    gradient = _depthwise_input_grad if attrs.accelerate else depthwise_input_grad
    return _for_images(attrs, gradient, _check_depthwise)


@kernel("Conv2DBackpropFilter", types={"T": FLOATS})
@kernel("Conv3DBackpropFilterV2", types={"T": FLOATS})
@kernel("Conv3DBackpropFilter", types={"T": _WIDE})
def make_conv_backprop_filter(attrs: Attrs) -> Kernel:
    """The gradient of the filters; their shape is given, or filters that have it."""
    return _for_filters(attrs, _filter_grad if attrs.accelerate else filter_grad, _check_depth)


@kernel("DepthwiseConv2dNativeBackpropFilter", types={"T": FLOATS})
def make_depthwise_backprop_filter(attrs: Attrs) -> Kernel:
    """The gradient of each channel's own filters."""
    gradient = _depthwise_filter_grad if attrs.accelerate else depthwise_filter_grad
    return _for_filters(attrs, gradient, _check_depthwise)


def _convolve(
    images: Array,
    filters: Array,
    margins: Margins,
    dilations: Sequence[int],
    into: Array | None = None,
) -> Array:
    """A convolution in C, and by numpy where there is no way for that."""
    seen = framed(images, [(min(a, 0), min(b, 0)) for a, b in margins])
    facts = zip(filters.shape, dilations, margins, strict=False)  # not of the channels
    windows = tuple(Window(n, 1, dilation, (max(a, 0), max(b, 0))) for n, dilation, (a, b) in facts)
    if images.ndim == 4:
        result = convolver_for(windows)(seen, filters, into=into)
    else:
        result = convolve_volumes(seen, filters, windows, into=into)
    return convolve_framed(images, filters, margins, dilations) if result is None else result


def _filter_grad(images: Array, grads: Array, windows: Sequence[Window], shape: _Shape) -> Array:
    """In C where it can be, and by numpy otherwise."""
    result = correlate_in_c(images, grads, tuple(windows), tuple(shape))
    return filter_grad(images, grads, windows, shape) if result is None else result


def _depthwise_input_grad(
    grads: Array, filters: Array, windows: Sequence[Window], shape: _Shape
) -> Array:
    """In C for one filter for each channel."""
    result = None
    if filters.ndim == 4 and filters.shape[3] == 1:
        turned = turned_windows(windows, shape, grads.shape)
        if turned is None:
            result = images_gradient(grads, filters[..., 0], windows, tuple(shape))
        else:
            result = channel_convolver_for(turned)(grads, filters[::-1, ::-1, :, 0])
    return depthwise_input_grad(grads, filters, windows, shape) if result is None else result


def _depthwise_filter_grad(
    images: Array, grads: Array, windows: Sequence[Window], shape: _Shape
) -> Array:
    """In C for one filter for each channel."""
    result = None
    if len(shape) == 4 and shape[3] == 1:
        result = filters_gradient(images, grads, windows)
    if result is None:
        return depthwise_filter_grad(images, grads, windows, shape)
    return result[..., np.newaxis]


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
    for axis, (window, fit) in enumerate(zip(windows, fits_of(windows, images), strict=True), 1):
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
