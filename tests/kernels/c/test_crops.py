"""Parts of images in C are those of numpy, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.c import crops as module
from penstock.kernels.c.library import library
from support.ops import both, run_op
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(43)


def floats(*shape: int) -> Any:
    """Numbers of either sign."""
    return RNG.normal(size=shape).astype(np.float32)


@np.errstate(all="ignore")
@pytest.mark.parametrize("depth", [1, 3, 16, 37])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 5)])
def test_boxes_within_beyond_and_outside(
    size: tuple[int, int], depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are turned round, of no size, of infinite size, and that are no numbers."""
    images, owners = floats(3, 9, 11, depth), RNG.integers(0, 3, 40).astype(np.int32)
    boxes = RNG.uniform(-0.3, 1.3, (40, 4)).astype(np.float32)
    boxes[0], boxes[1], boxes[2] = (0, 0, 1, 1), (0.5, 0.5, 0.5, 0.5), (1, 1, 0, 0)
    boxes[3, 1], boxes[4, 2], boxes[5, 0] = np.nan, np.inf, -np.inf
    given = images, boxes, owners, np.int32(size)
    asked = []

    def noted(*args: Any) -> Any:
        asked.append(args)
        return module.crops(*args)

    monkeypatch.setattr("penstock.kernels.image.crop_and_resize_ops.crops_in_c", noted)
    for _ in each_way(monkeypatch, module):
        plain, fast = both("CropAndResize", *given, extrapolation_value=-7.0)
        np.testing.assert_array_equal(fast, plain)
    assert asked
    assert (plain == -7).any()


def test_many_numbers_are_shared_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread changes a bit."""
    boxes = RNG.random((50, 4)).astype(np.float32)
    given = floats(1, 20, 20, 64), boxes, np.zeros(50, np.int32), np.int32([14, 14])
    wanted = run_op("CropAndResize", *given)
    for _ in each_way(monkeypatch, module):
        np.testing.assert_array_equal(both("CropAndResize", *given)[1], wanted)


def test_the_rest_is_for_numpy() -> None:
    """Images of whole numbers, the nearest elements, and no boxes at all."""
    images, boxes, none = floats(1, 5, 5, 2), np.zeros((0, 4), np.float32), np.zeros(0, np.int32)
    size = np.int32([2, 2])
    for result in both("CropAndResize", images, boxes, none, size):
        assert result.shape == (0, 2, 2, 2)
    whole = (images * 9).astype(np.int32)
    box, first = np.float32([[0.1, 0, 0.8, 1]]), np.int32([0])
    np.testing.assert_array_equal(*both("CropAndResize", whole, box, first, size))
    np.testing.assert_array_equal(
        *both("CropAndResize", images, box, first, size, method="nearest")
    )
