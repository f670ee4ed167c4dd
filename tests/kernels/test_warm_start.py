"""Old vocabularies and matrices for new models: TensorFlow's answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import errors
from support.ops import run_op


@pytest.fixture
def files(tmp_path: Path) -> tuple[bytes, bytes]:
    """A new vocabulary and an old one."""
    new, old = tmp_path / "new", tmp_path / "old"
    new.write_bytes(b"a\nb\nc\nd\n")
    old.write_bytes(b"c\nx\na\n")
    return bytes(new), bytes(old)


@pytest.mark.parametrize(
    ("first", "old_size", "remapping", "count"),
    [(1, -1, [-1, 0, -1], 1), (0, 2, [-1, -1, 0], 1), (0, -1, [2, -1, 0], 2)],
)
def test_words_are_found_by_line(
    first: int, old_size: int, remapping: list[int], count: int, files: tuple[bytes, bytes]
) -> None:
    """Words that the part of the old file that counts does not have are at -1."""
    attrs = {"new_vocab_offset": first, "num_new_vocab": 3, "old_vocab_size": old_size}
    found, present = run_op("GenerateVocabRemapping", *files, **attrs)

    assert (found.tolist(), present) == (remapping, count)


def test_more_words_than_there_are(files: tuple[bytes, bytes]) -> None:
    """The part of the new vocabulary must be in its file."""
    with pytest.raises(errors.InvalidArgumentError, match="must be larger than last new vocab"):
        run_op("GenerateVocabRemapping", *files, new_vocab_offset=2, num_new_vocab=3)


@pytest.fixture
def checkpoint(tmp_path: Path) -> bytes:
    """A checkpoint with a matrix of 4 rows and 3 columns."""
    prefix = bytes(tmp_path / "model")
    names, parts = np.array([b"m"], object), np.array([b""], object)
    run_op("SaveV2", prefix, names, parts, [np.arange(12, dtype=np.float32).reshape(4, 3)])
    return prefix


def load(checkpoint: bytes, rows: Any, columns: Any, values: Any, **sizes: int) -> Any:
    """A matrix in a new order."""
    numbers = np.array(rows, np.int64), np.array(columns, np.int64)
    return run_op("LoadAndRemapMatrix", checkpoint, b"m", *numbers, np.float32(values), **sizes)


def test_rows_and_columns_in_a_new_order(checkpoint: bytes) -> None:
    """What is new takes the values that are given, row by row."""
    got = load(checkpoint, [2, -1, 0], [1, -1], [10, 20, 30, 40], num_rows=3, num_cols=2)
    assert got.tolist() == [[7, 10], [20, 30], [1, 40]]

    assert load(checkpoint, [2, 0], [], [], num_rows=2, num_cols=3).tolist() == [
        [6, 7, 8],
        [0, 1, 2],
    ]


@pytest.mark.parametrize(
    ("rows", "values", "error", "says"),
    [
        ([2, -1], [1], errors.InvalidArgumentError, "but more missing values remain"),
        ([2, 1], [1], errors.InvalidArgumentError, "but only 0 elements were used"),
        ([2, 2], [], errors.UnimplementedError, "Old ID 2 is mapped to both new ID 0 and 1"),
        ([9, 2], [], errors.InternalError, "Extent in dimension 0 out of bounds"),
        ([1], [], errors.InvalidArgumentError, "is 1 instead of being equal to num_rows=2"),
    ],
)
def test_what_does_not_fit(
    rows: Any, values: Any, error: type[Exception], says: str, checkpoint: bytes
) -> None:
    """Numbers of rows, and of values, are checked."""
    with pytest.raises(error, match=says):
        load(checkpoint, rows, [], values, num_rows=2, num_cols=3)
