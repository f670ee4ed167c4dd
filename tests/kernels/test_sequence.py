"""Arrays made from a few scalars, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core import dtypes
from penstock.errors import InvalidArgumentError, ResourceExhaustedError
from support.ops import run_op


@pytest.mark.parametrize(
    "value",
    [np.float32(2), np.int8(-1), np.bool_(1), ml_dtypes.bfloat16(3), b"ab", np.complex64(1j)],
)
def test_fill(value: Any) -> None:
    """Every element is the value, in the value's type; sizes may be a bare scalar."""
    filled = run_op("Fill", np.array([2, 1], np.int64), value)

    assert filled.tolist() == [[value], [value]]
    assert run_op("Fill", np.int32(2), value).tolist() == [value, value]
    assert run_op("Fill", np.zeros(0, np.int32), value) == value


@pytest.mark.parametrize(
    ("sizes", "error"),
    [
        ([2, -1], InvalidArgumentError),
        ([2**40, 2**40], InvalidArgumentError),
        ([2**31, 2**14], ResourceExhaustedError),
        ([[1]], InvalidArgumentError),
    ],
)
def test_fill_refuses_absurd_sizes(sizes: Any, error: type[Exception]) -> None:
    """Memory that nobody has is refused before it is asked for."""
    with pytest.raises(error):
        run_op("Fill", np.array(sizes, np.int64), np.float32(1))


@pytest.mark.parametrize(
    ("start", "limit", "delta", "expected"),
    [
        (0, 10, 3, [0, 3, 6, 9]),
        (10, 0, -3, [10, 7, 4, 1]),
        (3, 3, -1, []),
        (0, 1, 7, [0]),
        (-(2**31), 2**31 - 1, 2**30, [-2147483648, -1073741824, 0, 1073741824]),
        (2**31 - 1, -(2**31), -(2**31), [2147483647, -1]),
    ],
)
def test_range_of_integers(start: int, limit: int, delta: int, expected: list[int]) -> None:
    """The limit is left out, and the largest distances do not overflow."""
    result = run_op("Range", np.int32(start), np.int32(limit), np.int32(delta))

    assert (result.dtype, result.tolist()) == (np.int32, expected)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (np.float32, [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
        (np.float16, [0, 0.0999755859375, 0.199951171875, 0.2998046875, 0.39990234375, 0.5,
                      0.599609375, 0.69970703125, 0.7998046875, 0.89990234375]),
        (ml_dtypes.bfloat16, [0, 0.10009765625, 0.2001953125, 0.30078125, 0.400390625, 0.5,
                              0.6015625, 0.69921875, 0.80078125, 0.90234375]),
    ],
)  # fmt: skip
def test_range_of_floats_multiplies(kind: Any, expected: list[float]) -> None:
    """Each number is start + i * delta, rounded in its own type, and no running sum."""
    result = run_op("Range", kind(0), kind(1), kind(0.1))

    assert result.dtype == kind
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("start", "limit", "delta", "message"),
    [
        (5, 3, 1, "Requires start <= limit when delta > 0: 5/3"),
        (3, 5, -1, "Requires start >= limit when delta < 0: 3/5"),
        (3, 5, 0, "Requires delta != 0"),
        (0, np.inf, 1, "Requires .* <= 9223372036854775807"),
        (0, np.nan, 1, "Requires start <= limit"),
    ],
)
def test_range_refuses(start: float, limit: float, delta: float, message: str) -> None:
    """A range must lead to its limit."""
    kind = np.int32 if np.isfinite(limit) else np.float32
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("Range", kind(start), kind(limit), kind(delta))


@pytest.mark.parametrize(("num", "expected"), [(1, [1]), (2, [1, 2]), (5, [1, 1.25, 1.5, 1.75, 2])])
def test_lin_space(num: int, expected: list[float]) -> None:
    """Both ends belong to it; of one number only the first."""
    result = run_op("LinSpace", np.float32(1), np.float32(2), np.int32(num))

    assert (result.dtype, result.tolist()) == (np.float32, expected)


def test_lin_space_ends_exactly() -> None:
    """The last number is the stop itself, whatever the steps were rounded to."""
    result = run_op("LinSpace", np.float32(0.1), np.float32(7.3), np.int32(1000))

    assert result[-1] == np.float32(7.3)
    with pytest.raises(InvalidArgumentError, match="Requires num > 0: 0"):
        run_op("LinSpace", np.float32(0), np.float32(1), np.int32(0))


