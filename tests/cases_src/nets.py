"""Layers' gradients and old forms, images, sound, quantised arithmetic, transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import (
    bf16,
    c64,
    c128,
    f16,
    f32,
    f64,
    graph,
    i8,
    i32,
    i64,
    inf,
    nan,
    normal,
    op,
    q,
    s,
    u8,
    uniform,
)

_IMAGE = normal(1, 4, 4, 2, seed=1)
_POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
_POOL_2 = {"ksize": i32([1, 2, 2, 1]), "strides": i32([1, 1, 1, 1]), "padding": "SAME"}
_BOX = normal(1, 4, 4, 4, 1, seed=2)
_BOX_POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}


def pooled_twice(tf: Any, op_name: str) -> Any:
    """The gradient of a pool's gradient."""
    raw = tf.raw_ops
    if op_name == "MaxPool3DGradGrad":
        y = raw.MaxPool3D(input=_BOX, **_BOX_POOL)
        return raw.MaxPool3DGradGrad(
            orig_input=_BOX, orig_output=y, grad=normal(*_BOX.shape, seed=3), **_BOX_POOL
        )
    made = getattr(raw, op_name)
    if op_name == "MaxPoolGradV2":
        y = raw.MaxPoolV2(input=_IMAGE, **_POOL_2)
        grad = normal(1, 4, 4, 2, seed=3)
        return made(orig_input=_IMAGE, orig_output=y, grad=grad, **_POOL_2)
    args = _POOL_2 if op_name.endswith("V2") else _POOL
    y = raw.MaxPoolV2(input=_IMAGE, **{**args, "ksize": i32([1, 2, 2, 1]),
                                       "strides": i32(args["strides"])})  # fmt: skip
    return made(orig_input=_IMAGE, orig_output=y, grad=normal(1, 4, 4, 2, seed=3), **args)


def batch_norm_grad(tf: Any, op_name: str, layout: str, training: bool) -> Any:
    """Gradients of a batch norm, with the statistics as its forward pass gives them."""
    x = normal(2, 3, 3, 2, seed=4)
    x = x if layout == "NHWC" else x.transpose(0, 3, 1, 2)
    mean, variance = f32([0.1, -0.2]), f32([0.5, 1.5])
    return getattr(tf.raw_ops, op_name)(
        y_backprop=normal(*x.shape, seed=5), x=x, scale=f32([1.5, 0.5]),
        reserve_space_1=mean, reserve_space_2=variance, epsilon=0.01,
        data_format=layout, is_training=training,
    )[:3]  # fmt: skip


def lstm(tf: Any, op_name: str, peephole: bool) -> Any:
    """An LSTM over three steps; the second row is shorter than the others."""
    units, raw = 2, tf.raw_ops
    args = {
        "seq_len_max": i64(2), "x": normal(3, 2, 3, seed=6), "cs_prev": normal(2, units, seed=7),
        "h_prev": normal(2, units, seed=8), "w": normal(3 + units, 4 * units, seed=9),
        "wci": normal(units, seed=10), "wcf": normal(units, seed=11),
        "wco": normal(units, seed=12), "b": normal(4 * units, seed=13),
    }  # fmt: skip
    first = getattr(raw, "BlockLSTM" if op_name == "BlockLSTMGrad" else "BlockLSTMV2")
    made = first(use_peephole=peephole, **args)
    if op_name == "BlockLSTMV2":
        return [out[:2] for out in made]
    grads = {"cs_grad": normal(3, 2, units, seed=14), "h_grad": normal(3, 2, units, seed=15)}
    return getattr(raw, op_name)(use_peephole=peephole, **args, **made._asdict(), **grads)


def old_eigenvectors(tf: Any) -> Any:
    """Values and vectors in one matrix; the sign of a vector is not given."""
    return tf.abs(tf.raw_ops.SelfAdjointEig(input=f64([[2, 1], [1, 3]])))


