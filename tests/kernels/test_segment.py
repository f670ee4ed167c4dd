"""Segments of rows, gathered or not, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.errors import InvalidArgumentError
from support.ops import run_op

ROWS = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
LOWEST = np.finfo(np.float32).min


def ids(*numbers: int) -> Any:
    """Numbers of segments."""
    return np.array(numbers, np.int32)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("SegmentSum", [[0, 0], [4, 6], [0, 0], [5, 6]]),
        ("SegmentMean", [[0, 0], [2, 3], [0, 0], [5, 6]]),
        ("SegmentProd", [[1, 1], [3, 8], [1, 1], [5, 6]]),
        ("SegmentMax", [[0, 0], [3, 4], [0, 0], [5, 6]]),
        ("SegmentMin", [[0, 0], [1, 2], [0, 0], [5, 6]]),
    ],
)
def test_segments_with_gaps(op: str, expected: Any) -> None:
    """A segment without rows is 0, or 1 for a product."""
    assert run_op(op, ROWS, ids(1, 1, 3)).tolist() == expected
    assert run_op(op, ROWS.astype(np.int64), ids(1, 1, 3)).tolist() == expected
    assert run_op(op, ROWS[:0], ids()).shape == (0, 2)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (ids(0, 1), "same size as dimension 0 of input"),
        (ids(1, 0, 1), "segment ids are not increasing"),
        (ids(0, 0, -1), "segment ids must be >= 0"),
        (ids(-1, 0, 0), r"Segment id -1 out of range \[0, 1\)"),
        (ids(0, 0, 1)[None], "segment_ids should be a vector"),
    ],
)
def test_wrong_segments(given: Any, complaint: str) -> None:
    """Segments must be sorted, not negative, and as many as there are rows."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("SegmentSum", ROWS, given)


def test_long_and_short_segments_agree() -> None:
    """Segments that are folded one by one give what scattered sums give."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-9, 9, (3000, 4)).astype(np.float32)
    for count in (2, 2000):
        numbers = np.sort(rng.integers(0, count, 3000)).astype(np.int32)
        expected = np.zeros((numbers[-1] + 1, 4))
        np.add.at(expected, numbers, rows)
        np.testing.assert_array_equal(run_op("SegmentSum", rows, numbers), expected)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [(np.int32, [3, 4, -5, -4], [3, -4]), (np.int8, [100, 101, 3, 3], [-27, 3])],
)
def test_means_of_integers(kind: Any, values: list[int], expected: list[int]) -> None:
    """The sum wraps around in its own type, the quotient goes towards zero."""
    assert run_op("SegmentMean", np.array(values, kind), ids(0, 0, 1, 1)).tolist() == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("UnsortedSegmentSum", [[0, 0], [6, 8], [3, 4]]),
        ("UnsortedSegmentProd", [[1, 1], [5, 12], [3, 4]]),
        ("UnsortedSegmentMax", [[LOWEST, LOWEST], [5, 6], [3, 4]]),
        ("UnsortedSegmentMin", [[-LOWEST, -LOWEST], [1, 2], [3, 4]]),
    ],
)
def test_unsorted_segments(op: str, expected: Any) -> None:
    """Ids come in any order; of nothing the extremum is the worst finite number."""
    assert run_op(op, ROWS, ids(1, 2, 1), np.int32(3)).tolist() == expected


def test_unsorted_segments_of_any_rank() -> None:
    """Ids may be scalars or matrices; negative ones drop their elements."""
    places = np.array([[0, 1], [0, 1], [2, -1]], np.int32)
    assert run_op("UnsortedSegmentSum", ROWS, places, np.int32(3)).tolist() == [4, 6, 5]
    assert run_op("UnsortedSegmentSum", np.float32(5), np.int32(1), np.int32(2)).tolist() == [0, 5]
    none = run_op("UnsortedSegmentMax", np.zeros((0, 2), np.int32), ids(), np.int32(1))
    assert none.tolist() == [[-(2**31)] * 2]


@pytest.mark.parametrize(
    ("given", "count", "complaint"),
    [
        (ids(0, 3, 1), np.int32(3), r"segment_ids\[1\] = 3 is out of range \[0, 3\)"),
        (ids(0, 1), np.int32(3), r"data.shape = \[3,2\] does not start with segment_ids.shape"),
        (ids(0, 0, 0), np.int32(-1), "num_segments == -1 must not be negative"),
        (ids(0, 0, 0), ids(3), r"num_segments should be a scalar, not shape \[1\]"),
    ],
)
def test_wrong_unsorted_segments(given: Any, count: Any, complaint: str) -> None:
    """An id outside, or a shape that does not fit, is refused."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("UnsortedSegmentSum", ROWS, given, count)


