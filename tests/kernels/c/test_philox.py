"""Random words and numbers in C are those that numpy makes, by any vectors and threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array
from penstock.kernels.c import philox as module
from penstock.kernels.c.library import library
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.random_numbers import Draw, normal, truncated_normal, uniform
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

#: Of the last ones, the lower and the upper half of the counter overflow on the way.
COUNTERS = [0, 5 << 64, (7 << 64) - 70, (1 << 128) - 70]
DRAWS: list[Callable[[DType], Draw]] = [uniform, normal, truncated_normal]


def in_all_ways(monkeypatch: pytest.MonkeyPatch, compute: Callable[[], Array]) -> set[bytes]:
    """What is computed with each kind of vectors, with helpers and without, and without C."""
    found = set()
    for _ in each_way(monkeypatch, module):
        found.add(compute().tobytes())
    monkeypatch.setattr(module, "library", lambda: None)
    return found | {compute().tobytes()}


@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1024, 5000])
def test_words(counter: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of values that follow each other, and of any others."""
    stream = Philox(0x123456789ABCDEF0, counter)
    (words,) = in_all_ways(monkeypatch, lambda: stream.blocks(count))
    assert len(words) == 16 * count
    offsets = np.random.default_rng(count).integers(0, 1 << 63, count).astype(np.uint64)
    assert len(in_all_ways(monkeypatch, lambda: stream.blocks_at(offsets))) == 1


@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.float64], ids=str)
def test_numbers(
    draw: Callable[[DType], Draw], dtype: DType, counter: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any count; the same bits, but for the last one where functions of libraries differ."""
    stream = Philox(3, counter)
    for count in (0, 1, 5, 4099, 20_000):
        ways = in_all_ways(monkeypatch, lambda n=count: draw(dtype)(stream, n))
        numbers = [np.frombuffer(way, dtype.numpy).astype(np.float64) for way in ways]
        for others in numbers[1:]:
            np.testing.assert_allclose(others, numbers[0], rtol=2e-7, atol=0)
        assert len(numbers[0]) == count


def test_functions_are_exact_to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Box and Muller's formula, each function computed in float64, and rounded once."""
    words = Philox(9, 1 << 40).blocks(50_000).reshape(-1, 2)
    fractions = ((words & 0x7FFFFF) | 0x3F800000).view(np.float32) - np.float32(1)
    angles = (2 * np.pi * fractions[:, 1].astype(np.float64)).astype(np.float32).astype(np.float64)
    logarithms = np.log(np.maximum(fractions[:, 0], np.float32(1e-7)).astype(np.float64))
    radii = np.sqrt(np.float32(-2) * logarithms.astype(np.float32))
    sines, cosines = (function(angles).astype(np.float32) for function in (np.sin, np.cos))
    expected = np.stack([sines * radii, cosines * radii], -1).ravel()
    for _ in each_way(monkeypatch, module):
        numbers = normal(dtypes.float32)(Philox(9, 1 << 40), 200_000)
        np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("group", [56_546, 90_252, 128_011, 149_278])
def test_cut_normal_numbers_that_take_three_counters(
    group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so few groups the first two counters do not give four numbers."""
    stream = Philox(1, 256 * group)
    (numbers,) = in_all_ways(monkeypatch, lambda: truncated_normal(dtypes.float32)(stream, 4))
    assert len(set(np.frombuffer(numbers, np.float32))) == 4


def test_cut_normal_numbers_are_near_zero() -> None:
    """And as many as are asked for are all there, none of them twice."""
    numbers = truncated_normal(dtypes.float32)(Philox(1, 2), 100_000)
    assert np.abs(numbers).max() < 2
    assert len(np.unique(numbers)) > 99_000
    assert abs(numbers.std() - 0.8796) < 0.005  # the definition's, of a normal number below 2
