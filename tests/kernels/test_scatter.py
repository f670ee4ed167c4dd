"""Putting updates in their places, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.errors import InvalidArgumentError
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
NAN = np.nan


def column(*indices: int) -> Any:
    """Indices of the first dimension."""
    return np.array(indices, np.int32)[:, None]


@pytest.mark.parametrize(
    ("updates", "expected"),
    [
        (np.array([1, 2, 3], np.float32), [4, 0, 2, 0]),
        (np.array([200, 1, 100], np.uint8), [44, 0, 1, 0]),
        (np.array([True, False, True]), [True, False, False, False]),
        (np.array([b"a", b"b", b"c"], object), [b"ac", b"", b"b", b""]),
        (np.array([1, 2, 3], ml_dtypes.bfloat16), [4, 0, 2, 0]),
    ],
)
def test_scatter_nd_adds_up(updates: Any, expected: list[Any]) -> None:
    """Sums wrap around, truth values are joined by "or", strings one after the other."""
    result = run_op("ScatterNd", column(0, 2, 0), updates, np.array([4], np.int32))

    assert result.dtype == updates.dtype
    assert result.tolist() == expected


@pytest.mark.parametrize("width", [1, 7, 600])
def test_rows_add_up_whatever_their_width(width: int) -> None:
    """Narrow, middling and wide slices take different ways to the same sums."""
    updates = np.random.default_rng(3).normal(size=(40, width)).astype(np.float32)
    places = np.random.default_rng(4).integers(0, 5, 40)
    expected = np.zeros((5, width), np.float32)
    for place, update in zip(places, updates, strict=True):
        expected[place] += update

    result = run_op("ScatterNd", places[:, None], updates, np.array([5, width]))

    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("indices", "updates", "shape", "message"),
    [
        ([[9]], [1], [4], r"indices\[0\] = \[9\] does not index into shape \[4\]"),
        ([[-1]], [1], [4], r"indices\[0\] = \[-1\] does not index into shape \[4\]"),
        ([[0, 0], [1, 3]], [1, 2], [2, 3], r"indices\[1\] = \[1, 3\] does not index"),
        ([[0]], [1, 2], [4], r"Dimensions \[0,1\) of indices\[shape=\[1,1\]\] must match"),
        ([[0]], [[1, 2]], [4, 3], r"Dimensions \[1,2\) of input\[shape=\[4,3\]\] must match"),
        ([[0, 0]], [1], [4], r"Dimensions \[2,1\) of input\[shape=\[4\]\] must match"),
        ([[0]], [1], [0], "Indices and updates specified for empty output"),
        ([[0]], [1], [-4], "Dimension -4 must be >= 0"),
        ([[0]], [1], 4, "Shape must be a vector"),
        ([0], 1, [4], "Updates shape must have rank at least one"),
        (0, 1, [4], "Indices shape must have rank at least one"),
    ],
)
def test_scatter_nd_refuses(indices: Any, updates: Any, shape: Any, message: str) -> None:
    """Places outside, and shapes that do not fit each other."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op(
            "ScatterNd",
            np.array(indices, np.int32),
            np.array(updates, np.float32),
            np.array(shape, np.int32),
        )


def test_scatter_nd_of_nothing() -> None:
    """Without updates there are zeros, even none."""
    nothing = np.zeros((0, 1), np.int32), np.zeros(0, np.float32)

    assert run_op("ScatterNd", *nothing, np.array([2], np.int32)).tolist() == [0, 0]
    assert run_op("ScatterNd", *nothing, np.array([0], np.int32)).shape == (0,)