_GRADS = {"image": uniform(1, 4, 5, 1), "out": uniform(1, 8, 7, 1)}


def _sure(classes: int) -> Any:
    """Logits of predictions that are nearly certain of class 1."""
    logits = normal(24, classes, seed=classes)
    logits[:, 1] += np.linspace(9, 13, 24, dtype=np.float32) + np.log(classes, dtype=np.float32)
    return logits


def wide_windows(tf: Any, wide: str, odd: tuple[float, ...] = ()) -> Any:
    """Some places of large windows that slide over a channel each, and the images' gradient."""
    images = normal(1, 31, 30, 2, seed=16).astype(wide)
    images[0, 3, 4 : 4 + len(odd), 0] = odd
    filters, raw = normal(7, 6, 2, 1, seed=17).astype(wide), tf.raw_ops
    args = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    found = raw.DepthwiseConv2dNative(input=images, filter=filters, **args)
    back = raw.DepthwiseConv2dNativeBackpropInput(
        input_sizes=i32(images.shape), filter=filters, out_backprop=images, **args
    )
    return found[:, ::3, ::4], back[:, 1::4, 1::3]


CASES = [
    *(graph(wide_windows, wide) for wide in ("float32", "float64")),
    graph(wide_windows, "float32", (inf, -inf, nan)),
    *(
        graph(pooled_twice, name)
        for name in (
            "MaxPool3DGradGrad",
            "MaxPoolGradGrad",
            "MaxPoolGradGradV2",
            "MaxPoolGradV2",
        )
    ),
    *(
        graph(batch_norm_grad, name, layout, training)
        for name in ("FusedBatchNormGrad", "FusedBatchNormGradV2")
        for layout in ("NHWC", "NCHW")
        for training in (True, False)
        if training or layout == "NHWC"
    ),
    op(
        "BatchNormWithGlobalNormalization",
        t=normal(1, 2, 2, 2),
        m=f32([0, 1]),
        v=f32([1, 2]),
        beta=f32([0, 1]),
        gamma=f32([2, 3]),
        variance_epsilon=0.1,
        scale_after_normalization=True,
        producer=8,
    ),
    op(
        "BatchNormWithGlobalNormalizationGrad",
        t=normal(1, 2, 2, 2),
        m=f32([0, 1]),
        v=f32([1, 2]),
        gamma=f32([2, 3]),
        backprop=normal(1, 2, 2, 2, seed=2),
        variance_epsilon=0.1,
        scale_after_normalization=True,
        producer=8,
    ),
    graph(lstm, "BlockLSTMV2", False),
    graph(lstm, "BlockLSTMV2", True),
    graph(lstm, "BlockLSTMGrad", False, tol=(1e-4, 1e-5)),
    graph(lstm, "BlockLSTMGrad", True, tol=(1e-4, 1e-5)),
    *(
        op(
            name,
            input=normal(1, 3, 3, 3, 1),
            filter=normal(2, 2, 2, 1, 2),
            out_backprop=normal(1, 2, 2, 2, 2),
            strides=[1, 1, 1, 1, 1],
            padding="VALID",
            producer=9,
        )
        for name in ("Conv3DBackpropFilter", "Conv3DBackpropInput")
    ),
    op("BatchMatrixSetDiag", input=normal(2, 2, 3), diagonal=normal(2, 2), producer=13),
    op("BatchMatrixDiag", diagonal=normal(2, 2), producer=13),
    op("BatchMatrixDiagPart", input=normal(2, 3, 2), producer=13),
    op(
        "BatchMatrixBandPart",
        input=normal(2, 3, 2),
        num_lower=i64(0),
        num_upper=i64(-1),
        producer=13,
    ),
    graph(old_eigenvectors, producer=10),
    op(
        "MatrixSolveLs",
        matrix=normal(4, 2),
        rhs=normal(4, 1, seed=2),
        l2_regularizer=f64(0),
        tol=(1e-4, 1e-5),
    ),
    op(
        "MatrixSolveLs",
        matrix=normal(4, 2),
        rhs=normal(4, 1, seed=2),
        l2_regularizer=f64(0.5),
        tol=(1e-4, 1e-5),
    ),
    op(
        "MatrixSolveLs",
        matrix=normal(2, 2, 4),
        rhs=normal(2, 2, 1, seed=2),
        l2_regularizer=f64(0.1),
        tol=(1e-4, 1e-5),
    ),
    op(
        "MatrixSolveLs",
        matrix=normal(4, 2, dtype="f8"),
        rhs=normal(4, 1, seed=2, dtype="f8"),
        l2_regularizer=f64(0),
        fast=False,
    ),
    op("InvGrad", y=f32([0.5, -2, 0]), dy=f32([1, 2, 3])),
    op("InvGrad", y=c64([1 + 2j]), dy=c64([3 - 1j])),
    op("IgammaGradA", a=f32([0.5, 2, 8]), x=f32([0.2, 3, 7]), tol=(1e-4, 1e-5)),
    *(
        op(f"Inplace{kind}", x=x, i=i32([0, -1]), v=v)
        for kind in ("Update", "Add", "Sub")
        for x, v in [(f32([[1, 2], [3, 4], [5, 6]]), f32([[9, 9], [8, 8]]))]
    ),
    op("InplaceUpdate", x=f32([1, 2]), i=i32(1), v=f32(7)),
    op("InplaceUpdate", x=f32([1, 2]), i=i32([0, 1]), v=f32([7]), says="shape"),
    op(
        "AdjustContrast",
        images=f32(uniform(2, 2, 3) * 255),
        contrast_factor=f32(1.5),
        min_value=f32(20),
        max_value=f32(200),
        producer=1,
    ),
    op(
        "DrawBoundingBoxes",
        images=uniform(1, 6, 7, 3),
        boxes=f32([[[0.1, 0.2, 0.8, 0.9], [-1, 0, 2, 0.4]]]),
    ),
    op(
        "DrawBoundingBoxesV2",
        images=uniform(1, 6, 7, 1),
        boxes=f32([[[0.1, 0.2, 0.8, 0.9]]]),
        colors=f32([[0.5]]),
    ),
    *(
        op(
            "ScaleAndTranslate",
            images=_GRADS["image"],
            size=i32([8, 7]),
            scale=f32([2, 1.4]),
            translation=f32([0.3, -0.5]),
            kernel_type=kind,
            antialias=smooth,
            tol=(1e-4, 1e-5),
        )
        for kind in ("lanczos3", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
        for smooth in (True, False)
    ),
    op(
        "ScaleAndTranslate",
        images=u8([[[[1], [2]], [[200], [4]]]]),
        size=i32([1, 1]),
        scale=f32([0.5, 0.5]),
        translation=f32([0, 0]),
        kernel_type="triangle",
    ),
    op(
        "ScaleAndTranslateGrad",
        grads=_GRADS["out"],
        original_image=_GRADS["image"],
        scale=f32([2, 1.4]),
        translation=f32([0.3, -0.5]),
        tol=(1e-4, 1e-5),
    ),
    op("EncodeWav", audio=f32([[0.5, -0.5], [1.5, -1], [0, 1e-5]]), sample_rate=i32(8000)),
    op("EncodeWav", audio=f32([0.5]), sample_rate=i32(8000), says="audio must be 2-dimensional"),
    *(
        op(
            "QuantizeAndDequantizeV2",
            input=f32([-3, -0.4, 0, 0.126, 1, 2.5]),
            input_min=f32(-1),
            input_max=f32(2),
            **extra,
        )
        for extra in [
            {},
            {"range_given": True},
            {"signed_input": False},
            {"narrow_range": True},
            {"num_bits": 4, "round_mode": "HALF_UP"},
        ]
    ),
    op(
        "QuantizeAndDequantizeV2",
        input=normal(3, 4),
        input_min=f32([-1, -2, -3]),
        input_max=f32([1, 2, 3]),
        range_given=False,
        axis=0,
    ),
    op(
        "QuantizedMul",
        x=q("quint8", [0, 100, 255]),
        y=q("quint8", [3, 200, 255]),
        min_x=f32(-1),
        max_x=f32(1),
        min_y=f32(0),
        max_y=f32(2),
    ),
    op(
        "QuantizedMul",
        x=q("quint8", [[1, 2], [3, 4]]),
        y=q("quint8", 7),
        min_x=f32(-1),
        max_x=f32(1),
        min_y=f32(0),
        max_y=f32(2),
    ),
    op(
        "QuantizedRelu6",
        features=q("quint8", [0, 100, 255]),
        min_features=f32(-8),
        max_features=f32(8),
    ),
    op(
        "QuantizedRelu",
        features=q("quint8", [0, 100, 255]),
        min_features=f32(-8),
        max_features=f32(8),
    ),
    op(
        "IRFFT3D",
        input=c64(normal(2, 3, 2) + 1j * normal(2, 3, 2, seed=1)),
        fft_length=i32([2, 3, 3]),
        tol=(1e-4, 1e-5),
    ),
    op("IRFFT3D", input=c128(normal(2, 2, 3, 2)), fft_length=i32([2, 4, 2]), Treal="float64"),
    op("RFFT3D", input=normal(2, 3, 4), fft_length=i32([2, 3, 3]), tol=(1e-4, 1e-5)),
    *(
        op("FFT3D", input=c64(np.zeros(shape)), tol=(1e-4, 1e-5))
        for shape in [(2, 0, 2), (1, 1, 1)]
    ),
    op("Bincount", arr=i32([1, 2, 2, 7]), size=i32(4), weights=f32([])),
    op("Bincount", arr=i32([[1, 2], [2, 0]]), size=i32(3), weights=f64([[1, 2], [3, 4]])),
    op("Bincount", arr=i32([1, 2]), size=i32(3), weights=i32([5, 6])),
    op("Bincount", arr=i32([]), size=i32(0), weights=i64([])),
    op("Bincount", arr=i32([-1, 2]), size=i32(3), weights=i32([]), says="must be non-neg"),
    op("Bincount", arr=i32([1]), size=i32(-3), weights=i32([]), says="size (-3) must be non-neg"),
    op("DenseBincount", input=i32([[1, 2, 2], [0, 9, 1]]), size=i32(3), weights=f32([])),
    op("DenseBincount", input=i64([1, 1]), size=i64(3), weights=f32([]), binary_output=True),
    op("ShardedFilespec", basename=s(b"/a/b"), num_shards=i32(7)),
    op("ShardedFilename", basename=s(b"/a/b"), shard=i32(3), num_shards=i32(7)),
    op("PrintV2", input=s(b""), end=""),
    op("L2Loss", t=f16([1, 2, 3])),
    op("L2Loss", t=bf16([])),
    op("Softmax", logits=f32([[inf, 1], [nan, 0], [-inf, -inf]])),
    op("Softmax", logits=f32(np.zeros((0, 3)))),
    op("LogSoftmax", logits=f64([1e300, -1e300])),
    op("Elu", features=f16([-1, 0, 2])),
    op("Relu6", features=i8([-5, 3, 100])),
    *(
        op(
            "SparseSoftmaxCrossEntropyWithLogits",
            features=_sure(classes),
            labels=i32([1] * 24),
            tol=(1e-5, 0),
        )
        for classes in (5, 8, 10, 33, 100)
    ),
    op(
        "SoftmaxCrossEntropyWithLogits",
        features=_sure(12),
        labels=f32(np.eye(12)[[1] * 24]),
        tol=(1e-5, 0),
    ),
]
