"""A convolution by constants that comes again gives what it gave, and only then is one."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c import filters as filters_module
from penstock.kernels.c.convolution import BY_CHANNEL, Convolver
from penstock.kernels.c.library import library
from penstock.kernels.c.repeated import Repeated
from penstock.kernels.values.windows import Window
from support.convolutions import check, expected, floats
from support.side_by_side import side_by_side

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

SAME = (Window(3, margins=None),) * 2
ONE = (Window(1),) * 2


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each convolution that might have been one of those known was one."""
    found: list[bool] = []
    call = Repeated.__call__

    def noting(self: Repeated, *args: Any) -> Any:
        result = call(self, *args)
        found.append(result is not None)
        return result

    monkeypatch.setattr(Repeated, "__call__", noting)
    return found


def fixed(*shape: int) -> Array:
    """Numbers that do not change."""
    made = floats(*shape)
    made.flags.writeable = False
    return made


@pytest.mark.parametrize(
    ("images", "filters", "windows"),
    [
        ((1, 20, 18, 16), (3, 3, 16, 32), SAME),  # fewer products
        ((1, 20, 18, 12), (3, 3, 12, 20), SAME),  # with zeros around
        ((2, 9, 7, 24), (1, 1, 24, 16), ONE),
        ((1, 40, 1, 1024), (1, 1, 1024, 8), ONE),  # with room between pixels
        ((1, 12, 11, 40), (3, 3, 40), SAME),  # by channel
    ],
)
def test_it_gives_the_same_of_other_images(
    images: tuple[int, ...], filters: tuple[int, ...], windows: Any, repeated: list[bool]
) -> None:
    """With bias, something added and limits, to the last bit of what a new one gives."""
    weights, bias = fixed(*filters), fixed(filters[-1])
    convolve = Convolver(lambda _sizes: windows, (-0.5, 0.75), rank=len(filters))
    for number in range(5):
        seen = floats(*images)
        plain = expected(seen, weights, windows, bias)
        added = floats(*plain.shape) if number % 2 else None
        wanted = plain if added is None else plain + added
        got = convolve(seen, weights, bias, added)
        check(got, seen, weights, np.clip(wanted, -0.5, 0.75))
        anew = Convolver(lambda _sizes: windows, (-0.5, 0.75), rank=len(filters))
        again = anew(seen, weights, bias, added)
        assert got is not None
        assert again is not None
        assert got.tobytes() == again.tobytes()
    # What is packed is kept for the second who asks.
    assert repeated[-2:] == [True] * 2
    assert False not in repeated


def test_anything_else_is_another_one(repeated: list[bool]) -> None:
    """Other arrays, shapes, steps, types and places of results; and then the first one again."""
    images, filters, bias = floats(1, 10, 9, 8), fixed(1, 1, 8, 16), fixed(16)
    convolve = Convolver(lambda _sizes: ONE)
    for _ in range(3):
        convolve(images, filters, bias)
    assert repeated[-1]
    others: list[tuple[Array, Array, Array | None]] = [
        (images, fixed(1, 1, 8, 16), bias),
        (images, filters, fixed(16)),
        (images, filters, None),
        (floats(1, 9, 10, 8), filters, bias),
        (images[:, 2:7], filters, bias),
        (floats(1, 9, 10, 8).transpose(0, 2, 1, 3), filters, bias),
        (floats(1, 10, 9, 16)[..., ::2], filters, bias),
    ]
    for other in others:
        convolve(images, filters, bias)
        convolve(images, filters, bias)
        repeated.clear()
        check(convolve(*other), *other[:2], expected(*other[:2], ONE, *_given(other[2])))
        assert repeated == [False]
    assert convolve(images.view(np.int32), filters, bias) is None
    whole = np.zeros((1, 20, 9, 16), np.float32)
    convolve(images, filters, bias, into=whole[:, ::2])
    wanted = expected(images, filters, ONE, bias)
    check(whole[:, ::2], images, filters, wanted)
    added = floats(1, 10, 16, 9).transpose(0, 1, 3, 2)
    check(convolve(images, filters, bias, added), images, filters, wanted + added)


