"""Shapes of quantised tensors, and of the ranges that go with them.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  counts no bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import SCALAR, TensorShape
from penstock.kernels.api.partial_shapes import (
    Dim,
    concat,
    dim,
    merge,
    merge_dims,
    of_rank,
    part_of,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    "Dequantize": "s, *, * -> s",
    "FakeQuantWithMinMaxArgs": "s -> s",
    "FakeQuantWithMinMaxArgsGradient": "s, s -> s",
    "FakeQuantWithMinMaxVars": "s, [], [] -> s",
    "FakeQuantWithMinMaxVarsGradient": "s, s, [], [] -> s, [], []",
    "FakeQuantWithMinMaxVarsPerChannel": "[...,d], [d], [d] -> [...,d]",
    "FakeQuantWithMinMaxVarsPerChannelGradient":
        "[...,d], [...,d], [d], [d] -> [...,d], [d], [d]",
    "QuantizeAndDequantize": "s -> s",
    "QuantizeAndDequantizeV2 QuantizeAndDequantizeV4": "s, *, * -> s",
    "QuantizeAndDequantizeV3": "s, *, *, [] -> s",
    "QuantizeAndDequantizeV4Grad": "*, s, m, m -> s, m, m",
    "QuantizeDownAndShrinkRange": "s, [], [] -> s, [], []",
    "QuantizedAdd QuantizedMul": "a, b, *, *, *, * -> a^b, [], []",
    "QuantizedBiasAdd": "s, [?], *, *, *, * -> s, [], []",
    "QuantizedBatchNormWithGlobalNormalization":
        "s, *, *, *, *, *, *, *, *, *, *, *, *, *, * -> s, [], []",
    "QuantizedInstanceNorm": "s, [], [] -> s, [], []",
    "QuantizedRelu QuantizedRelu6": "s, *, * -> s, [], []",
    "QuantizedResizeBilinear": "[b,?,?,c], [2], *, * -> [b,:1,c], [], []",
    "RequantizationRange": "*, *, * -> [], []",
    "RequantizationRangePerChannel": "*, *, * -> [], []",
    "Requantize": "s, *, *, *, * -> s, [], []",
    "RequantizePerChannel": "s, *, *, *, * -> s, [], []",
    "UniformDequantize UniformQuantize": "s, *, * -> s",
    "UniformQuantizedClipByValue": "s, *, *, *, * -> s",
    "UniformRequantize": "s, *, *, *, * -> s",
    "UniformQuantizedDotHybrid": "[n,k], [k,m], *, * -> [n,m]",
    "UniformQuantizedDot": "[n,k], [k,m], *, *, *, *, *, * -> [n,m]",
    "UniformQuantizedAdd": "a, b, *, *, *, *, *, * -> a^b",
})  # fmt: skip


@shape_rule("QuantizeV2")
def quantize(node: ShapeContext) -> Sequence[TensorShape]:
    """The values' own; a range, or one per slice."""
    axis = node.attrs.int("axis")
    ranges = SCALAR if axis < 0 else shape(dim(node.input(0), axis))
    return node.input(0), ranges, ranges


@shape_rule("QuantizedConcat")
def quantized_concat(node: ShapeContext) -> Sequence[TensorShape]:
    """The sizes are added up along the axis."""
    count = node.attrs.int("N")
    parts, axis = node.inputs[1 : 1 + count], node.number(0)
    if axis is None or any(part.dims is None for part in parts):
        ranks = [part.rank for part in parts if part.rank]
        return of_rank(ranks[0] if ranks else None), SCALAR, SCALAR
    rank = len(parts[0].dims or ())
    sizes = [dim(with_rank(part, rank), axis) for part in parts]
    whole = None if None in sizes else sum(size for size in sizes if size is not None)
    place = axis % max(rank, 1)
    others = parts[0]
    for part in parts[1:]:
        others = merge(_opened(others, place), _opened(part, place))
    made = concat(part_of(others, 0, place), shape(whole), part_of(others, place + 1))
    return made, SCALAR, SCALAR


def _opened(given: TensorShape, place: int) -> TensorShape:
    return concat(part_of(given, 0, place), shape(None), part_of(given, place + 1))


@shape_rule("QuantizedMatMul")
def quantized_mat_mul(node: ShapeContext) -> Sequence[TensorShape]:
    """Rows of the one, columns of the other."""
    a, b = with_rank(node.input(0), 2), with_rank(node.input(1), 2)
    flip_a, flip_b = (node.attrs.bool(name) for name in ("transpose_a", "transpose_b"))
    merge_dims(dim(a, 0 if flip_a else 1), dim(b, 1 if flip_b else 0))
    made = shape(dim(a, 1 if flip_a else 0), dim(b, 0 if flip_b else 1))
    return made, SCALAR, SCALAR


@shape_rule("QuantizedReshape")
def quantized_reshape(node: ShapeContext) -> Sequence[TensorShape]:
    """What is asked for."""
    return node.sizes(1), SCALAR, SCALAR


def _slid(size: Dim, window: Dim, stride: int, padding: str) -> Dim:
    """At how many places a window stands."""
    if size is None or stride <= 0 or (window is None and padding != "SAME"):
        return None
    if padding == "SAME":
        return -(-size // stride)
    return max(size - (window or 0) + stride, 0) // stride


@shape_rule("QuantizedAvgPool", "QuantizedMaxPool")
def quantized_pool(node: ShapeContext) -> Sequence[TensorShape]:
    """The places of the window."""
    image, attrs = with_rank(node.input(0), 4), node.attrs
    windows, strides, padding = attrs.list("ksize"), attrs.list("strides"), attrs.str("padding")
    space = [_slid(dim(image, axis), windows[axis], strides[axis], padding) for axis in (1, 2, 3)]
    return shape(dim(image, 0), *space), SCALAR, SCALAR


@shape_rule("QuantizedConv2D")
def quantized_conv(node: ShapeContext) -> Sequence[TensorShape]:
    """The places of the filter, and as many channels as it has at its end."""
    image, kernel = with_rank(node.input(0), 4), with_rank(node.input(1), 4)
    strides, dilations = node.attrs.list("strides"), node.attrs.list("dilations")
    padding, space = node.attrs.str("padding"), []
    for axis in (1, 2):
        size = dim(kernel, axis - 1)
        extent = None if size is None else (size - 1) * dilations[axis] + 1
        space.append(_slid(dim(image, axis), extent, strides[axis], padding))
    return shape(dim(image, 0), *space, dim(kernel, 3)), SCALAR, SCALAR
