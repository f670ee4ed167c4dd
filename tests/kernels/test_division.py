"""Quotients and remainders, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.ops import run_op

NAN, INF = np.nan, np.inf
INTEGER_OPS = ["Div", "FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod"]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Div", [2, -2, -2, 2]),
        ("TruncateDiv", [2, -2, -2, 2]),
        ("FloorDiv", [2, -3, -3, 2]),
        ("FloorMod", [1, -2, 2, -1]),
        ("Mod", [1, 1, -1, -1]),
        ("TruncateMod", [1, 1, -1, -1]),
    ],
)
def test_signs_of_integers(op: str, expected: list[int]) -> None:
    """Floor rounds down, the others towards zero; array by array and one by one."""
    x, y = np.int32([7, 7, -7, -7]), np.int32([3, -3, 3, -3])

    result = run_op(op, x, y)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, expected)
    assert [run_op(op, a, b) for a, b in zip(x, y, strict=True)] == expected


@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integer_division_by_zero(op: str) -> None:
    """One zero among the divisors is an error, but not when nothing is divided."""
    for x, y in ((np.int32([1, 2]), np.int32([1, 0])), (np.int32(3), np.int32(0))):
        with pytest.raises(ZeroDivisionError, match="Integer division by zero"):
            run_op(op, x, y)
    assert run_op(op, np.zeros(0, np.int32), np.int32(0)).shape == (0,)


@pytest.mark.parametrize("op", ["Div", "FloorDiv", "TruncateDiv"])
def test_smallest_integer_by_minus_one(op: str) -> None:
    """The quotient that does not fit wraps around."""
    assert run_op(op, np.int32(-(2**31)), np.int32(-1)) == -(2**31)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Div", [INF, 5 / 3, -5 / 3, INF, 0, 0, NAN, 10]),
        ("RealDiv", [INF, 5 / 3, -5 / 3, INF, 0, 0, NAN, 10]),
        ("FloorDiv", [INF, 1, -2, INF, 0, 0, NAN, 10]),
        ("TruncateDiv", [INF, 1, -1, INF, 0, 0, NAN, 10]),
        ("FloorMod", [NAN, 2, 1, NAN, 5, INF, NAN, 0.09999999]),
        ("Mod", [NAN, 2, -2, NAN, 5, -5, NAN, 0.09999999]),
        ("TruncateMod", [NAN, 2, -2, NAN, 5, -5, NAN, 0.09999999]),
    ],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats_follow_ieee(op: str, expected: list[float], kind: Any) -> None:
    """Zeros and infinities give infinities, zeros and NaN; 1 / 0.1 is ten."""
    x = np.array([1, 5, -5, INF, 5, -5, 0, 1], kind)
    y = np.array([0, 3, 3, 2, INF, INF, 0, 0.1], kind)

    result = run_op(op, x, y)
    assert result.dtype == kind
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_unsigned_remainder() -> None:
    """Unsigned integers use all their bits."""
    result = run_op("FloorMod", np.uint8([7, 250]), np.uint8([3, 7]))

    np.testing.assert_array_equal(result, np.uint8([1, 5]))
