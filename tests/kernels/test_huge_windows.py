"""Windows far larger than what they slide over: the right answer, and no more work than for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.kernels.values.windows import Window
from support.ops import run_op

M = 2**31 - 1
#: Sizes and strides of windows along a dimension of eight elements.
SIZES = (1, 3, 8, 9, 15, 16, 17, 40, 10**6, M - 1, M)
STRIDES = (1, 3, 7, 8, 100, M)
IMAGE = np.random.default_rng(5).permutation(64).astype(np.float32).reshape(1, 8, 8, 1)


def seen(size: int, stride: int, length: int = 8) -> Iterator[slice]:
    """What a "SAME" window sees in each place, by TensorFlow's definition of the padding."""
    places = -(-length // stride)
    before = max((places - 1) * stride + size - length, 0) // 2
    for place in range(places):
        start = place * stride - before
        yield slice(max(start, 0), min(start + size, length))


def pooled(function: Any, size: int, stride: int) -> Any:
    """The image pooled window by window, of a size in rows and of three in columns."""
    rows, columns = list(seen(size, stride)), list(seen(3, 2))
    parts = [[function(IMAGE[0, r, c, 0]) for c in columns] for r in rows]
    return np.array(parts, np.float32).reshape(1, len(rows), len(columns), 1)


@pytest.mark.parametrize(("size", "stride"), list(itertools.product(SIZES, STRIDES)))
def test_pooling(size: int, stride: int) -> None:
    """The greatest and the mean of what is really under the window."""
    how: Any = {"ksize": [1, size, 3, 1], "strides": [1, stride, 2, 1], "padding": "SAME"}
    greatest, mean = pooled(np.max, size, stride), pooled(np.mean, size, stride)

    assert run_op("MaxPool", IMAGE, **how).tolist() == greatest.tolist()
    np.testing.assert_allclose(run_op("AvgPool", IMAGE, **how), mean, 1e-6)
    best, place = run_op("MaxPoolWithArgmax", IMAGE, **how)
    assert best.tolist() == greatest.tolist()
    assert IMAGE.ravel()[place].tolist() == greatest.tolist()
    inputs = [np.array(how[name], np.int32) for name in ("ksize", "strides")]
    assert run_op("MaxPoolV2", IMAGE, *inputs, padding="SAME").tolist() == greatest.tolist()


@pytest.mark.parametrize(("size", "stride"), list(itertools.product(SIZES, STRIDES)))
def test_gradients(size: int, stride: int) -> None:
    """Each gradient goes to the greatest under its window, or in parts to all that is there."""
    how: Any = {"ksize": [1, size, 3, 1], "strides": [1, stride, 2, 1], "padding": "SAME"}
    greatest = pooled(np.max, size, stride)
    grads = np.arange(1, greatest.size + 1, dtype=np.float32).reshape(greatest.shape)
    to_greatest, to_all = np.zeros_like(IMAGE), np.zeros_like(IMAGE)
    for (r, rows), (c, columns) in itertools.product(
        enumerate(seen(size, stride)), enumerate(seen(3, 2))
    ):
        part = IMAGE[0, rows, columns, 0]
        to_greatest[0, rows, columns, 0][part == part.max()] += grads[0, r, c, 0]
        to_all[0, rows, columns, 0] += grads[0, r, c, 0] / part.size

    got = run_op("MaxPoolGrad", IMAGE, greatest, grads, **how)
    np.testing.assert_allclose(got, to_greatest, 1e-6)
    sizes = np.array(IMAGE.shape, np.int32)
    np.testing.assert_allclose(run_op("AvgPoolGrad", sizes, grads, **how), to_all, 1e-5)
    back = run_op("MaxPoolGradGrad", IMAGE, greatest, IMAGE, **how)
    assert back.tolist() == greatest.tolist()


@pytest.mark.parametrize("size", [5, 40, M])
@pytest.mark.parametrize("stride", [1, 3, M])
def test_three_dimensions(size: int, stride: int) -> None:
    """The same over blocks; what windows skip first is as TensorFlow has it in three dimensions."""
    image = np.random.default_rng(2).random((1, 4, 4, 4, 1), np.float32)
    how: Any = {"ksize": [1, size, 1, 1, 1], "strides": [1, stride, 1, 1, 1], "padding": "SAME"}
    parts = [image[0, rows].max(0) for rows in seen(size, stride, 4)]

    got = run_op("MaxPool3D", image, **how)
    assert got.tolist() == np.array([parts]).tolist()
    got = run_op("MaxPool3DGrad", image, got, np.ones_like(got), **how)
    assert got.sum() == np.float32(len(parts) * 16)


@pytest.mark.parametrize("length", [1, 2, 7, 8])
@pytest.mark.parametrize("margins", [None, (0, 0), (3, 0), (30, 40), (0, 100)])
def test_trimmed_windows_see_the_same(length: int, margins: Any) -> None:
    """In every place, a trimmed window covers what the window covers of the dimension."""
    for size, stride in itertools.product(range(1, 60), (1, 2, 5, 70)):
        window = Window(size, stride, margins=margins)
        try:
            fit = window.fit(length)
        except ValueError:
            continue
        trimmed = window.trimmed(length)
        own = trimmed.fit(length)
        assert own.places == fit.places
        for place in range(fit.places):
            start, new = place * stride - fit.before, place * stride - own.before
            covers = max(start, 0), min(start + size, length)
            new_covers = max(new, 0), min(new + trimmed.size, length)
            assert covers == new_covers or (
                covers[0] >= covers[1] and new_covers[0] >= new_covers[1]
            )
        if fit.places:
            assert trimmed.size <= max(length + (fit.places - 1) * stride, 1)


@pytest.mark.parametrize("attr", ["ksize", "strides"])
@pytest.mark.parametrize("number", [2**31, 2**40, -(2**31) - 1])
def test_beyond_int32(attr: str, number: int) -> None:
    """Numbers that TensorFlow's kernels cannot hold are refused in its words."""
    how: Any = {"ksize": [1, 1, 1, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
    how[attr] = [1, number, 1, 1]
    with pytest.raises(
        (ValueError, errors.InvalidArgumentError),
        match=f"Attr {attr} has value {number} out of range for an int32",
    ):
        run_op("MaxPool", IMAGE, **how)
