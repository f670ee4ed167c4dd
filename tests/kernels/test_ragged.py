"""Ragged tensors and edit distance, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core import dtypes
from penstock.errors import OpError
from support.ops import run_op

FIVE = np.array([1, 2, 3, 4, 5])
SPLITS = np.array([0, 2, 2, 5])


def ranges(starts: Any, limits: Any, deltas: Any, dtype: Any = np.int32) -> Any:
    """RaggedRange's splits and values as lists."""
    parts = run_op("RaggedRange", *(np.array(x, dtype) for x in (starts, limits, deltas)))
    return tuple(part.tolist() for part in parts)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([0, 5], [3, 3], [1, 1]), ([0, 3, 3], [0, 1, 2])),
        ((0, [3, 4], 1), ([0, 3, 7], [0, 1, 2, 0, 1, 2, 3])),
        (([0, 5], [3, 3], [1, -1]), ([0, 3, 5], [0, 1, 2, 5, 4])),
        ((10, 0, -3), ([0, 4], [10, 7, 4, 1])),
        (([], [], []), ([0], [])),
        ((-(2**31), 2**31 - 1, 2**30), ([0, 4], [-(2**31), -(2**30), 0, 2**30])),
    ],
)
def test_ragged_range(arguments: Any, expected: Any) -> None:
    """One row per start, scalars repeated; empty where the delta leads away."""
    assert ranges(*arguments) == expected
    assert ranges(*arguments, np.int64) == expected


def test_ragged_range_adds_up_floats() -> None:
    """TensorFlow adds the delta again and again, and rounds every time."""
    splits, values = run_op("RaggedRange", np.float32(0), np.float32(1), np.float32(0.1))

    assert splits.tolist() == [0, 10]
    assert values[8] == np.float32(0.8000000715255737)


@pytest.mark.parametrize(
    ("arguments", "dtype", "message"),
    [
        ((0, 3, 0), np.int32, "Requires delta != 0"),
        (([0, 1], [3], 1), np.int32, "must have the same shape"),
        (([[0]], 1, 1), np.int32, "starts must be a scalar or vector"),
        ((0, np.inf, 1), np.float32, "Requires .* <= 9223372036854775807"),
        ((0, np.nan, 1), np.float32, "Requires .* <= 9223372036854775807"),
        ((0, 1e15, 1e-2), np.float64, "OOM"),
        ((-(2**62), 2**62, 1), np.int64, "Requires .* <= 9223372036854775807"),
    ],
)
def test_ragged_range_refuses(arguments: Any, dtype: Any, message: str) -> None:
    """Deltas of zero, other shapes, and rows without end."""
    with pytest.raises((ValueError, OpError), match=message):
        ranges(*arguments, dtype)


def gather(nested: list[Any], values: Any, indices: Any) -> Any:
    """RaggedGather's outputs as lists."""
    picked = np.array(indices, np.int64)
    outputs = run_op(
        "RaggedGather",
        [np.array(splits, np.int64) for splits in nested],
        np.array(values),
        picked,
        OUTPUT_RAGGED_RANK=len(nested) + picked.ndim - 1,
    )
    return [output.tolist() for output in outputs]


def test_ragged_gather_picks_rows() -> None:
    """Indices of any rank; the deeper dimensions come along."""
    two = [[0, 2, 3], [0, 1, 1, 4]]

    assert gather([SPLITS], FIVE, [2, 0, 0, 1]) == [[0, 3, 5, 7, 7], [3, 4, 5, 1, 2, 1, 2]]
    assert gather([SPLITS], FIVE, [[2, 0], [0, 1]])[0] == [0, 2, 4]
    assert gather([SPLITS], FIVE, 2) == [[3, 4, 5]]
    assert gather(two, [1, 2, 3, 4], [1, 0, 1]) == [
        [0, 1, 3, 4],
        [0, 3, 4, 4, 7],
        [2, 3, 4, 1, 2, 3, 4],
    ]
    assert gather([SPLITS], FIVE, []) == [[0], []]


@pytest.mark.parametrize(
    ("nested", "values", "indices", "message"),
    [
        ([[0, 2, 2, 5]], FIVE, [3], r"indices\[0\] = 3 is not in \[0, 3\)"),
        ([[0, 2, 2, 5]], FIVE, -1, r"indices = -1 is not in \[0, 3\)"),
        ([[0, 2, 2, 7]], FIVE, [2], "must not point past values"),
        ([[0, 3, 2, 5]], FIVE, [2], "must be sorted"),
        ([[0, 2, 5], [0, 2]], [1, 2], [0], "must not point past values"),
        ([[0, 2]], 3, [0], "params.rank must be nonzero"),
    ],
)
def test_ragged_gather_refuses(nested: Any, values: Any, indices: Any, message: str) -> None:
    """Rows and values that are not there."""
    with pytest.raises(ValueError, match=message):
        gather(nested, values, indices)


