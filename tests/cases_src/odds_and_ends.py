"""Ops that few graphs have."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, f64, graph, i32, i64, normal, op, q

_IMAGES = f32(np.random.default_rng(0).permutation(50)).reshape(1, 5, 5, 2)
_ROWS, _COLUMNS = i64([0, 1, 3, 5]), i64([0, 2, 5])
_GRADS = f32(np.arange(12)).reshape(1, 3, 2, 2) + f32(1)


def timestamp(tf: Any) -> Any:
    """A number of seconds, and after the year 2001."""
    return tf.greater(tf.raw_ops.Timestamp(), 1e9)


def device_index(tf: Any, names: str) -> Any:
    """The CPU's place."""
    return tf.raw_ops.DeviceIndex(device_names=names.split())


def pooled_grad(tf: Any, overlapping: bool) -> Any:
    """The gradient of fractional pooling with the parts that were drawn."""
    raw = tf.raw_ops
    joined = np.zeros((1, 3, 2, 2), np.float32)
    for row, (top, bottom) in enumerate([(0, 1), (1, 3), (3, 5)]):
        for column, (left, right) in enumerate([(0, 2), (2, 5)]):
            part = _IMAGES[:, top : bottom + overlapping, left : right + overlapping]
            joined[:, row, column] = part.max(axis=(1, 2))
    return raw.FractionalMaxPoolGrad(
        orig_input=_IMAGES, orig_output=joined, out_backprop=_GRADS, row_pooling_sequence=_ROWS,
        col_pooling_sequence=_COLUMNS, overlapping=overlapping,
    )  # fmt: skip


def fused(tf: Any, op_name: str, first: Any, second: Any, fused_ops: str, **attrs: Any) -> Any:
    """A node that only TensorFlow's own optimiser makes: a product, a bias, an activation."""
    proto = tf.GraphDef()
    depth = second.shape[-1] * (second.shape[-2] if "Depthwise" in op_name else 1)
    bias = f32(np.linspace(-1, 1, depth))
    for name, value in (("x", first), ("y", second), ("bias", bias)):
        const = proto.node.add(name=name, op="Const")
        const.attr["dtype"].type = 1
        const.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
    node = proto.node.add(name="node", op=op_name, input=["x", "y", "bias"])
    node.attr["T"].type = 1
    node.attr["num_args"].i = 1
    if op_name == "_FusedConv2D":
        node.attr["TArgs"].list.type.append(1)
    node.attr["fused_ops"].list.s.extend(step.encode() for step in fused_ops.split())
    if "Conv2" in op_name or "Depthwise" in op_name:
        node.attr["strides"].list.i.extend([1, 1, 1, 1])
        node.attr["padding"].s = b"SAME"
    for key, value in attrs.items():
        node.attr[key].CopyFrom(value)
    return tf.import_graph_def(proto, return_elements=["node:0"], name="")


_PHOTOS, _FILTERS = normal(1, 4, 5, 2), normal(2, 2, 2, 3, seed=1)

CASES = [
    *(
        graph(fused, "_FusedConv2D", _PHOTOS, _FILTERS, steps)
        for steps in (
            "BiasAdd",
            "BiasAdd Relu",
            "BiasAdd Relu6",
            "BiasAdd Elu",
            "BiasAdd LeakyRelu",
        )
    ),
    *(
        graph(fused, "_FusedMatMul", normal(3, 4), normal(4, 2, seed=1), steps)
        for steps in ("BiasAdd", "BiasAdd Relu", "BiasAdd Relu6", "BiasAdd Elu")
    ),
    op(
        "QuantizedReshape",
        tensor=q("quint8", [[1, 2], [3, 4]]),
        shape=i32([4]),
        input_min=f32(-1),
        input_max=f32(2),
    ),
    op(
        "QuantizedReshape",
        tensor=q("quint8", [[1, 2], [3, 4]]),
        shape=i32([3]),
        input_min=f32(-1),
        input_max=f32(2),
        says="requested shape has 3",
    ),
    *(
        op(
            "RaggedBincount",
            splits=i64([0, 2, 2, 4]),
            values=i32([1, 1, 0, 7]),
            size=i32(3),
            weights=f32(weights),
            binary_output=binary,
        )
        for weights, binary in [([], False), ([], True), ([1, 2, 4, 8], False)]
    ),
    op(
        "RaggedBincount",
        splits=i64([1, 2]),
        values=i32([1, 1]),
        size=i32(3),
        weights=f32([]),
        says="Splits must start with 0",
    ),
    op(
        "RaggedBincount",
        splits=i64([0, 1]),
        values=i32([1, 1]),
        size=i32(3),
        weights=f32([]),
        says="Splits must end with the number of values",
    ),
    op("ApproxTopK", is_shaped=True, input=f32([[3, 1, 4], [1, 5, 9]]), k=2),
    graph(timestamp),
    graph(device_index, "GPU CPU"),
    graph(device_index, "GPU TPU"),
    *(graph(pooled_grad, overlapping) for overlapping in (False, True)),
    *(
        op(
            "FractionalAvgPoolGrad",
            orig_input_tensor_shape=i64([1, 5, 5, 2]),
            out_backprop=_GRADS,
            row_pooling_sequence=_ROWS,
            col_pooling_sequence=_COLUMNS,
            overlapping=overlapping,
        )
        for overlapping in (False, True)
    ),
    *(
        op(
            "UniformQuantize",
            input=f32([[1, 2.5, -9], [0.24, 0.26, 1e9]]),
            scales=scales,
            zero_points=zeros,
            Tout=kind,
            quantization_axis=axis,
            quantization_min_val=-128,
            quantization_max_val=127,
        )
        for kind in ("qint8", "qint32")
        for scales, zeros, axis in [
            (f32(0.5), i32(3), -1),
            (f32([0.5, 0.1]), i32([0, -4]), 0),
            (f32([1, 2, 3]), i32([0] * 3), 1),
        ]
    ),
    op(
        "UniformDequantize",
        input=q("qint8", [[1, -128], [127, 0]]),
        scales=f32([0.5, 2]),
        zero_points=i32([3, -3]),
        Tout="float32",
        quantization_axis=1,
        quantization_min_val=-128,
        quantization_max_val=127,
    ),
    op(
        "UniformDequantize",
        input=q("qint32", [100000, -5]),
        scales=f32(0.25),
        zero_points=i32(1),
        Tout="float32",
        quantization_min_val=-(2**31),
        quantization_max_val=2**31 - 1,
    ),
    op(
        "UniformQuantize",
        input=f32([1]),
        scales=f32([0.5]),
        zero_points=i32(3),
        Tout="qint8",
        quantization_min_val=-128,
        quantization_max_val=127,
        says="same",
    ),
    *(
        op("SobolSample", dim=i32(dim), num_results=i32(count), skip=i32(skip), dtype=dtype)
        for dim, count, skip, dtype in [
            (2, 4, 1, "float32"),
            (5, 9, 0, "float64"),
            (1, 3, 100, "float32"),
        ]
    ),
    op("SobolSample", dim=i32(0), num_results=i32(1), skip=i32(0), says="dim must be at least one"),
    op("NextAfter", x1=f64([1, -1]), x2=f64([2, 0])),
]
