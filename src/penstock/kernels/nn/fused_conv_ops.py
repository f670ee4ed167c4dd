"""Convolutions together with what comes before them, and over any number of dimensions.

In:   images, filters; margins and sizes for what is done first.
Out:  what the separate ops would give.
Not:  computes nothing itself.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.array.pad_ops import make_mirror_pad
from penstock.kernels.image.resize_ops import make_resize
from penstock.kernels.nn.conv_ops import make_conv2d, make_conv3d
from penstock.kernels.values.arrays import shape_text


def _like(attrs: Attrs, op_name: str, **values: Any) -> Attrs:
    """The facts of a node of another op that does a part of the work."""
    op = get_op(op_name)
    defaults = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    return dataclasses.replace(attrs, op=op, values={**defaults, **attrs.values, **values})


@kernel("FusedPadConv2D", types={"T": FLOATS})
def make_fused_pad_conv2d(attrs: Attrs) -> Kernel:
    """Conv2D of images that are mirrored at their ends first."""
    mirror = make_mirror_pad(_like(attrs, "MirrorPad", Tpaddings=dtypes.int32))
    convolve = make_conv2d(_like(attrs, "Conv2D"))

    def pad_and_convolve(images: Value, paddings: Value, filters: Value) -> Array:
        _check_paddings(images, paddings)
        return np.asarray(convolve(mirror(images, paddings), filters))

    return pad_and_convolve


@kernel("FusedResizeAndPadConv2D", types={"T": FLOATS - {dtypes.bfloat16}})
def make_fused_resize_and_pad_conv2d(attrs: Attrs) -> Kernel:
    """Conv2D of images that are resized, and then mirrored at their ends first."""
    has_corners, dtype = attrs.bool("resize_align_corners"), attrs.dtype("T").numpy
    resize = make_resize(_like(attrs, "ResizeBilinear", align_corners=has_corners))
    mirror = make_mirror_pad(_like(attrs, "MirrorPad", Tpaddings=dtypes.int32))
    convolve = make_conv2d(_like(attrs, "Conv2D"))

    def resize_pad_and_convolve(
        images: Value, size: Value, paddings: Value, filters: Value
    ) -> Array:
        _check_paddings(images, paddings)
        resized = resize(images, size).astype(dtype, copy=False)
        return np.asarray(convolve(mirror(resized, paddings), filters))

    return resize_pad_and_convolve


def _check_paddings(images: Value, paddings: Value) -> None:
    if images.ndim != 4:
        raise ValueError(f"input must be 4-dimensional: {shape_text(images.shape)}")
    if np.shape(paddings) != (4, 2):
        raise ValueError(
            f"paddings must be a matrix with 4 rows and 2 columns: {shape_text(paddings.shape)}"
        )


@kernel("Conv", types={"T": FLOATS | {dtypes.int32}})
def make_conv(attrs: Attrs) -> Kernel:
    """Convolution over two or three dimensions behind any number of batch dimensions."""
    batch_dims, groups = attrs.int("batch_dims"), attrs.int("groups")
    is_first = attrs.str("data_format") == "CHANNELS_FIRST"

    def make(dims: int) -> Kernel:
        layout = {2: "NHWC", 3: "NDHWC"}.get(dims)
        if layout is None or groups != 1:
            raise UnimplementedError(f"Conv over {dims} dimensions in {groups} groups")
        if is_first:
            layout = "NC" + layout[1:-1]
        ones = (1,) * (dims + 2)
        facts: dict[str, Any] = {"dilations": attrs.list("dilations") or ones}
        facts["data_format"] = layout.encode()
        if dims == 2:
            return make_conv2d(_like(attrs, "Conv2D", **facts))
        return make_conv3d(_like(attrs, "Conv3D", **facts))

    made: dict[int, Kernel] = {}

    def conv(images: Value, filters: Value) -> Array:
        dims = images.ndim - batch_dims - 1
        if dims not in made:
            made[dims] = make(dims)
        batch = images.shape[:batch_dims]
        rows = images.reshape(-1, *images.shape[batch_dims:])
        result = made[dims](rows, filters)
        return np.asarray(result.reshape(*batch, *result.shape[1:]))

    return conv
