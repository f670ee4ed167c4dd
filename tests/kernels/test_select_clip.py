"""Choices by bits are those that numpy makes by asking."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.kernels.values.select_clip import MANY, at_least, at_most, between, choose, kept
from support.ops import run_op

TYPES = [np.bool_, np.int8, np.float16, ml_dtypes.bfloat16, np.float32, np.int64, np.complex64]
TYPES += [np.complex128, object]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", [5, 9999])
def test_choice_between_two(kind: Any, size: int) -> None:
    """For all widths of elements, also those without a whole number as wide."""
    rng = np.random.default_rng(size)
    condition, (x, y) = rng.random((3, size)) < 0.5, rng.integers(-9, 9, (2, 3, size)).astype(kind)
    result = choose(condition, x, y)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, np.where(condition, x, y))
    result = choose(condition.T, x.T, y.T)
    np.testing.assert_array_equal(result, np.where(condition, x, y).T)
    single = y[0, 0] if kind is not object else np.array(y[0, 0], object)
    for one, other in ((x, single), (single, y), (single, single)):
        result = choose(condition, one, other)
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(result, np.where(condition, one, other))


def test_choice_among_what_is_no_number() -> None:
    """Infinity and NaN that are not chosen leave no trace."""
    condition = np.arange(10_000) % 2 == 0
    wild = np.where(condition, np.float32(np.nan), np.float32(np.inf))
    ones = np.ones(10_000, np.float32)
    np.testing.assert_array_equal(choose(condition, ones, wild), np.where(condition, 1, np.inf))
    np.testing.assert_array_equal(kept(~condition, wild), np.where(condition, 0, np.inf))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("size", [0, 5, 9999, 99_999])
def test_limits(kind: Any, size: int) -> None:
    """At least and at most a number, however many there are; NaN stays."""
    x = np.random.default_rng(size).integers(-9, 9, (3, size)).astype(kind)
    if x.dtype.kind == "f":
        x[:, 1:2], x[:, 2:3], x[:, 3:4] = np.nan, np.inf, -np.inf
    found = at_least(x, kind(2)), at_most(x.T, kind(2))
    np.testing.assert_array_equal(found[0], np.where(x < 2, kind(2), x))
    np.testing.assert_array_equal(found[1], np.where(x > 2, kind(2), x).T)
    assert found[0].dtype == found[1].dtype == x.dtype


def test_shapes_are_broadcast() -> None:
    """A condition, or a value, of another shape goes numpy's way."""
    x, y = np.ones((100, 100), np.float32), np.zeros((100, 100), np.float32)
    rows = np.arange(100) < 50
    assert run_op("SelectV2", rows, x, y).sum() == 5000
    assert run_op("Select", rows, x, y)[:50].sum() == 5000
    assert run_op("SelectV2", rows[:, None], x, y[0]).sum() == 5000


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_gradient_goes_to_the_first_of_the_greatest(step: int, padding: str) -> None:
    """Against the definition, with many equals; windows of two by three."""
    rng = np.random.default_rng(step)
    images = rng.integers(0, 3, (2, 7, 8, 3)).astype(np.float32)
    attrs: dict[str, Any] = {"ksize": (1, 2, 3, 1), "strides": (1, step, step, 1)}
    pooled = run_op("MaxPool", images, padding=padding, **attrs)
    grads = rng.integers(1, 9, pooled.shape).astype(np.float32)
    before = [
        max((n - 1) * step + size - length, 0) // 2 if padding == "SAME" else 0
        for n, size, length in zip(pooled.shape[1:3], (2, 3), (7, 8), strict=True)
    ]
    expected = np.zeros_like(images)
    for b, y, x, c in np.ndindex(pooled.shape):
        top, left = y * step - before[0], x * step - before[1]
        rows = range(max(top, 0), min(top + 2, 7))
        seen = [(i, j) for i in rows for j in range(max(left, 0), min(left + 3, 8))]
        first = max(seen, key=lambda at: (images[b, *at, c], [-n for n in at]))
        expected[b, *first, c] += grads[b, y, x, c]

    result = run_op("MaxPoolGrad", images, pooled, grads, padding=padding, **attrs)
    np.testing.assert_array_equal(result, expected)


def refused(*_args: Any, **_options: Any) -> Any:
    raise AssertionError("asks at each element")


@pytest.mark.parametrize("kind", [k for k in TYPES if k not in (np.complex128, object)])
def test_many_choices_ask_nothing(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of elements as wide as a whole number, ``where`` is not asked if there are many."""
    condition = np.arange(MANY) % 3 == 0
    x, y = np.ones(MANY, kind), np.zeros(MANY, kind)
    monkeypatch.setattr(np, "where", refused)
    assert choose(condition, x, y).astype(bool).tolist() == condition.tolist()
    with pytest.raises(AssertionError):
        choose(condition[1:], x[1:], y[1:])


@pytest.mark.parametrize(
    ("size", "way"),
    [
        (MANY - 1, "a number"),
        (MANY, "an array of limits"),
        (1 << 16, "an array of limits"),
        ((1 << 16) + 1, "clip"),
    ],
)
@pytest.mark.parametrize(("limit", "name"), [(at_least, "maximum"), (at_most, "minimum")])
def test_limits_go_the_fastest_way(
    limit: Any, name: str, size: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few by a number, many by an array while that stays in the cache, and more by ``clip``."""
    ways: list[str] = []
    plain, clip = getattr(np, name), np.clip

    def compare(x: Any, other: Any, **options: Any) -> Any:
        ways.append("an array of limits" if np.ndim(other) else "a number")
        return plain(x, other, **options)

    def clipped(*args: Any) -> Any:
        ways.append("clip")
        return clip(*args)

    x = np.zeros(size, np.float32)
    monkeypatch.setattr(np, name, compare)
    monkeypatch.setattr(np, "clip", clipped)
    limit(x, np.float32(2))
    assert ways == [way]


@pytest.mark.parametrize("size", [5, MANY])
@pytest.mark.parametrize(("low", "high"), [(-2, 3), (3, -2), (2, 2)])
def test_between_two_limits(size: int, low: int, high: int) -> None:
    """The lower limit counts if they contradict each other; NaN stays."""
    x = np.random.default_rng(size).integers(-9, 9, size).astype(np.float32)
    x[0] = np.nan
    want = [v if v != v else max(min(v, high), low) for v in x.tolist()]
    found = between(x, np.float32(low), np.float32(high))
    np.testing.assert_array_equal(found, np.float32(want))
