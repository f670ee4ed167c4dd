"""Pixels of a tile stay in the first cache together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from penstock.kernels.c.convolution import Convolver
from penstock.kernels.c.library import library
from penstock.kernels.c.product import Multiplier, batch_product
from penstock.kernels.c.spare import spare_numbers
from penstock.kernels.values.windows import Window
from support.convolutions import Watched, check, expected, floats

IN_C = pytest.mark.skipif(library() is None, reason="there was no C compiler")
#: Of a first cache.
LINE, SETS, WAYS = 64, 64, 8


def at_one_place(step: int, at_once: int) -> int:
    """How many of the lines that pixels begin in, each once, must share the ways of one set."""
    lines = np.unique(np.arange(at_once) * step // LINE)
    return int(np.bincount(lines % SETS).max())


@pytest.mark.parametrize("at_once", [1, 6, 14])
def test_pixels_leave_a_way_for_weights(at_once: int) -> None:
    """Wherever they begin; and those that do so as they are get no room."""
    for depth in range(1, 4_200):
        spare = spare_numbers(4 * depth, at_once, 10_000)
        assert at_one_place(4 * (depth + spare), at_once) < WAYS
        assert (spare > 0) == (at_one_place(4 * depth, at_once) >= WAYS)


def test_several_pixels_of_one_line_are_one() -> None:
    """As those of one channel are."""
    assert spare_numbers(4, 14, 10_000) == 0
    assert spare_numbers(8, 14, 10_000) == 0


def test_a_copy_must_be_worth_it() -> None:
    """A number that few products read stays where it is."""
    assert spare_numbers(4_096, 14, 64) > 0
    assert spare_numbers(4_096, 14, 63) == 0


@IN_C
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "margins"),
    [(1, 1, 1, (0, 0)), (1, 2, 1, (0, 0)), (3, 1, 1, None), (2, 2, 2, (0, 0)), (2, 1, 2, (1, 2))],
)
def test_convolutions_are_the_same(
    watched: Watched, size: int, stride: int, dilation: int, margins: tuple[int, int] | None
) -> None:
    """With frames of zeros and without, and for images that lie apart."""
    windows = tuple(Window(size, stride, dilation, margins) for _ in range(2))
    filters = floats(size, size, 1024, 70)
    for images in (floats(2, 5, 30, 1024), floats(2, 10, 30, 2048)[:, ::2, ::-1, 7:1031]):
        got = Convolver(lambda _sizes: windows)(images, filters)
        check(got, images, filters, expected(images, filters, windows))
    are_wide = watched.widest > WAYS
    assert all((step % 4096 != 0) == are_wide for step in watched.steps)


@IN_C
def test_products_are_the_same(watched: Watched) -> None:
    """By a constant, and of batches, whose rows may lie apart."""
    y = floats(1024, 70)
    y.flags.writeable = False
    for x in (floats(50, 1024), floats(100, 2048)[::2, 1024:]):
        check(Multiplier()(x, y), x, y[None, None], x.astype(np.float64) @ y)
    whole, others = floats(3, 40, 1024), floats(3, 1024, 80)
    for x, factor in itertools.product((whole, whole[::-1, ::-1]), (others, others[:, ::-1])):
        check(batch_product(x, factor), x, factor, x.astype(np.float64) @ factor)
    are_wide = watched.widest > WAYS
    assert all((step % 4096 != 0) == are_wide for step in watched.steps)
