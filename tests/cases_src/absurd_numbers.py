"""Numbers that are too large, zero or negative where sizes, places and counts are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, graph, i32, i64, op, s

_M = 2**31 - 1


def warped() -> list[Any]:
    """Images of another size."""
    image, matrix = f32(np.ones((1, 4, 4, 1))), f32(np.ones((1, 8)))

    def case(size: Any, says: str) -> Any:
        return op(
            "ImageProjectiveTransformV3",
            images=image,
            transforms=matrix,
            output_shape=i32(size),
            fill_value=f32(0),
            interpolation="NEAREST",
            says=says,
        )

    return [
        case([_M, _M], "OOM when allocating tensor with shape[1,2147483647,2147483647,1]"),
        *(case(size, "output dimensions must be positive") for size in ([0, 0], [-1, 2], [_M, 0])),
        case([2], "output shape must have two elements[1]"),
        case([2, 2, 2], "output shape must have two elements[3]"),
    ]


def parts_of_images() -> list[Any]:
    """Random parts of images without pixels, and of images that are too large."""

    def case(size: Any, says: str = "") -> Any:
        return op(
            "StatelessSampleDistortedBoundingBox",
            image_size=size,
            bounding_boxes=f32([[[0, 0, 1, 1]]]),
            min_object_covered=f32(0.1),
            seed=i32([1, 2]),
            says=says,
        )

    return [
        *(case(i32(size)) for size in ([0, 0, 3], [0, 5, 3], [5, 0, 3], [1, 1, 1], [5, 5, -1])),
        *(
            case(size, "image height cannot be >= int32 max")
            for size in (
                i32([-1, 5, 3]),
                i32([_M, 1, 3]),
                i64([2**62, 1, 3]),
                i64([-(2**63), 5, 3]),
            )
        ),
        case(i64([5, 2**62, 3]), "image width cannot be >= int32 max"),
    ]


def pooling() -> list[Any]:
    """Parts of images that lie outside, are empty, or too few."""
    image = f32(np.random.default_rng(1).permutation(16)).reshape(1, 4, 4, 1)
    grads = f32(np.arange(1, 5)).reshape(1, 2, 2, 1)
    greatest = f32([image[0, r : r + 2, c : c + 2].max() for r in (0, 2) for c in (0, 2)])
    whole, wrong = [0, 2, 4], "Row sequence tensor values must not be negative"
    few = "seq_tensor must have at least 3 elements, but got"

    def mean(rows: Any, columns: Any, says: str = "", *, overlaps: bool = False) -> Any:
        return op(
            "FractionalAvgPoolGrad",
            orig_input_tensor_shape=i64([1, 4, 4, 1]),
            out_backprop=grads,
            row_pooling_sequence=i64(rows),
            col_pooling_sequence=i64(columns),
            overlapping=overlaps,
            says=says,
        )

    def most(rows: Any, columns: Any, says: str = "") -> Any:
        return op(
            "FractionalMaxPoolGrad",
            orig_input=image,
            orig_output=greatest.reshape(1, 2, 2, 1),
            out_backprop=grads,
            row_pooling_sequence=i64(rows),
            col_pooling_sequence=i64(columns),
            says=says,
        )

    return [
        mean(whole, whole),
        mean([0, 2, 9], whole),
        mean([0, 2, 9], whole, overlaps=True),
        mean([0, 0, 0], whole, overlaps=True),
        mean([4, 2, 0], whole, overlaps=True),
        mean([2**62] * 3, whole),
        mean(whole, [0, 2, 4, 4, 4]),
        *(mean(rows, whole, wrong) for rows in ([0, 0, 0], [4, 2, 0], [-1, 2, 4], [0, 2, 0])),
        mean(whole, [0, 2], few),
        mean([0], whole, few),
        most(whole, whole),
        most([0, 2, 9], whole),
        *(
            most(rows, whole, "tensor_out_dup is not the same as tensor_out")
            for rows in ([0, 0, 0], [4, 2, 0], [0, 2, 0], [0], [2**62] * 3)
        ),
    ]


# -- sparse and ragged tensors ---------------------------------------------------------


def _rows(tf: Any, indices: Any, values: Any, shape: Any) -> Any:
    """A matrix in rows and back."""
    parts = {"indices": indices, "values": values, "dense_shape": shape}
    matrix = tf.raw_ops.SparseTensorToCSRSparseMatrix(**parts)
    return [*tf.raw_ops.CSRSparseMatrixToSparseTensor(sparse_matrix=matrix, type=values.dtype)]


def sparse_rows() -> list[Any]:
    """Matrices of more rows than can be counted."""
    two, none = i64([[0, 0], [1, 1]]), i64(np.zeros((0, 2)))
    says = "must be <= Int32Max, but is too large. Current value is"
    return [
        *(
            graph(_rows, two, f32([1, 2]), i64(shape), says=f"{says} {shape[0] + 1}")
            for shape in ([2**62, 2], [_M, 2], [2**40, 2**40])
        ),
        graph(_rows, none, f32([]), i64([2**62, 2]), says=f"{says} {2**62 + 1}"),
        graph(_rows, two, f32([1, 2]), i64([2, 2])),
        graph(_rows, none, f32([]), i64([0, 0])),
    ]


def _encoded(tf: Any, splits: Any, values: Any, is_batched: bool) -> Any:
    """A ragged tensor as variants, and back."""
    ragged = tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=splits, rt_dense_values=values, batched_input=is_batched
    )
    back = tf.raw_ops.RaggedTensorFromVariant(
        encoded_ragged=ragged,
        input_ragged_rank=-1 if is_batched else len(splits),
        output_ragged_rank=len(splits),
        Tvalues=values.dtype,
        Tsplits=splits[0].dtype,
    )
    return [tf.shape(ragged), *back.output_nested_splits, back.output_dense_values]


def _gradient(tf: Any, splits: Any, shape: Any) -> Any:
    """The gradient of a ragged tensor's variants."""
    ragged = tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[splits], rt_dense_values=tf.constant([1.0, 2.0, 3.0]), batched_input=True
    )
    return [
        tf.raw_ops.RaggedTensorToVariantGradient(
            encoded_ragged_grad=ragged,
            row_splits=splits,
            dense_values_shape=shape,
            Tvalues=tf.float32,
        )
    ]


