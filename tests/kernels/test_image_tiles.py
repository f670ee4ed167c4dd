"""Bands cover all rows of all images, and see what their places see."""

from __future__ import annotations

import random
from threading import Lock

import numpy as np
import pytest

from penstock.kernels.parallel.image_tiles import in_bands
from penstock.kernels.values.windows import Window, seen_by


@pytest.mark.parametrize("seed", range(60))
def test_each_row_of_each_image_is_in_one_band(seed: int) -> None:
    """None is missed and none is done twice, and no band is too long."""
    rng = random.Random(seed)
    batch, rows, at_once = rng.randint(0, 5), rng.randint(0, 9), rng.randint(0, 30)
    done, lock = np.zeros((batch, rows), int), Lock()

    def compute(part: slice, some: slice) -> None:
        with lock:
            done[part, some] += 1
        assert (part.stop - part.start) * (some.stop - some.start) <= max(at_once, 1)

    in_bands(batch, rows, at_once, rng.choice([1, 4]), compute)

    assert (done == 1).all()


@pytest.mark.parametrize("seed", range(200))
def test_places_of_a_band_see_what_they_see_of_the_whole(seed: int) -> None:
    """The rows that are seen, with the band's padding, are what windows over all rows meet."""
    rng = random.Random(seed)
    margins = rng.choice([None, (rng.randint(0, 9), rng.randint(0, 9))])
    window = Window(rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 3), margins)
    length = rng.randint(1, 9)
    try:
        fit = window.fit(length)
    except ValueError:
        return
    if not fit.places:
        return
    first = rng.randrange(fit.places)
    rows = slice(first, rng.randint(first + 1, fit.places))

    seen, band = seen_by(rows, window, fit, length)

    padded = [-1] * band.before + list(range(length))[seen] + [-1] * band.after
    assert min(band.before, band.after) >= 0
    assert band.places == rows.stop - rows.start
    for place in range(band.places):
        for element in range(window.size):
            at = (first + place) * window.stride + element * window.dilation - fit.before
            here = place * window.stride + element * window.dilation
            assert padded[here] == (at if 0 <= at < length else -1)
