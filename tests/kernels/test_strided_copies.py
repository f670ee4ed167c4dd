"""Copies of arrays with short runs are equal to them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.kernels.parallel import strided_copies
from penstock.kernels.parallel.strided_copies import gathered, has_short_runs, put

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
    """Piece by piece, along whichever axis is longest, and whatever is left of it."""
    array = np.random.default_rng(1).random(shape, np.float32)
    turned = array[..., ::-1, :]
    target = np.zeros((*shape[:-1], 5), np.float32)[..., :3]
    put(target, turned)
    np.testing.assert_array_equal(target, turned)
    np.testing.assert_array_equal(gathered(turned), turned)
    assert not target.base[..., 3:].any()


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