def ragged() -> list[Any]:
    """Splits that do not cut what there is."""
    wrong = "Invalid ragged splits:"
    rows: list[tuple[list[list[int]], str]] = [
        ([[0, 1, 3]], ""),
        ([[0, 2], [0, 1, 3]], ""),
        ([[_M] * 3], f"{wrong} first element of ragged splits  must be 0 but is {_M}"),
        ([[-1, 1, 3]], f"{wrong} first element of ragged splits  must be 0 but is -1"),
        ([[0, 3, 1]], "ragged_splits[2]=1 is smaller than row_splits[1]=3"),
        ([[0, 1, 2]], "must be the number of ragged values(3) but is 2"),
        ([[0, 1, 5]], "must be the number of ragged values(3) but is 5"),
        ([[0, 3], [0, 1, 3]], "must be the number of ragged values(2) but is 3"),
        ([[0, 1, 2], [0, 1, 5]], "must be the number of ragged values(3) but is 5"),
    ]
    parts = i64([0, 1, 3])
    return [
        *(
            graph(_encoded, [i64(part) for part in splits], f32([1, 2, 3]), batched, says=says)
            for splits, says in rows
            for batched in (False, True)
        ),
        *(graph(_gradient, parts, i32(shape)) for shape in ([3], [2], [0], [3, 1])),
        graph(_gradient, parts, i32([-1]), says="Dimension -1 must be >= 0"),
    ]


# -- many parts ------------------------------------------------------------------------


def counts() -> list[Any]:
    """Parts, places and characters of which there are more than anybody needs."""
    return [
        op(
            "UnicodeTranscode",
            input=s([b"ab"]),
            input_encoding="hex",
            output_encoding="UTF-8",
            says="Could not create converter for input encoding: hex",
        ),
        *(
            op(
                "UnicodeTranscode",
                input=s([b"a\xffb"]),
                input_encoding="UTF-8",
                output_encoding=encoding,
                replacement_char=char,
            )
            for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
            for char in (0xD800, 0xDFFF, 0x10FFFF, 0)
        ),
        *(
            op("UnicodeDecode", input=s([b"a\xffb"]), input_encoding="UTF-8", **more)
            for more in ({"replacement_char": 0xD800}, {"replacement_char": 0x10FFFF})
        ),
        *(
            op(
                "UnicodeDecode",
                input=s([b"a\xffb"]),
                input_encoding="UTF-8",
                replacement_char=char,
                says="replacement_char out of unicode codepoint range",
            )
            for char in (-1, 0x110000, _M)
        ),
    ]


CASES = [
    *warped(),
    *parts_of_images(),
    *pooling(),
    *sparse_rows(),
    *ragged(),
    *counts(),
]
