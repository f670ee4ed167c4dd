"""Copies of arrays with short runs are equal to them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.kernels.parallel import strided_copies
from penstock.kernels.parallel.strided_copies import copy_apart, gathered, has_short_runs, put

VIEWS = [
    np.s_[:, ::2],
    np.s_[1:, 1::3],
    np.s_[:, 2:3],
    np.s_[:, :0],
    np.s_[:, ::-1],
    np.s_[:, ::2, ::2],
    np.s_[:, ::2, :1],
    np.s_[:],
    np.s_[::2],
]


@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int64])
@pytest.mark.parametrize("depth", [1, 2, 5, 300])
def test_gathered_and_put_back(view: Any, dtype: Any, depth: int) -> None:
    """What is gathered is what the view has; what is put there is found there, and nowhere else."""
    array = np.arange(4 * 7 * depth).reshape(4, 7, depth).astype(dtype)
    found = gathered(array[view], enough=1)
    np.testing.assert_array_equal(found, array[view])

    expected, target = array.copy(), array.copy()
    expected[view] = expected[view] + expected[view]
    put(target[view], found + found, enough=1)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("shape", [(1, 700, 601, 3), (3, 900, 300, 3), (300_001, 2, 3)])
def test_many_runs_are_shared_among_threads(shape: tuple[int, ...]) -> None:
    """Piece by piece, along an axis that is long enough, and whatever is left of it."""
    array = np.random.default_rng(1).random(shape, np.float32)
    turned = array[..., ::-1, :]
    target = np.zeros((*shape[:-1], 5), np.float32)[..., :3]
    put(target, turned)
    np.testing.assert_array_equal(target, turned)
    np.testing.assert_array_equal(gathered(turned), turned)
    assert not target.base[..., 3:].any()


LARGE = np.random.default_rng(2).random((3, 701, 601), np.float32)
#: Arrays of more than two pieces, and of less.
TURNED = {
    "channels first": LARGE.transpose(2, 0, 1),
    "channels last": LARGE.transpose(1, 2, 0),
    "backwards": LARGE[:, ::-1, ::-1],
    "a part": LARGE[:, 1:, 2:-1],
    "all": LARGE,
    "one row": LARGE.reshape(1, -1),
    "a number for all": np.broadcast_to(np.float32(3), (1000, 2000)),
    "bytes": LARGE.view(np.uint8)[..., ::3],
    "words": LARGE.astype("U9")[:, ::7, ::9].T,
    "objects": LARGE[:, ::2, ::2].astype(object).T,
    "few": LARGE[:, :9, ::-1],
    "none": LARGE[:, :0].T,
}


@pytest.mark.parametrize("name", TURNED)
def test_copies_are_apart(name: str) -> None:
    """The same elements in the order of their indices, in memory that nobody else has."""
    array = TURNED[name]
    found = copy_apart(array)
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert found.base is None
    assert not np.shares_memory(found, array)


def test_large_copies_are_shared_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of a mebibyte or more, of the first axis that has enough entries."""
    counts: list[int] = []

    def noted(count: int, body: Any) -> None:
        counts.append(count)
        for number in reversed(range(count)):
            body(number)

    monkeypatch.setattr(strided_copies, "parallel_equal", noted)
    for name in ("channels first", "backwards", "few", "objects", "none"):
        np.testing.assert_array_equal(copy_apart(TURNED[name]), TURNED[name])
    assert counts == [4, 4]
    for shape in ((64, 2, 1 << 18), (2, 1 << 18), (1, (1 << 19) - 1)):
        assert not copy_apart(np.zeros(shape, np.float32)[..., ::-1]).any()
    assert counts == [4, 4, 16, 2]


FLOATS = np.zeros((8, 8, 64), np.float32)
#: Views, and whether the elements of their last axis follow each other in memory, and no more.
RUNS = {
    "every other row of few": (FLOATS[:, ::2, :8], True),
    "rows as long as it pays": (FLOATS[:, :, :63], True),
    "long rows": (np.zeros((8, 8, 80), np.float32)[:, :, :64], False),
    "no gaps": (FLOATS, False),
    "single elements": (FLOATS[:, :, :1], False),
    "every other element": (FLOATS[:, :, ::2], False),
    "backwards": (FLOATS[:, :, ::-1], False),
    "one row each": (FLOATS[:, :1, :8], False),
    "one axis": (FLOATS[0, 0, :8], False),
    "texts": (np.zeros((4, 8), object)[:, :4], False),
    "nothing": (FLOATS[:, ::2, :0], False),
}


@pytest.mark.parametrize("name", RUNS)
def test_short_runs_are_told_from_others(name: str) -> None:
    """Two elements or more, less than 256 bytes, and a gap behind them."""
    view, has_them = RUNS[name]
    assert has_short_runs(view, enough=1) is has_them


def test_few_elements_are_left_to_numpy() -> None:
    """Below a number of elements nothing is gained."""
    view, _ = RUNS["every other row of few"]
    assert has_short_runs(view, enough=view.size)
    assert not has_short_runs(view, enough=view.size + 1)


def test_what_has_short_runs_is_copied_run_by_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways, each run as one large element; anything else is copied as numpy does."""
    copied: list[tuple[int, ...]] = []
    copy = strided_copies._copy

    def noted(target: Any, source: Any) -> None:
        copied.append(source.shape)
        copy(target, source)

    monkeypatch.setattr(strided_copies, "_copy", noted)
    view, _ = RUNS["every other row of few"]
    found = gathered(view, enough=1)
    assert found.flags.c_contiguous
    assert not np.shares_memory(found, view)
    put(np.zeros_like(FLOATS)[:, ::2, :8], found, enough=1)
    assert copied == [view.shape] * 2

    assert gathered(FLOATS, enough=1) is FLOATS
    put(np.zeros_like(FLOATS), FLOATS, enough=1)
    assert copied == [view.shape] * 2
