"""Numbers of 16 bits in C are those of numpy and of ml_dtypes, bit by bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c import narrow as module
from penstock.kernels.c.library import library
from penstock.kernels.c.narrow import Way, converted
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

HALF = np.dtype(np.float16)
BRAIN = np.dtype(ml_dtypes.bfloat16)
#: All numbers of float32 have the upper halves of these; of the lower halves, some, and a tie.
UPPER: Any = np.arange(1 << 16, dtype=np.uint32) << 16
LOWER = (0, 1, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xABCD, 0xFFFF)


def bits(x: Array | None) -> Any:
    """What an array is in memory; two NaNs may differ in it."""
    assert x is not None
    return x.view(f"u{x.itemsize}")


@pytest.mark.parametrize("lower", LOWER)
def test_numbers_are_rounded_as_by_others(lower: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ordinary ones, ties, infinite ones, NaNs, and those with fewer bits or none left."""
    x = (UPPER | np.uint32(lower)).view(np.float32)
    with np.errstate(all="ignore"):
        halves, brains = x.astype(HALF), x.astype(BRAIN)
    for _ in each_way(monkeypatch, module):
        found = converted(x, Way.TO_FLOAT16, HALF)
        np.testing.assert_array_equal(bits(found), bits(halves))
        found = converted(x, Way.TO_BFLOAT16, BRAIN)
        np.testing.assert_array_equal(bits(found), bits(brains))


def test_all_halves_are_widened_as_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each there is, NaNs included."""
    x = np.arange(1 << 16, dtype=np.uint16).view(HALF)
    for _ in each_way(monkeypatch, module):
        found = converted(x, Way.FROM_FLOAT16, np.dtype(np.float32))
        np.testing.assert_array_equal(bits(found), bits(x.astype(np.float32)))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 8, 15, 16, 17, 16384, 16385, 50_001])
def test_there_may_be_so_many(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left out, and nothing is written after the last one."""
    x = np.random.default_rng(count).normal(size=count).astype(np.float32)
    for _ in each_way(monkeypatch, module):
        halves = converted(x, Way.TO_FLOAT16, HALF)
        np.testing.assert_array_equal(bits(halves), bits(x.astype(HALF)))
        assert halves is not None
        back = converted(halves, Way.FROM_FLOAT16, np.dtype(np.float32))
        np.testing.assert_array_equal(back, halves.astype(np.float32))


def test_columns_are_converted() -> None:
    """What does not lie side by side, too; the shape stays."""
    x = np.random.default_rng(1).normal(size=(30, 40)).astype(np.float32)
    found = converted(x.T, Way.TO_FLOAT16, HALF)
    np.testing.assert_array_equal(bits(found), bits(np.ascontiguousarray(x.T.astype(HALF))))
