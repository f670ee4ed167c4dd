"""Convolutions, products, pooling and normalisation.

In:   inputs with channels last; filters, factors and statistics that are constants.
Out:  results with channels first, but of products.
Not:  no gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.passes.offload.elementwise_rules import apply, broadcast, clipped, with_bias
from penstock.passes.offload.model_writer import Tensor
from penstock.passes.offload.rules import Written, rule

_ACTIVATIONS: Final = {"Relu": "Relu", "Elu": "Elu", "LeakyRelu": "LeakyRelu", "Sigmoid": "Sigmoid",
                       "Tanh": "Tanh"}  # fmt: skip
#: Elements from which on a matrix does not stay in a processor's cache.
_LARGE: Final = 4_000_000
#: How many rows are few; a batch whose size only a step knows is taken for one.
_FEW_ROWS: Final = frozenset({None, *range(8)})


# -- convolutions ---------------------------------------------------------------------------------


@rule("Conv2D", "Conv3D", "_FusedConv2D", "_FusedConv3D")
def _convolution(node: Written) -> Tensor:
    x, weight = node.inputs[:2]
    rank = weight.rank
    _check(node, rank)
    sizes = [_known(node, weight, axis) for axis in range(rank)]
    channels = _known(node, x, -1)
    node.need(sizes[-2] and channels % sizes[-2] == 0 and all(sizes))
    order = (rank - 1, rank - 2, *range(rank - 2))
    kernel = node.writer.op(
        "Transpose", [weight], TensorShape.of([sizes[axis] for axis in order]), perm=order
    )
    return _convolved(node, kernel, sizes[:-2], channels // sizes[-2])


@rule("DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative")
def _depthwise(node: Written) -> Tensor:
    weight = node.inputs[1]
    _check(node, 4)
    height, width, channels, times = (_known(node, weight, axis) for axis in range(4))
    node.need(height * width * channels * times)
    node.need(node.inputs[0].size(-1) in (None, channels))
    turned = node.writer.op(
        "Transpose", [weight], TensorShape.of([channels, times, height, width]), perm=(2, 3, 0, 1)
    )
    form = [channels * times, 1, height, width]
    sizes = node.writer.constant(np.array(form, np.int64))
    kernel = node.writer.op("Reshape", [turned, sizes], TensorShape.of(form))
    return _convolved(node, kernel, [height, width], channels)


def _convolved(node: Written, kernel: Tensor, window: Sequence[int], groups: int) -> Tensor:
    x = node.writer.turned(node.inputs[0])
    result = node.make_turned(
        "Conv", [x, kernel], group=groups, kernel_shape=window, **_places(node, window)
    )
    return _finished(node, result)


def _finished(node: Written, result: Tensor) -> Tensor:
    """With the bias and the activation of a fused node."""
    args = iter(node.inputs[2:])
    for number, step in enumerate(name.decode() for name in node.attrs.get("fused_ops", ())):
        if step == "BiasAdd" and number == 0:
            result = with_bias(node, result, next(args))
        elif step == "Add":
            result = broadcast(node, "Add", result, next(args))
        elif step == "Relu6":
            result = clipped(node, result)
        else:
            node.need(step in _ACTIVATIONS)
            more = {"alpha": node.attrs["leakyrelu_alpha"]} if step == "LeakyRelu" else {}
            result = apply(node, _ACTIVATIONS[step], result, **more)
    return result


def _check(node: Written, rank: int) -> None:
    last = b"NHWC" if rank == 4 else b"NDHWC"
    node.need(rank in (4, 5) and node.inputs[0].rank == rank)
    node.need(node.types[0] is dtypes.float32 and node.attrs["data_format"] == last)
    node.need(node.fixed[1] and node.attrs.get("filter_format", b"HWIO") == b"HWIO")


def _known(node: Written, tensor: Tensor, axis: int) -> int:
    size = tensor.size(axis)
    node.need(size is not None)
    return int(size or 0)


def _places(node: Written, window: Sequence[int]) -> dict[str, Any]:
    """Steps, holes and borders of windows."""
    dims = len(window)
    strides = list(node.attrs["strides"])
    holes = list(node.attrs.get("dilations", ())) or [1] * (dims + 2)
    node.need(strides[0] == strides[-1] == holes[0] == holes[-1] == 1)
    if len(holes) == dims + 2:
        holes = holes[1:-1]
    found: dict[str, Any] = {"strides": strides[1:-1]}
    if holes != [1] * dims:
        found["dilations"] = holes
    padding = node.attrs["padding"]
    if padding == b"EXPLICIT":
        borders = np.array(node.attrs["explicit_paddings"]).reshape(-1, 2)[1:-1]
        found["pads"] = [*borders[:, 0].tolist(), *borders[:, 1].tolist()]
    elif padding == b"SAME":
        found |= _same_borders(node, window, strides[1:-1], holes)
    return found


def _same_borders(
    node: Written, window: Sequence[int], strides: Sequence[int], holes: Sequence[int]
) -> dict[str, Any]:
    sizes = [node.inputs[0].size(axis) for axis in range(1, 1 + len(window))]
    if any(size is None for size in sizes):
        # Where the sizes are only known to a step, they are computed there; not with holes.
        node.need(all(hole == 1 for hole in holes))
        return {"auto_pad": "SAME_UPPER"}
    before, after = [], []
    for size, reach, stride, hole in zip(sizes, window, strides, holes, strict=True):
        assert size is not None
        whole = max((-(-size // stride) - 1) * stride + (reach - 1) * hole + 1 - size, 0)
        before.append(whole // 2)
        after.append(whole - whole // 2)
    return {"pads": [*before, *after]}


# -- windows and statistics -----------------------------------------------------------------------


@rule("MaxPool", "AvgPool")
def _pool(node: Written) -> Tensor:
    node.need(node.types[0] is dtypes.float32 and node.attrs["data_format"] == b"NHWC")
    window = list(node.attrs["ksize"])
    node.need(node.inputs[0].rank == 4 and window[0] == window[-1] == 1)
    x = node.writer.turned(node.inputs[0])
    op_type = "MaxPool" if node.op == "MaxPool" else "AveragePool"
    return node.make_turned(op_type, [x], kernel_shape=window[1:-1], **_places(node, window[1:-1]))


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _batch_norm(node: Written) -> Tensor:
    x, *rest = node.inputs
    node.need(not node.attrs["is_training"] and node.attrs["data_format"] == b"NHWC")
    node.need(x.rank == 4 and {tensor.dtype for tensor in node.inputs} == {dtypes.float32})
    node.need(all(node.fixed[1:]))
    count = x.size(-1)
    node.need(all(tensor.rank == 1 and tensor.size(0) == count for tensor in rest))
    return node.make_turned(
        "BatchNormalization", [node.writer.turned(x), *rest], epsilon=node.attrs["epsilon"]
    )


# -- products -------------------------------------------------------------------------------------


@rule("MatMul", "_FusedMatMul")
def _product(node: Written) -> Tensor:
    node.need(node.types[0] is dtypes.float32)
    x, y = node.plain(0), node.plain(1)
    node.need(x.rank == y.rank == 2)
    # A few rows by a large matrix: reading that is all the time it takes, and a copy of it a loss.
    is_small = (y.size(0) or 0) * (y.size(1) or 0) < _LARGE
    node.need(is_small or (node.shapes[0].dims or (None,))[0] not in _FEW_ROWS)
    turns = {"transA": int(node.attrs["transpose_a"]), "transB": int(node.attrs["transpose_b"])}
    return _finished(node, node.make("Gemm", [x, y], **turns))


@rule("BatchMatMul", "BatchMatMulV2")
def _batch_product(node: Written) -> Tensor:
    node.need(node.types[0] is dtypes.float32)
    factors = []
    for tensor, flag in zip((node.plain(0), node.plain(1)), ("adj_x", "adj_y"), strict=True):
        node.need(tensor.rank >= 2)
        if node.attrs[flag]:
            order = [*range(tensor.rank - 2), tensor.rank - 1, tensor.rank - 2]
            sizes = [tensor.size(axis) for axis in order]
            tensor = node.writer.op("Transpose", [tensor], TensorShape.of(sizes), perm=order)
        factors.append(tensor)
    return node.make("MatMul", factors)


@rule("Einsum")
def _einsum(node: Written) -> Tensor:
    equation = node.attrs["equation"].decode().replace(" ", "")
    node.need(node.types[0] is dtypes.float32 and len(node.inputs) == 2 and "." not in equation)
    letters = equation.replace("->", "").replace(",", "")
    node.need("->" in equation and letters.isalpha() and (letters.islower() or letters.isupper()))
    x, y = node.plain(0), node.plain(1)
    sizes: dict[str, int | None] = {}
    for tensor, axes in zip((x, y), equation.partition("->")[0].split(","), strict=True):
        node.need(tensor.rank == len(axes))
        for axis, label in enumerate(axes):
            size = tensor.size(axis)
            # ONNX stretches an axis of size 1, where TensorFlow sees a mistake.
            node.need(label not in sizes or (size is not None and size == sizes[label]))
            sizes[label] = size
    return node.make("Einsum", [x, y], equation=equation.lower())


@rule("Softmax", "LogSoftmax")
def _softmax(node: Written) -> Tensor:
    node.need(node.types[0] is dtypes.float32 and node.inputs[0].rank >= 1)
    return node.make(node.op, [node.plain(0)], axis=-1)
