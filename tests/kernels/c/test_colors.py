"""Colours in C are those of numpy, bit by bit; and contrasts are what they are defined as."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.c import colors as module
from penstock.kernels.c.colors import recolored
from penstock.kernels.c.library import library
from support.ops import both
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(47)
#: The amounts that an op is given; large ones, and what is no number, among them.
OPS = {
    "RGBToHSV": [()],
    "HSVToRGB": [()],
    "AdjustHue": [(np.float32(each),) for each in (0, 0.3, -0.7, 5.5, -1e9, np.inf, np.nan)],
    "AdjustSaturation": [(np.float32(each),) for each in (0, 0.4, 3, -1, np.nan)],
}


def pixels() -> Any:
    """Of all kinds: grey, black, of one colour, beyond 1, below 0, infinite, and no numbers."""
    plain = RNG.random((7, 41, 3)).astype(np.float32)
    few = RNG.integers(0, 3, (7, 41, 3)).astype(np.float32)
    odd = RNG.normal(size=(7, 41, 3)).astype(np.float32)
    odd[RNG.random(odd.shape) < 0.1] = np.nan
    odd[RNG.random(odd.shape) < 0.1] = np.inf
    return np.concatenate([plain, few, odd])


@np.errstate(all="ignore")
@pytest.mark.parametrize("op", OPS)
def test_colors(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number of pixels, and on many threads."""
    asked = []

    def noted(*args: Any) -> Any:
        asked.append(args)
        return recolored(*args)

    monkeypatch.setattr("penstock.kernels.image.color_ops.recolored", noted)
    images = pixels()
    many = RNG.random((120, 101, 3)).astype(np.float32)
    for given in OPS[op]:
        for _ in each_way(monkeypatch, module):
            for some in (images, images[:, :1], many, images[::2, ::-1]):
                plain, fast = both(op, some, *given)
                np.testing.assert_array_equal(fast, plain)
    assert asked


def test_other_types_are_for_numpy() -> None:
    """And where there are no pixels, there is nothing to do."""
    assert recolored(np.ones((2, 3)), "to_hsv") is None
    found = recolored(np.ones((0, 3), np.float32), "to_hsv")
    assert found is not None
    assert found.shape == (0, 3)


@pytest.mark.parametrize(
    "shape",
    [
        (8, 9, 3),
        (3, 8, 9, 3),
        (2, 7, 9, 3),
        (64, 64, 1),
        (0, 8, 8, 3),
        (2, 0, 8, 3),
        (2, 16, 16, 5),
    ],
)
def test_contrast_is_distance_from_the_mean(shape: tuple[int, ...]) -> None:
    """Of each image and channel; by the library where pixels are whole eights."""
    images = (RNG.random(shape) * 255).astype(np.float32)
    wide = images.astype(np.float64)
    mean = wide.mean((-3, -2), keepdims=True) if images.size else wide
    plain, fast = both("AdjustContrastv2", images, np.float32(1.7))
    assert plain.shape == fast.shape == shape
    for found in (plain, fast):
        np.testing.assert_allclose(found, (wide - mean) * 1.7 + mean, rtol=1e-5, atol=1e-4)
