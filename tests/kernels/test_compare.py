"""Comparisons, logic and bits, against answers recorded from TensorFlow."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from penstock.core import dtypes
from support.ops import run_op

NAN = np.nan


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Less", [True, False, False, False]),
        ("LessEqual", [True, True, False, False]),
        ("Greater", [False, False, True, False]),
        ("GreaterEqual", [False, True, True, False]),
        ("Equal", [False, True, False, False]),
        ("NotEqual", [True, False, True, True]),
    ],
)
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_comparisons(op: str, expected: list[bool], kind: type) -> None:
    """Arrays and scalars are compared alike; NaN only differs."""
    x, y = np.array([1, 2, 3, NAN], kind), np.array([2, 2, 2, NAN], kind)

    result = run_op(op, x, y)
    assert result.dtype == np.bool_
    assert result.tolist() == expected
    alone = [run_op(op, a, b) for a, b in zip(x, y, strict=True)]
    assert [type(one) for one in alone] == [np.bool_] * 4
    assert alone == expected


def test_complex_and_booleans_are_equal_or_not() -> None:
    """Equality knows types that have no order."""
    assert run_op("Equal", np.complex64([1j, NAN]), np.complex64([1j, NAN])).tolist() == [
        True,
        False,
    ]
    assert run_op("NotEqual", np.array([True, False]), np.True_).tolist() == [False, True]


def test_strings_are_compared_to_the_last_byte() -> None:
    """Zeros at the end of a string count."""
    texts = np.array([b"a\0", b"a"], object)

    assert run_op("Equal", texts, b"a").tolist() == [False, True]
    assert run_op("NotEqual", b"a\0", texts).tolist() == [False, True]
    same = run_op("Equal", b"a", b"a")
    assert type(same) is np.bool_
    assert same


def test_quantised_numbers_are_compared_by_their_code() -> None:
    """Quantised types are no numbers to numpy, but equal all the same."""
    codes = np.int8([1, -2]).view(dtypes.qint8.numpy)

    assert run_op("Equal", codes, codes[:1]).tolist() == [True, False]
    assert run_op("NotEqual", codes[0], codes[1])


@pytest.mark.parametrize(("op", "expected"), [("Equal", False), ("NotEqual", True)])
def test_incompatible_shapes_may_be_unequal(op: str, expected: bool) -> None:
    """Without the error, shapes that do not match are one scalar answer."""
    x, y = np.float32([[1, 2]]), np.float32([1, 2, 3])

    result = run_op(op, x, y, incompatible_shape_error=False)
    assert type(result) is np.bool_
    assert result == expected
    with pytest.raises(ValueError, match="broadcast"):
        run_op(op, x, y)


def test_approximate_equality() -> None:
    """A difference equal to the tolerance is too much; shapes must be the same."""
    x = np.float32([1, 1, NAN])

    close = run_op("ApproximateEqual", x, np.float32([1.5, 1.25, NAN]), tolerance=0.5)
    assert close.tolist() == [False, True, False]
    with pytest.raises(ValueError, match=r"x shape: \[3\]. y shape: \[\]"):
        run_op("ApproximateEqual", x, np.float32(1))


def test_logic() -> None:
    """Booleans are combined with broadcasting, and scalars stay numpy's."""
    both = np.array([True, False])

    assert run_op("LogicalAnd", both, np.True_).tolist() == [True, False]
    assert run_op("LogicalOr", both[:, None], both).tolist() == [[True, True], [True, False]]
    assert run_op("LogicalNot", both).tolist() == [False, True]
    assert run_op("LogicalNot", np.False_) is np.True_


def test_bits() -> None:
    """And, or, exclusive or, and not."""
    x, y = np.uint8([0b1100, 255]), np.uint8(0b1010)

    assert run_op("BitwiseAnd", x, y).tolist() == [0b1000, 0b1010]
    assert run_op("BitwiseOr", x, y).tolist() == [0b1110, 255]
    assert run_op("BitwiseXor", x, y).tolist() == [0b0110, 0b11110101]
    assert run_op("Invert", np.int8([0, -128])).tolist() == [-1, 127]


@pytest.mark.parametrize(
    ("op", "x", "expected"),
    [
        ("LeftShift", 5, [5, 5, 40, -128, -128]),
        ("RightShift", -128, [-128, -128, -16, -1, -1]),
    ],
)
def test_shifts_are_clipped(op: str, x: int, expected: list[int]) -> None:
    """A shift by less than nothing is none, one by the whole width is by all but one."""
    by = np.int8([-100, 0, 3, 7, 100])

    assert run_op(op, np.int8(x), by).tolist() == expected
    assert [run_op(op, np.int8(x), one) for one in by] == expected


def test_population_count() -> None:
    """The bits of the two's complement are counted."""
    assert run_op("PopulationCount", np.int8([-1, -128, 0, 7])).tolist() == [8, 1, 0, 3]
    assert run_op("PopulationCount", np.uint64(2**64 - 1)) == 64
    transposed = np.arange(6, dtype=np.int32).reshape(2, 3).T
    assert run_op("PopulationCount", transposed).tolist() == [[0, 2], [1, 1], [1, 2]]


@pytest.mark.parametrize("shape", [(300,), (20, 15), (1000,)])
def test_many_strings_are_compared_with_one(shape: tuple[int, ...]) -> None:
    """Whether they are the same object, or another that is equal; in any order in memory."""
    kinds = [b"", b"a", b"longer text", b"a\0", bytes([97])]
    texts = np.empty(shape, object)
    for place, index in enumerate(np.ndindex(shape)):
        text = kinds[place % len(kinds)]
        texts[index] = b"".join([text[:1], text[1:]]) if place % 3 else text
    for given in (texts, texts.T, texts[::-1]):
        for one in (b"", b"a", b"longer " + b"text"[:4], b"none"):
            want = np.array([text == one for text in given.flat]).reshape(given.shape)
            for got in (run_op("Equal", given, one), run_op("Equal", one, given)):
                assert got.dtype == np.bool_
                np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(run_op("NotEqual", given, one), ~want)
            np.testing.assert_array_equal(run_op("NotEqual", one, given), ~want)
