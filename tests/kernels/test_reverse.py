"""Reversing, rolling and repeating, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.errors import InvalidArgumentError, ResourceExhaustedError
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ([1], MATRIX[:, ::-1]),
        ([0, -1], MATRIX[::-1, ::-1]),
        ([], MATRIX),
    ],
)
def test_reverse(axes: list[int], expected: Any) -> None:
    """Both versions give views: one has axes, the other a mark for each dimension."""
    marks = np.array([axis in {a % 2 for a in axes} for axis in range(2)])

    by_axes = run_op("ReverseV2", MATRIX, np.array(axes, np.int32))

    np.testing.assert_array_equal(by_axes, expected)
    np.testing.assert_array_equal(run_op("Reverse", MATRIX, marks), expected)
    assert np.shares_memory(by_axes, MATRIX)


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.complex128])
def test_large_images_are_turned_pixel_by_pixel(kind: Any) -> None:
    """Also those that are views of others."""
    images = np.random.default_rng(5).integers(0, 99, (2, 70, 80, 3)).astype(kind)
    for some in (images, images[:, ::2, 5:]):
        for axes in ([2], [1, 2], [3], [2, 3]):
            expected = np.flip(some, axes)
            np.testing.assert_array_equal(run_op("ReverseV2", some, np.int32(axes)), expected)


def test_reverse_of_scalars_and_of_nothing() -> None:
    """Without elements no axis is looked at."""
    assert run_op("ReverseV2", np.float32(1), np.array([0])) == 1
    assert run_op("ReverseV2", b"a", np.zeros(0, np.int32)) == b"a"
    assert run_op("ReverseV2", np.zeros((0, 2)), np.array([5, 5])).shape == (0, 2)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([0, -2], "axis 0 specified more than once"),
        ([2], r"'axis'\[0\] = 2 is out of valid range \[0, 1"),
        ([-3], r"'axis'\[0\] = -3 is out of valid range"),
        (0, "'dims' must be 1-dimension, not 0"),
    ],
)
def test_reverse_refuses(axes: Any, message: str) -> None:
    """Each axis once, and only those that are there."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("ReverseV2", MATRIX, np.array(axes, np.int32))
    with pytest.raises(InvalidArgumentError, match="must have the same number of values"):
        run_op("Reverse", MATRIX, np.array([True]))


@pytest.mark.parametrize(
    ("lengths", "seq_dim", "batch_dim", "expected"),
    [
        ([2, 3], 1, 0, [[1, 0, 2], [5, 4, 3]]),
        ([0, 1], 1, 0, MATRIX.tolist()),
        ([2, 2, 0], 0, 1, [[3, 4, 2], [0, 1, 5]]),
    ],
)
def test_reverse_sequence(lengths: list[int], seq_dim: int, batch_dim: int, expected: Any) -> None:
    """Of each part of the batch the first few elements are turned."""
    result = run_op(
        "ReverseSequence", MATRIX, np.array(lengths), seq_dim=seq_dim, batch_dim=batch_dim
    )

    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("lengths", "seq_dim", "batch_dim", "message"),
    [
        ([2, 4], 1, 0, r"seq_lens\(1\) > input.dims\(1\)"),
        ([-1, 2], 1, 0, r"seq_lens\(0\) < 0"),
        ([2], 1, 0, r"Length of seq_lengths != input.dims\(0\), \(1 vs. 2\)"),
        ([2, 2], 1, 1, "batch_dim == seq_dim == 1"),
        ([2, 2], 3, 0, r"seq_dim must be < input rank \( 3 vs. 2\)"),
        ([2, 2], 1, -2, "Invalid batch_dim -2"),
        (2, 1, 0, "seq_lengths must be 1-dim, not 0"),
    ],
)
def test_reverse_sequence_refuses(lengths: Any, seq_dim: int, batch_dim: int, message: str) -> None:
    """Lengths and dimensions must fit the array."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("ReverseSequence", MATRIX, np.array(lengths), seq_dim=seq_dim, batch_dim=batch_dim)


@pytest.mark.parametrize(
    ("shift", "axis", "expected"),
    [
        (1, 1, [[2, 0, 1], [5, 3, 4]]),
        ([1, 1], [0, 1], [[5, 3, 4], [2, 0, 1]]),
        ([1, 1], [1, 1], [[1, 2, 0], [4, 5, 3]]),
        (-100001, -1, [[2, 0, 1], [5, 3, 4]]),
        ([], [], MATRIX.tolist()),
    ],
)
def test_roll(shift: Any, axis: Any, expected: Any) -> None:
    """Shifts of one axis add up, and may be larger than it."""
    result = run_op("Roll", MATRIX, np.array(shift, np.int32), np.array(axis, np.int64))

    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("values", "shift", "axis", "message"),
    [
        (MATRIX, 1, 2, "axis 2 is out of range"),
        (MATRIX, [1], [0, 1], "shift and axis must have the same size"),
        (MATRIX, [[1]], [[0]], r"shift must be a scalar or a 1-D vector. Found: \[1,1\]"),
        (np.float32(1), 1, 0, "input must be 1-D or higher"),
    ],
)
def test_roll_refuses(values: Any, shift: Any, axis: Any, message: str) -> None:
    """A shift for each axis that is there."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("Roll", values, np.array(shift), np.array(axis))


@pytest.mark.parametrize("times", [[1, 2], [3, 1], [2, 2], [0, 2]])
def test_tile(times: list[int]) -> None:
    """Every dimension is repeated as a whole, perhaps no times."""
    result = run_op("Tile", MATRIX, np.array(times, np.int32))

    np.testing.assert_array_equal(result, np.tile(MATRIX, times))
    assert result.dtype == np.float32


def test_tile_of_scalars_and_strings() -> None:
    """A scalar is not repeated; strings are."""
    assert run_op("Tile", np.float32(1), np.zeros(0, np.int32)) == 1
    assert run_op("Tile", np.array([b"a"], object), np.array([2])).tolist() == [b"a", b"a"]


@pytest.mark.parametrize(
    ("times", "error"),
    [
        ([2], InvalidArgumentError),
        ([-1, 2], InvalidArgumentError),
        (2, InvalidArgumentError),
        ([2**22, 2**22], ResourceExhaustedError),
    ],
)
def test_tile_refuses(times: Any, error: type[Exception]) -> None:
    """One number for each dimension, and not more than fits."""
    with pytest.raises(error):
        run_op("Tile", MATRIX, np.array(times))
