"""Ragged tensors as variants; images through projective transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f16, f32, f64, graph, i32, i64, op, s, u8

_SPLITS = [i64([0, 2, 2, 3]), i64([0, 1, 3, 6])]
_VALUES = f32([1, 2, 3, 4, 5, 6])


def there_and_back(tf: Any, batched: bool, rank: int) -> Any:
    """A ragged tensor through a variant."""
    raw = tf.raw_ops
    splits = _SPLITS[2 - rank :]
    encoded = raw.RaggedTensorToVariant(
        rt_nested_splits=splits, rt_dense_values=_VALUES, batched_input=batched
    )
    back = raw.RaggedTensorFromVariant(
        encoded_ragged=encoded, input_ragged_rank=rank - batched, output_ragged_rank=rank,
        Tvalues="float32", Tsplits="int64",
    )  # fmt: skip
    return [*back.output_nested_splits, back.output_dense_values]


def dense_rows(tf: Any) -> Any:
    """Rows of a dense tensor as variants, and as a ragged one."""
    raw = tf.raw_ops
    rows = s([[b"a", b"b"], [b"c", b"d"], [b"e", b"f"]])
    encoded = raw.RaggedTensorToVariant(
        rt_nested_splits=[], rt_dense_values=rows, batched_input=True
    )
    back = raw.RaggedTensorFromVariant(
        encoded_ragged=encoded, input_ragged_rank=0, output_ragged_rank=1, Tvalues="string",
        Tsplits="int64",
    )  # fmt: skip
    return [tf.shape(encoded), *back.output_nested_splits, back.output_dense_values]


def two_dimensions(tf: Any) -> Any:
    """An array of variants of two dimensions."""
    raw = tf.raw_ops
    encoded = [
        raw.RaggedTensorToVariant(
            rt_nested_splits=[i64([0, n, n + 1])], rt_dense_values=f64(np.arange(n + 1)),
            batched_input=False,
        )
        for n in range(4)
    ]  # fmt: skip
    back = raw.RaggedTensorFromVariant(
        encoded_ragged=tf.reshape(tf.stack(encoded), [2, 2]), input_ragged_rank=-1,
        output_ragged_rank=3, Tvalues="float64",
    )  # fmt: skip
    return [*back.output_nested_splits, back.output_dense_values]


def added(tf: Any) -> Any:
    """Zeros and sums of ragged variants."""
    raw = tf.raw_ops
    encoded = raw.RaggedTensorToVariant(
        rt_nested_splits=[i64([0, 2, 3])], rt_dense_values=f32([1, 2, 3]), batched_input=False
    )
    total = raw.AddN(inputs=[encoded, raw.ZerosLike(x=encoded), encoded])
    back = raw.RaggedTensorFromVariant(
        encoded_ragged=total, input_ragged_rank=1, output_ragged_rank=1, Tvalues="float32"
    )
    return [*back.output_nested_splits, back.output_dense_values]


def gradient(tf: Any) -> Any:
    """Gradients of rows as the gradient of all values."""
    raw = tf.raw_ops
    encoded = raw.RaggedTensorToVariant(
        rt_nested_splits=[i64([0, 2, 3])], rt_dense_values=f32([1, 2, 3]), batched_input=True
    )
    return raw.RaggedTensorToVariantGradient(
        encoded_ragged_grad=encoded, row_splits=i64([0, 2, 3]), dense_values_shape=i32([3]),
        Tvalues="float32",
    )  # fmt: skip


def wrong_rank(tf: Any, given: int, wanted: int) -> Any:
    """Ranks that do not add up."""
    raw = tf.raw_ops
    encoded = raw.RaggedTensorToVariant(
        rt_nested_splits=[i64([0, 2, 3])], rt_dense_values=f32([1, 2, 3]), batched_input=False
    )
    back = raw.RaggedTensorFromVariant(
        encoded_ragged=tf.placeholder_with_default(encoded, None), input_ragged_rank=given,
        output_ragged_rank=wanted, Tvalues="float32",
    )  # fmt: skip
    return back.output_dense_values


_TRANSFORMS = {
    "shift": [1, 0, 0.5, 0, 1, 0.25, 0, 0],
    "far": [1, 0, -9.25, 0, 1, 7.75, 0, 0],
    "shear": [1, 0.3, -1, 0.2, 1, 0, 0, 0],
    "perspective": [1, 0, 0, 0, 1, 0, 0.1, -0.05],
    "nowhere": [1, 0, 0, 0, 1, 0, -1, 0],
}


def _warped(name: str, how: str, mode: str, images: Any = None, **extra: Any) -> Any:
    return op(
        "ImageProjectiveTransformV3",
        images=f32(np.arange(24)).reshape(1, 3, 4, 2) if images is None else images,
        transforms=f32([_TRANSFORMS[name]]), output_shape=i32([4, 5]), fill_value=f32(-1.5),
        interpolation=how, fill_mode=mode, **extra,
    )  # fmt: skip


CASES = [
    *(graph(there_and_back, batched, rank) for batched in (False, True) for rank in (1, 2)),
    graph(dense_rows),
    graph(two_dimensions),
    graph(added),
    graph(gradient),
    graph(wrong_rank, 0, 0, says="ragged_rank=1"),
    graph(wrong_rank, 1, 2, says="output_ragged_rank must be equal to input_ragged_rank"),
    *(
        _warped(name, how, mode)
        for name in _TRANSFORMS
        for how in ("NEAREST", "BILINEAR")
        for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST")
    ),
    _warped("shear", "BILINEAR", "CONSTANT", u8(np.arange(12) * 20).reshape(1, 3, 4, 1)),
    _warped("shear", "BILINEAR", "CONSTANT", i64(np.arange(12) * 20).reshape(1, 3, 4, 1)),
    _warped("shear", "BILINEAR", "CONSTANT", f16(np.arange(12)).reshape(1, 3, 4, 1)),
    op(
        "ImageProjectiveTransformV2",
        images=f32(np.arange(12)).reshape(1, 3, 4, 1),
        transforms=f32([[1, 0, 1, 0, 1, 0, 0, 0]]),
        output_shape=i32([3, 4]),
        interpolation="NEAREST",
    ),
    op(
        "ImageProjectiveTransformV2",
        images=f32(np.arange(12)).reshape(1, 3, 4, 1),
        transforms=f32([[1, 0, 1, 0, 1, 0]]),
        output_shape=i32([3, 4]),
        interpolation="NEAREST",
        says="Input transform should be num_images x 8 or 1 x 8",
    ),
    op(
        "ImageProjectiveTransformV2",
        images=f32(np.arange(12)).reshape(1, 3, 4, 1),
        transforms=f32([[1, 0, 1, 0, 1, 0, 0, 0]]),
        output_shape=i32([0, 4]),
        interpolation="NEAREST",
        says="output",
    ),
]
