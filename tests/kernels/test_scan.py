"""Running sums, products and logarithms of sums, against answers from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.errors import InvalidArgumentError
from support.ops import run_op

NAN, INF = np.nan, np.inf
ROWS = np.array([[1, 2, 3], [3, 4, 5]], np.float32)


@pytest.mark.parametrize(
    ("op", "exclusive", "reverse", "expected"),
    [
        ("Cumsum", False, False, [1, 3, 6]),
        ("Cumsum", False, True, [6, 5, 3]),
        ("Cumsum", True, False, [0, 1, 3]),
        ("Cumsum", True, True, [5, 3, 0]),
        ("Cumprod", False, False, [1, 2, 6]),
        ("Cumprod", False, True, [6, 6, 3]),
        ("Cumprod", True, False, [1, 1, 2]),
        ("Cumprod", True, True, [6, 3, 1]),
        ("CumulativeLogsumexp", False, False, [1, 2.3132617, 3.407606]),
        ("CumulativeLogsumexp", False, True, [3.407606, 3.3132617, 3]),
        ("CumulativeLogsumexp", True, False, [-INF, 1, 2.3132617]),
        ("CumulativeLogsumexp", True, True, [3.3132617, 3, -INF]),
    ],
)
def test_directions(op: str, exclusive: bool, reverse: bool, expected: list[float]) -> None:
    """A scan may leave out the element itself, and may come from the end."""
    result = run_op(op, ROWS, np.int32(-1), exclusive=exclusive, reverse=reverse)
    np.testing.assert_allclose(result[0], expected, rtol=1e-6)
    turned = run_op(op, ROWS.T, np.int64(0), exclusive=exclusive, reverse=reverse)
    np.testing.assert_array_equal(turned.T, result)


def test_wrap_around_and_nan() -> None:
    """Integers wrap in their own type; NaN spreads only from its own place on."""
    summed = run_op("Cumsum", np.array([200, 100, 7], np.uint8), np.int32(0))
    assert (summed.tolist(), summed.dtype) == ([200, 44, 51], np.uint8)
    spread = run_op("Cumsum", np.array([NAN, 1], np.float32), np.int32(0), exclusive=True)
    np.testing.assert_array_equal(spread, [0, NAN])


def test_logarithms_do_not_overflow() -> None:
    """Numbers whose exponentials are infinite or nothing are no harm."""
    x = np.array([1000, -1000, 1001, -INF, INF, 2], np.float32)
    result = run_op("CumulativeLogsumexp", x, np.int32(0))
    np.testing.assert_allclose(result, [1000, 1000, 1001.31323, 1001.31323, INF, INF], rtol=1e-6)


def test_half_precision_runs_in_single() -> None:
    """A running sum of ones in float16 does not stop at 2048."""
    assert run_op("Cumsum", np.ones(4000, np.float16), np.int32(0))[-1] == 4000


@pytest.mark.parametrize("exclusive", [False, True])
def test_nothing_to_scan(exclusive: bool) -> None:
    """An empty axis stays empty."""
    empty = np.zeros((0, 2), np.float32)
    assert run_op("Cumsum", empty, np.int32(0), exclusive=exclusive).shape == (0, 2)


@pytest.mark.parametrize(
    ("shape", "axis", "complaint"),
    [
        ((2, 3), np.int32(2), r"Expected scan axis in the range \[-2, 2\), but got 2"),
        ((2, 3), np.int32(-3), r"Expected scan axis in the range \[-2, 2\)"),
        ((), np.int32(0), r"Expected scan axis in the range \[0, 0\), but got 0"),
        ((2, 3), np.array([0], np.int32), r"axis must be a scalar, not \[1\]"),
    ],
)
def test_wrong_axis(shape: Any, axis: Any, complaint: str) -> None:
    """The axis must be one of the array's own; a scalar has none."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("Cumsum", np.zeros(shape, np.float32), axis)
