"""Values in messages, as TensorFlow shows them; expected texts are its own."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.kernels.values.printing import summarize, summarize_ends


def count(*shape: int) -> Any:
    """Numbers from zero on, in this shape."""
    return np.arange(int(np.prod(shape))).reshape(shape)[()]


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (count(2, 2) + 1, 3, "[1 2][3...]..."),
        (count(5) + 1, 3, "1 2 3..."),
        (count(2, 3), 3, "[0 1 2]..."),
        (count(1, 1, 6), 3, "[[0 1 2...]]..."),
        (count(5, 1) + 1, 3, "[1][2][3]..."),
        (count(2, 3, 4), 7, "[[0 1 2 3][4 5 6...]]..."),
        (count(2, 3, 4), 12, "[[0 1 2 3][4 5 6 7][8 9 10 11]]..."),
        (count(2, 3), -1, "[0 1 2][3 4 5]"),
        (count(2, 3), 0, "..."),
        (count(2, 0), 3, ""),
        (count(0, 2), 3, ""),
        (np.int32(7), 3, "7"),
    ],
)
def test_first_elements(value: Any, limit: int, text: str) -> None:
    """The older form shows so many elements, row by row."""
    assert summarize(value, limit) == text


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (count(7) + 1, 3, "[1 2 3 ... 5 6 7]"),
        (count(2), 1, "[0 1]"),
        (count(4, 5), 2, "[[0 1 ... 3 4]\n [5 6 ... 8 9]\n [10 11 ... 13 14]\n [15 16 ... 18 19]]"),
        (count(4, 1, 1), 1, "[[[0]]\n\n ...\n\n [[3]]]"),
        (
            count(2, 2, 2, 2),
            3,
            "[[[[0 1]\n   [2 3]]\n\n  [[4 5]\n   [6 7]]]\n\n\n"
            " [[[8 9]\n   [10 11]]\n\n  [[12 13]\n   [14 15]]]]",
        ),
        (count(10, 2), 0, "[\n ...]"),
        (count(10), 0, "[ ...]"),
        (count(2, 0), 3, "[\n ...]"),
        (count(0, 2), 3, "[]"),
        (np.int32(7), 3, "7"),
        (np.int32(7), 0, "..."),
    ],
)
def test_both_ends(value: Any, limit: int, text: str) -> None:
    """The newer form shows so many elements at both ends of each dimension."""
    assert summarize_ends(value, limit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            np.float32([0.1, 1e10, 123456.78, -0.0, np.nan, np.inf]),
            "0.1 1e+10 123456.781 -0 nan inf",
        ),
        (np.float64([0.1, 1e10, 1 / 3]), "0.1 10000000000 0.33333333333333331"),
        (np.float16([0.1]), "0.0999755859"),
        (np.array([0.1], ml_dtypes.bfloat16), "0.100097656"),
        (np.array([True, False]), "1 0"),
        (np.array([1 + 2j]), "?"),
        (np.array([b'a"b', b"\n", b"\x00", "é".encode()], object), 'a\\"b \\n \\000 é'),
    ],
)
def test_elements(value: Any, text: str) -> None:
    """Floats as short as they may be, strings with escapes, nothing for complex numbers."""
    assert summarize(value, -1) == text


def test_newer_form_quotes_strings() -> None:
    """Strings stand in quotes there, alone or in arrays."""
    assert summarize_ends(b"x", 3) == '"x"'
    assert summarize_ends(np.array([b"a", b"b c"], object), 3) == '["a" "b c"]'
