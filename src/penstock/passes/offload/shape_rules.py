"""Ops that move elements, and those that reduce them along axes.

In:   values, and constants that say how.
Out:  values, with channels first where they came so and it makes no difference.
Not:  no indices that a step computes: what is wrong with them is for TensorFlow's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.passes.offload.model_writer import Tensor, turned_axis
from penstock.passes.offload.rules import Written, rule

_REDUCTIONS: Final = {
    "Mean": "ReduceMean", "Sum": "ReduceSum", "Max": "ReduceMax", "Min": "ReduceMin",
    "Prod": "ReduceProd",
}  # fmt: skip


def _int64(node: Written, numbers: Any) -> Tensor:
    return node.writer.constant(np.asarray(numbers, np.int64))


@rule("Reshape")
def _reshape(node: Written) -> Tensor:
    sizes = np.asarray(node.value(1), np.int64)
    node.need(sizes.ndim == 1 and (sizes != 0).all() and (sizes >= -1).all())
    node.need((sizes == -1).sum() <= 1)
    return node.make("Reshape", [node.plain(0), _int64(node, sizes)])


@rule("Squeeze")
def _squeeze(node: Written) -> Tensor:
    axes, rank = list(node.attrs["squeeze_dims"]), node.inputs[0].rank
    node.need(axes and all(-rank <= axis < rank for axis in axes))
    return node.make("Squeeze", [node.plain(0), _int64(node, sorted(axis % rank for axis in axes))])


@rule("ExpandDims")
def _expand_dims(node: Written) -> Tensor:
    axis, rank = np.asarray(node.value(1)), node.inputs[0].rank
    node.need(axis.size == 1 and -rank - 1 <= axis.item() <= rank)
    return node.make("Unsqueeze", [node.plain(0), _int64(node, [axis.item()])])


@rule("Transpose")
def _transpose(node: Written) -> Tensor:
    order = np.asarray(node.value(1)).tolist()
    node.need(sorted(order) == list(range(node.inputs[0].rank)))
    return node.make("Transpose", [node.plain(0)], perm=order)


@rule("ConcatV2")
def _concat(node: Written) -> Tensor:
    *parts, _ = node.inputs
    axis, rank = np.asarray(node.value(len(parts))), parts[0].rank
    node.need(axis.ndim == 0 and -rank <= axis.item() < rank)
    node.need(all(part.rank == rank for part in parts))
    if any(part.is_turned for part in parts):
        turned = [node.writer.turned(part) for part in parts]
        return node.make_turned("Concat", turned, axis=turned_axis(axis.item(), rank))
    return node.make("Concat", parts, axis=axis.item() % rank)


@rule("Pad", "PadV2")
def _pad(node: Written) -> Tensor:
    borders, x = np.asarray(node.value(1), np.int64), node.inputs[0]
    node.need(borders.shape == (x.rank, 2) and (borders >= 0).all())
    node.need(node.types[0] is dtypes.float32)
    rest = [node.plain(2)] if node.op == "PadV2" else []
    if x.is_turned:
        order = [0, x.rank - 1, *range(1, x.rank - 1)]
        ends = _int64(node, borders[order].T.reshape(-1))
        return node.make_turned("Pad", [x, ends, *rest])
    return node.make("Pad", [x, _int64(node, borders.T.reshape(-1)), *rest])


@rule("MirrorPad")
def _mirror_pad(node: Written) -> Tensor:
    borders, x = np.asarray(node.value(1), np.int64), node.inputs[0]
    node.need(borders.shape == (x.rank, 2) and (borders >= 0).all())
    node.need(node.types[0] is dtypes.float32 and node.attrs["mode"] == b"REFLECT")
    sizes = x.shape.dims or ()
    node.need(all(size is not None for size in sizes))
    node.need(
        all(size is not None and (b < size).all() for size, b in zip(sizes, borders, strict=True))
    )
    return node.make("Pad", [node.plain(0), _int64(node, borders.T.reshape(-1))], mode="reflect")


@rule(*_REDUCTIONS)
def _reduce(node: Written) -> Tensor:
    node.need(node.types[0] is dtypes.float32)
    x, keep = node.inputs[0], bool(node.attrs["keep_dims"])
    axes = np.asarray(node.value(1)).reshape(-1).tolist()
    node.need(axes and all(-x.rank <= axis < x.rank for axis in axes))
    axes = sorted({axis % x.rank for axis in axes})
    if x.is_turned and node.op == "Mean" and axes == list(range(1, x.rank - 1)):
        return _pooled(node, x, keep=keep)
    op_type = _REDUCTIONS[node.op]
    if x.is_turned and keep:
        own = sorted(turned_axis(axis, x.rank) for axis in axes)
        return _reduced(node, op_type, x, own, is_turned=True)
    return _reduced(node, op_type, node.plain(0), axes, is_turned=False)


@rule("_Moments")
def _moments(node: Written) -> Sequence[Tensor]:
    x = node.inputs[0]
    (axis,) = np.asarray(node.value(1)).reshape(-1).tolist()
    node.need(-x.rank <= axis < x.rank)
    own = turned_axis(axis, x.rank) if x.is_turned else axis % x.rank

    def of(op_type: str, inputs: Sequence[Tensor], shape: TensorShape, **more: Any) -> Tensor:
        return node.writer.op(op_type, inputs, shape, is_turned=x.is_turned, **more)

    mean = of("ReduceMean", [x], node.shapes[0], axes=[own], keepdims=1)
    far = of("Sub", [x, mean], x.shape)
    square = of("Mul", [far, far], x.shape)
    return mean, of("ReduceMean", [square], node.shapes[1], axes=[own], keepdims=1)


def _pooled(node: Written, x: Tensor, *, keep: bool) -> Tensor:
    """The mean over all places of an image."""
    sizes = [x.size(0), *[1] * (x.rank - 2), x.size(-1)]
    shape = TensorShape.of(sizes)
    pooled = node.writer.op("GlobalAveragePool", [x], shape, is_turned=True)
    return pooled if keep else node.make("Flatten", [pooled], axis=1)


def _reduced(node: Written, op_type: str, x: Tensor, axes: list[int], *, is_turned: bool) -> Tensor:
    keep = int(node.attrs["keep_dims"])
    make = node.make_turned if is_turned else node.make
    if op_type == "ReduceSum":  # the others take their axes in this version as an attribute
        return make(op_type, [x, _int64(node, axes)], keepdims=keep)
    return make(op_type, [x], axes=axes, keepdims=keep)