def test_one_hot_leaves_rows_without_a_place_empty() -> None:
    """Indices outside, negative ones too, give rows of off_value."""
    result = run_op(
        "OneHot", np.array([0, 2, -1, 3], np.int32), np.int32(3), np.float32(5), np.float32(1)
    )

    np.testing.assert_array_equal(result, [[5, 1, 1], [1, 1, 5], [1, 1, 1], [1, 1, 1]])


@pytest.mark.parametrize("least", [0, -3])
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_one_hot_of_many_indices(kind: Any, least: int) -> None:
    """All within the depth, or some beyond it on either side."""
    depth = 9 if least == 0 else 5
    indices = np.random.default_rng(3).integers(least, 9, (90, 110)).astype(kind)
    result = run_op("OneHot", indices, np.int32(depth), np.float32(5), np.float32(1))
    expected = np.where(indices[..., None] == np.arange(depth), 5, 1)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("depth", [1, 21, 255, 256, 257])
@pytest.mark.parametrize("off", [0.0, -2.0])
def test_one_hot_of_long_arrays(depth: int, off: float) -> None:
    """Narrow rows are picked in pieces, the last of which is short; wide ones all at once."""
    indices = np.random.default_rng(5).integers(-2, depth + 2, (3, 500_000 // depth + 1))
    result = run_op("OneHot", indices, np.int32(depth), np.float32(5), np.float32(off))
    expected = np.where(indices[..., None] == np.arange(depth), 5, off).astype(np.float32)
    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_one_hot_of_small_indices(kind: Any) -> None:
    """A depth may be beyond the type of indices, some of which are below 0."""
    indices = np.arange(-5, 600).astype(kind)
    result = run_op("OneHot", indices, np.int32(300), np.uint8(1), np.uint8(0))
    np.testing.assert_array_equal(result, (indices[:, None] == np.arange(300)).astype(np.uint8))


@pytest.mark.parametrize(("axis", "turned"), [(0, (2, 0, 1)), (1, (0, 2, 1)), (-1, (0, 1, 2))])
def test_one_hot_puts_the_dimension_where_it_is_wanted(axis: int, turned: Any) -> None:
    """The axis is the new dimension's place in the result."""
    indices = np.array([[0, 1], [1, 1]])
    result = run_op("OneHot", indices, np.int32(3), b"x", b"-", axis=axis)

    expected = np.where(indices[..., None] == np.arange(3), "x", "-").astype("S").astype(object)
    np.testing.assert_array_equal(result, expected.transpose(turned))


def test_one_hot_of_a_scalar_and_of_nothing() -> None:
    """Rank 0 gives a vector, no index gives no row, depth 0 gives rows without elements."""
    on, off = np.float32(1), np.float32(0)

    assert run_op("OneHot", np.int32(1), np.int32(3), on, off).tolist() == [0, 1, 0]
    assert run_op("OneHot", np.zeros(0, np.int32), np.int32(3), on, off).shape == (0, 3)
    assert run_op("OneHot", np.zeros(1, np.int32), np.int32(0), on, off).shape == (1, 0)
    assert run_op("OneHot", np.uint8(255), np.int32(300), on, off)[255] == 1


@pytest.mark.parametrize(
    ("depth", "axis", "message"),
    [
        (np.int32(-1), -1, "depth must be non-negative, got: -1"),
        (np.array([3], np.int32), -1, r"depth must be a scalar, but got: \[1\]"),
        (np.int32(3), 2, r"Expected axis to be -1 or between \[0, 2\)"),
        (np.int32(3), -2, r"Expected axis to be -1 or between \[0, 2\)"),
    ],
)
def test_one_hot_refuses(depth: Any, axis: int, message: str) -> None:
    """Depths and axes that make no array."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("OneHot", np.zeros(1, np.int32), depth, np.float32(1), np.float32(0), axis=axis)


def test_empty_is_the_same_in_every_run() -> None:
    """Uninitialised arrays are zeros, and strings are empty."""
    shape = np.array([2], np.int32)

    assert run_op("Empty", shape, dtype=dtypes.float32).tolist() == [0, 0]
    assert run_op("Empty", shape, dtype=dtypes.string).tolist() == [b"", b""]


@pytest.mark.parametrize("kind", [np.float32, np.complex64, np.int8, np.bool_])
@pytest.mark.parametrize("value", [0, -0.0, 1])
def test_large_fills(kind: Any, value: float) -> None:
    """Every element is the value, and a zero has its sign."""
    wanted = kind(value)
    filled = run_op("Fill", np.int32([300, 500]), wanted)
    assert (filled.shape, filled.dtype) == ((300, 500), wanted.dtype)
    assert filled.tobytes() == wanted.tobytes() * filled.size
