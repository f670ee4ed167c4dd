"""Convolutions and their gradients against their definition, for random sizes.

The numbers are small integers, so that results are exact whatever the order of additions.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from penstock.kernels.nn import correlation, depthwise, toeplitz
from penstock.kernels.parallel import image_tiles
from support.ops import run_op


@dataclass(frozen=True, slots=True)
class Setting:
    """Sizes of images and filters, and how windows slide."""

    images: tuple[int, int, int, int]
    filters: tuple[int, int, int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: str
    margins: tuple[tuple[int, int], tuple[int, int]]

    @classmethod
    def random(cls, seed: int) -> Setting:
        """Any; windows may never fit."""
        rng = random.Random(seed)
        depth, count = rng.choice([1, 3, 4, 5, 8]), rng.choice([1, 2, 6])
        margins = [(rng.randint(0, 3), rng.randint(0, 3)) for _ in range(2)]
        padding = rng.choice(["SAME", "VALID", "EXPLICIT"])
        return cls(
            (rng.choice([1, 2, 5]), rng.randint(1, 9), rng.randint(1, 9), depth),
            (rng.randint(1, 4), rng.randint(1, 4), depth, count),
            (rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 3])),
            rng.choice([(1, 1), (1, 1), (2, 1), (2, 2), (3, 2)]),
            padding,
            (margins[0], margins[1]) if padding == "EXPLICIT" else ((0, 0), (0, 0)),
        )

    def along(self, axis: int) -> tuple[int, int]:
        """How often a window fits along rows or columns, and the padding before the first."""
        length, stride = self.images[1 + axis], self.strides[axis]
        extent = (self.filters[axis] - 1) * self.dilations[axis] + 1
        if self.padding == "SAME":
            places = -(-length // stride)
            return places, max((places - 1) * stride + extent - length, 0) // 2
        before, after = self.margins[axis]
        return (length + before + after - extent + stride) // stride, before

    def meetings(self) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]:
        """Each place, element of the window, and pixel that meet."""
        (height, top), (width, left) = self.along(0), self.along(1)
        sizes = (height, width, *self.filters[:2])
        for y, x, i, j in itertools.product(*map(range, sizes)):
            row = y * self.strides[0] - top + i * self.dilations[0]
            column = x * self.strides[1] - left + j * self.dilations[1]
            if 0 <= row < self.images[1] and 0 <= column < self.images[2]:
                yield (y, x), (i, j), (row, column)

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the ops."""
        listed = (0, 0, *self.margins[0], *self.margins[1], 0, 0)
        explicit = {"explicit_paddings": listed} if self.padding == "EXPLICIT" else {}
        return {
            "strides": (1, *self.strides, 1),
            "dilations": (1, *self.dilations, 1),
            "padding": self.padding,
            **explicit,
        }


SETTINGS = [
    setting
    for setting in map(Setting.random, range(160))
    if min(setting.along(0)[0], setting.along(1)[0]) > 0
]