@pytest.mark.parametrize(
    ("op", "first"), [("Sum", [6, 8]), ("Mean", [3, 4]), ("SqrtN", [4.2426405, 5.656854])]
)
def test_sparse_segments(op: str, first: list[float]) -> None:
    """Rows are gathered, then added, averaged, or divided by the root of their count."""
    result = run_op(f"SparseSegment{op}", ROWS, ids(0, 2, 1), ids(0, 0, 2))
    np.testing.assert_allclose(result, [first, [0, 0], [3, 4]], rtol=1e-6)
    padded = run_op(
        f"SparseSegment{op}WithNumSegments", ROWS, ids(0, 2, 1), ids(0, 0, 2), np.int32(4)
    )
    np.testing.assert_allclose(padded, [first, [0, 0], [3, 4], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize("kind", ["Sum", "Mean", "SqrtN"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("count", [1, 2, 9, 10, 18])
def test_sums_of_negative_zeros_are_negative(kind: str, dtype: Any, count: int) -> None:
    """Sums begin with the first row, and not with zero; that of no rows is zero."""
    segments = np.ones(count, np.int32)
    sums = run_op(f"SparseSegment{kind}", np.full((1, 3), -0.0, dtype), 0 * segments, segments)
    assert np.signbit(sums).tolist() == [[False] * 3, [True] * 3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_segments_of_many_rows(dtype: Any) -> None:
    """Sums of whole numbers are exact in any order, of any columns and segments with gaps."""
    rng = np.random.default_rng(2)
    rows = rng.integers(-99, 99, (50, 37)).astype(dtype)
    places, segments = rng.integers(0, 50, 500), np.sort(rng.integers(0, 60, 500))
    wanted = [rows[places[segments == number]].sum(0) for number in range(int(segments[-1]) + 1)]
    for table in (rows, np.asfortranarray(rows)):
        found = run_op("SparseSegmentSum", table, places.astype(np.int32), segments)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("indices", "segments", "complaint"),
    [
        (ids(0, 3), ids(0, 1), r"indices\[1\] == 3 out of range \[0, 3\)"),
        (ids(0, -1), ids(0, 1), r"indices\[1\] == -1 out of range \[0, 3\)"),
        (ids(0, 1), ids(1, 0), "segment ids are not increasing"),
        (ids(0, 1), ids(0), "segment_ids and indices should have same size"),
        (ids(0, 1), ids(0, 5), "segment ids must be < num_segments"),
    ],
)
def test_wrong_sparse_segments(indices: Any, segments: Any, complaint: str) -> None:
    """Rows must exist and segments be sorted and fewer than the number that is given."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("SparseSegmentSumWithNumSegments", ROWS, indices, segments, np.int32(5))


@pytest.mark.parametrize(("op", "scale"), [("Sum", 1), ("Mean", 0.5), ("SqrtN", 0.70710677)])
def test_gradients_of_sparse_segments(op: str, scale: float) -> None:
    """Each row gets back its segment's gradient by the divisor; a row used twice, both."""
    arguments = ROWS, ids(7, 2, 7), ids(0, 0, 2), np.int32(9)
    full = run_op(f"SparseSegment{op}Grad", *arguments)
    used, places = run_op(f"SparseSegment{op}GradV2", *arguments)
    expected = [[scale, 2 * scale], [5 + scale, 6 + 2 * scale]]
    np.testing.assert_allclose(used, expected, rtol=1e-6)
    assert places.tolist() == [2, 7]
    np.testing.assert_array_equal(full[[2, 7]], used)
    assert np.count_nonzero(full) == 4


def test_wrong_gradients_of_sparse_segments() -> None:
    """Rows and segments outside are refused; nothing used means nothing but zeros."""
    with pytest.raises(InvalidArgumentError, match=r"Index 9 out of range \[0, 9\)"):
        run_op("SparseSegmentSumGrad", ROWS, ids(9), ids(0), np.int32(9))
    with pytest.raises(InvalidArgumentError, match="Invalid number of segments"):
        run_op("SparseSegmentSumGrad", ROWS, ids(0), ids(3), np.int32(9))
    assert not run_op("SparseSegmentMeanGrad", ROWS, ids(), ids(), np.int32(2)).any()


@pytest.mark.parametrize(
    ("given", "count", "complaint"),
    [
        (ids(0, 0), np.int32(3), "does not start with"),
        (ids(0, 0, 1), np.int32(-2), "must not be negative"),
        (ids(0, 0, 1), np.array([2], np.int32), "should be a scalar"),
        (ids(0, 0, 1), np.int32(0), "of size zero"),
    ],
)
def test_wrong_segments_with_their_number(given: Any, count: Any, complaint: str) -> None:
    """What XLA refuses to compile is an error, too."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("SegmentMaxV2", ROWS, given, count)
