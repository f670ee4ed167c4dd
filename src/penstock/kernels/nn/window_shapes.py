"""Shapes of convolutions and pooling.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  other ops of neural networks, nn_shapes has these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.partial_shapes import (
    Dim,
    dim,
    merge,
    merge_dims,
    of_rank,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    "AvgPool3DGrad AvgPoolGrad": "[r], * -> :0",
    "Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter":
        "*, [r], * -> :1",
    "Conv3DBackpropFilter": "*, s, * -> s",
    "Conv3DBackpropInput": "s, *, * -> s",
    "Dilation2DBackpropFilter": "*, s, * -> s",
    "Dilation2DBackpropInput": "s, *, * -> s",
    "FractionalMaxPoolGrad": "[a,b,c,d], *, *, *, * -> [a,b,c,d]",
    "MaxPool3DGrad MaxPoolGrad MaxPoolGradWithArgmax": "s, *, * -> s",
    "MaxPoolGradV2": "s, *, *, *, * -> s",
    "MaxPool3DGradGrad MaxPoolGradGrad": "*, s, * -> s",
    "MaxPoolGradGradV2": "*, s, *, *, * -> s",
})  # fmt: skip

#: Where the channels are last; in all other layouts they follow the batch.
_CHANNELS_LAST: Final = frozenset({"NHWC", "NDHWC", "CHANNELS_LAST", "NWC"})


def slid(size: Dim, window: Dim, stride: int, padding: str, margin: int = 0) -> Dim:
    """At how many places a window stands when it slides along an axis."""
    if stride <= 0:
        raise InvalidArgumentError(f"Stride must be > 0, but got {stride}")
    if size is None or (window is None and padding != "SAME"):
        return None
    if padding == "SAME":
        return -(-size // stride)
    room = size + margin - (window or 0)
    if room < 0:
        raise InvalidArgumentError(
            f"Negative dimension size caused by subtracting {window} from {size + margin}"
        )
    return room // stride + 1


class _Layout:
    """Which axes of an image are batch, space and channels."""

    def __init__(self, node: ShapeContext, rank: int) -> None:
        name = node.attrs.str("data_format") if node.attrs.has("data_format") else "NHWC"
        self.is_last = name in _CHANNELS_LAST
        self.channel = rank - 1 if self.is_last else 1
        self.space = range(1, rank - 1) if self.is_last else range(2, rank)

    def put(self, batch: Dim, space: Sequence[Dim], channels: Dim) -> TensorShape:
        """The shape with these sizes."""
        return shape(batch, *space, channels) if self.is_last else shape(batch, channels, *space)


@shape_rule("Conv2D", "Conv3D")
def conv(node: ShapeContext) -> TensorShape:
    """The places of the filter, and as many channels as it has at its end."""
    rank = 5 if node.attrs.op.name.endswith("Conv3D") else 4
    if node.attrs.has("data_format") and node.attrs.str("data_format") == "NCHW_VECT_C":
        return of_rank(5)
    return _convolved(node, rank, is_deep=False)


@shape_rule("DepthwiseConv2dNative")
def depthwise_conv(node: ShapeContext) -> TensorShape:
    """Each channel becomes several."""
    return _convolved(node, 4, is_deep=True)


def _convolved(node: ShapeContext, rank: int, *, is_deep: bool) -> TensorShape:
    image, kernel = with_rank(node.input(0), rank), with_rank(node.input(1), rank)
    layout = _Layout(node, rank)
    strides = node.attrs.list("strides")
    dilations = node.attrs.list("dilations") or (1,) * rank
    padding, margins = node.attrs.str("padding"), _margins(node)
    channels, taken, made = dim(image, layout.channel), dim(kernel, -2), dim(kernel, -1)
    space = []
    for place, axis in enumerate(layout.space):
        size = dim(kernel, place)
        extent = None if size is None else (size - 1) * dilations[axis] + 1
        margin = sum(margins[2 * axis : 2 * axis + 2])
        space.append(slid(dim(image, axis), extent, strides[axis], padding, margin))
    if is_deep:
        merge_dims(channels, taken)
        made = None if made is None or taken is None else made * taken
    elif channels is not None and taken and channels % taken:
        raise InvalidArgumentError(
            f"Depth of input ({channels}) is not a multiple of input depth of filter ({taken})"
        )
    return layout.put(dim(image, 0), space, made)


def _margins(node: ShapeContext) -> Sequence[int]:
    """What is added before and after each axis, if that is written out."""
    if not node.attrs.has("explicit_paddings"):
        return ()
    return node.attrs.list("explicit_paddings")


@shape_rule("Conv")
def general_conv(node: ShapeContext) -> TensorShape:
    """A convolution over as many axes as the filter has in front of its channels."""
    kernel = node.input(1)
    if kernel.dims is None or node.attrs.int("batch_dims") != 1:
        return UNKNOWN
    return _convolved(node, len(kernel.dims), is_deep=False)


@shape_rule("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput")
def conv_backprop_input(node: ShapeContext) -> TensorShape:
    """What is asked for, if all of it is; if only the space is, the filter tells the channels."""
    rank = 5 if node.attrs.op.name.startswith("Conv3D") else 4
    wanted = node.sizes(0)
    if wanted.rank == rank - 2 and wanted.dims is not None:
        layout = _Layout(node, rank)
        return layout.put(dim(node.input(2), 0), wanted.dims, dim(node.input(1), -2))
    return merge(wanted, of_rank(rank)) if wanted.rank != rank - 2 else UNKNOWN


@shape_rule("AvgPool", "MaxPool", "AvgPool3D", "MaxPool3D")
def pool(node: ShapeContext) -> TensorShape:
    """The places of the window."""
    rank = 5 if node.attrs.op.name.endswith("3D") else 4
    if node.attrs.str("data_format") == "NCHW_VECT_C":
        return of_rank(5)
    return _pooled(node, rank, node.attrs.list("ksize"), node.attrs.list("strides"))


def _pooled(
    node: ShapeContext, rank: int, window: Sequence[Dim], strides: Sequence[Dim]
) -> TensorShape:
    image, layout = with_rank(node.input(0), rank), _Layout(node, rank)
    padding, margins = node.attrs.str("padding"), _margins(node)
    made: list[Dim] = []
    for axis in range(rank):
        margin = sum(margins[2 * axis : 2 * axis + 2])
        stride = strides[axis]
        is_pooled = axis in layout.space or axis == layout.channel
        size = dim(image, axis)
        if not is_pooled:
            made.append(size)
        elif stride is None:
            made.append(None)
        else:
            made.append(slid(size, window[axis], stride, padding, margin))
    return shape(*made)


@shape_rule("MaxPoolV2")
def max_pool_v2(node: ShapeContext) -> TensorShape:
    """The places of a window that is an input."""
    if node.attrs.str("data_format") == "NCHW_VECT_C":
        return of_rank(5)
    return _pooled(node, 4, node.some_numbers(1, 4), node.some_numbers(2, 4))


@shape_rule("MaxPoolWithArgmax")
def max_pool_with_argmax(node: ShapeContext) -> Sequence[TensorShape]:
    """The greatest elements, and where they are."""
    found = _pooled(node, 4, node.attrs.list("ksize"), node.attrs.list("strides"))
    return found, found


@shape_rule("FractionalAvgPool", "FractionalMaxPool")
def fractional_pool(node: ShapeContext) -> Sequence[TensorShape]:
    """Each axis is divided by its ratio; of where the parts begin TensorFlow says too few."""
    image = with_rank(node.input(0), 4)
    ratios = node.attrs.list("pooling_ratio")
    made = shape(*(
        None if size is None else int(size / ratio)
        for size, ratio in zip(image.dims or (), ratios, strict=True)
    ))  # fmt: skip
    return made, shape(None), shape(None)


@shape_rule("FractionalAvgPoolGrad")
def fractional_avg_pool_grad(node: ShapeContext) -> TensorShape:
    """The sizes that are given, if they are those of an image."""
    sizes = node.sizes(0) if node.input(0).rank == 1 else UNKNOWN
    return sizes if sizes.rank == 4 else of_rank(4)


@shape_rule("Dilation2D")
def dilation(node: ShapeContext) -> TensorShape:
    """The places of a structure that is as deep as the image."""
    image, kernel = with_rank(node.input(0), 4), with_rank(node.input(1), 3)
    strides, rates = node.attrs.list("strides"), node.attrs.list("rates")
    space = []
    for axis in (1, 2):
        size = dim(kernel, axis - 1)
        extent = None if size is None else (size - 1) * rates[axis] + 1
        space.append(slid(dim(image, axis), extent, strides[axis], node.attrs.str("padding")))
    return shape(dim(image, 0), *space, merge_dims(dim(image, 3), dim(kernel, 2)))


@shape_rule("FusedPadConv2D", "FusedResizeAndPadConv2D")
def fused_pad_conv(node: ShapeContext) -> TensorShape:
    """A convolution of an image that is resized and padded before."""
    is_resized = node.attrs.op.name == "FusedResizeAndPadConv2D"
    image, kernel = with_rank(node.input(0), 4), with_rank(node.input(-1), 4)
    sizes = node.some_numbers(1, 2) if is_resized else [dim(image, 1), dim(image, 2)]
    margins = node.numbers(-2)
    strides, padding = node.attrs.list("strides"), node.attrs.str("padding")
    space: list[Dim] = []
    for axis, size in enumerate(sizes, 1):
        more = None if margins is None else sum(margins[2 * axis : 2 * axis + 2])
        padded = None if size is None or more is None else size + more
        space.append(slid(padded, dim(kernel, axis - 1), strides[axis], padding))
    return shape(dim(image, 0), *space, dim(kernel, 3))
