"""Picking by index, against plain loops and answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.errors import InvalidArgumentError
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
KINDS = [np.int16, np.int32, np.int64]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(kind: Any, axis: int) -> None:
    """Indices of any shape take the place of the axis."""
    indices = np.array([[0, 1], [1, 0]], kind)

    result = run_op("GatherV2", MATRIX, indices, np.int32(axis))

    np.testing.assert_array_equal(result, np.take(MATRIX, indices, axis))


def test_gather_one() -> None:
    """One index leaves its dimension out: of a vector it takes a scalar, else a view."""
    assert type(run_op("GatherV2", MATRIX[0], np.int32(2), np.int32(0))) is np.float32
    assert run_op("GatherV2", np.array([b"a", b"b"], object), np.int32(1), np.int32(0)) == b"b"
    column = run_op("GatherV2", MATRIX, np.int64(1), np.int32(-1))
    assert column.tolist() == [1, 4]
    assert np.shares_memory(column, MATRIX)


def test_gather_of_special_types() -> None:
    """Quantised values and eight-bit floats are taken as they are."""
    quantized = np.array([(1,), (2,), (3,)], dtypes.qint16.numpy)
    narrow = np.array([1, 2, 3], dtypes.as_dtype("float8_e5m2").numpy)

    assert run_op("Gather", quantized, np.array([2, 0])).tolist() == [(3,), (1,)]
    assert run_op("Gather", narrow, np.array([2, 0])).tolist() == [3, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([9], r"indices\[0\] = 9 is not in \[0, 2\)"),
        ([0, -1], r"indices\[1\] = -1 is not in \[0, 2\)"),
        ([[0, 1], [1, 7]], r"indices\[1,1\] = 7 is not in \[0, 2\)"),
        (5, r"indices = 5 is not in \[0, 2\)"),
        (-1, r"indices = -1 is not in \[0, 2\)"),
    ],
)
def test_gather_refuses_indices_outside(kind: Any, indices: Any, message: str) -> None:
    """Negative indices do not count from the end."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("GatherV2", MATRIX, np.array(indices, kind), np.int32(0))


@pytest.mark.parametrize(
    ("params", "axis", "message"),
    [
        (MATRIX, np.int32(2), "Shape must be at least rank 3 but is rank 2"),
        (MATRIX, np.int32(-3), "Shape must be at least rank 3 but is rank 2"),
        (np.float32(1), np.int32(0), "params must be at least 1 dimensional"),
        (MATRIX, np.array([0]), "axis must be scalar"),
        (np.zeros((0, 3)), np.int32(0), r"indices\[0\] = 0 is not in \[0, 0\)"),
    ],
)
def test_gather_refuses(params: Any, axis: Any, message: str) -> None:
    """There must be such an axis, and something to take."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("GatherV2", params, np.array([0]), axis)


@pytest.mark.parametrize(
    ("shape", "indices", "axis", "expected"),
    [((0, 3), [], 0, (0, 3)), ((0, 3), [7], 1, (0, 1)), ((3, 0), [7], 0, (1, 0))],
)
def test_gather_of_nothing(shape: Any, indices: Any, axis: int, expected: Any) -> None:
    """Where the result has no elements, no index is looked at."""
    result = run_op("GatherV2", np.zeros(shape), np.array(indices, np.int32), np.int32(axis))

    assert result.shape == expected


@pytest.mark.parametrize(
    ("indices", "axis", "batch_dims", "expected"),
    [
        ([[0, 2], [1, 1]], 1, 1, [CUBE[0, [0, 2]], CUBE[1, [1, 1]]]),
        ([[0, 2], [1, 1]], 1, -1, [CUBE[0, [0, 2]], CUBE[1, [1, 1]]]),
        ([0, 2], 1, 1, [CUBE[0, 0], CUBE[1, 2]]),
        ([[0], [1]], -1, 1, [CUBE[0][:, [0]], CUBE[1][:, [1]]]),
        ([[0, 1, 2], [3, 2, 1]], 2, 2, [[0, 5, 10], [15, 18, 21]]),
    ],
)
def test_gather_in_batches(indices: Any, axis: int, batch_dims: int, expected: Any) -> None:
    """Each part of the batch has indices of its own; their leading dimensions are shared."""
    result = run_op("GatherV2", CUBE, np.array(indices), np.int32(axis), batch_dims=batch_dims)

    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("indices", "axis", "batch_dims", "message"),
    [
        ([[0, 2], [1, 3]], 1, 1, r"indices\[1,1\] = 3 is not in \[0, 3\)"),
        ([[0], [1], [0]], 1, 1, r"params.shape\[0\]: 2 should be equal to indices.shape\[0\]: 3"),
        ([0, 1], 1, 2, r"Expected batch_dims in the range \[-1, 1\], but got 2"),
        ([0, 1], 0, 1, r"batch_dims \(1\) must be less than or equal to axis \(0\)"),
    ],
)
def test_gather_in_batches_refuses(indices: Any, axis: int, batch_dims: int, message: str) -> None:
    """The batches must be the same on both sides, and come before the axis."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("GatherV2", CUBE, np.array(indices), np.int32(axis), batch_dims=batch_dims)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([1], MATRIX[1]),
        ([1, 2], np.float32(5)),
        ([[0, 1], [1, 2]], [1, 5]),
        ([[[1]], [[0]]], [[MATRIX[1]], [MATRIX[0]]]),
    ],
)
def test_gather_nd(kind: Any, indices: Any, expected: Any) -> None:
    """The last dimension holds coordinates: of elements, or of whole slices."""
    result = run_op("GatherNd", MATRIX, np.array(indices, kind))

    assert np.shape(result) == np.shape(expected)
    np.testing.assert_array_equal(result, expected)


def test_gather_nd_without_coordinates() -> None:
    """An index without coordinates means all of the array; no index gives nothing."""
    assert run_op("GatherNd", MATRIX, np.zeros((2, 0), np.int32)).tolist() == [MATRIX.tolist()] * 2
    assert run_op("GatherNd", MATRIX, np.zeros((0, 2), np.int32)).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("params", "indices", "message"),
    [
        (MATRIX, [[9]], r"indices\[0\] = \[9\] does not index into param shape \[2,3\]"),
        (MATRIX, [[0, 0], [0, -1]], r"indices\[1\] = \[0, -1\] does not index"),
        (MATRIX, [[0, 0, 0]], "must be <= params rank; saw: 3 vs. 2"),
        (MATRIX, 1, "indices must be at least a vector"),
        (np.float32(1), [0], "params must be at least a vector"),
        (np.zeros((3, 0)), [[1]], "Requested more than 0 entries, but params is empty"),
    ],
)
def test_gather_nd_refuses(kind: Any, params: Any, indices: Any, message: str) -> None:
    """Coordinates outside, too many of them, or an array that has nothing."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("GatherNd", params, np.array(indices, kind))


def test_gather_nd_can_ignore_bad_indices() -> None:
    """On request they give zeros, and empty strings."""
    indices = np.array([[9], [1]])

    numbers = run_op("GatherNd", MATRIX, indices, bad_indices_policy="IGNORE")
    strings = run_op(
        "GatherNd", np.array([b"a", b"b"], object), indices, bad_indices_policy="IGNORE"
    )

    assert numbers.tolist() == [[0, 0, 0], [3, 4, 5]]
    assert strings.tolist() == [b"", b"b"]
