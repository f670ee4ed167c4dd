"""Element-wise functions and arithmetic, against answers recorded from TensorFlow."""

from __future__ import annotations

import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.exceptions import from_exception
from support.ops import run_op

NAN, INF = np.nan, np.inf
ODD = np.array([NAN, INF, -INF, -0.0, -1.5, 0.5, 2.5], np.float32)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Sign", [NAN, 1, -1, 0, -1, 1, 1]),
        ("Round", [NAN, INF, -INF, 0, -2, 0, 2]),
        ("Rint", [NAN, INF, -INF, 0, -2, 0, 2]),
        ("Floor", [NAN, INF, -INF, 0, -2, 0, 2]),
        ("Ceil", [NAN, INF, -INF, 0, -1, 1, 3]),
        ("Rsqrt", [NAN, 0, NAN, -INF, NAN, 1.4142135, 0.6324555]),
        ("Inv", [NAN, 0, 0, -INF, -0.6666667, 2, 0.4]),
        ("Sigmoid", [NAN, 1, 0, 0.5, 0.18242553, 0.62245935, 0.9241418]),
        ("Tanh", [NAN, 1, -1, 0, -0.9051483, 0.46211714, 0.98661435]),
        ("Expm1", [NAN, INF, -1, 0, -0.77686983, 0.64872128, 11.182494]),
        ("Log1p", [NAN, INF, NAN, 0, NAN, 0.4054651, 1.252763]),
        ("Asinh", [NAN, INF, -INF, 0, -1.1947632, 0.48121184, 1.6472312]),
        ("Square", [NAN, INF, INF, 0, 2.25, 0.25, 6.25]),
    ],
)
def test_functions_of_one_number(op: str, expected: list[float]) -> None:
    """NaN, infinities, zero and plain numbers give what TensorFlow gives."""
    result = run_op(op, ODD)

    assert result.dtype == np.float32
    np.testing.assert_allclose(result, np.float32(expected), rtol=1e-5)


@pytest.mark.parametrize("op", ["Exp", "Sigmoid", "Rsqrt", "Sign", "Round", "Square", "Abs"])
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_scalars_stay_scalars_of_their_type(op: str, kind: Any) -> None:
    """A scalar becomes a scalar of its own type, and an empty array an empty one."""
    assert type(run_op(op, kind(1.5))) is kind
    assert run_op(op, np.zeros((0, 2), kind)).shape == (0, 2)


@pytest.mark.parametrize(
    ("op", "expected"),
    [("Abs", [-128, 5, 0]), ("Neg", [-128, 5, 0]), ("Sign", [-1, -1, 0]), ("Square", [0, 25, 0])],
)
def test_smallest_integer_wraps_around(op: str, expected: list[int]) -> None:
    """The smallest integer has no counterpart, so it stays."""
    np.testing.assert_array_equal(run_op(op, np.int8([-128, -5, 0])), np.int8(expected))