def test_bad_indices_can_be_ignored() -> None:
    """On request their updates are left out."""
    updates = np.array([1, 2], np.float32)

    result = run_op(
        "ScatterNd", column(9, 1), updates, np.array([3], np.int32), bad_indices_policy="IGNORE"
    )

    assert result.tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("TensorScatterAdd", [-1, 2, 12]),
        ("ScatterNdNonAliasingAdd", [-1, 2, 12]),
        ("TensorScatterSub", [3, 2, -6]),
        ("TensorScatterMin", [-7, 2, 3]),
        ("TensorScatterMax", [5, 2, 9]),
        ("TensorScatterUpdate", [-7, 2, 9]),
    ],
)
def test_tensor_scatter(op: str, expected: list[float]) -> None:
    """Several updates of one place come one after the other; the input stays as it was."""
    values = np.array([1, 2, 3], np.float32)

    result = run_op(op, values, column(0, 0, 2), np.array([5, -7, 9], np.float32))

    assert result.tolist() == expected
    assert values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("op", ["TensorScatterMin", "TensorScatterMax"])
def test_extrema_skip_updates_that_are_nan(op: str) -> None:
    """NaN in the input stays, NaN among the updates changes nothing."""
    values, updates = np.array([NAN, 1, 2], np.float32), np.array([1, NAN], np.float32)

    result = run_op(op, values, column(0, 1), updates)

    np.testing.assert_array_equal(result, [NAN, 1, 2])


@pytest.mark.parametrize("op", ["TensorScatterAdd", "TensorScatterUpdate"])
@pytest.mark.parametrize(
    ("values", "indices", "updates"),
    [
        (MATRIX, [[9]], [[1, 2, 3]]),
        (MATRIX, [[0]], [1, 2, 3]),
        (MATRIX, [[0, 0, 0]], [1]),
        (np.float32(1), [[0]], [1]),
        (MATRIX, [0], [1, 2, 3]),
        (np.zeros((0, 3), np.float32), [[0]], [[1, 2, 3]]),
    ],
)
def test_tensor_scatter_refuses(op: str, values: Any, indices: Any, updates: Any) -> None:
    """What TensorFlow refuses is refused."""
    with pytest.raises(InvalidArgumentError):
        run_op(op, values, np.array(indices, np.int32), np.array(updates, np.float32))


@pytest.mark.parametrize(
    ("op", "expected"),
    [("InplaceAdd", [12, 2, 8]), ("InplaceSub", [-10, 2, -2]), ("InplaceUpdate", [6, 2, 5])],
)
def test_inplace_ops_change_a_copy(op: str, expected: list[float]) -> None:
    """Rows are counted modulo their number, negative ones too."""
    values = np.array([1, 2, 3], np.float32)
    rows = np.array([0, -1, 3], np.int32)

    result = run_op(op, values, rows, np.array([5, 5, 6], np.float32))

    assert result.tolist() == expected
    assert values.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("values", "rows", "updates", "message"),
    [
        ([1, 2], 0, [5], "i must be a vector"),
        ([1, 2], [0], [5, 6], "i and x shape doesn't match at index 0"),
        ([[1, 2, 3]], [0], [[5, 6]], "x and v shape doesn't match at index 1"),
        ([True, False], [1], [True], "Unsupported data type: bool"),
    ],
)
def test_inplace_refuses(values: Any, rows: Any, updates: Any, message: str) -> None:
    """Rows and updates must match; only numbers can be added."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("InplaceAdd", np.array(values), np.array(rows, np.int32), np.array(updates))


@pytest.mark.parametrize("op", ["Add", "Sub", "Max", "Min"])
@pytest.mark.parametrize("limit", [5, 300, 5000])
def test_many_updates_of_rows(op: str, limit: int) -> None:
    """However they are grouped, the updates of a row are applied one after the other."""
    random = np.random.default_rng(limit)
    rows = random.normal(size=(limit, 40)).astype(np.float32)
    places = random.integers(0, limit, 2000).astype(np.int32)
    updates = random.normal(size=(2000, 40)).astype(np.float32)
    combine = {"Add": np.add, "Sub": np.subtract, "Max": np.maximum, "Min": np.minimum}[op]
    expected = rows.copy()
    for place, update in zip(places, updates, strict=True):
        expected[place] = combine(expected[place], update)
    got = run_op(f"TensorScatter{op}", rows, places[:, None], updates)
    np.testing.assert_array_equal(got, expected)
