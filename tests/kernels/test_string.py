"""Strings; expected values were recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from support.ops import run_op


def strings(*items: Any) -> Any:
    """An array of strings, of any rank."""
    return np.array([[i.encode() for i in item] if isinstance(item, list) else item.encode()
                     for item in items], object)  # fmt: skip


def text(value: Any) -> Any:
    """A result as plain text."""
    if isinstance(value, bytes):
        return value.decode()
    return np.vectorize(bytes.decode, otypes=[object])(value).tolist() if value.size else []


@pytest.mark.parametrize(
    ("inputs", "joined"),
    [
        ([strings("a", "b"), b"x", strings("y", "z")], ["a-x-y", "b-x-z"]),
        ([b"a", b"b"], "a-b"),
        ([strings("a")], ["a"]),
        ([], ""),
    ],
)
def test_join(inputs: Any, joined: Any) -> None:
    """Strings at the same place are joined; scalars go everywhere."""
    assert text(run_op("StringJoin", inputs, separator="-")) == joined


def test_join_needs_equal_shapes() -> None:
    """Arrays of different shapes do not broadcast."""
    with pytest.raises(errors.InvalidArgumentError, match=r"do not match: \[2\] vs. \[1\]"):
        run_op("StringJoin", [strings("a", "b"), strings("c")])


@pytest.mark.parametrize(
    ("axes", "joined"),
    [
        (0, ["a-c", "b-d"]),
        (-1, ["a-b", "c-d"]),
        ([0, 1], "a-c-b-d"),
        ([1, 0], "a-b-c-d"),
        ([-1, -2], "a-b-c-d"),
        ([], [["a", "b"], ["c", "d"]]),
    ],
)
def test_reduce_join(axes: Any, joined: Any) -> None:
    """The axis that is named first varies fastest."""
    x = strings(["a", "b"], ["c", "d"])

    assert text(run_op("ReduceJoin", x, np.array(axes, np.int32), separator="-")) == joined


def test_reduce_join_of_nothing_is_empty_text() -> None:
    """An axis without elements joins to empty strings, kept as one if asked for."""
    x = np.zeros((2, 0), object)

    assert text(run_op("ReduceJoin", x, np.int32(1))) == ["", ""]
    assert text(run_op("ReduceJoin", x, np.int32(1), keep_dims=True)) == [[""], [""]]


@pytest.mark.parametrize(
    ("axes", "error"),
    [([2], errors.OutOfRangeError), ([-3], errors.OutOfRangeError),
     ([0, -2], errors.InvalidArgumentError)],
)  # fmt: skip
def test_reduce_join_checks_axes(axes: Any, error: type[Exception]) -> None:
    """Axes must exist, and be named once."""
    with pytest.raises(error, match=r"reduction dimension"):
        run_op("ReduceJoin", strings(["a"]), np.array(axes, np.int32))


def test_length() -> None:
    """Bytes, or the characters of UTF-8, in which broken bytes count too."""
    x = np.array([b"ab", "é".encode(), b"", b"\xff\xfe\x80"], object)

    assert run_op("StringLength", x).tolist() == [2, 2, 0, 3]
    assert run_op("StringLength", x, unit="UTF8_CHAR").tolist() == [2, 1, 0, 2]
    assert run_op("StringLength", b"abc").dtype == np.int32


@pytest.mark.parametrize(
    ("given", "encoding", "lower", "upper"),
    [
        ("AbÉß", "", "abÉß", "ABÉß"),
        ("AbÉß", "utf-8", "abéß", "ABÉSS"),
        ("ΑΣ", "utf-8", "ας", "ΑΣ"),
        ("ıİ", "utf-8", "ıi̇", "Iİ"),
    ],
)
def test_case(given: str, encoding: str, lower: str, upper: str) -> None:
    """Without an encoding only ASCII changes."""
    assert text(run_op("StringLower", given.encode(), encoding=encoding)) == lower
    assert text(run_op("StringUpper", given.encode(), encoding=encoding)) == upper


def test_case_of_broken_text() -> None:
    """What is no UTF-8 becomes the replacement character, if it is to be UTF-8."""
    assert run_op("StringLower", b"A\xffB") == b"a\xffb"
    assert run_op("StringLower", b"A\xffB", encoding="utf-8") == b"a\xef\xbf\xbdb"
    with pytest.raises(errors.InvalidArgumentError, match="received latin1"):
        run_op("StringLower", b"A", encoding="latin1")


def test_strip() -> None:
    """Whitespace of ASCII goes from both ends, and nothing else."""
    x = np.array([b" \t\n a b \v\f\r", b"", b"\xc2\xa0a", b"\0 a"], object)

    assert run_op("StringStrip", x).tolist() == [b"a b", b"", b"\xc2\xa0a", b"\0 a"]


@pytest.mark.parametrize(
    ("given", "pos", "length", "as_bytes", "as_characters"),
    [
        ("hello", 1, 3, b"ell", b"ell"),
        ("hello", -3, 2, b"ll", b"ll"),
        ("hello", 0, 100, b"hello", b"hello"),
        ("hello", 5, 1, b"", b""),
        ("hello", 2, -1, b"llo", b""),
        ("héllo", 1, 2, b"\xc3\xa9", b"\xc3\xa9l"),
        ("héllo", -4, 2, b"\xa9l", b"\xc3\xa9l"),
        ("", 0, 1, b"", b""),
    ],
)
def test_substr(given: str, pos: int, length: int, as_bytes: bytes, as_characters: bytes) -> None:
    """Parts by bytes or characters, counted from either end."""
    args = given.encode(), np.int32(pos), np.int32(length)

    assert run_op("Substr", *args) == as_bytes
    assert run_op("Substr", *args, unit="UTF8_CHAR") == as_characters


@pytest.mark.parametrize("pos", [6, -6])
def test_substr_must_start_within(pos: int) -> None:
    """A start beyond either end is refused."""
    with pytest.raises(errors.InvalidArgumentError, match=f"pos {pos} out of range for string"):
        run_op("Substr", b"hello", np.int32(pos), np.int32(1))


def test_substr_broadcasts() -> None:
    """Strings and places broadcast; places and lengths must be alike."""
    pos, length = np.array([1, 2]), np.array([2, 3])

    column = strings(["hello"], ["world"])
    assert text(run_op("Substr", column, pos, length)) == [["el", "llo"], ["or", "rld"]]
    assert text(run_op("Substr", b"hello", pos, length)) == ["el", "llo"]
    with pytest.raises(errors.InvalidArgumentError, match=r"same shape, got: \[2\] vs. \[1\]"):
        run_op("Substr", b"hello", pos, length[:1])
    with pytest.raises(errors.InvalidArgumentError, match=r"Incompatible shapes: \[3\] vs. \[2\]"):
        run_op("Substr", strings("a", "b", "c"), pos, length)


def test_format() -> None:
    """Summaries of the inputs stand where the placeholders stood."""
    inputs = [np.arange(1, 8), b"x", np.float32(1.5)]

    formatted = run_op("StringFormat", inputs, template="a {} b {} c {}", placeholder="{}")

    assert formatted == b'a [1 2 3 ... 5 6 7] b "x" c 1.5'
    with pytest.raises(errors.InvalidArgumentError, match=r"must match: 2 vs. 1"):
        run_op("StringFormat", [b"x"], template="%s %s")
