"""Counts, histograms, isotonic rows, nearest centres, against answers from TensorFlow."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core.dtypes import as_dtype
from penstock.errors import InvalidArgumentError
from support.ops import run_op

NAN, INF = np.nan, np.inf
NONE = np.zeros(0, np.float32)


def numbers(*given: Any) -> Any:
    """Numbers to count."""
    return np.array(given, np.int32)


@pytest.mark.parametrize(
    ("given", "weights", "binary", "expected"),
    [
        (numbers(1, 1, 3), NONE, False, [0, 2, 0, 1]),
        (numbers(1, 1, 3), NONE, True, [0, 1, 0, 1]),
        (numbers(1, 1, 2**31 - 1), NONE, False, [0, 2, 0, 0]),
        (numbers(1, 1, 3), np.array([0.5, 0.25, 1], np.float32), False, [0, 0.75, 0, 1]),
        (numbers([1, 1], [0, 7]), NONE, False, [[0, 2, 0, 0], [1, 0, 0, 0]]),
        (numbers([1, 1], [0, 3]), np.array([[1, 2], [3, 4]]), False, [[0, 3, 0, 0], [3, 0, 0, 4]]),
        (numbers(), NONE, False, [0, 0, 0, 0]),
    ],
)
def test_counts(given: Any, weights: Any, binary: bool, expected: Any) -> None:
    """Counts or sums of weights, row by row; numbers that are too large do not count."""
    result = run_op("DenseBincount", given, np.int32(4), weights, binary_output=binary)
    assert result.tolist() == expected
    assert result.dtype == weights.dtype


def test_counts_of_any_shape() -> None:
    """The older op counts all elements together."""
    assert run_op("Bincount", numbers([1, 1], [3, 7]), np.int32(4), NONE).tolist() == [0, 2, 0, 1]
    with pytest.raises(InvalidArgumentError, match="must have the same size"):
        run_op("Bincount", numbers(1, 1), np.int32(4), np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("given", "size", "weights", "complaint"),
    [
        (numbers(1, -1), np.int32(4), NONE, "must be non-negative"),
        (numbers([1, -1]), np.int32(4), NONE, "must be non-negative"),
        (numbers(1), np.int32(-1), NONE, r"size \(-1\) must be non-negative"),
        (numbers(1), numbers(4), NONE, "must be rank 0 but is rank 1"),
        (numbers([[1]]), np.int32(4), NONE, "must be at most rank 2 but is rank 3"),
        (numbers(1, 1), np.int32(4), np.ones(1, np.float32), "must be the same shape as `arr`"),
    ],
)
def test_wrong_counts(given: Any, size: Any, weights: Any, complaint: str) -> None:
    """Negative numbers and shapes that do not fit are refused."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("DenseBincount", given, size, weights)


@pytest.mark.parametrize(
    ("values", "limits", "bins", "expected"),
    [
        (np.float32([-1, 0, 1.5, 2, 5, 15]), [0, 5], 5, [2, 1, 1, 0, 2]),
        (np.float32([INF, -INF]), [0, 5], 5, [1, 0, 0, 0, 1]),
        (np.int32([0, 1, 2, 3, 4, 5, 6]), [0, 7], 3, [3, 2, 2]),
        (np.int32([2**31 - 1, -(2**31), 0]), [-(2**31), 2**31 - 1], 4, [1, 0, 1, 1]),
        (np.float64([0.1, 0.2, 0.3, 0.7, 0.9]), [0, 1], 10, [0, 1, 2, 0, 0, 0, 1, 0, 0, 1]),
        (np.float32([0.1, 0.2, 0.3, 0.7, 0.9]), [0, 1], 10, [0, 1, 1, 1, 0, 0, 1, 0, 1, 0]),
        (np.float32([1]), [0, INF], 2, [1, 0]),
    ],
)
def test_histogram(values: Any, limits: Any, bins: int, expected: list[int]) -> None:
    """Values outside go into the outer bins; borders are computed in double precision."""
    limits = np.array(limits, values.dtype)
    result = run_op("HistogramFixedWidth", values, limits, np.int32(bins))
    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("values", "limits", "bins", "complaint"),
    [
        ([NAN], [0, 5], np.int32(5), "must not contain NaN"),
        ([1], [5, 5], np.int32(5), r"value_range\[0\] < value_range\[1\]"),
        ([1], [0, NAN], np.int32(5), r"value_range\[0\] < value_range\[1\]"),
        # Here TensorFlow's process ends.
        ([1], [-math.inf, 0], np.int32(5), r"value_range\[0\] must be finite"),
        ([1], [0, 5, 6], np.int32(5), "should be a vector of 2 elements"),
        ([1], [0, 5], np.int32(0), "nbins should be a positive number, but got '0'"),
    ],
)
def test_wrong_histogram(values: Any, limits: Any, bins: Any, complaint: str) -> None:
    """NaN has no bin, and a range has a lower and an upper end."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("HistogramFixedWidth", np.float32(values), np.float32(limits), bins)


@pytest.mark.parametrize(
    ("kind", "output"),
    [(np.float32, "float32"), (ml_dtypes.bfloat16, "bfloat16"), (np.int64, "float64")],
)
def test_isotonic_rows(kind: Any, output: str) -> None:
    """Neighbours are averaged until a row falls; equal ones that need not be are two runs."""
    x = np.array([[3, 1, 2], [2, 2, 1], [1, 2, 3]], kind)
    smooth, runs = run_op("IsotonicRegression", x, output_dtype=as_dtype(output))
    assert smooth.dtype == output
    assert smooth.tolist() == [[3, 1.5, 1.5], [2, 2, 1], [2, 2, 2]]
    assert runs.tolist() == [[0, 1, 1], [0, 1, 2], [0, 0, 0]]
    scalar = run_op("IsotonicRegression", np.float32(1))
    assert scalar == (1, 0)


def test_nearest_centres() -> None:
    """Of equally near centres the first comes first; there are at most as many as exist."""
    points = np.array([[0, 0], [1, 1], [5, 5]], np.float32)
    centres = np.array([[0, 1], [1, 0], [5, 4], [0, 1]], np.float32)
    places, distances = run_op("NearestNeighbors", points, centres, np.int64(9))
    assert places.tolist() == [[0, 1, 3, 2], [0, 1, 3, 2], [2, 0, 1, 3]]
    assert distances.tolist() == [[1, 1, 1, 41], [1, 1, 1, 25], [1, 41, 41, 41]]
    with pytest.raises(InvalidArgumentError, match=r"points.rows\(\) > 0"):
        run_op("NearestNeighbors", points[:0], centres, np.int64(1))
    with pytest.raises(InvalidArgumentError, match="2 vs 1"):
        run_op("NearestNeighbors", points, centres[:, :1], np.int64(1))
