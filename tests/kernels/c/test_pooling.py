"""Pooling in C sees what windows see, whatever the vectors, threads and shapes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.values import Array
from penstock.kernels.c import pooling as module
from penstock.kernels.c.library import Library, library, loaded
from penstock.kernels.c.pooling import filters_gradient, images_gradient, pool, pool_gradient
from penstock.kernels.values.windows import Window
from support.shared_library import KINDS, Shared

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(17)


def floats(*shape: int) -> Array:
    """Numbers of either sign, many of them equal."""
    return RNG.integers(-4, 5, shape).astype(np.float32) / 2


def places(images: Array, windows: tuple[Window, ...]) -> Iterator[tuple[int, int, Any]]:
    """Each place, and which part of the images it sees."""
    fits = [w.fit(n) for w, n in zip(windows, images.shape[1:3], strict=True)]
    for row, column in np.ndindex(fits[0].places, fits[1].places):
        starts = (
            at * window.stride - fit.before
            for at, window, fit in zip((row, column), windows, fits, strict=True)
        )
        seen = (
            slice(max(start, 0), start + window.size)
            for start, window in zip(starts, windows, strict=True)
        )
        yield row, column, (slice(None), *seen)


def pooled(images: Array, windows: tuple[Window, ...], join: Callable[..., Any]) -> Array:
    """The definition: all that a place sees, joined."""
    found = {(r, c): join(images[seen], axis=(1, 2)) for r, c, seen in places(images, windows)}
    rows, columns = (max(at) + 1 for at in zip(*found, strict=True))
    result = np.empty((len(images), rows, columns, images.shape[-1]))
    for (row, column), value in found.items():
        result[:, row, column] = value
    return result


def given_back(images: Array, grads: Array, windows: tuple[Window, ...], way: str) -> Array:
    """The definition: what a place has, to the first greatest or in equal parts to all."""
    result = np.zeros(images.shape)
    for row, column, where in places(images, windows):
        seen, to = images[where], result[where]
        if way == "mean":
            to += grads[:, None, None, row, column] / (seen.shape[1] * seen.shape[2])
            continue
        flat = seen.reshape(len(images), -1, images.shape[-1])
        first = flat.argmax(axis=1)
        for image, channel in np.ndindex(*first.shape):
            at = np.unravel_index(first[image, channel], seen.shape[1:3])
            to[(image, *at, channel)] += grads[image, row, column, channel]
    return result


@pytest.fixture(params=KINDS)
def _kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Library(loaded(), request.param), monkeypatch)


def use(chosen: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it used."""
    monkeypatch.setattr(module, "library", lambda: chosen)


@settings(max_examples=40)
@given(
    st.integers(1, 2), st.integers(1, 9), st.integers(1, 9), st.integers(1, 70),
    st.tuples(st.integers(1, 4), st.integers(1, 4)), st.integers(1, 3), st.booleans(),
)  # fmt: skip
def test_what_places_see(
    batch: int, rows: int, columns: int, depth: int, sizes: tuple[int, int], stride: int,
    is_same: bool,
) -> None:  # fmt: skip
    """Channels for whole vectors and not; windows over the edges, that meet, and that do not."""
    if not is_same and (sizes[0] > rows or sizes[1] > columns):
        return
    margins = None if is_same else (0, 0)
    windows = tuple(Window(size, stride, margins=margins) for size in sizes)
    images = floats(batch, rows, columns, depth)
    for number in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            use(Library(loaded(), number), patch)
            most, mean = (pool(images, windows, way) for way in ("greatest", "mean"))
            np.testing.assert_array_equal(most, pooled(images, windows, np.max))
            np.testing.assert_allclose(mean, pooled(images, windows, np.mean), rtol=1e-6)
            assert mean is not None
            grads = floats(*mean.shape)
            back = pool_gradient(images.shape, grads, windows, "greatest", images)
            np.testing.assert_array_equal(back, given_back(images, grads, windows, "greatest"))
            back = pool_gradient(images.shape, grads, windows, "mean")
            wanted = given_back(images, grads, windows, "mean")
            np.testing.assert_allclose(back, wanted, rtol=1e-5, atol=1e-6)
            check_convolution(images, grads, windows)


def check_convolution(images: Array, grads: Array, windows: tuple[Window, ...]) -> None:
    """The gradients of a convolution by channel: both follow from sums over all places."""
    filters = floats(*(window.size for window in windows), images.shape[-1])
    by_images, by_filters = np.zeros(images.shape), np.zeros(filters.shape)
    starts = [
        [place * window.stride - fit.before for place in range(fit.places)]
        for window, fit in (
            (window, window.fit(n)) for window, n in zip(windows, images.shape[1:3], strict=True)
        )
    ]
    for (row, top), (column, left) in itertools.product(*map(enumerate, starts)):
        for r, c in np.ndindex(filters.shape[:2]):
            y, x = top + r, left + c
            if 0 <= y < images.shape[1] and 0 <= x < images.shape[2]:
                by_images[:, y, x] += grads[:, row, column] * filters[r, c]
                by_filters[r, c] += (grads[:, row, column] * images[:, y, x]).sum(0)
    got = images_gradient(grads, filters, windows, images.shape)
    np.testing.assert_allclose(got, by_images, rtol=1e-5, atol=1e-4)
    got = filters_gradient(images, grads, windows)
    np.testing.assert_allclose(got, by_filters, rtol=1e-5, atol=1e-4)


