"""Largest elements, ranks and binary search, against answers recorded from TensorFlow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from penstock.core.dtypes import as_dtype
from penstock.errors import InvalidArgumentError
from support.ops import run_op

NAN, INF = np.nan, np.inf


def test_of_equal_elements_the_first_comes_first() -> None:
    """Elements fall, positions of equal ones rise; unsorted output is sorted all the same."""
    x = np.array([1, 3, 2, 3, 3, 1], np.int32)
    for is_sorted in (True, False):
        values, places = run_op("TopKV2", x, np.int32(4), sorted=is_sorted)
        assert (values.tolist(), places.tolist()) == ([3, 3, 3, 2], [1, 3, 4, 2])
    _, places = run_op("TopKV2", x, np.int16(2), index_type=as_dtype("int16"))
    assert places.dtype == np.int16
    assert run_op("TopK", x, k=1)[1].tolist() == [1]


def test_extreme_integers_need_no_negation() -> None:
    """The smallest integer, which has no negative, is the last one."""
    x = np.array([-(2**31), 5, 2**31 - 1], np.int32)
    assert run_op("TopKV2", x, np.int32(3))[1].tolist() == [2, 1, 0]
    assert run_op("TopKV2", np.array([1, 255, 0], np.uint8), np.int32(3))[1].tolist() == [1, 0, 2]


@pytest.mark.parametrize("k", [0, 1, 7, 400, 1000])
@pytest.mark.parametrize("with_nan", [False, True])
def test_long_rows_agree_with_a_full_sort(k: int, with_nan: bool) -> None:
    """Thinning out a long row first changes nothing, with ties and NaN in it neither."""
    x = np.random.default_rng(k).integers(0, 40, (2, 3, 5000)).astype(np.float32)
    if with_nan:
        x[0, 0, ::900] = NAN
    values, places = run_op("TopKV2", x, np.int32(k))
    keys = np.where(np.isnan(x), INF, x)
    expected = np.argsort(-keys, axis=-1, kind="stable")[..., :k]
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, -1))


#: Values that many elements of a row share: below, among, and above the others; and two zeros.
_COMMON = {
    "least": (np.uint8(0),),
    "among": (np.uint8(100),),
    "greatest": (np.uint8(250),),
    "zeros": (0.0, -0.0),
    "not a number": (NAN,),
    "infinite": (INF, -INF),
}


@pytest.mark.parametrize("kind", ["uint8", "int32", "uint64", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("common", list(_COMMON))
@pytest.mark.parametrize("k", [1, 30, 700])
def test_rows_of_mostly_equal_elements(kind: str, common: str, k: int) -> None:
    """Of rows with few distinct elements the first of each come first, be they least or most."""
    random, dtype = np.random.default_rng(k), as_dtype(kind).numpy
    x = random.integers(0, 250, (3, 4000)).astype(dtype)
    values = np.array(_COMMON[common])
    if dtype.kind in "iu" and (values.dtype.kind == "f" or kind == "uint64"):
        values = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    is_common = random.random(x.shape) < [[0.97], [0.5], [0.0]]
    x[is_common] = random.choice(values, np.count_nonzero(is_common)).astype(dtype)
    keys = [[math.inf if v != v else v for v in row] for row in x.tolist()]  # with no infinity
    ranked = [sorted(range(len(row)), key=lambda at, r=row: -r[at])[:k] for row in keys]
    for rows in (x, x[0]):
        best, places = run_op("TopKV2", rows, np.int32(k))
        wanted = ranked if rows is x else ranked[0]
        assert places.tolist() == wanted
        assert best.tobytes() == np.take_along_axis(rows, places, -1).tobytes()


@pytest.mark.parametrize("kind", ["uint8", "int32", "float16", "float32"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.97, 1.0])
def test_rank_in_rows_of_mostly_equal_elements(kind: str, reverse: bool, part: float) -> None:
    """The element of each row by rank, though nearly all are the same."""
    random = np.random.default_rng(3)
    x = random.integers(0, 250, (2, 3000)).astype(kind)
    x[random.random(x.shape) < part] = 100
    for place in (0, 40, 1500, 2990):
        wanted = [sorted(row, reverse=reverse)[place] for row in x.tolist()]
        assert run_op("NthElement", x, np.int32(place), reverse=reverse).tolist() == wanted


@pytest.mark.parametrize(
    ("shape", "k", "complaint"),
    [
        ((3,), np.int32(4), "must have at least k columns. Had 3, needed 4"),
        ((3,), np.int32(-1), "Need k >= 0, got -1"),
        ((3,), np.array([1], np.int32), r"k must be scalar, got shape \[1\]"),
        ((), np.int32(0), r"input must be >= 1-D, got shape \[\]"),
    ],
)
def test_wrong_k(shape: Any, k: Any, complaint: str) -> None:
    """There must be rows, and k elements in each."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("TopKV2", np.zeros(shape, np.float32), k)


def test_nth_element() -> None:
    """The element at a place of the sorted row, or of the reversed one."""
    x = np.array([[1, 3, 2], [5, 5, 4]], np.float32)
    assert run_op("NthElement", x, np.int32(0)).tolist() == [1, 4]
    assert run_op("NthElement", x, np.int32(0), reverse=True).tolist() == [3, 5]
    assert type(run_op("NthElement", x[0], np.int32(1))) is np.float32
    with pytest.raises(InvalidArgumentError, match="must have last dimension > n = 3"):
        run_op("NthElement", x, np.int32(3))
    with pytest.raises(InvalidArgumentError, match="n must be non-negative but is -1"):
        run_op("NthElement", x, np.int32(-1))