@pytest.fixture(params=["whole", "parts", "products"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is; or cut into small parts for several threads; or these by products of matrices."""
    if request.param == "products":
        for name in ("_LEAST_ROWS", "_LEAST_TAPS", "_LEAST_WORK"):
            monkeypatch.setattr(toeplitz, name, 1)
        monkeypatch.setattr(toeplitz, "_HEIGHT", 2)
        monkeypatch.setattr(toeplitz, "_AT_ONCE", 400)
    if request.param != "whole":
        for module in (correlation, depthwise):
            monkeypatch.setattr(module, "_AT_ONCE", 400)
            monkeypatch.setattr(module, "_SHARED", 1)
        monkeypatch.setattr(depthwise, "_RUN", 8)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("setting", SETTINGS, ids=range(len(SETTINGS)))
def test_convolution_and_gradients(setting: Setting) -> None:
    """Results are the sums over all that meet, of one factor times the other."""
    check_convolution(setting)


@pytest.mark.parametrize("dilations", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("filters", [(3, 3, 230, 200), (1, 5, 420, 201), (3, 1, 690, 197)], ids=str)
def test_more_filters_than_places(filters: Any, dilations: tuple[int, int]) -> None:
    """Threads share the filters, also where they do not fall into equal parts."""
    none = ((0, 0), (0, 0))
    for batch in (1, 2):
        images = (batch, 6, 7, filters[2])
        check_convolution(Setting(images, filters, (1, 1), dilations, "SAME", none))


@pytest.mark.parametrize(
    ("images", "filters", "is_shared"),
    [
        ((1, 16, 16, 128), (3, 3, 128, 32), False),
        ((1, 7, 5, 384), (3, 1, 384, 384), False),
        ((1, 18, 12, 192), (7, 1, 192, 192), True),
        ((1, 7, 7, 448), (3, 3, 448, 384), True),
    ],
    ids=str,
)
def test_threads_are_woken_for_what_is_worth_it(
    images: Any, filters: Any, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A convolution that one core has done before another one is awake is that core's alone."""
    woken: list[int] = []
    for module in (correlation, image_tiles):
        monkeypatch.setattr(module, "parallel_for", lambda count, _body: woken.append(count))

    correlation.correlate(np.ones(images), np.ones(filters), (1, 1), (1, 1))

    assert bool(woken) == (is_shared and image_tiles.PIECES > 1)


def check_convolution(setting: Setting) -> None:
    """Compare convolutions and their gradients with sums over all that meet."""
    rng = np.random.default_rng(1)
    images = rng.integers(-3, 4, setting.images).astype(np.float32)
    filters = rng.integers(-3, 4, setting.filters).astype(np.float32)
    places = (setting.along(0)[0], setting.along(1)[0])
    shape = (len(images), *places, setting.filters[3])
    grads = rng.integers(-3, 4, shape).astype(np.float32)
    expected, of_images, of_filters = np.zeros(shape), np.zeros_like(images), np.zeros_like(filters)
    for (y, x), element, (row, column) in setting.meetings():
        expected[:, y, x] += images[:, row, column] @ filters[element]
        of_images[:, row, column] += grads[:, y, x] @ filters[element].T
        of_filters[element] += images[:, row, column].T @ grads[:, y, x]

    result = run_op("Conv2D", images, filters, **setting.attrs)
    np.testing.assert_array_equal(result, expected)
    sizes = np.array(setting.images, np.int32)
    result = run_op("Conv2DBackpropInput", sizes, filters, grads, **setting.attrs)
    np.testing.assert_array_equal(result, of_images)
    sizes = np.array(setting.filters, np.int32)
    result = run_op("Conv2DBackpropFilter", images, sizes, grads, **setting.attrs)
    np.testing.assert_array_equal(result, of_filters)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("setting", SETTINGS[::3], ids=range(len(SETTINGS[::3])))
@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise_convolution_and_gradients(setting: Setting, multiplier: int) -> None:
    """The same, channel by channel, each with filters of its own."""
    rng = np.random.default_rng(2)
    depth = setting.filters[2]
    images = rng.integers(-3, 4, setting.images).astype(np.float32)
    filters = rng.integers(-3, 4, (*setting.filters[:3], multiplier)).astype(np.float32)
    shape = (len(images), setting.along(0)[0], setting.along(1)[0], depth * multiplier)
    grads = rng.integers(-3, 4, shape).astype(np.float32)
    apart = grads.reshape(*shape[:3], depth, multiplier)
    expected = np.zeros_like(apart)
    of_images, of_filters = np.zeros_like(images), np.zeros_like(filters)
    for (y, x), element, (row, column) in setting.meetings():
        expected[:, y, x] += images[:, row, column, :, None] * filters[element]
        of_images[:, row, column] += (apart[:, y, x] * filters[element]).sum(-1)
        of_filters[element] += (images[:, row, column, :, None] * apart[:, y, x]).sum(0)

    name = "DepthwiseConv2dNative"
    result = run_op(name, images, filters, **setting.attrs)
    np.testing.assert_array_equal(result, expected.reshape(shape))
    sizes = np.array(setting.images, np.int32)
    result = run_op(f"{name}BackpropInput", sizes, filters, grads, **setting.attrs)
    np.testing.assert_array_equal(result, of_images)
    sizes = np.array(filters.shape, np.int32)
    result = run_op(f"{name}BackpropFilter", images, sizes, grads, **setting.attrs)
    np.testing.assert_array_equal(result, of_filters)


def test_what_is_not_finite_stays_where_windows_see_it() -> None:
    """Where no window sees it, the numbers are those of images without it."""
    rng = np.random.default_rng(3)
    images = rng.integers(-3, 4, (2, 40, 40, 3)).astype(np.float32)
    filters = rng.integers(1, 4, (5, 5, 3, 1)).astype(np.float32)
    odd = images.copy()
    odd[0, 10, 20, 1], odd[0, 30, 5, 2] = np.inf, np.nan
    settings = {"strides": (1, 1, 1, 1), "padding": "SAME"}
    usual = run_op("DepthwiseConv2dNative", images, filters, **settings)
    result = run_op("DepthwiseConv2dNative", odd, filters, **settings)
    usual[0, 8:13, 18:23, 1], usual[0, 28:33, 3:8, 2] = np.inf, np.nan
    np.testing.assert_array_equal(result, usual)
