"""Dealing out and collecting, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.errors import InvalidArgumentError
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
STITCHES = ["DynamicStitch", "ParallelDynamicStitch"]


def ints(values: Any) -> Any:
    """Indices as int32."""
    return np.array(values, np.int32)[()]


@pytest.mark.parametrize(
    ("values", "partitions", "expected"),
    [
        (np.array([1, 2, 3]), [0, 1, 0], [[1, 3], [2]]),
        (np.array([b"x", b"y"], object), [1, 1], [[], [b"x", b"y"]]),
        (MATRIX, [1, 0], [[[3, 4, 5]], [[0, 1, 2]]]),
        (MATRIX, [[0, 1, 0], [1, 1, 1]], [[0, 2], [1, 3, 4, 5]]),
        (np.float32(1), 0, [[1], []]),
        (b"a", 1, [[], [b"a"]]),
    ],
)
def test_dynamic_partition(values: Any, partitions: Any, expected: Any) -> None:
    """Elements, or slices, keep their order within their part."""
    parts = run_op("DynamicPartition", values, np.array(partitions, np.int32), num_partitions=2)

    assert [part.tolist() for part in parts] == expected


@pytest.mark.parametrize(
    ("values", "partitions", "message"),
    [
        (MATRIX[0], [0, 2, 0], r"partitions\[1\] = 2 is not in \[0, 2\)"),
        (MATRIX[0], [0, -1, 0], r"partitions\[1\] = -1 is not in \[0, 2\)"),
        (MATRIX, 5, r"partitions = 5 is not in \[0, 2\)"),
        (MATRIX, [0, 1, 1], r"got data.shape = \[2,3\], partitions.shape = \[3\]"),
    ],
)
def test_dynamic_partition_refuses(values: Any, partitions: Any, message: str) -> None:
    """A number for every element or slice, and only of parts that there are."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("DynamicPartition", values, np.array(partitions, np.int32), num_partitions=2)


@pytest.mark.parametrize("op", STITCHES)
@pytest.mark.parametrize(
    ("indices", "parts", "expected"),
    [
        ([[0, 2], [1, 2]], [np.array([1, 2]), np.array([3, 4])], [1, 3, 4]),
        ([0, [1, 2]], [np.array([1, 2]), np.array([[3, 4], [5, 6]])], [[1, 2], [3, 4], [5, 6]]),
        ([1, 0], [b"a", b"b"], [b"b", b"a"]),
        ([[2]], [np.array([7.0])], [0, 0, 7]),
        ([[2]], [np.array([b"a"], object)], [b"", b"", b"a"]),
        ([[[0, 1], [2, 3]]], [np.array([[1, 2], [3, 4]])], [1, 2, 3, 4]),
    ],
)
def test_stitch(op: str, indices: Any, parts: Any, expected: Any) -> None:
    """The last slice for an index stays; an index without one has zeros."""
    assert run_op(op, list(map(ints, indices)), parts).tolist() == expected


@pytest.mark.parametrize("op", STITCHES)
def test_stitch_of_nothing(op: str) -> None:
    """Without indices there are no rows, but their shape is known."""
    assert run_op(op, [np.zeros(0, np.int32)], [np.zeros((0, 3))]).shape == (0, 3)


@pytest.mark.parametrize(
    ("indices", "parts", "message"),
    [
        ([[-1]], [[1.0]], r"indices\[0\] is out of range"),
        ([[0, 1]], [[1.0]], r"data\[0\].shape = \[1\] does not start with indices\[0\]"),
        ([[0], [1]], [[[1.0]], [[1.0, 2.0]]], r"Need data\[0\].shape\[1:\] = data\[1\]"),
        ([[2**31 - 1]], [[1.0]], "Expected a non-negative size, got -2147483648"),
    ],
)
def test_stitch_refuses(indices: Any, parts: Any, message: str) -> None:
    """Shapes must fit, and indices be neither negative nor too large."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("DynamicStitch", list(map(ints, indices)), list(map(np.array, parts)))