@pytest.mark.parametrize(
    ("target", "k", "expected"),
    [
        (0, 1, [False, True, False, False, True]),
        (0, 3, [True, True, False, False, True]),
        (1, 1, [True, False, False, False, True]),
        (2, 2, [True, True, False, False, True]),
        (0, 0, [False] * 5),
        (3, 9, [False] * 5),
        (-1, 9, [False] * 5),
    ],
)
def test_in_top_k(target: int, k: int, expected: list[bool]) -> None:
    """Ties are in; a row with a number that is not finite, or a wrong target, is not."""
    rows = np.array(
        [[0.1, 0.9, 0.5], [0.9, 0.1, 0.9], [NAN, 0.5, 0.1], [0.3, INF, 0.2], [0.2, 0.2, 0.2]],
        np.float32,
    )
    targets = np.full(5, target, np.int64)
    assert run_op("InTopKV2", rows, targets, np.int64(k)).tolist() == expected
    assert run_op("InTopK", rows, targets, k=k).tolist() == expected


def test_wrong_targets() -> None:
    """There must be one target for each row."""
    with pytest.raises(InvalidArgumentError, match="must match length of targets 1"):
        run_op("InTopKV2", np.zeros((2, 3), np.float32), np.zeros(1, np.int32), np.int32(1))


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        ("LowerBound", [[2, 0, 6], [0, 1, 10]], [[1, 0, 4], [0, 2, 4]]),
        ("UpperBound", [[2, 0, 6], [0, 1, 10]], [[3, 0, 4], [2, 3, 4]]),
        ("LowerBound", [[NAN], [NAN]], [[0], [0]]),
        ("UpperBound", [[NAN], [NAN]], [[4], [4]]),
    ],
)
def test_bounds(op: str, values: Any, expected: Any) -> None:
    """Places before and behind equal numbers; NaN is neither less nor greater."""
    rows = np.array([[1, 2, 2, 5], [0, 0, 1, 9]], np.float32)
    assert run_op(op, rows, np.array(values, np.float32)).tolist() == expected
    wide = run_op(op, rows, np.array(values, np.float32), out_type=as_dtype("int64"))
    assert wide.dtype == np.int64


def test_bounds_in_rows_without_order_or_elements() -> None:
    """An unsorted row gets the answer of the same binary search; an empty one zeros."""
    rows, values = np.array([[3, 1, 2]], np.float32), np.array([[2, 1, 3]], np.float32)
    assert run_op("LowerBound", rows, values).tolist() == [[2, 0, 3]]
    assert run_op("LowerBound", rows[:, :0], values).tolist() == [[0, 0, 0]]
    with pytest.raises(InvalidArgumentError, match="Leading dim_size of both tensors must match"):
        run_op("LowerBound", rows, values[:0])
    with pytest.raises(InvalidArgumentError, match="must be rank 2 but is rank 1"):
        run_op("LowerBound", rows[0], values)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint64, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 7, 8, 100])
def test_bounds_in_many_rows(kind: Any, length: int) -> None:
    """As many elements are before a place as are less, or not greater."""
    random = np.random.default_rng(length)
    limits = np.iinfo(kind) if np.dtype(kind).kind in "iu" else None
    ends = [limits.min, limits.max] if limits else [-np.inf, np.inf]
    pool = np.append(random.integers(0, 40, 20).astype(kind), np.array(ends, kind))
    rows = np.sort(random.choice(pool, (3, length)))
    values = random.choice(pool, (3, 9000))
    less = (rows[:, None] < values[..., None]).sum(-1)
    not_greater = (rows[:, None] <= values[..., None]).sum(-1)
    np.testing.assert_array_equal(run_op("LowerBound", rows, values), less)
    np.testing.assert_array_equal(run_op("UpperBound", rows, values), not_greater)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.float16])
@pytest.mark.parametrize("k", [0, 1, 9])
@pytest.mark.parametrize("limit", [8, 1 << 11, 1 << 15])
def test_best_of_many_rows(kind: Any, k: int, limit: int) -> None:
    """Of each row the first of the sorted pairs of element and place, with and without ties."""
    x = np.random.default_rng(1).integers(-limit, limit, (2, 5, 600)).astype(kind)
    values, places = run_op("TopKV2", x, np.int32(k))
    for index in np.ndindex(2, 5):
        row, best, at = x[index], values[index], places[index]
        pairs = sorted(enumerate(row.tolist()), key=lambda pair: -pair[1])[:k]
        assert at.tolist() == [place for place, _ in pairs]
        assert best.tolist() == [value for _, value in pairs]


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_not_a_number_has_the_highest_rank(kind: str) -> None:
    """NaN stands behind all numbers, in short rows and in long ones."""
    x = np.array([1, NAN, 2, 0, NAN, 3], as_dtype(kind).numpy)
    for rows in (x, np.repeat(x, 300)):
        many = len(rows) // 6
        found = [run_op("NthElement", rows, np.int32(place * many)) for place in range(6)]
        assert [float(f) for f in found[:4]] == [0, 1, 2, 3]
        assert all(np.isnan(float(f)) for f in found[4:])
        assert all(f.dtype == rows.dtype for f in found)
        assert run_op("TopKV2", rows, np.int32(1))[1].tolist() == [many]
