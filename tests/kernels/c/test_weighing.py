"""Weighed sums in C are those of numpy, bit by bit, as are images that are resized by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.c import weighing as module
from penstock.kernels.c.library import library
from penstock.kernels.c.weighing import weighed
from support.ops import both
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(53)


@pytest.mark.parametrize(
    ("shape", "axis"), [((7, 5), 0), ((3, 8, 2), 1), ((2, 3, 9), 2), ((2, 30, 40, 37), 1)]
)
@pytest.mark.parametrize("taps", [1, 2, 5])
def test_each_place_is_a_sum(
    shape: tuple[int, ...], axis: int, taps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First to last, by any vectors and threads."""
    x = RNG.normal(size=shape).astype(np.float32)
    sources = RNG.integers(0, shape[axis], (11, taps))
    weights = RNG.normal(size=(11, taps)).astype(np.float32)
    along = (-1, *(1,) * (x.ndim - axis - 1))
    wanted = x.take(sources[:, 0], axis) * weights[:, 0].reshape(along)
    for tap in range(1, taps):
        wanted = wanted + x.take(sources[:, tap], axis) * weights[:, tap].reshape(along)
    for _ in each_way(monkeypatch, module):
        np.testing.assert_array_equal(weighed(x, axis, sources, weights), wanted)


@pytest.mark.parametrize("kind", [np.float32, np.uint8, np.float64])
@pytest.mark.parametrize("size", [(5, 7), (40, 50), (31, 29)])
@pytest.mark.parametrize("op", ["ResizeBicubic", "ResizeArea", "ResizeBilinear"])
def test_images(op: str, size: tuple[int, int], kind: Any) -> None:
    """Of any type, smaller, larger and as large."""
    images = (RNG.random((2, 31, 29, 3)) * 200).astype(kind)
    plain, fast = both(op, images, np.int32(size))
    if op == "ResizeBilinear":
        np.testing.assert_allclose(fast, plain, rtol=1e-6, atol=1e-4)
    else:
        np.testing.assert_array_equal(fast, plain)


@np.errstate(all="ignore")
@pytest.mark.parametrize("kernel_type", ["lanczos3", "triangle", "box"])
def test_images_that_are_scaled_and_moved(kernel_type: str) -> None:
    """In any direction."""
    images = RNG.normal(size=(2, 31, 29, 3)).astype(np.float32)
    given = images, np.int32([17, 40]), np.float32([0.6, 1.3]), np.float32([-2, 3])
    np.testing.assert_array_equal(*both("ScaleAndTranslate", *given, kernel_type=kernel_type))


def test_the_rest_is_for_numpy() -> None:
    """Other types, and places that take nothing."""
    sources, weights = np.zeros((4, 1), int), np.ones((4, 1), np.float32)
    assert weighed(np.ones((3, 2), np.float32), 0, sources, weights) is not None
    assert weighed(np.ones((3, 2)), 0, sources, weights) is None
    assert weighed(np.ones((3, 2), np.float32), 0, sources, weights.astype(float)) is None
    assert weighed(np.ones((3, 2), np.float32), 0, sources[:, :0], weights[:, :0]) is None
    empty = weighed(np.ones((3, 0), np.float32), 0, sources, weights)
    assert empty is not None
    assert empty.shape == (4, 0)
