"""Casts, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.dtypes import as_dtype
from penstock.core.values import Value
from penstock.errors import UnimplementedError
from penstock.kernels.api.types import NUMBERS
from support.ops import run_op

NAN, INF = np.nan, np.inf
PLAIN = [d for d in dtypes.ALL if d in NUMBERS or d is dtypes.bool_]


def cast(x: Any, target: str, **attrs: bool) -> Value:
    return run_op("Cast", x, DstT=as_dtype(target), **attrs)


@pytest.mark.parametrize("source", PLAIN, ids=str)
@pytest.mark.parametrize("target", PLAIN, ids=str)
def test_small_numbers_survive_any_cast(source: dtypes.DType, target: dtypes.DType) -> None:
    """Every numeric type becomes every other, as an array and as a scalar."""
    x = np.array([0, 1, 1], source.numpy)

    result = cast(x, target.name)
    assert result.dtype == target.numpy
    assert result.astype(complex).tolist() == [0, 1, 1]
    assert type(cast(x[1], target.name)) is target.numpy.type


def test_floats_are_cut_and_integers_wrap() -> None:
    """Floats go towards zero, integers keep their lowest bits."""
    assert cast(np.float32([-2.7, -0.5, 2.7]), "int32").tolist() == [-2, 0, 2]
    assert cast(np.int64([255, 256, -1, 2**40 + 7]), "int8").tolist() == [-1, 0, -1, 7]
    assert cast(np.int32([300, -300]), "uint64").tolist() == [300, 2**64 - 300]
    assert cast(np.int32(-300), "uint8") == 212


def test_everything_but_zero_is_true() -> None:
    """NaN is true; of a complex number only the real part counts."""
    assert cast(np.float32([0, -0.0, 1e-30, NAN, INF]), "bool").tolist() == [0, 0, 1, 1, 1]
    assert cast(np.complex64([2j, 1]), "bool").tolist() == [False, True]


def test_complex_numbers_lose_their_imaginary_part() -> None:
    """And none is made up where there was none."""
    assert cast(np.complex64([1 + 2j, -3.5 - 1j]), "int32").tolist() == [1, -3]
    assert cast(np.float64([0.5]), "complex64").tolist() == [0.5]
    assert cast(np.complex128(1.5 + 1j), "float16") == np.float16(1.5)


def test_narrow_floats_are_rounded_to_even() -> None:
    """What is too large becomes infinite."""
    halves = cast(np.float32([1.0014648, 65504, 65520]), "float16")
    assert halves.tolist() == [1.001953125, 65504, INF]
    brains = cast(np.float32([1.00390625, 1.01171875, 65504]), "bfloat16")
    assert brains.astype(float).tolist() == [1, 1.015625, 65536]


@pytest.mark.parametrize(
    ("source", "target", "value", "rounded", "truncated"),
    [
        (np.float32, "bfloat16", 255.9, 256, 255),
        (np.float32, "float16", 65520, INF, 65504),
        (np.float64, "float32", 2147483647, 2147483648, 2147483520),
        (np.float32, "float8_e5m2", 480, 512, 448),
        (np.float16, "float8_e5m2", 1e-5, 1.52587890625e-05, 0),
        (ml_dtypes.bfloat16, "float8_e4m3fn", 127, 128, 120),
        (np.complex128, "complex64", 0.4 + 0j, 0.4000000059604645, 0.3999999761581421),
        (np.float16, "bfloat16", 0.4, 0.400390625, 0.400390625),
    ],
)
def test_truncation(
    source: Any, target: str, value: complex, rounded: float, truncated: float
) -> None:
    """With Truncate the digits that do not fit are dropped instead of rounded."""
    x = np.array([value]).astype(source)

    assert cast(x, target).astype(complex).tolist() == [rounded]
    assert cast(x, target, Truncate=True).astype(complex).tolist() == [truncated]
    assert complex(cast(x[0], target, Truncate=True)) == truncated


def test_quantised_codes_are_taken_as_they_are() -> None:
    """A cast to or from a quantised type does not scale."""
    codes = cast(np.float32([-1.5, 100]), "qint8")

    assert codes.dtype == dtypes.qint8.numpy
    assert cast(codes, "float32").tolist() == [-1, 100]
    assert cast(cast(codes, "quint8"), "int32").tolist() == [255, 100]
    assert cast(cast(np.int32(7), "qint32"), "int64") == 7


def test_int4_wraps_around() -> None:
    """Four bits are kept of any integer."""
    assert cast(np.int8([8, -9, 100]), "int4").astype(int).tolist() == [-8, 7, 4]
    assert cast(np.array([-1], ml_dtypes.int4), "uint4").astype(int).tolist() == [15]
    assert cast(np.array([15], ml_dtypes.uint4), "int64").tolist() == [15]


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (np.float16(1), "int4", "Cast half to int4 is not supported"),
        (np.int32(1), "float8_e5m2", "Cast int32 to float8_e5m2 is not supported"),
        (np.float64(1), "string", "Cast double to string is not supported"),
        (b"1", "float32", "Cast string to float is not supported"),
    ],
)
def test_some_casts_do_not_exist(source: Any, target: str, words: str) -> None:
    """What TensorFlow cannot cast is UNIMPLEMENTED, in its words."""
    with pytest.raises(UnimplementedError, match=words):
        cast(source, target)


def test_a_cast_to_the_same_type_is_free() -> None:
    """The value itself comes back, whatever its type."""
    for value in (np.float32([1, 2]), np.int32(3), b"text"):
        assert cast(value, "string" if isinstance(value, bytes) else str(value.dtype)) is value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0), False),
        (np.float32(NAN), True),
        (np.int32(3), True),
        (np.array(3, np.int32), True),
        (b"", False),
        (b"0", True),
        (np.float32([]), False),
        (np.float32([0]), True),
        (np.array([b""], object), True),
        (np.True_, True),
    ],
)
def test_truth_of_a_tensor(value: Any, expected: bool) -> None:
    """A scalar is true if it is not zero or empty, any other tensor if it has elements."""
    result = run_op("ToBool", value)

    assert type(result) is np.bool_
    assert result == expected
