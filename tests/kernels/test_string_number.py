"""Numbers as strings and back; expected values were recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock import errors
from penstock.core import dtypes
from support.ops import run_op

FLOATS = np.float32([1.5, -2, np.nan, -np.inf, 1e20, 0.1])


@pytest.mark.parametrize(
    ("attrs", "spelled"),
    [
        ({}, b"1.500000 -2.000000 nan -inf 100000002004087734272.000000 0.100000"),
        ({"precision": 1}, b"1.5 -2.0 nan -inf 100000002004087734272.0 0.1"),
        ({"shortest": True}, b"1.5 -2 nan -inf 1e+20 0.1"),
        (
            {"scientific": True, "precision": 2},
            b"1.50e+00 -2.00e+00 nan -inf 1.00e+20 1.00e-01",
        ),
        (
            {"width": 9, "fill": "0", "precision": 2, "shortest": True},
            b"0000001.5 -00000002       nan      -inf 00001e+20 0000000.1",
        ),
        (
            {"width": 6, "fill": "-", "precision": 1},
            b"1.5    -2.0   nan    -inf   100000002004087734272.0 0.1   ",
        ),
    ],
)
def test_floats_as_strings(attrs: Any, spelled: bytes) -> None:
    """Floats are spelled as C's printf does it; infinities are never filled with zeros."""
    assert b" ".join(run_op("AsString", FLOATS, **attrs)) == spelled


@pytest.mark.parametrize(
    ("value", "attrs", "spelled"),
    [
        (np.int32(-2), {}, b"-2"),
        (np.int8(-2), {"width": 5, "fill": "0"}, b"-0002"),
        (np.uint64(2**64 - 1), {}, b"18446744073709551615"),
        (np.bool_(True), {"width": 9}, b"true"),
        (np.float16(0.1), {"shortest": True}, b"0.0999756"),
        (ml_dtypes.bfloat16(0.1), {}, b"0.100098"),
        (np.complex64(-0.5 - 1j), {"shortest": True, "width": 5}, b"( -0.5,   -1)"),
        (b"ab", {"width": 4, "fill": "0"}, b"  ab"),
        (b"ab", {"width": 4, "fill": "-"}, b"ab  "),
    ],
)
def test_other_types_as_strings(value: Any, attrs: Any, spelled: bytes) -> None:
    """Each type has a spelling of its own."""
    assert run_op("AsString", value, **attrs) == spelled


@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        ({"precision": 3}, "precision not supported for datatype int32"),
        ({"scientific": True}, "scientific and shortest format not supported"),
        ({"scientific": True, "shortest": True}, "Cannot select both scientific and shortest"),
        ({"fill": "ab"}, "one or fewer characters"),
        ({"fill": "x"}, "Fill argument not supported"),
    ],
)
def test_senseless_formats_are_refused(attrs: Any, text: str) -> None:
    """Attributes that do not fit the type, or each other, are errors."""
    with pytest.raises(errors.InvalidArgumentError, match=text):
        run_op("AsString", np.int32(1), **attrs)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b" 2 ", 2), (b"\t5\n", 5), (b"+3", 3), (b"1.", 1), (b".5", 0.5), (b"1e3", 1000),
        (b"0x10", 16), (b"0x1p3", 8), (b"1e999", np.inf), (b"-Infinity", -np.inf),
        (b"NaN", np.nan), (b"1e-999", 0),
    ],
)  # fmt: skip
def test_strings_as_floats(text: bytes, number: float) -> None:
    """Decimal, hexadecimal, infinite: all that C takes, with whitespace around it."""
    parsed = run_op("StringToNumber", text)

    assert parsed.dtype == np.float32
    assert np.array_equal(parsed, np.float32(number), equal_nan=True)


@pytest.mark.parametrize(
    "text", [b"", b"abc", b"1_000", "１".encode(), b"1 2", b"--1", b"1e", b"1f"]
)
def test_no_number(text: bytes) -> None:
    """What does not spell a number is refused, underscores and foreign digits included."""
    with pytest.raises(errors.InvalidArgumentError, match="could not correctly convert string"):
        run_op("StringToNumber", text)


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        (dtypes.int32, [b"-2147483648", b" 01 "], [b"2147483648", b"1.5", b"0x10", b"1e3"]),
        (dtypes.int64, [b"-9223372036854775808"], [b"9223372036854775808"]),
        (dtypes.uint32, [b"4294967295", b"+3"], [b"4294967296", b"-1"]),
        (dtypes.uint64, [b"18446744073709551615"], [b"18446744073709551616", b"-1"]),
    ],
)
def test_strings_as_integers(dtype: Any, good: list[bytes], bad: list[bytes]) -> None:
    """Decimal integers within the type's range, and nothing else."""
    parsed = run_op("StringToNumber", np.array(good, object), out_type=dtype)
    assert parsed.dtype == dtype.numpy
    assert parsed.tolist() == [int(text) for text in good]
    for text in bad:
        with pytest.raises(errors.InvalidArgumentError, match="could not correctly convert"):
            run_op("StringToNumber", text, out_type=dtype)
