"""Where extremes are in C is where a search of each row finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c import extremes as module
from penstock.kernels.c.extremes import extremes
from penstock.kernels.c.library import library
from support.ops import both
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(37)
#: Shapes and axes: rows side by side in whole vectors or not, single ones, and few.
CASES = [
    ((130, 90), 0),
    ((2_000, 5), 0),
    ((3, 40, 300), 1),
    ((3, 40, 300), -3),
    ((5, 999, 3), 1),
    ((1_000, 9), 1),
    ((2, 50, 21, 31), -1),
    ((9_001, 1), 1),
    ((1, 9_001), 0),
]


def searched(x: Array, axis: int, *, least: bool) -> Array:
    """The definition: the first that none is better than; NaN is worst of all."""
    worst = np.inf if least else -np.inf
    rows = np.moveaxis(np.where(np.isnan(x), worst, x), axis, -1)
    best = rows.min(-1) if least else rows.max(-1)
    found: Array = (rows == best[..., None]).argmax(-1)
    return found


@pytest.mark.parametrize(("shape", "axis"), CASES)
@pytest.mark.parametrize("least", [False, True])
def test_the_first_of_the_best(
    shape: tuple[int, ...], axis: int, least: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among many that are equal, infinite or no numbers."""
    few = RNG.integers(-3, 4, shape).astype(np.float32)
    odd = RNG.normal(size=shape).astype(np.float32)
    odd[RNG.random(shape) < 0.4] = np.nan
    odd[RNG.random(shape) < 0.1] = np.inf
    odd[RNG.random(shape) < 0.1] = -np.inf
    bad = np.full(shape, np.nan, np.float32)
    for x in (few, odd, bad, np.full_like(bad, -np.inf), np.full_like(bad, np.inf)):
        wanted = searched(x, axis, least=least)
        for _ in each_way(monkeypatch, module):
            found = extremes(x, np.int32(axis), least=least)
            assert found is not None
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, wanted)


def test_the_rest_is_for_numpy() -> None:
    """Few elements, long rows, other types, vectors, other layouts, and axes that are none."""
    x = np.zeros((100, 100), np.float32)
    assert extremes(x, np.int32(0)) is not None
    wrong: list[tuple[Any, Any]] = [
        *((x, axis) for axis in (np.int32(1), np.int32(2), np.int32(-3), np.int32([0]))),
        *((each, np.int32(0)) for each in (x.astype(np.float64), x[:9], x.ravel(), x.T)),
    ]
    for value, axis in wrong:
        assert extremes(value, axis) is None


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_the_op_asks_for_them(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And gives positions of the type that is wanted."""
    asked = []

    def noted(*args: Any, **options: Any) -> Any:
        asked.append(options)
        return extremes(*args, **options)

    monkeypatch.setattr("penstock.kernels.math.argmax_ops.extremes", noted)
    x = RNG.normal(size=(3, 100, 50)).astype(np.float32)
    plain, fast = both(op, x, np.int32(1))
    np.testing.assert_array_equal(plain, fast)
    assert plain.dtype == fast.dtype
    assert asked == [{"least": op == "ArgMin"}]
