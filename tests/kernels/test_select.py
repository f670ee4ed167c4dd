"""Choices and limits, against answers recorded from TensorFlow."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from support.ops import run_op

NAN, INF = np.nan, np.inf
T, E = np.float32([[1, 2, 3], [4, 5, 6]]), np.zeros((2, 3), np.float32)


def test_select_by_rows_by_elements_and_by_one() -> None:
    """A vector of conditions chooses rows, a full one elements, a scalar everything."""
    rows = np.array([False, True])

    assert run_op("Select", rows, T, E).tolist() == [[0, 0, 0], [4, 5, 6]]
    assert run_op("Select", T > 3, T, E).tolist() == [[0, 0, 0], [4, 5, 6]]
    assert run_op("Select", np.False_, T, E) is E
    assert run_op("Select", np.zeros(0, bool), T[:0], E[:0]).shape == (0, 3)


@pytest.mark.parametrize(
    ("condition", "t", "e", "message"),
    [
        ((3,), (2, 3), (2, 3), "Number of batches of 'then' must match .* saw: 2 vs. 3"),
        ((2,), (2, 3), (3,), r"'then' and 'else' must have the same size.*\[2,3\] vs. \[3\]"),
        ((2, 1), (2, 3), (2, 3), r"must have the same size and shape.*\[2,1\] != input 1: \[2,3\]"),
        ((1,), (), (), r"'then' must be at least a vector, but saw shape: \[\]"),
    ],
)
def test_select_does_not_broadcast(
    condition: tuple[int, ...], t: tuple[int, ...], e: tuple[int, ...], message: str
) -> None:
    """Shapes that the old op does not know are refused in its words."""
    with pytest.raises(ValueError, match=message):
        run_op("Select", np.ones(condition, bool), np.ones(t), np.ones(e))


def test_select_v2_broadcasts() -> None:
    """All three inputs are broadcast, and scalars stay scalars."""
    column = np.array([[False], [True]])

    assert run_op("SelectV2", column, T, np.float32(9)).tolist() == [[9, 9, 9], [4, 5, 6]]
    assert run_op("SelectV2", np.True_, T, np.float32(9)).tolist() == T.tolist()
    chosen = run_op("SelectV2", np.False_, np.float32(1), np.float32(2))
    assert type(chosen) is np.float32
    with pytest.raises(ValueError, match=r"condition \[2\], then \[2,3\], and else \[2,3\] must"):
        run_op("SelectV2", np.ones(2, bool), T, E)


def test_select_v2_of_strings() -> None:
    """Strings keep the zeros at their ends."""
    chosen = run_op("SelectV2", np.array([True, False]), b"a\0", np.array([b"b\0"], object))

    assert chosen.tolist() == [b"a\0", b"b\0"]
    assert run_op("SelectV2", np.True_, b"a\0", b"b") == b"a\0"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.5, 2.5, [NAN, 1.5, 2.0, 2.5]),
        (5, 2, [NAN, 5, 5, 5]),
        (NAN, 2, [NAN, -INF, 2, 2]),
        (0, NAN, [NAN, 0, 2, INF]),
        ([0, 0, 3, NAN], 4, [NAN, 0, 3, 4]),
        ([0, 0, 3, 9], [1, 1, 4, 2], [NAN, 0, 3, 9]),
    ],
)
def test_limits(low: float | list[float], high: float | list[float], expected: list[float]) -> None:
    """The lower limit wins, a limit that is NaN is none, and NaN stays."""
    t = np.float32([NAN, -INF, 2, INF])

    result = run_op("ClipByValue", t, np.float32(low), np.float32(high))
    np.testing.assert_array_equal(result, np.float32(expected))


def test_limits_of_complex_numbers_are_real() -> None:
    """Only the real parts are compared, and only they remain."""
    t = np.complex64([1 + 1j, 2, 3j, 1.5 + 1j])

    result = run_op("ClipByValue", t, np.complex64(1), np.complex64(2))
    assert result.dtype == np.complex64
    assert result.tolist() == [1, 2, 1, 1.5]


def test_limits_do_not_broadcast() -> None:
    """A limit is a scalar or has the value's shape."""
    with pytest.raises(ValueError, match="either of the same shape as input, or a scalar"):
        run_op("ClipByValue", T, np.float32([1, 2, 3]), np.float32(5))


def test_limits_keep_the_type() -> None:
    """bfloat16 stays bfloat16."""
    one = ml_dtypes.bfloat16(1)

    assert run_op("ClipByValue", np.array([2], ml_dtypes.bfloat16), one, one).dtype == one.dtype
