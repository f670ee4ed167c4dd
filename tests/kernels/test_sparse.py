"""Sparse tensors; expected values were recorded from TensorFlow."""

# ruff: noqa: E501 (messages are kept on one line)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from support.recorded import EV, I2, V2, E, I, L, S, V, args, call, plain

#: Three elements of a 3x2 matrix, out of order, and two in order.
ANSWERS = [
    (
        "SparseToDense",
        args(
            sparse_indices=I,
            output_shape=S,
            sparse_values=V,
            default_value=-1.0,
            validate_indices=False,
        ),
        [[3.0, 1.0], [-1.0, -1.0], [2.0, -1.0]],
    ),
    (
        "SparseToDense",
        args(
            sparse_indices=[[0, 0], [0, 0]],
            output_shape=[2, 2],
            sparse_values=[1.0, 2.0],
            default_value=0.0,
            validate_indices=False,
        ),
        [[2.0, 0.0], [0.0, 0.0]],
    ),
    (
        "SparseToDense",
        args(sparse_indices=[1, 3], output_shape=[4], sparse_values=7.0, default_value=0.0),
        [0.0, 7.0, 0.0, 7.0],
    ),
    (
        "SparseToDense",
        args(sparse_indices=2, output_shape=[4], sparse_values=7.0, default_value=0.0),
        [0.0, 0.0, 7.0, 0.0],
    ),
    (
        "SparseReorder",
        args(input_indices=I, input_values=V, input_shape=S),
        [[[0, 0], [0, 1], [2, 0]], [3.0, 1.0, 2.0]],
    ),
    (
        "SparseReorder",
        args(input_indices=L([0, 5]), input_values=V[:1], input_shape=S),
        [[[0, 5]], [1.0]],
    ),
    (
        "SparseReshape",
        args(input_indices=I, input_shape=S, new_shape=L(2, -1)),
        [[[0, 1], [1, 1], [0, 0]], [2, 3]],
    ),
    ("SparseReshape", args(input_indices=E, input_shape=L(0, 2), new_shape=L(-1, 5)), [[], [0, 5]]),
    ("SparseReshape", args(input_indices=L([0, 7]), input_shape=S, new_shape=L(6)), [[[7]], [6]]),
    (
        "SparseFillEmptyRows",
        args(indices=L([0, 1], [3, 0], [0, 0]), values=V, dense_shape=L(5, 2), default_value=9.0),
        [
            [[0, 1], [0, 0], [1, 0], [2, 0], [3, 0], [4, 0]],
            [1.0, 3.0, 9.0, 9.0, 2.0, 9.0],
            [False, True, True, False, True],
            [0, 4, 1],
        ],
    ),
    (
        "SparseFillEmptyRows",
        args(
            indices=L([0, 1], [1, 0], [1, 2], [2, 0]),
            values=np.float32([1, 2, 3, 4]),
            dense_shape=L(3, 3),
            default_value=9.0,
        ),
        [
            [[0, 1], [1, 0], [1, 2], [2, 0]],
            [1.0, 2.0, 3.0, 4.0],
            [False, False, False],
            [0, 1, 2, 3],
        ],
    ),
    (
        "SparseFillEmptyRows",
        args(
            indices=L([1, 2], [0, 1], [2, 0], [1, 0]),
            values=np.float32([1, 2, 3, 4]),
            dense_shape=L(3, 3),
            default_value=9.0,
        ),
        [
            [[0, 1], [1, 2], [1, 0], [2, 0]],
            [2.0, 1.0, 4.0, 3.0],
            [False, False, False],
            [1, 0, 3, 2],
        ],
    ),
    (
        "SparseFillEmptyRows",
        args(indices=E, values=EV, dense_shape=L(2, 2), default_value=9.0),
        [[[0, 0], [1, 0]], [9.0, 9.0], [True, True], []],
    ),
    (
        "SparseFillEmptyRows",
        args(indices=E, values=EV, dense_shape=L(0, 2), default_value=9.0),
        [[], [], [], []],
    ),
    (
        "SparseFillEmptyRowsGrad",
        args(reverse_index_map=L(2, 0, 1), grad_values=np.float32([1, 2, 3, 4, 5])),
        [[3.0, 1.0, 2.0], 9.0],
    ),
    (
        "SparseSlice",
        args(indices=I[[0, 2, 1]], values=V, shape=S, start=L(0, 1), size=L(2, 5)),
        [[[0, 0]], [1.0], [2, 1]],
    ),
    (
        "SparseSlice",
        args(indices=I[[0, 2, 1]], values=V, shape=S, start=L(1, 0), size=L(9, 2)),
        [[[1, 0]], [3.0], [2, 2]],
    ),
    (
        "SparseSlice",
        args(indices=I, values=V, shape=S, start=L(5, 0), size=L(9, 2)),
        [[], [], [0, 2]],
    ),
    (
        "SparseSlice",
        args(indices=I, values=V, shape=S, start=L(-1, 0), size=L(2, 2)),
        [[[1, 1], [1, 0]], [1.0, 3.0], [2, 2]],
    ),
    (
        "SparseSliceGrad",
        args(
            backprop_val_grad=V[:2],
            input_indices=I,
            input_start=L(0, 0),
            output_indices=L([0, 1], [0, 0]),
        ),
        [1.0, 0.0, 2.0],
    ),
    (
        "SparseConcat",
        args(indices=[I, I2], values=[V, V2], shapes=[S, L(3, 4)], concat_dim=1),
        [[[0, 0], [0, 1], [0, 2], [1, 3], [2, 0]], [3.0, 1.0, 10.0, 20.0, 2.0], [3, 6]],
    ),
    (
        "SparseConcat",
        args(indices=[I, I2], values=[V, V2], shapes=[S, L(4, 2)], concat_dim=-2),
        [[[0, 0], [0, 1], [2, 0], [3, 0], [4, 1]], [3.0, 1.0, 2.0, 10.0, 20.0], [7, 2]],
    ),
    (
        "SparseSplit",
        args(split_dim=L(1)[0], indices=I, values=V, shape=L(3, 3), num_split=2),
        [[[[0, 1], [2, 0], [0, 0]], []], [[1.0, 2.0, 3.0], []], [[3, 2], [3, 1]]],
    ),
    (
        "SparseSplit",
        args(split_dim=L(-1)[0], indices=I, values=V, shape=L(3, 3), num_split=2),
        [[[[0, 1], [2, 0], [0, 0]], []], [[1.0, 2.0, 3.0], []], [[3, 2], [3, 1]]],
    ),
    (
        "SparseSplit",
        args(split_dim=L(0)[0], indices=I, values=V, shape=L(3, 3), num_split=2),
        [[[[0, 1], [0, 0]], [[0, 0]]], [[1.0, 3.0], [2.0]], [[2, 3], [1, 3]]],
    ),
    (
        "SparseAdd",
        args(
            a_indices=I[[2, 0, 1]],
            a_values=V,
            a_shape=S,
            b_indices=I2,
            b_values=V2,
            b_shape=S,
            thresh=0.0,
        ),
        [[[0, 0], [0, 1], [1, 1], [2, 0]], [11.0, 2.0, 20.0, 3.0], [3, 2]],
    ),
    (
        "SparseAdd",
        args(
            a_indices=I[[2, 0, 1]],
            a_values=V,
            a_shape=S,
            b_indices=I2,
            b_values=-V[:2],
            b_shape=S,
            thresh=1.5,
        ),
        [[[0, 1], [1, 1], [2, 0]], [2.0, -2.0, 3.0], [3, 2]],
    ),
    (
        "SparseAdd",
        args(
            a_indices=I[[2, 0, 1]],
            a_values=np.float32([1, 2, 3]),
            a_shape=S,
            b_indices=I2,
            b_values=np.float32([-1, 0]),
            b_shape=S,
            thresh=0.0,
        ),
        [[[0, 0], [0, 1], [1, 1], [2, 0]], [0.0, 2.0, 0.0, 3.0], [3, 2]],
    ),
    (
        "SparseAdd",
        args(a_indices=I, a_values=V, a_shape=S, b_indices=I2, b_values=V2, b_shape=S, thresh=0.0),
        [[[0, 0], [0, 1], [1, 1], [2, 0], [0, 0]], [10.0, 1.0, 20.0, 2.0, 3.0], [3, 2]],
    ),
    (
        "SparseAdd",
        args(
            a_indices=L([0, 9]),
            a_values=V[:1],
            a_shape=S,
            b_indices=I2,
            b_values=V2,
            b_shape=S,
            thresh=0.0,
        ),
        [[[0, 0], [0, 9], [1, 1]], [10.0, 1.0, 20.0], [3, 2]],
    ),
    (
        "SparseAddGrad",
        args(
            backprop_val_grad=np.float32([1, 2, 3, 4]),
            a_indices=I[[2, 0, 1]],
            b_indices=I2,
            sum_indices=L([0, 0], [0, 1], [1, 1], [2, 0]),
        ),
        [[1.0, 2.0, 4.0], [1.0, 3.0]],
    ),
    (
        "SparseReduceSum",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=[0]),
        [5.0, 1.0],
    ),
    (
        "SparseReduceSum",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=[1], keep_dims=True),
        [[4.0], [0.0], [2.0]],
    ),
    (
        "SparseReduceSum",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=[]),
        [[3.0, 1.0], [0.0, 0.0], [2.0, 0.0]],
    ),
    (
        "SparseReduceSum",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=[0, 1]),
        6.0,
    ),
    (
        "SparseReduceSum",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=[0, 0]),
        [5.0, 1.0],
    ),
    (
        "SparseReduceSum",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=-1),
        [4.0, 0.0, 2.0],
    ),
    (
        "SparseReduceMax",
        args(input_indices=I, input_values=-V, input_shape=S, reduction_axes=[1]),
        [-1.0, 0.0, -2.0],
    ),
    (
        "SparseReduceMax",
        args(input_indices=E, input_values=EV, input_shape=S, reduction_axes=[1]),
        [0.0, 0.0, 0.0],
    ),
    (
        "SparseReduceMax",
        args(
            input_indices=I, input_values=-V, input_shape=S, reduction_axes=[0, 1], keep_dims=True
        ),
        [[-1.0]],
    ),
    (
        "SparseReduceSumSparse",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=[1]),
        [[[0], [2]], [4.0, 2.0], [3]],
    ),
    (
        "SparseReduceSumSparse",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=[1], keep_dims=True),
        [[[0, 0], [2, 0]], [4.0, 2.0], [3, 1]],
    ),
    (
        "SparseReduceMaxSparse",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=[0, 1]),
        [[[]], [3.0], []],
    ),
    (
        "SparseReduceMaxSparse",
        args(input_indices=E, input_values=EV, input_shape=S, reduction_axes=[0, 1]),
        [[], [], []],
    ),
    (
        "SparseReduceMaxSparse",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=[]),
        [[[0, 0], [0, 1], [2, 0]], [3.0, 1.0, 2.0], [3, 2]],
    ),
    (
        "SparseSoftmax",
        args(sp_indices=I[[2, 0, 1]], sp_values=V, sp_shape=S),
        [0.2689414322376251, 0.7310585975646973, 1.0],
    ),
    (
        "SparseSoftmax",
        args(sp_indices=I, sp_values=V, sp_shape=S),
        [0.8807970285415649, 0.11920291185379028, 1.0],
    ),
    (
        "SparseDenseCwiseMul",
        args(sp_indices=I, sp_values=V, sp_shape=S, dense=np.float32([2, 3])),
        [3.0, 4.0, 6.0],
    ),
    (
        "SparseDenseCwiseMul",
        args(sp_indices=I, sp_values=V, sp_shape=S, dense=np.float32([[2], [3], [4]])),
        [2.0, 8.0, 6.0],
    ),
    (
        "SparseDenseCwiseAdd",
        args(sp_indices=I, sp_values=V, sp_shape=S, dense=np.float32(4)),
        [5.0, 6.0, 7.0],
    ),
    (
        "SparseTensorDenseAdd",
        args(a_indices=I, a_values=V, a_shape=S, b=np.ones((3, 2), np.float32)),
        [[4.0, 2.0], [1.0, 1.0], [3.0, 1.0]],
    ),
    (
        "SparseSparseMaximum",
        args(a_indices=I[[2, 0, 1]], a_values=-V, a_shape=S, b_indices=I2, b_values=V2, b_shape=S),
        [[[0, 0], [0, 1], [1, 1], [2, 0]], [10.0, 0.0, 20.0, 0.0]],
    ),
    (
        "SparseBincount",
        args(indices=I, values=L(1, 0, 1), dense_shape=S, size=L(3)[0], weights=np.float32([])),
        [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
    ),
    (
        "SparseBincount",
        args(
            indices=I, values=L(1, 0, 9), dense_shape=S, size=L(3)[0], weights=np.float32([1, 2, 3])
        ),
        [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0]],
    ),
    (
        "SparseBincount",
        args(
            indices=I,
            values=L(1, 0, -1),
            dense_shape=S,
            size=L(3)[0],
            weights=np.float32([1, 2, 3]),
        ),
        [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0]],
    ),
    (
        "SparseBincount",
        args(
            indices=I,
            values=L(1, 0, 1),
            dense_shape=S,
            size=L(3)[0],
            weights=np.float32([1, 2, 3]),
            binary_output=True,
        ),
        [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
    ),
    (
        "SparseBincount",
        args(
            indices=L([0], [1]),
            values=L(1, 1),
            dense_shape=L(3),
            size=L(3)[0],
            weights=np.float32([2, 3]),
        ),
        [0.0, 5.0, 0.0],
    ),
    (
        "SparseTensorDenseMatMul",
        args(a_indices=I, a_values=V, a_shape=S, b=np.ones((2, 2), np.float32)),
        [[4.0, 4.0], [0.0, 0.0], [2.0, 2.0]],
    ),
    (
        "SparseTensorDenseMatMul",
        args(a_indices=I, a_values=V, a_shape=S, b=np.ones((3, 2), np.float32), adjoint_a=True),
        [[5.0, 5.0], [1.0, 1.0]],
    ),
    (
        "SparseMatMul",
        args(a=np.float32([[1, 0], [0, 2]]), b=np.float32([[1, 2], [3, 4]])),
        [[1.0, 2.0], [6.0, 8.0]],
    ),
    (
        "SerializeSparse",
        args(sparse_indices=I, sparse_values=V, sparse_shape=S),
        [
            b'\x08\t\x12\x08\x12\x02\x08\x03\x12\x02\x08\x02"0\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
            b'\x08\x01\x12\x04\x12\x02\x08\x03"\x0c\x00\x00\x80?\x00\x00\x00@\x00\x00@@',
            b'\x08\t\x12\x04\x12\x02\x08\x02"\x10\x03\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00',
        ],
    ),
    (
        "SerializeManySparse",
        args(sparse_indices=I[[2, 0, 1]], sparse_values=V, sparse_shape=S),
        [
            [
                b'\x08\t\x12\x08\x12\x02\x08\x02\x12\x02\x08\x01"\x10\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00',
                b'\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@',
                b'\x08\t\x12\x04\x12\x02\x08\x01"\x08\x02\x00\x00\x00\x00\x00\x00\x00',
            ],
            [
                b"\x08\t\x12\x06\x12\x00\x12\x02\x08\x01",
                b"\x08\x01\x12\x02\x12\x00",
                b'\x08\t\x12\x04\x12\x02\x08\x01"\x08\x02\x00\x00\x00\x00\x00\x00\x00',
            ],
            [
                b'\x08\t\x12\x08\x12\x02\x08\x01\x12\x02\x08\x01"\x08\x00\x00\x00\x00\x00\x00\x00\x00',
                b'\x08\x01\x12\x04\x12\x02\x08\x01"\x04\x00\x00@@',
                b'\x08\t\x12\x04\x12\x02\x08\x01"\x08\x02\x00\x00\x00\x00\x00\x00\x00',
            ],
        ],
    ),
]
REFUSALS = [
    (
        "SparseToDense",
        args(sparse_indices=I, output_shape=S, sparse_values=V, default_value=-1.0),
        errors.InvalidArgumentError,
        "indices[2] = [0,0] is out of order. Many sparse ops require sorted indices.",
    ),
    (
        "SparseToDense",
        args(
            sparse_indices=[[0, 0], [0, 0]],
            output_shape=[2, 2],
            sparse_values=[1.0, 2.0],
            default_value=0.0,
        ),
        errors.InvalidArgumentError,
        "indices[1] = [0,0] is repeated",
    ),
    (
        "SparseToDense",
        args(
            sparse_indices=[[0, 0], [0, 5]],
            output_shape=[2, 2],
            sparse_values=[1.0, 2.0],
            default_value=0.0,
        ),
        errors.InvalidArgumentError,
        "indices[1] = [0,5] is out of bounds: need 0 <= index < [2,2]",
    ),
    (
        "SparseToDense",
        args(
            sparse_indices=[[0, 0], [0, 5]],
            output_shape=[2, 2],
            sparse_values=[1.0, 2.0],
            default_value=0.0,
            validate_indices=False,
        ),
        errors.InvalidArgumentError,
        "Indices are not valid (out of bounds).  Shape: [2,2]",
    ),
    (
        "SparseToDense",
        args(
            sparse_indices=[[0, 0], [0, -1]],
            output_shape=[2, 2],
            sparse_values=[1.0, 2.0],
            default_value=0.0,
        ),
        errors.InvalidArgumentError,
        "indices[1] = [0,-1] is out of bounds: need 0 <= index < [2,2]",
    ),
    (
        "SparseToDense",
        args(sparse_indices=[1, 3], output_shape=4, sparse_values=7.0, default_value=0.0),
        errors.InvalidArgumentError,
        "output_shape must be rank 1, got shape []",
    ),
    (
        "SparseToDense",
        args(sparse_indices=[1, 3], output_shape=[4], sparse_values=[7.0], default_value=0.0),
        errors.InvalidArgumentError,
        "sparse_values has incorrect shape [1], should be [] or [2]",
    ),
    (
        "SparseToDense",
        args(
            sparse_indices=[1, 3], output_shape=[4], sparse_values=[7.0, 8.0], default_value=[0.0]
        ),
        errors.InvalidArgumentError,
        "default_value should be a scalar.",
    ),
    (
        "SparseToDense",
        args(sparse_indices=[[1, 3]], output_shape=[4], sparse_values=[7.0], default_value=0.0),
        errors.InvalidArgumentError,
        "output_shape has incorrect number of elements: 1 should be: 2",
    ),
    (
        "SparseToDense",
        args(sparse_indices=[1, 3], output_shape=[-4], sparse_values=[7.0, 8.0], default_value=0.0),
        errors.InvalidArgumentError,
        "Dimension -4 must be >= 0",
    ),
    (
        "SparseToDense",
        args(sparse_indices=[3, 1], output_shape=[4], sparse_values=[7.0, 8.0], default_value=0.0),
        errors.InvalidArgumentError,
        "indices[1] = [1] is out of order. Many sparse ops require sorted indices.",
    ),
    (
        "SparseReorder",
        args(input_indices=I, input_values=V[:1], input_shape=S),
        errors.InvalidArgumentError,
        "Number of elements in indices (3) and values (1) do not match",
    ),
    (
        "SparseReorder",
        args(input_indices=I, input_values=V, input_shape=S[:1]),
        errors.InvalidArgumentError,
        "Index rank (2) and shape rank (1) do not match",
    ),
    (
        "SparseReorder",
        args(input_indices=I[0], input_values=V, input_shape=S),
        errors.InvalidArgumentError,
        "Sparse indices must be rank 2 but is rank 1",
    ),
    (
        "SparseReshape",
        args(input_indices=I, input_shape=S, new_shape=L(4, -1)),
        errors.InvalidArgumentError,
        "Input to reshape is a SparseTensor with 6 dense values, but the requested shape requires a multiple of 4. input_shape=[3,2] output_shape=[4,1]",
    ),
    (
        "SparseReshape",
        args(input_indices=I, input_shape=S, new_shape=L(-1, -1)),
        errors.InvalidArgumentError,
        "only one output dimension may be -1, not both 0 and 1",
    ),
    (
        "SparseReshape",
        args(input_indices=I, input_shape=S, new_shape=L(4, 3)),
        errors.InvalidArgumentError,
        "Input to reshape is a tensor with 6 dense values, but the requested shape has 12. input_shape=[3,2] output_shape=[4,3]",
    ),
    (
        "SparseReshape",
        args(input_indices=E, input_shape=L(0, 2), new_shape=L(-1, 0)),
        errors.InvalidArgumentError,
        "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes are non-zero",
    ),
    (
        "SparseReshape",
        args(input_indices=I, input_shape=S, new_shape=L(-2, 3)),
        errors.InvalidArgumentError,
        "size 0 must be non-negative, not -2",
    ),
    (
        "SparseFillEmptyRows",
        args(indices=L([0, 1]), values=V[:1], dense_shape=L(0, 2), default_value=9.0),
        errors.InvalidArgumentError,
        "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = 1",
    ),
    (
        "SparseFillEmptyRows",
        args(indices=L([7, 1]), values=V[:1], dense_shape=L(2, 2), default_value=9.0),
        errors.InvalidArgumentError,
        "indices(0, 0) is invalid: 7 >= 2",
    ),
    (
        "SparseFillEmptyRows",
        args(indices=L([-1, 1]), values=V[:1], dense_shape=L(2, 2), default_value=9.0),
        errors.InvalidArgumentError,
        "indices(0, 0) is invalid: -1 >= 2",
    ),
    (
        "SparseFillEmptyRows",
        args(indices=L([1, 1]), values=V[:1], dense_shape=L(2, 2), default_value=[9.0]),
        errors.InvalidArgumentError,
        "default_value must be a scalar, saw: [1]",
    ),
    (
        "SparseFillEmptyRows",
        args(indices=L([1, 1]), values=V, dense_shape=L(2, 2), default_value=9.0),
        errors.InvalidArgumentError,
        "The length of `values` (3) must match the first dimension of `indices` (1).",
    ),
    (
        "SparseFillEmptyRowsGrad",
        args(reverse_index_map=L(9), grad_values=np.float32([1, 2, 3, 4, 5])),
        errors.InvalidArgumentError,
        "Elements in reverse index must be in [0, 5) but got 9",
    ),
    (
        "SparseSlice",
        args(indices=I, values=V, shape=S, start=L(0), size=L(9, 2)),
        errors.InvalidArgumentError,
        "Expected start to be a vector of length 2 but got length 1",
    ),
    (
        "SparseSlice",
        args(indices=I, values=V, shape=S, start=L(0, 0), size=L(-2, 2)),
        errors.InvalidArgumentError,
        "Expected a non-negative size, got -2",
    ),
    (
        "SparseConcat",
        args(indices=[I, I2], values=[V, V2], shapes=[S, L(4, 2)], concat_dim=1),
        errors.InvalidArgumentError,
        "Input shapes must match: expected 3 for dimension 0 but got 4 at position 1",
    ),
    (
        "SparseConcat",
        args(indices=[I, I2], values=[V, V2], shapes=[S, L(4, 2)], concat_dim=2),
        errors.InvalidArgumentError,
        "Concat dimension must be in range [-2, 2), got 2",
    ),
    (
        "SparseSplit",
        args(split_dim=L(2)[0], indices=I, values=V, shape=L(3, 3), num_split=2),
        errors.InvalidArgumentError,
        "Input axis should be in range [-2, 2), got 2",
    ),
    (
        "SparseSplit",
        args(split_dim=L(1)[0], indices=I, values=V, shape=L(3, 3), num_split=4),
        errors.InvalidArgumentError,
        "Input num_split should be between 1 and the splitting dimension size (3), got 4",
    ),
    (
        "SparseAdd",
        args(
            a_indices=I,
            a_values=V,
            a_shape=S,
            b_indices=I2,
            b_values=V2,
            b_shape=L(3, 3),
            thresh=0.0,
        ),
        errors.InvalidArgumentError,
        "Operands' shapes do not match: got 2 and 3 for dimension 1",
    ),
    (
        "SparseAdd",
        args(
            a_indices=I, a_values=V[:2], a_shape=S, b_indices=I2, b_values=V2, b_shape=S, thresh=0.0
        ),
        errors.InvalidArgumentError,
        "Expected 3 and 2 non-empty input values, got 2 and 2",
    ),
    (
        "SparseReduceSum",
        args(input_indices=I, input_values=V, input_shape=S, reduction_axes=2),
        errors.InvalidArgumentError,
        "Invalid reduction dimension 2, for input with 2 dimensions.",
    ),
    (
        "SparseReduceSum",
        args(input_indices=L([0, 9]), input_values=V[:1], input_shape=S, reduction_axes=0),
        errors.InternalError,
        "Obtained a write index of 9 which is outside of bounds of [0, 2)",
    ),
    (
        "SparseSoftmax",
        args(sp_indices=L([0], [1]), sp_values=V[:2], sp_shape=L(3)),
        errors.InvalidArgumentError,
        "Input should have rank >= 2, but received shape: 3",
    ),
    (
        "SparseDenseCwiseDiv",
        args(sp_indices=I, sp_values=V.astype(int), sp_shape=S, dense=[0, 0]),
        errors.InvalidArgumentError,
        "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero",
    ),
    (
        "SparseDenseCwiseMul",
        args(sp_indices=I, sp_values=V, sp_shape=S, dense=np.float32([2, 3, 4])),
        errors.InvalidArgumentError,
        "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: [3,2] vs. [3]",
    ),
    (
        "SparseDenseCwiseMul",
        args(sp_indices=I, sp_values=V, sp_shape=S, dense=np.ones((1, 3, 2), np.float32)),
        errors.InvalidArgumentError,
        "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: [3,2] vs. [1,3,2]",
    ),
    (
        "SparseDenseCwiseMul",
        args(sp_indices=L([5, 1]), sp_values=V[:1], sp_shape=S, dense=np.float32([2, 3])),
        errors.InvalidArgumentError,
        "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape",
    ),
    (
        "SparseTensorDenseAdd",
        args(a_indices=I, a_values=V, a_shape=S, b=np.ones((2), np.float32)),
        errors.InvalidArgumentError,
        "Two operands have different ranks; received: 2 and 1",
    ),
    (
        "SparseTensorDenseAdd",
        args(a_indices=I, a_values=V, a_shape=S, b=np.ones((3, 3), np.float32)),
        errors.InvalidArgumentError,
        "Dimension 1 does not equal (no broadcasting is supported): sparse side 2 vs dense side 3",
    ),
    (
        "SparseTensorDenseAdd",
        args(a_indices=L([5, 1]), a_values=V[:1], a_shape=S, b=np.ones((3, 2), np.float32)),
        errors.InvalidArgumentError,
        "Sparse tensor has an invalid index on dimension 0: a_indices(0,0) = 5, dense tensor shape: 3 2",
    ),
    (
        "SparseSparseMinimum",
        args(
            a_indices=I[[2, 0, 1]],
            a_values=V,
            a_shape=S,
            b_indices=I2,
            b_values=V2,
            b_shape=L(3, 3),
        ),
        errors.InvalidArgumentError,
        "Operands' shapes do not match: got 2 and 3 for dimension 1",
    ),
    (
        "SparseSparseMinimum",
        args(
            a_indices=I[[2, 0, 1]],
            a_values=V,
            a_shape=S,
            b_indices=I2,
            b_values=V2,
            b_shape=L(3, 3, 1),
        ),
        errors.InvalidArgumentError,
        "Index rank (2) and shape rank (3) do not match",
    ),
    (
        "SparseBincount",
        args(
            indices=L([0], [1]),
            values=L(1, 1),
            dense_shape=L(3),
            size=L(-3)[0],
            weights=np.float32([2, 3]),
        ),
        errors.InvalidArgumentError,
        "size (-3) must be non-negative",
    ),
    (
        "SparseTensorDenseMatMul",
        args(a_indices=I, a_values=V, a_shape=S, b=np.ones((3, 2), np.float32)),
        errors.InvalidArgumentError,
        "Cannot multiply A and B because inner dimension does not match: 2 vs. 3.  Did you forget a transpose?  Dimensions of A: [3, 2).  Dimensions of B: [3,2]",
    ),
    (
        "SparseTensorDenseMatMul",
        args(a_indices=L([0, 7]), a_values=V[:1], a_shape=S, b=np.ones((2, 2), np.float32)),
        errors.InvalidArgumentError,
        "k (7) from index[0,1] out of bounds (>=2)",
    ),
    (
        "SparseTensorDenseMatMul",
        args(a_indices=L([7, 0]), a_values=V[:1], a_shape=S, b=np.ones((2, 2), np.float32)),
        errors.InvalidArgumentError,
        "m (7) from index[0,0] out of bounds (>=3)",
    ),
    (
        "SerializeManySparse",
        args(sparse_indices=I, sparse_values=V, sparse_shape=S),
        errors.InvalidArgumentError,
        "indices[2] = [0,0] is out of order. Many sparse ops require sorted indices.",
    ),
    (
        "SerializeManySparse",
        args(sparse_indices=L([0], [1]), sparse_values=V[:2], sparse_shape=L(3)),
        errors.InvalidArgumentError,
        "Rank of input SparseTensor should be > 1, but saw rank: 1",
    ),
]


@pytest.mark.parametrize(("op", "given", "answer"), ANSWERS)
def test_sparse(op: str, given: dict[str, Any], answer: Any) -> None:
    """Each op gives what TensorFlow gives."""
    assert plain(call(op, **given)) == plain(answer)


@pytest.mark.parametrize(("op", "given", "error", "message"), REFUSALS)
def test_sparse_refused(
    op: str, given: dict[str, Any], error: type[errors.OpError], message: str
) -> None:
    """What TensorFlow refuses is refused, in its words."""
    with pytest.raises((error, ValueError)) as raised:
        call(op, **given)
    assert message in str(raised.value)
