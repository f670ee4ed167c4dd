"""Gradients of ops that move elements: shapes, slices, joins, and neural networks' ops.

In:   nodes, as ``rules.At``.
Out:  formulas, noted in ``RULES``.
Not:  computes nothing; knows no graph.
"""

from __future__ import annotations

from penstock.core import dtypes
from penstock.graph.gradients.math_rules import summed_back
from penstock.graph.gradients.rules import At, Gradients, rule, shaped_back
from penstock.graph.gradients.values import NodeOutput, apply

rule("Reshape", "ExpandDims", "Squeeze")(shaped_back)


@rule("Identity")
def _identity(at: At) -> Gradients:
    return at.dy


@rule("Transpose", "ConjugateTranspose")
def _transpose(at: At) -> Gradients:
    turned = at.dy[0].to("Transpose", at.x[1].to("InvertPermutation"))
    is_conjugated = at.x[0].dtype.is_complex and "Conj" in at.op
    return [turned.to("Conj") if is_conjugated else turned, None]


@rule("Reverse", "ReverseV2")
def _reverse(at: At) -> Gradients:
    return [at.dy[0].to(at.op, at.x[1]), None]


@rule("Fill")
def _fill(at: At) -> Gradients:
    return [None, _total(at.dy[0])]


def _total(value: NodeOutput) -> NodeOutput:
    rank = value.to("Rank")
    return value.to("Sum", rank.number(0).to("Range", rank, rank.number(1)))


@rule("BroadcastTo")
def _broadcast_to(at: At) -> Gradients:
    return [summed_back(at.x[0], at.y[0], at.dy[0], at.dy[0])[0], None]


@rule("Pack")
def _pack(at: At) -> Gradients:
    return apply(at.dy[0].graph, "Unpack", at.dy[0], num=len(at.x), axis=at.attrs["axis"])


@rule("Unpack")
def _unpack(at: At) -> Gradients:
    return apply(at.dy[0].graph, "Pack", at.dy, axis=at.attrs["axis"])


@rule("Split")
def _split(at: At) -> Gradients:
    return [None, _joined(at.dy, at.x[0])]


@rule("SplitV")
def _split_v(at: At) -> Gradients:
    return [_joined(at.dy, at.x[2]), None, None]


def _joined(parts: list[NodeOutput], axis: NodeOutput) -> NodeOutput:
    return parts[0] if len(parts) == 1 else apply(axis.graph, "ConcatV2", parts, axis)[0]


@rule("Concat")
def _concat(at: At) -> Gradients:
    return [None, *_parts(at.x[1:], at.x[0], at.dy[0])]


@rule("ConcatV2")
def _concat_v2(at: At) -> Gradients:
    return [*_parts(at.x[:-1], at.x[-1], at.dy[0]), None]


def _parts(values: list[NodeOutput], axis: NodeOutput, dy: NodeOutput) -> list[NodeOutput]:
    """The parts of a gradient that belong to the values that were joined."""
    shapes = [value.shape for value in values]
    offsets = apply(dy.graph, "ConcatOffset", axis.to("Cast", DstT=dtypes.int32), shapes)
    return [dy.to("Slice", *place) for place in zip(offsets, shapes, strict=True)]


@rule("Slice")
def _slice(at: At) -> Gradients:
    x, start = at.x[0], at.x[1].to("Cast", DstT=dtypes.int32)
    before = start.to("ExpandDims", start.number(-1))
    after = (x.shape - at.y[0].shape - start).to("ExpandDims", start.number(-1))
    paddings = apply(x.graph, "ConcatV2", [before, after], start.number(1))[0]
    return [at.dy[0].to("Pad", paddings), None, None]


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@rule("StridedSlice")
def _strided_slice(at: At) -> Gradients:
    shape = at.x[0].to("Shape", out_type=at.x[1].dtype)
    back = shape.to("StridedSliceGrad", *at.x[1:], at.dy[0], **at.kept(*_MASKS))
    return [back, None, None, None]


@rule("StridedSliceGrad")
def _strided_slice_grad(at: At) -> Gradients:
    taken = at.dy[0].to("StridedSlice", *at.x[1:4], **at.kept(*_MASKS))
    return [None, None, None, None, taken]


@rule("GatherNd")
def _gather_nd(at: At) -> Gradients:
    shape = at.x[0].to("Shape", out_type=at.x[1].dtype)
    return [at.x[1].to("ScatterNd", at.dy[0], shape), None]


@rule("Relu")
def _relu(at: At) -> Gradients:
    return [at.dy[0].to("ReluGrad", at.x[0])]


@rule("Relu6")
def _relu6(at: At) -> Gradients:
    return [at.dy[0].to("Relu6Grad", at.x[0])]


def _along_last(value: NodeOutput) -> NodeOutput:
    return value.to("Sum", value.number([-1], dtypes.int32), keep_dims=True)


@rule("Softmax")
def _softmax(at: At) -> Gradients:
    y, dy = at.y[0], at.dy[0]
    return [(dy - _along_last(dy * y)) * y]


@rule("LogSoftmax")
def _log_softmax(at: At) -> Gradients:
    return [at.dy[0] - at.y[0].to("Exp") * _along_last(at.dy[0])]


@rule("BiasAdd")
def _bias_add(at: At) -> Gradients:
    return [at.dy[0], at.dy[0].to("BiasAddGrad", **at.kept("data_format"))]


@rule("Conv2D")
def _conv2d(at: At) -> Gradients:
    (x, filters), dy = at.x, at.dy[0]
    how = at.kept("strides", "padding", "explicit_paddings", "data_format", "dilations")
    return [
        x.shape.to("Conv2DBackpropInput", filters, dy, **how),
        x.to("Conv2DBackpropFilter", filters.shape, dy, **how),
    ]


_WINDOW = ("ksize", "strides", "padding", "data_format")


@rule("MaxPool")
def _max_pool(at: At) -> Gradients:
    how = at.kept(*_WINDOW, "explicit_paddings")
    return [at.x[0].to("MaxPoolGrad", at.y[0], at.dy[0], **how)]


@rule("AvgPool")
def _avg_pool(at: At) -> Gradients:
    return [at.x[0].shape.to("AvgPoolGrad", at.dy[0], **at.kept(*_WINDOW))]
