"""What rows of few numbers come to in C is what numpy makes of them, as are reductions by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.c import short_rows as module
from penstock.kernels.c.library import library
from penstock.kernels.c.short_rows import LONG, reduced
from support.ops import both
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(41)
#: Functions of numpy by the names of ways.
JOINS = {"sum": np.add, "product": np.multiply, "greatest": np.maximum, "least": np.minimum}


def one_by_one(join: Any, x: Any) -> Any:
    """The definition: numbers of each row, joined first to last."""
    so_far = x[:, 0].copy()
    for column in range(1, x.shape[1]):
        so_far = join(so_far, x[:, column])
    return so_far


@pytest.mark.parametrize("length", [1, 2, 7, 16, LONG - 1])
@pytest.mark.parametrize("count", [1, 5, 16, 70_001])
@pytest.mark.parametrize("way", JOINS)
@np.errstate(all="ignore")
def test_rows(way: str, count: int, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit, infinite numbers and NaN among them."""
    x = RNG.normal(size=(count, length)).astype(np.float32)
    x[RNG.random(x.shape) < 0.01] = np.inf
    x[RNG.random(x.shape) < 0.01] = np.nan
    wanted = one_by_one(JOINS[way], x)
    for _ in each_way(monkeypatch, module):
        np.testing.assert_array_equal(reduced(x, length, way), wanted)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Prod", "Max", "Min"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((9_000, 3), [1]), ((9_000, 3), [-1]), ((700, 6, 5), [1, 2]), ((700, 6, 5), [2, -2])],
)
def test_reductions_along_the_last_axes(
    op: str, keep: bool, shape: tuple[int, ...], axes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Go this way, with the axes in any order, and agree with numpy's."""
    asked = []

    def noted(*args: Any) -> Any:
        asked.append(args[1:])
        return reduced(*args)

    monkeypatch.setattr("penstock.kernels.math.sums.reduced", noted)
    x = RNG.uniform(0.5, 1.5, shape).astype(np.float32)
    plain, fast = both(op, x, np.int32(axes), keep_dims=keep)
    np.testing.assert_allclose(fast, plain, rtol=1e-5)
    assert fast.shape == plain.shape
    way = {"Prod": "product", "Max": "greatest", "Min": "least"}.get(op, "sum")
    assert asked == [(x.size // plain.size, way)]


@pytest.mark.parametrize(
    ("shape", "axes"), [((9_000, 3), [0]), ((9_000, LONG), [1]), ((90, 3), [1]), ((9_000, 3), [])]
)
def test_other_reductions_are_numpys(
    shape: tuple[int, ...], axes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Along other axes, of long rows, of few elements, and along none."""
    monkeypatch.setattr("penstock.kernels.math.sums.reduced", None)
    x = RNG.normal(size=shape).astype(np.float32)
    plain, fast = both("Max", x, np.int32(axes))
    np.testing.assert_array_equal(fast, plain)
