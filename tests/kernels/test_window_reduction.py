"""Joining what windows see, and spreading it again, against the definition."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from penstock.kernels.nn.window_reduction import (
    Joiner,
    divide_by_counts,
    join_windows,
    spread_along,
)
from penstock.kernels.values.windows import Fit, Window

SUM = Joiner(np.add, np.float32(0))


def windows_of(seed: int) -> tuple[tuple[int, ...], list[Window]]:
    """The shape of images, and windows of which some fit."""
    rng = random.Random(seed)
    while True:
        windows = [
            Window(
                rng.randint(1, 4),
                rng.choice([1, 1, 2, 3]),
                rng.choice([1, 1, 2]),
                rng.choice([None, (0, 0), (rng.randint(0, 3), rng.randint(0, 3))]),
            )
            for _ in range(2)
        ]
        lengths = (rng.randint(1, 9), rng.randint(1, 9))
        try:
            fits = [w.fit(n) for w, n in zip(windows, lengths, strict=True)]
        except ValueError:
            continue
        if min(fit.places for fit in fits) > 0:
            return (rng.choice([1, 3]), *lengths, rng.choice([1, 3])), windows


def meetings(window: Window, length: int) -> list[tuple[int, int]]:
    """Each place with each element inside the images that it sees."""
    fit = window.fit(length)
    pairs = itertools.product(range(fit.places), range(window.size))
    seen = [(p, p * window.stride + e * window.dilation - fit.before) for p, e in pairs]
    return [(place, at) for place, at in seen if 0 <= at < length]


#: As it is, or cut into small bands for several threads.
cuts = pytest.mark.parametrize("sizes", [{}, {"at_once": 60, "shared": 1}], ids=["whole", "bands"])


@cuts
@pytest.mark.parametrize("seed", range(120))
def test_sums_and_what_is_spread(seed: int, sizes: Any) -> None:
    """A place has the sum of what it sees, and gives to all that it sees."""
    shape, windows = windows_of(seed)
    rng = np.random.default_rng(seed)
    images = rng.integers(-9, 9, shape).astype(np.float32)
    places = [w.fit(n).places for w, n in zip(windows, shape[1:3], strict=True)]
    parts = rng.integers(-9, 9, (shape[0], *places, shape[3])).astype(np.float32)
    sums, spread = np.zeros_like(parts), np.zeros_like(images)
    for (y, row), (x, column) in itertools.product(*map(meetings, windows, shape[1:3])):
        sums[:, y, x] += images[:, row, column]
        spread[:, row, column] += parts[:, y, x]

    found = join_windows(images, windows, SUM, lambda _joined, _rows: None, **sizes)
    np.testing.assert_array_equal(found, sums)
    found = parts
    for axis, window in enumerate(windows, 1):
        fit: Fit = window.fit(shape[axis])
        found = spread_along(found, (axis, window, fit), shape[axis])
    np.testing.assert_array_equal(found, spread)


@cuts
@pytest.mark.parametrize("seed", range(40))
def test_the_greatest(seed: int, sizes: Any) -> None:
    """A place has the greatest that it sees, whatever the padding."""
    shape, windows = windows_of(seed)
    images = np.random.default_rng(seed).integers(-99, -1, shape).astype(np.float32)
    joiner = Joiner(np.maximum, np.float32(-np.inf))

    found = join_windows(images, windows, joiner, lambda _joined, _rows: None, **sizes)

    expected = np.full_like(found, -np.inf)
    for (y, row), (x, column) in itertools.product(*map(meetings, windows, shape[1:3])):
        expected[:, y, x] = np.maximum(expected[:, y, x], images[:, row, column])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("most", [0, 99])
@pytest.mark.parametrize("seed", range(30))
def test_counts(seed: int, most: int) -> None:
    """Some rows of places divided by how much each place sees, by blocks or by rows."""
    rng = random.Random(seed)
    windows = [Window(rng.randint(1, 5), rng.randint(1, 3), 1, None) for _ in range(2)]
    lengths = (rng.randint(1, 9), rng.randint(1, 9))
    places = [w.fit(n).places for w, n in zip(windows, lengths, strict=True)]
    counts = np.zeros((2, *places, 2), np.float64)
    for (y, _), (x, _) in itertools.product(*map(meetings, windows, lengths)):
        counts[:, y, x] += 1
    first = rng.randrange(places[0])
    rows = slice(first, rng.randint(first + 1, places[0]))
    numbers: Any = np.full(counts.shape, 60.0)[:, rows]

    divide_by_counts(numbers, windows, lengths, rows, max_blocks=most)

    np.testing.assert_allclose(numbers, 60 / counts[:, rows], 1e-12)