def test_ragged_to_sparse() -> None:
    """An index per value, inner dimensions included; the shape holds the longest rows."""
    nested = [np.array([0, 2, 3]), np.array([0, 1, 1, 4])]

    indices, values, shape = run_op("RaggedTensorToSparse", nested, np.array([1, 2, 3, 4]))

    assert indices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 2]]
    assert values.tolist() == [1, 2, 3, 4]
    assert shape.tolist() == [2, 2, 3]
    inner = run_op("RaggedTensorToSparse", [np.array([0, 2])], np.array([[1, 2], [3, 4]]))
    assert inner[0].tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert inner[2].tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([0, 2, 2, 7], "Final value of ragged splits must match"),
        ([1, 5], "First value of ragged splits must be 0"),
        ([], "ragged splits may not be empty"),
        ([0, 4, 3, 5], "should be non decreasing, but we got 4 followed by 3"),
    ],
)
def test_ragged_to_sparse_refuses(splits: list[int], message: str) -> None:
    """Splits that do not cover the values from the first to the last."""
    with pytest.raises(ValueError, match=message):
        run_op("RaggedTensorToSparse", [np.array(splits, np.int64)], FIVE)


def dense(shape: Any, values: Any, default: Any, *partitions: Any, kinds: str) -> Any:
    """RaggedTensorToTensor; S, R and F stand for the kinds of partitions."""
    names = {"S": "ROW_SPLITS", "R": "VALUE_ROWIDS", "F": "FIRST_DIM_SIZE"}
    return run_op(
        "RaggedTensorToTensor",
        np.array(shape, np.int64),
        np.array(values),
        np.array(default),
        [np.array(partition, np.int64) for partition in partitions],
        row_partition_types=[names[kind] for kind in kinds],
    )


def test_ragged_to_dense_pads_and_cuts() -> None:
    """To the longest row, or to the shape that is asked for."""
    assert dense(-1, FIVE, 0, SPLITS, kinds="S").tolist() == [[1, 2, 0], [0, 0, 0], [3, 4, 5]]
    assert dense([2, 2], FIVE, 0, SPLITS, kinds="S").tolist() == [[1, 2], [0, 0]]
    assert dense([4, 4], FIVE, 9, SPLITS, kinds="S").tolist() == [
        [1, 2, 9, 9],
        [9, 9, 9, 9],
        [3, 4, 5, 9],
        [9, 9, 9, 9],
    ]
    assert dense(-1, [], 0, [0, 0, 0], kinds="S").shape == (2, 0)


def test_ragged_to_dense_by_rows_of_values() -> None:
    """Rows of values need the number of rows; deeper dimensions may mix both forms."""
    rows = [0, 0, 2, 2, 2]

    assert dense(-1, FIVE, 0, 4, rows, kinds="FR").tolist() == [
        [1, 2, 0],
        [0, 0, 0],
        [3, 4, 5],
        [0, 0, 0],
    ]
    assert dense(-1, FIVE, 0, [0, 2, 3], [0, 1, 1, 5], kinds="SS").tolist() == [
        [[1, 0, 0, 0], [0, 0, 0, 0]],
        [[2, 3, 4, 5], [0, 0, 0, 0]],
    ]
    assert dense(-1, FIVE, 0, SPLITS, [0, 1, 2, 3, 4], kinds="SR")[..., 0].tolist() == [
        [1, 2, 0],
        [0, 0, 0],
        [3, 4, 5],
    ]


def test_defaults_are_broadcast_to_a_value() -> None:
    """Values may be arrays, and strings."""
    values = np.arange(1, 11).reshape(5, 2)

    assert dense(-1, values, [0, -1], SPLITS, kinds="S")[1].tolist() == [[0, -1]] * 3
    text = np.array([b"a", b"b"], object)
    got = run_op(
        "RaggedTensorToTensor",
        np.int64(-1),
        text,
        b"zz",
        [np.array([0, 1, 1, 2])],
        row_partition_types=["ROW_SPLITS"],
    )
    assert got.tolist() == [[b"a"], [b"zz"], [b"b"]]


