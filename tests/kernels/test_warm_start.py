"""Old vocabularies and matrices for new models: TensorFlow's answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.defs.tensor_slices import parse_shape_and_slice
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


# -- whole, in parts, and damaged: what TensorFlow 2.21 answers ------------------------------


def save(path: Path, values: Any, *parts: str) -> bytes:
    """A checkpoint whose tensor "m" is saved in these parts, or as a whole."""
    texts = [part.encode() for part in parts] or [b""]
    names = np.array([b"m"] * len(texts), object)
    places = [parse_shape_and_slice(part)[1] for part in parts]
    pieces = [values[place.places] for place in places if place] or [values]
    run_op("SaveV2", bytes(path), names, np.array(texts, object), pieces)
    return bytes(path)


MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
HALVES = {
    "whole": (),
    "rows": ("4 3 0,2:-", "4 3 2,2:-"),
    "columns": ("4 3 -:0,1", "4 3 -:1,2"),
}


@pytest.mark.parametrize("portion", [-5, -1, 0, 1, 2, 3, 100, 2**40])
@pytest.mark.parametrize("parts", HALVES.values(), ids=HALVES.keys())
def test_however_it_was_saved_and_is_read(tmp_path: Path, parts: Any, portion: int) -> None:
    """Neither the parts nor the number of rows in memory change the result."""
    prefix = save(tmp_path / "m", MATRIX, *parts)
    given: Any = {"max_rows_in_memory": portion}
    got = load(prefix, [3, -1, 0], [1, -1], [10, 20, 30, 40], num_rows=3, num_cols=2, **given)
    assert got.tolist() == [[10, 10], [20, 30], [1, 40]]

    got = load(prefix, [0, 3, 1, 2], [2, 1, 0], [], num_rows=4, num_cols=3, **given)
    assert got.tolist() == MATRIX[[0, 3, 1, 2], ::-1].tolist()


@pytest.mark.parametrize(
    ("rows", "portion", "missing"),
    [
        ([0, 1], 1, ""),
        ([1, 0], -1, ""),
        ([2], -1, "2,1:-"),
        ([1, 2], -1, "1,2:-"),
        ([1, 3], 1, "2,1:-"),
        ([3, 0], 2, "2,2:-"),
    ],
)
def test_rows_that_were_not_saved(
    tmp_path: Path, rows: list[int], portion: int, missing: str
) -> None:
    """All rows between the first and the last are read, so many at a time, and must be there."""
    prefix = save(tmp_path / "m", MATRIX, "4 3 0,2:-")
    sizes = {"num_rows": len(rows), "num_cols": 3, "max_rows_in_memory": portion}
    if not missing:
        assert load(prefix, rows, [], [], **sizes).tolist() == MATRIX[rows].tolist()
        return
    with pytest.raises(errors.InvalidArgumentError, match=f"in slice_spec: {missing}$"):
        load(prefix, rows, [], [], **sizes)


def test_nothing_is_taken_over(tmp_path: Path) -> None:
    """Without old rows, or without old columns, all values are new ones."""
    prefix = save(tmp_path / "m", MATRIX)
    new: Any = {"num_rows": 2}
    assert load(prefix, [-1, -1], [], range(6), num_cols=3, **new).tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]
    assert load(prefix, [0, 1], [-1, -1], range(4), num_cols=2, **new).tolist() == [[0, 1], [2, 3]]
    assert load(prefix, [0, -2], [-2], [7, 8], num_cols=1, **new).tolist() == [[7], [8]]
    assert load(prefix, [], [], [], num_rows=0, num_cols=3).shape == (0, 3)
    empty = save(tmp_path / "e", np.zeros((0, 3), np.float32))
    assert load(empty, [-1], [-1], [5], num_rows=1, num_cols=1).tolist() == [[5]]


def test_names_may_be_vectors_of_one(checkpoint: bytes) -> None:
    """As in TensorFlow, the path and the name may come in a vector."""
    ids, none = np.array([1], np.int64), np.array([], np.int64)
    path, name = np.array([checkpoint], object), np.array([b"m"], object)
    values = np.zeros((0, 2), np.float32)
    got = run_op("LoadAndRemapMatrix", path, name, ids, none, values, num_rows=1, num_cols=3)

    assert got.tolist() == [[3, 4, 5]]


INVALID = errors.InvalidArgumentError
#: Rows, columns, new values, and the error; a matrix of four rows and three columns is there.
MISTAKES = [
    ([0], [], [], {"num_cols": 2}, INVALID,
     "Tensor m has shape [4,3], where the size of its 2nd dimension is 3 instead of being equal to "
     "num_cols=2"),
    ([0], [0], [], {"num_cols": 2}, INVALID,
     "Provided col_remapping, but its size is 1 instead of being equal to num_cols=2"),
    ([0], [2, 2], [], {"num_cols": 2}, errors.UnimplementedError,
     "Old ID 2 is mapped to both new ID 0 and 1, which is not supported."),
    ([9, 9], [5, 5], [], {"num_rows": 2, "num_cols": 2}, errors.UnimplementedError,
     "Old ID 9 is mapped to both new ID 0 and 1, which is not supported."),
    ([4], [], [], {}, errors.InternalError,
     "Extent in dimension 0 out of bounds: shape = [4,3], slice = 4,1:-"),
    ([9, 1], [], [], {"num_rows": 2}, errors.InternalError,
     "Extent in dimension 0 out of bounds: shape = [4,3], slice = 1,9:-"),
    ([9, 1], [], [], {"num_rows": 2, "max_rows_in_memory": 3}, errors.InternalError,
     "Extent in dimension 0 out of bounds: shape = [4,3], slice = 4,3:-"),
    ([3, 9], [], [], {"num_rows": 2, "max_rows_in_memory": 1}, errors.InternalError,
     "Extent in dimension 0 out of bounds: shape = [4,3], slice = 4,1:-"),
    ([2**62], [], [], {"max_rows_in_memory": 1}, errors.InternalError,
     "Extent in dimension 0 out of bounds: shape = [4,3], slice = 4611686018427387904,1:-"),
    ([-2], [], [], {}, INVALID,
     "initializing_values contained 0 elements, but more missing values remain."),
    ([[0]], [], [], {}, INVALID,
     "The `row_remapping` tensor must be 1-D, got a tensor of shape [1,1]"),
    (0, [], [], {}, INVALID, "The `row_remapping` tensor must be 1-D, got a tensor of shape []"),
    # TensorFlow ends the process.
    ([0], [[0, 1, 2]], [], {}, INVALID,
     "The `col_remapping` tensor must be 1-D, got a tensor of shape [1,3]"),
    # TensorFlow reads whatever stands behind the matrix.
    ([0], [3], [], {"num_cols": 1}, INVALID,
     "col_remapping contains 3, but tensor m has only 3 columns"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "columns", "values", "sizes", "error", "says"), MISTAKES)
def test_mistakes(
    rows: Any, columns: Any, values: Any, sizes: Any, error: Any, says: str, tmp_path: Path
) -> None:
    """Whatever does not fit is named, in TensorFlow's words."""
    prefix = save(tmp_path / "m", MATRIX)
    with pytest.raises(error) as caught:
        load(prefix, rows, columns, values, **{"num_rows": 1, "num_cols": 3, **sizes})

    assert (type(caught.value), caught.value.reason) == (error, says)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (MATRIX.astype(np.int32), "Tensor m has invalid type int32 instead of expected type float"),
        (MATRIX.astype(float), "Tensor m has invalid type double instead of expected type float"),
        (MATRIX[0], "Tensor m has shape [3] of invalid rank 1 instead of expected shape of "
         "rank 2."),
        (MATRIX[None], "Tensor m has shape [1,4,3] of invalid rank 3 instead of expected shape of "
         "rank 2."),
    ],
)  # fmt: skip
def test_what_is_no_matrix_of_floats(values: Any, says: str, tmp_path: Path) -> None:
    """The old tensor must be a matrix, even if nothing of it is wanted."""
    prefix = save(tmp_path / "m", values)
    with pytest.raises(errors.InvalidArgumentError) as caught:
        load(prefix, [-1], [], [1, 2, 3], num_rows=1, num_cols=3)

    assert caught.value.reason == says


def test_what_is_not_there(tmp_path: Path) -> None:
    """Neither a missing file nor a missing name is taken for an empty matrix."""
    with pytest.raises(errors.NotFoundError, match=r"no\.index; No such file or directory"):
        load(bytes(tmp_path / "no"), [-1], [], [1, 2, 3], num_rows=1, num_cols=3)
    save(tmp_path / "m", MATRIX)
    ids, none = np.array([0], np.int64), np.array([], np.int64)
    given = bytes(tmp_path / "m"), b"zz", ids, none, np.zeros(0, np.float32)
    with pytest.raises(errors.NotFoundError, match="Key zz not found in checkpoint"):
        run_op("LoadAndRemapMatrix", *given, num_rows=1, num_cols=3)
