"""Sums of gathered rows in C are rounded as they are defined, of any lengths and sizes."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c import segments as module
from penstock.kernels.c.library import library
from penstock.kernels.c.segments import sum_segments
from support.ops import both
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(31)


def in_order(rows: Array) -> Array:
    """The sum of rows, one after the other."""
    total = rows[0].copy()
    for row in rows[1:]:
        total += row
    return total


def wanted(rows: Array) -> Array:
    """TensorFlow's order: what is more than a multiple of eight, but not one alone; then eights."""
    first = len(rows) % 8
    first += 8 if first <= 1 else 0
    total = in_order(rows[:first])
    for start in range(first, len(rows), 8):
        total += in_order(rows[start : start + 8])
    return total


@pytest.mark.parametrize("length", [1, 3, 4, 8, 15, 16, 31, 32, 33, 64, 65, 200])
def test_rows_of_all_lengths_and_segments_of_all_sizes(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By any number of threads; segments without rows are zeros."""
    table = RNG.normal(size=(300, length)).astype(np.float32)
    sizes = np.array([0, *range(28), 0, 100, 1, 0])
    gathered = RNG.integers(0, len(table), sizes.sum())
    parts = np.split(gathered, np.cumsum(sizes)[:-1])
    sums = [wanted(table[part]) if len(part) else np.zeros(length) for part in parts]
    for _ in each_way(monkeypatch, module):
        np.testing.assert_array_equal(sum_segments(table, gathered, sizes), sums)


@pytest.mark.parametrize("length", [1, 5, 33, 64])
def test_rows_with_weights_are_added_up_in_order(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each product is rounded, and each sum."""
    table = RNG.normal(size=(300, length)).astype(np.float32)
    sizes = np.array([0, *range(28), 0, 100, 1, 0])
    gathered = RNG.integers(0, len(table), sizes.sum())
    weights = RNG.normal(size=len(gathered)).astype(np.float32)
    products = np.split(table[gathered] * weights[:, None], np.cumsum(sizes)[:-1])
    sums = [in_order(part) if len(part) else np.zeros(length) for part in products]
    for _ in each_way(monkeypatch, module):
        np.testing.assert_array_equal(sum_segments(table, gathered, sizes, weights), sums)


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_products_of_sparse_and_dense_matrices(
    adjoint_a: bool, adjoint_b: bool, is_sorted: bool
) -> None:
    """Elements in any order, some in one place, and rows without any."""
    places = RNG.integers(0, (50, 40), (300, 2))
    if is_sorted:
        places = places[np.lexsort(places.T[::-1])]
    values = RNG.normal(size=300).astype(np.float32)
    inner = 50 if adjoint_a else 40
    dense = RNG.normal(size=(17, inner) if adjoint_b else (inner, 17)).astype(np.float32)
    attrs = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
    given = places, values, np.int64([50, 40]), dense
    plain, fast = both("SparseTensorDenseMatMul", *given, **attrs)
    np.testing.assert_array_equal(fast, plain)
    none = places[:0], values[:0], np.int64([50, 40]), dense
    np.testing.assert_array_equal(*both("SparseTensorDenseMatMul", *none, **attrs))


@pytest.mark.parametrize("length", [1, 3, 8, 16, 33])
def test_all_rows_in_their_order(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as if they were gathered."""
    table, sizes = RNG.normal(size=(50, length)).astype(np.float32), np.array([7, 0, 30, 13])
    for _ in each_way(monkeypatch, module):
        sums = sum_segments(table, np.arange(50), sizes)
        np.testing.assert_array_equal(sum_segments(table, None, sizes), sums)


@pytest.mark.parametrize(("segments", "error"), [(7, 1e-5), (700, 1e-6)])
@pytest.mark.parametrize("op", ["SegmentSum", "SegmentMean"])
def test_sorted_segments(op: str, segments: int, error: float) -> None:
    """Some of which have no rows, and many of which have one; or long ones."""
    ids = np.sort(RNG.integers(0, segments, 900))
    ids[ids == 3] = 4
    rows = RNG.normal(size=(900, 3, 5)).astype(np.float32)
    plain, fast = both(op, rows, ids)
    np.testing.assert_allclose(fast, plain, rtol=1e-5, atol=error)
    assert fast.shape == plain.shape == (ids[-1] + 1, 3, 5)


def test_tables_of_any_rank() -> None:
    """Of scalars and of matrices; no segments, and rows without numbers."""
    sizes, gathered = np.array([2, 0, 1]), np.array([0, 2, 1])
    scalars = sum_segments(np.float32([1, 2, 4]), gathered, sizes)
    assert scalars is not None
    assert scalars.tolist() == [5, 0, 2]
    table = RNG.normal(size=(3, 2, 5)).astype(np.float32)
    matrices = sum_segments(table, gathered, sizes)
    np.testing.assert_array_equal(matrices, [table[0] + table[2], 0 * table[0], table[1]])
    for shape, counts in (((3, 0), sizes), ((3, 4), sizes[:0])):
        empty = sum_segments(np.zeros(shape, np.float32), gathered, counts)
        assert empty is not None
        assert empty.shape == (len(counts), shape[1])


def test_what_is_for_others() -> None:
    """Other types, and tables whose rows do not lie side by side."""
    sizes, gathered = np.array([2]), np.array([0, 1])
    assert sum_segments(np.zeros((3, 4)), gathered, sizes) is None
    assert sum_segments(np.zeros((4, 3), np.float32).T, gathered, sizes) is None
