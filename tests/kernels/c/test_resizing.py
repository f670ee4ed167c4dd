"""Images resized in C are blended from the pixels that they are said to be, by any vectors."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c import resizing as module
from penstock.kernels.c.library import library
from penstock.kernels.c.resizing import Line, line_in_c, resized
from penstock.kernels.image.resize_methods import bilinear_method
from support.ops import both, node_of
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(37)


def line(before: int, after: int) -> Line:
    """Places that take from any two elements, in any order."""
    sources = RNG.integers(0, before, (after, 2))
    sources[::3, 1] = sources[::3, 0]
    return line_in_c(sources, RNG.uniform(size=after), before)


def along(images: Array, axis: int, by: Line) -> Array:
    """The definition, along one dimension."""
    first, second = (images.take(places, axis) for places in (by.first, by.second))
    parts = by.parts.reshape(-1, *[1] * (images.ndim - axis - 1))
    return np.asarray(first + (second - first) * parts)


@pytest.mark.parametrize("depth", [1, 3, 4, 7, 8, 16, 17, 33])
@pytest.mark.parametrize("sizes", [(5, 6, 7, 4), (1, 1, 40, 3), (9, 30, 1, 1), (12, 8, 25, 60)])
def test_any_lines(
    depth: int, sizes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any depth, in bands of any rows, by any number of threads."""
    height, width, rows, columns = sizes
    images = RNG.normal(size=(2, height, width, depth)).astype(np.float32)
    by_row, by_column = line(height, rows), line(width, columns)
    want = along(along(images.astype(np.float64), 2, by_column), 1, by_row)
    found = set()
    for _ in each_way(monkeypatch, module):
        got = resized(images, by_row, by_column)
        assert got is not None
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        found.add(got.tobytes())
    assert len(found) <= 2  # those that multiply and add at once agree


def test_one_pixel_alone_is_that_pixel() -> None:
    """Whatever its part; what is infinite stays."""
    images = np.full((1, 2, 2, 3), np.inf, np.float32)
    alone = line_in_c(np.zeros((4, 2), int), np.full(4, 0.5), 2)
    np.testing.assert_array_equal(resized(images, alone, alone), np.full((1, 4, 4, 3), np.inf))


@pytest.mark.parametrize("attrs", [{}, {"half_pixel_centers": True}])
def test_no_place_takes_from_outside(attrs: dict[str, bool]) -> None:
    """Though float32 has no number for each of so many places."""
    before = 2**24 + 4
    facts, _ = node_of("ResizeBilinear", [np.zeros((1, 1, 1, 1)), np.int32([1, 1])], attrs)
    by = bilinear_method(facts)(before, before)
    assert by.sources.max() >= before
    found = line_in_c(by.sources, by.weights[:, 1], before)
    for places in (found.first, found.second):
        assert places.min() >= 0
        assert places.max() < before


def test_what_is_for_others() -> None:
    """Other types, and nothing."""
    by = line(3, 4)
    assert resized(np.zeros((1, 3, 3, 2)), by, by) is None
    assert resized(np.zeros((0, 3, 3, 2), np.float32), by, by) is None


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float64, np.float16])
@pytest.mark.parametrize("attrs", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize("size", [(5, 9), (7, 7), (20, 3), (1, 1)])
def test_the_op_agrees_with_numpys(
    dtype: type, attrs: dict[str, bool], size: tuple[int, int]
) -> None:
    """For all of its types, to smaller and to larger images."""
    images = RNG.uniform(0, 200, (2, 7, 6, 5)).astype(dtype)
    plain, fast = both("ResizeBilinear", images, np.int32(size), **attrs)
    np.testing.assert_allclose(fast, plain, rtol=1e-5, atol=1e-4)