@pytest.mark.parametrize(
    ("shape", "default", "partitions", "kinds", "message"),
    [
        (3, 0, [SPLITS], "S", "only valid scalar shape tensor is the fully unknown"),
        ([3], 0, [SPLITS], "S", "rt_input.rank = 2 but shape.rank = 1"),
        ([-2, 3], 0, [SPLITS], "S", "Dimension -2 must be >= -1"),
        (-1, [0, 0], [SPLITS], "S", r"default_value.shape=\[2\].*incompatible"),
        (-1, 0, [[0, 0, 2, 2, 2]], "R", "Cannot handle VALUE_ROWIDS in first dimension"),
        (-1, 0, [2, [0, 0, 2, 2, 2]], "FR", "next_value_rowid=2 which is not less than 2"),
        (-1, 0, [[0, 3, 2, 5]], "S", "Invalid row split size"),
        (-1, 0, [[1, 5]], "S", "Invalid row split size"),
        (-1, 0, [[]], "S", "Tensor requires at least one element"),
        (-1, 0, [[0, 1], [0, 2, 5]], "SS", "greater than output size: 2 > 1"),
        (-1, 0, [[0, 2, 2, 7]], "S", "are for 7 values, not 5"),
        ([10**9, 10**9], 0, [SPLITS], "S", "OOM|more than"),
    ],
)
def test_ragged_to_dense_refuses(
    shape: Any, default: Any, partitions: Any, kinds: str, message: str
) -> None:
    """Shapes, defaults and partitions that do not go with five numbers."""
    with pytest.raises((ValueError, OpError), match=message):
        dense(shape, FIVE, default, *partitions, kinds=kinds)


def levenshtein(a: str, b: str) -> int:
    """The definition."""
    if not a or not b:
        return len(a) + len(b)
    return min(
        levenshtein(a[1:], b) + 1,
        levenshtein(a, b[1:]) + 1,
        levenshtein(a[1:], b[1:]) + (a[0] != b[0]),
    )


def distances(guesses: list[str], truths: list[str], **attrs: Any) -> Any:
    """EditDistance of texts, letter by letter."""

    def sparse(texts: list[str]) -> list[Any]:
        indices = [(row, i) for row, text in enumerate(texts) for i in range(len(text))]
        letters = np.array([letter.encode() for text in texts for letter in text], object)
        shape = np.array([len(texts), max(map(len, texts))])
        return [np.array(indices, np.int64).reshape(-1, 2), letters, shape]

    attrs["T"] = dtypes.string
    return run_op("EditDistance", *sparse(guesses), *sparse(truths), **attrs).tolist()


TEXT = st.text("ab", max_size=5)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_edit_distance_is_its_definition(texts: list[tuple[str, str]]) -> None:
    """Insertions, deletions and replacements, the fewest possible."""
    guesses, truths = zip(*texts, strict=True)

    got = distances(list(guesses), list(truths), normalize=False)

    assert got == [levenshtein(*pair) for pair in texts]


def test_edit_distance_per_element_of_the_truth() -> None:
    """An empty truth is infinitely far from anything but itself."""
    assert distances(["ab", "c", "", "x"], ["a", "cd", "", ""]) == [1, 0.5, 0, np.inf]


def test_edit_distance_of_more_dimensions() -> None:
    """The result has all dimensions but the last."""
    rest = np.array([1]), np.array([1, 2, 3])

    got = run_op("EditDistance", np.array([[0, 0, 0]]), *rest, np.array([[0, 1, 0]]), *rest)

    assert got.tolist() == [[np.inf, 1]]


@pytest.mark.parametrize(
    ("indices", "values", "shape", "message"),
    [
        ([[0]], [1], [2], "must have rank at least 2"),
        ([[0, 0, 0]], [1], [2, 2, 2], "to have matching ranks"),
        ([[0, 0]], [1, 2], [2, 3], "NumElements == #rows"),
        ([[5, 0]], [1], [2, 3], r"outside of the shape \[2\]"),
    ],
)
def test_edit_distance_refuses(indices: Any, values: Any, shape: Any, message: str) -> None:
    """Tensors that are not sparse tensors of sequences."""
    truth = np.array([[0, 0]]), np.array([1]), np.array([2, 2])
    if len(shape) == 1:
        truth = np.array([[0]]), np.array([1]), np.array([2])
    with pytest.raises(ValueError, match=message):
        run_op("EditDistance", np.array(indices), np.array(values), np.array(shape), *truth)