def test_results_that_lie_elsewhere_are_not_repeated(repeated: list[bool]) -> None:
    """They are where somebody wants them, each time."""
    images, filters, whole = floats(1, 6, 7, 8), fixed(1, 1, 8, 16), np.zeros((1, 12, 7, 16))
    into = whole.astype(np.float32)[:, ::2]
    convolve, wanted = Convolver(lambda _sizes: ONE), expected(images, filters, ONE)
    for _ in range(3):
        into[...] = 0
        assert convolve(images, filters, into=into) is into
        check(into, images, filters, wanted)
    check(convolve(images, filters), images, filters, wanted)
    assert not repeated


def test_filters_with_gaps_are_put_together_each_time(repeated: list[bool]) -> None:
    """What is made of them is nobody's."""
    images, filters = floats(1, 6, 7, 40), fixed(3, 3, 80)[..., ::2]
    convolve = Convolver(lambda _sizes: SAME, rank=BY_CHANNEL)
    for _ in range(4):
        check(convolve(images, filters), images, filters, expected(images, filters, SAME))
    assert repeated == [False] * 3


def _given(bias: Array | None) -> list[Array]:
    return [] if bias is None else [bias]


@pytest.mark.parametrize("rank", [4, BY_CHANNEL])
def test_what_may_change_is_read_each_time(rank: int, repeated: list[bool]) -> None:
    """Filters that are no constants; and a bias where it lies."""
    images, bias = floats(1, 6, 6, 8), floats(8)
    filters = floats(*(3, 3, 8, 8)[:rank])
    convolve = Convolver(lambda _sizes: SAME, rank=rank)
    for _ in range(4):
        filters += 1
        bias += 1
        check(
            convolve(images, filters, bias), images, filters, expected(images, filters, SAME, bias)
        )
    assert not repeated
    filters.flags.writeable = False
    for _ in range(4):
        bias += 1
        check(
            convolve(images, filters, bias), images, filters, expected(images, filters, SAME, bias)
        )
    assert repeated[-1]


def test_it_keeps_no_filters(repeated: list[bool]) -> None:
    """Nor what was made of them."""
    images, filters = floats(1, 8, 8, 8), fixed(1, 1, 8, 16)
    convolve = Convolver(lambda _sizes: ONE)
    for _ in range(3):
        convolve(images, filters)
    assert repeated[-1]
    gone = weakref.ref(filters)
    before = len(filters_module._kept)
    gc.disable()
    try:
        del filters
        assert gone() is None
        assert len(filters_module._kept) == before - 1
    finally:
        gc.enable()
    filters = fixed(1, 1, 8, 16)  # perhaps where the others were
    check(convolve(images, filters), images, filters, expected(images, filters, ONE))


def test_numbers_that_are_not_finite_take_the_other_way(repeated: list[bool]) -> None:
    """Of fewer products nothing is of use then; and the next images are convolved as ever."""
    filters, usual = fixed(3, 3, 16, 32), floats(1, 20, 20, 16)
    convolve = Convolver(lambda _sizes: SAME)
    found = set()
    for spoilt in (False, False, True, False, True, True, False, False):
        images = usual.copy()
        if spoilt:
            images[0, 9, 10, 3] = np.inf
        got = convolve(images, filters)
        assert got is not None
        sees_it = np.zeros(got.shape, bool)
        sees_it[:, 8:11, 9:12] = spoilt
        np.testing.assert_array_equal(np.isfinite(got), ~sees_it)
        if not spoilt:
            found.add(got.tobytes())
    assert repeated == [True, False, True, False, False, True, True]
    assert len(found) == 1


def test_many_threads_at_once() -> None:
    """Each of them has a work of its own."""
    filters = fixed(3, 3, 12, 16)
    convolve = Convolver(lambda _sizes: SAME)
    inputs = [floats(1, 12, 12, 12) for _ in range(6)]
    wanted = [expected(images, filters, SAME) for images in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            got = convolve(inputs[number], filters)
            if got is None or np.abs(got - wanted[number]).max() > 1e-4:
                wrong.append(number)

    side_by_side(work, 6)
    assert not wrong
