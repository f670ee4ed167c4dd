"""Sums, checks, buckets, products and parts, against answers recorded from TensorFlow."""

from __future__ import annotations

import functools
import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.errors import FailedPreconditionError
from support.ops import both, run_op

NAN, INF = np.nan, np.inf


def test_sum_of_many() -> None:
    """All inputs are added; a single one is its own sum."""
    x = np.float32([1, 2])

    assert run_op("AddN", [x, x, x]).tolist() == [3, 6]
    assert run_op("AddN", [x]) is x
    assert run_op("AddN", [np.int8(100), np.int8(100)]) == np.int8(-56)
    assert run_op("AccumulateNV2", [x, x], shape=TensorShape((2,))).tolist() == [2, 4]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 16, 17])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (300, 1000), (0, 2)])
def test_many_are_added_up_first_to_last(count: int, shape: tuple[int, ...]) -> None:
    """Each sum is rounded, as by numpy and by TensorFlow, whoever adds up."""
    draw = np.random.default_rng(count)
    sizes = 10.0 ** draw.integers(9, size=count)
    arrays = [draw.normal(0, size, shape).astype(np.float32) for size in sizes]
    arrays[-1] = arrays[-1].T.copy().T  # the other way round in memory
    wanted = functools.reduce(operator.add, arrays)
    for got in both("AddN", arrays):
        assert np.shape(got) == shape
        assert got.tobytes() == wanted.tobytes()


def test_sum_of_different_shapes() -> None:
    """Nothing is broadcast, not even a scalar."""
    with pytest.raises(ValueError, match=r"Input 0: \[2\] != input 2: \[\]"):
        run_op("AddN", [np.float32([1, 2]), np.float32([1, 2]), np.float32(1)])


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_half_the_sum_of_squares(kind: Any) -> None:
    """Any shape becomes one number of the same type; nothing becomes zero."""
    result = run_op("L2Loss", np.array([[3, 4], [0, 1]], kind))

    assert (type(result), float(result)) == (kind, 13)
    assert run_op("L2Loss", np.zeros(0, kind)) == 0
    assert run_op("L2Loss", kind(2)) == 2


@pytest.mark.parametrize(
    ("values", "kinds", "signed_kinds"),
    [
        ([1, NAN, INF], "Inf and NaN", "+Inf and NaN"),
        ([1, -INF], "Inf", "-Inf"),
        ([NAN], "NaN", "NaN"),
        ([NAN, INF, -INF], "Inf and NaN", "-Inf, +Inf, and NaN"),
    ],
)
def test_numbers_that_are_none(values: list[float], kinds: str, signed_kinds: str) -> None:
    """The error says what was found; the second version tells the signs."""
    for op, found in (("CheckNumerics", kinds), ("CheckNumericsV2", signed_kinds)):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            run_op(op, np.float32(values), message="loss")
        assert str(caught.value) == f"loss : Tensor had {found} values"


def test_numbers_pass_the_check() -> None:
    """The tensor itself comes back."""
    for value in (np.float32([1, 2]), np.float32(3), np.zeros((0, 2), np.float32)):
        assert run_op("CheckNumerics", value, message="") is value


def test_buckets() -> None:
    """A boundary belongs to the bucket above it; NaN is in the last one."""
    x = np.float32([NAN, -1, 0, 10, 100, INF])

    result = run_op("Bucketize", x, boundaries=(0.0, 10.0, 100.0))
    assert (result.tolist(), result.dtype) == ([3, 0, 1, 2, 3, 3], np.int32)
    assert type(run_op("Bucketize", np.int64(5), boundaries=())) is np.int32
    with pytest.raises(ValueError, match="Expected sorted boundaries"):
        run_op("Bucketize", x, boundaries=(0.0, 100.0, 10.0))


def test_cross_product() -> None:
    """Unsigned integers wrap around; shapes must be equal and end in three."""
    a, b = np.uint8([1, 2, 3]), np.uint8([4, 5, 7])

    assert run_op("Cross", a, b).tolist() == [255, 5, 253]
    assert run_op("Cross", np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match=r"same shape: \[2,3\] vs. \[3\]"):
        run_op("Cross", np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(FailedPreconditionError, match="3-element vectors"):
        run_op("Cross", np.zeros(2), np.zeros(2))


def test_parts_of_complex_numbers() -> None:
    """Parts, angle, magnitude and conjugate; scalars stay scalars."""
    z = np.complex64([3 + 4j, -1])

    assert run_op("Real", z).tolist() == [3, -1]
    assert run_op("Imag", z).tolist() == [4, 0]
    assert run_op("ComplexAbs", z).tolist() == [5, 1]
    assert run_op("Conj", z).tolist() == [3 - 4j, -1]
    np.testing.assert_allclose(run_op("Angle", z), [0.9272952, np.pi], rtol=1e-6)
    assert type(run_op("Real", z[0])) is np.float32
    assert type(run_op("Angle", z[0])) is np.float32


def test_complex_numbers_from_parts() -> None:
    """The parts are broadcast, and an infinite one does not spoil the other."""
    made = run_op("Complex", np.float32([[1], [INF]]), np.float32([3, NAN]))

    assert (made.shape, made.dtype) == ((2, 2), np.complex64)
    assert (made[1, 0].real, made[1, 0].imag) == (INF, 3)
    wide = run_op("Complex", np.float64(1), np.float64(2), Tout=dtypes.complex128)
    assert type(wide) is np.complex128


@pytest.mark.parametrize("value", [np.float32([1, NAN]), np.int8(3), np.array([True]), np.zeros(0)])
def test_zeros_and_ones_like(value: Any) -> None:
    """Shape and type are the input's."""
    for op, filler in (("ZerosLike", 0), ("OnesLike", 1)):
        result = run_op(op, value)
        assert (np.shape(result), result.dtype) == (np.shape(value), value.dtype)
        assert np.all(result == filler)


def test_empty_strings_like() -> None:
    """The zero of a string is the empty one."""
    assert run_op("ZerosLike", np.array([b"a", b"b"], object)).tolist() == [b"", b""]
    assert run_op("ZerosLike", b"a") == b""