@pytest.mark.usefixtures("_kind")
def test_what_is_no_number() -> None:
    """NaN is never the greatest; it gets a gradient only if it comes first."""
    nan, inf = np.nan, np.inf
    images = np.float32([nan, 1, 1, nan, nan, nan, -inf, -inf]).reshape(1, 1, 8, 1).repeat(20, 3)
    windows = Window(1), Window(2, 2)
    least = np.finfo(np.float32).min
    most = pool(images, windows, "greatest")
    np.testing.assert_array_equal(most[0, 0, :, 7], [1, 1, least, least])  # type: ignore[index]
    grads = np.float32([1, 2, 3, 4]).reshape(1, 1, 4, 1).repeat(20, 3)
    back = pool_gradient(images.shape, grads, windows, "greatest", images)
    np.testing.assert_array_equal(back[0, 0, :, 7], [1, 0, 2, 0, 3, 0, 4, 0])  # type: ignore[index]


def test_threads_and_vectors_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place, and each element that gets something, is one thread's."""
    images = RNG.normal(size=(3, 17, 15, 150)).astype(np.float32)
    windows, found = (Window(3, 1, margins=None), Window(3, 2, margins=None)), set()
    for kind in KINDS:
        for helpers in (0, 3):
            use(Shared(kind, helpers), monkeypatch)
            mean = pool(images, windows, "mean")
            assert mean is not None
            filters = np.ones((3, 3, 150), np.float32)
            backs = (
                images_gradient(mean, filters, windows, images.shape),
                filters_gradient(images, mean, windows),
                pool_gradient(images.shape, mean, windows, "mean"),
                pool_gradient(images.shape, mean, windows, "greatest", images),
            )
            if kind:
                found.add(b"".join(np.asarray(each).tobytes() for each in (mean, *backs)))
    assert len(found) <= 1


@pytest.mark.usefixtures("_kind")
def test_views_are_seen_as_they_are() -> None:
    """Turned, backwards, and of other steps."""
    whole, windows = floats(2, 12, 11, 40), (Window(2, 2), Window(3, 1))
    for view in (whole[:, ::-1, ::2], whole[..., ::2], whole.transpose(0, 2, 1, 3)):
        most = pool(view, windows, "greatest")
        np.testing.assert_array_equal(most, pooled(view, windows, np.max))


def test_nothing_is_written_beside_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither before nor after it."""
    guard, made = 64, []

    def guarded(shape: tuple[int, ...], dtype: Any) -> Array:
        size = int(np.prod(shape))
        whole = np.full(size + 2 * guard, 777, dtype)
        made.append(whole)
        part: Array = whole[guard : guard + size].reshape(shape)
        part[...] = 0
        return part

    windows = Window(3, 1, margins=None), Window(2, 2, margins=None)
    for kind, depth in ((kind, depth) for kind in KINDS for depth in (1, 5, 16, 33)):
        images = floats(2, 6, 7, depth)
        with monkeypatch.context() as patch:
            use(Library(loaded(), kind), patch)
            patch.setattr(module.np, "empty", guarded)
            patch.setattr(module.np, "zeros", guarded)
            most = pool(images, windows, "greatest")
            assert most is not None
            pool_gradient(images.shape, most, windows, "greatest", images)
            images_gradient(most, np.ones((3, 2, depth), np.float32), windows, images.shape)
            filters_gradient(images, most, windows)
    assert len(made) == 4 * 4 * len(KINDS)
    for whole in made:
        assert (whole[:guard] == 777).all()
        assert (whole[-guard:] == 777).all()


@pytest.mark.parametrize(
    ("images", "windows"),
    [
        (np.ones((1, 4, 4, 2)), (Window(2), Window(2))),
        (np.ones((4, 4, 2), np.float32), (Window(2), Window(2))),
        (np.ones((0, 4, 4, 2), np.float32), (Window(2), Window(2))),
        (np.ones((1, 4, 4, 2), np.float32), (Window(2, dilation=2), Window(2))),
        (np.ones((1, 30, 30, 2), np.float32), (Window(9), Window(9))),
        (np.ones((1, 4, 4, 2), np.float32), (Window(2, 1 << 40), Window(2))),
        (np.ones((1, 4, 4, 2), np.float32), (Window(2, margins=(3, 3)), Window(2))),
    ],
)
def test_others_are_for_others(images: Array, windows: tuple[Window, ...]) -> None:
    """Other types and ranks, windows with gaps, large ones, and places that see nothing."""
    assert pool(images, windows, "greatest") is None


def test_gradients_must_fit() -> None:
    """Of other shapes and types they are for others, too."""
    windows = Window(2), Window(2)
    grads = np.ones((1, 3, 3, 2), np.float32)
    assert pool_gradient((1, 4, 4, 2), grads, windows, "mean") is not None
    assert pool_gradient((1, 4, 4, 2), grads[:, :2], windows, "mean") is None
    assert pool_gradient((1, 4, 4, 2), grads.astype(np.float64), windows, "mean") is None
    filters = np.ones((2, 2, 2), np.float32)
    assert images_gradient(grads, filters, windows, (1, 4, 4, 2)) is not None
    assert images_gradient(grads, filters[:1], windows, (1, 4, 4, 2)) is None
    assert images_gradient(grads[:, 1:], filters, windows, (1, 4, 4, 2)) is None
    images = np.ones((1, 4, 4, 2), np.float32)
    assert filters_gradient(images, grads, windows) is not None
    assert filters_gradient(images, grads[:, 1:], windows) is None
    large = Window(9), Window(9)
    images = np.ones((1, 9, 9, 2), np.float32)
    assert filters_gradient(images, images[:, :1, :1], large) is None