def test_integers_are_round_already() -> None:
    """Rounding leaves an integer as it is."""
    np.testing.assert_array_equal(run_op("Round", np.int32([7, -5])), [7, -5])


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Sign", [0, 0.6 - 0.8j]),
        ("Rsqrt", [complex(INF, NAN), 0.4 + 0.2j]),
        ("Log", [-INF, 1.609438 - 0.9272952j]),
        ("Sigmoid", [0.5, 1.0320722 + 0.04019551j]),
    ],
)
def test_complex_functions(op: str, expected: list[complex]) -> None:
    """Complex numbers give what TensorFlow gives."""
    result = run_op(op, np.complex64([0, 3 - 4j]))

    assert result.dtype == np.complex64
    np.testing.assert_allclose(result[1], expected[1], rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "x", "y", "expected"),
    [
        ("Maximum", [NAN, 1, -2], [1, NAN, 3], [NAN, NAN, 3]),
        ("Minimum", [NAN, 1, -2], [1, NAN, 3], [NAN, NAN, -2]),
        ("Xlogy", [0, 0, 1], [NAN, -1, 2], [0, 0, 0.6931472]),
        ("Xlog1py", [0, 0, 1], [NAN, -1, 2], [0, 0, 1.0986123]),
        ("Xdivy", [0, 0, 1], [NAN, 0, 2], [0, 0, 0.5]),
        ("MulNoNan", [NAN, INF, 2], [0, 0, 3], [0, 0, 6]),
        ("DivNoNan", [NAN, 1, 1], [0, 0, 2], [0, 0, 0.5]),
        ("SquaredDifference", [1, INF, 5], [3, INF, 2], [4, NAN, 9]),
        ("Pow", [0, 0, -8], [0, -1, 1 / 3], [1, INF, NAN]),
        ("Atan2", [0, -0.0, 1], [-1, 1, 2], [np.pi, 0, 0.4636476]),
    ],
)
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_functions_of_two_numbers(
    op: str, x: list[float], y: list[float], expected: list[float], kind: Any
) -> None:
    """Arrays and scalars give what TensorFlow gives, in every floating type."""
    rtol = 1e-5 if np.dtype(kind).itemsize > 2 else 1e-2
    whole = run_op(op, np.array(x, kind), np.array(y, kind))

    assert whole.dtype == kind
    np.testing.assert_allclose(whole.astype(np.float64), expected, rtol=rtol)
    for a, b, one in zip(np.array(x, kind), np.array(y, kind), expected, strict=True):
        alone = run_op(op, a, b)
        assert type(alone) is kind
        np.testing.assert_allclose(float(alone), one, rtol=rtol)


def test_complex_power_of_zero() -> None:
    """Zero to a power with a positive real part is zero, and anything to the zeroth is one."""
    result = run_op("Pow", np.complex64([0, 2j]), np.complex64([3 - 4j, 0]))

    np.testing.assert_allclose(result, [0, 1])


def test_complex_squared_difference_is_real() -> None:
    """The difference is multiplied with its conjugate."""
    result = run_op("SquaredDifference", np.complex64([3 - 4j]), np.complex64([0]))

    np.testing.assert_array_equal(result, np.complex64([25]))


def test_integers_wrap_around() -> None:
    """A sum or a power that does not fit keeps its lowest bits."""
    assert run_op("AddV2", np.int8(100), np.int8(100)) == np.int8(-56)
    powers = run_op("Pow", np.int32([3, -2, 0]), np.int32([100, 31, 0]))
    np.testing.assert_array_equal(powers, [-818408495, -2147483648, 1])


def test_negative_integer_power_is_refused() -> None:
    """One negative exponent refuses the whole power; no element, no refusal."""
    for x, y in ((np.int32([1, 2]), np.int32([-1, 0])), (np.int32(2), np.int32(-1))):
        with pytest.raises(ValueError, match="Integers to negative integer powers"):
            run_op("Pow", x, y)
    assert run_op("Pow", np.zeros(0, np.int32), np.int32(-1)).shape == (0,)


def test_strings_are_joined() -> None:
    """Strings are added byte by byte, zeros at their ends included."""
    texts = np.array([b"a\0", b"b"], object)

    assert run_op("Add", texts, b"\0").tolist() == [b"a\0\0", b"b\0"]
    assert run_op("Add", b"x", b"y") == b"xy"


def test_addition_of_scalars_costs_nothing_but_the_addition() -> None:
    """The kernel of a sum is Python's operator, with nothing around it."""
    from penstock.kernels.math.cwise_ops import _BINARY

    assert _BINARY["AddV2"] is operator.add


def test_shapes_that_do_not_broadcast_are_named() -> None:
    """The error that the executor makes of numpy's has TensorFlow's words."""
    with pytest.raises(ValueError, match="broadcast") as caught:
        run_op("AddV2", np.zeros((2, 3), np.float32), np.zeros(4, np.float32))

    assert from_exception(caught.value).reason == "Incompatible shapes: [2,3] vs. [4]"


def test_scalar_and_array_keep_the_type() -> None:
    """A bfloat16 scalar and array give a bfloat16 array."""
    x = np.array([1, 2], ml_dtypes.bfloat16)

    assert run_op("Mul", x, ml_dtypes.bfloat16(3)).dtype == x.dtype
    assert run_op("Sub", ml_dtypes.bfloat16(3), x).dtype == x.dtype
