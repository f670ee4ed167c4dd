"""Boxes that no better one covers are in C those that they are by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c.boxes import choose_boxes
from penstock.kernels.c.library import loaded
from penstock.kernels.image.non_max_suppression_ops import _best_first, _choose, _overlap_of

pytestmark = pytest.mark.skipif(loaded() is None, reason="there was no C compiler")

LEAST = np.float32(-np.inf)


def boxes_of(rng: np.random.Generator, count: int) -> Array:
    """Some that overlap much, corners in any order; some equal, empty, endless, or no boxes."""
    centres, sides = rng.uniform(0, 3, (count, 2)), rng.uniform(0, 1, (count, 2))
    boxes = np.hstack([centres - sides, centres + sides]).astype(np.float32)
    boxes = np.where(rng.integers(0, 2, (count, 1)), boxes, boxes[:, [2, 3, 0, 1]])
    boxes = boxes[rng.integers(0, count, count)] if count else boxes
    odd = np.float32([np.nan, np.inf, -np.inf, 0])
    places = rng.integers(0, 30, boxes.shape) == 0
    return np.where(places, rng.choice(odd, boxes.shape), boxes).astype(np.float32)


@pytest.mark.parametrize("seed", range(60))
@np.errstate(all="ignore")
def test_the_same_boxes_remain(seed: int) -> None:
    """For any threshold, limit and number of boxes."""
    rng = np.random.default_rng(seed)
    boxes = boxes_of(rng, int(rng.choice([0, 1, 5, 64, 65, 300, 5000])))
    scores = np.round(rng.normal(size=len(boxes)), 1).astype(np.float32)
    for threshold in (0.0, 0.3, 0.7, 1.0):
        for limit in (0, 1, 7, 100, 10_000):
            given = np.float32(threshold)
            with_numpy = _choose(_best_first(scores, LEAST), _overlap_of(boxes), limit, given)
            with_c = choose_boxes(boxes, _best_first(scores, LEAST), limit, given)
            assert with_c is not None
            assert with_c.dtype == np.int32
            np.testing.assert_array_equal(with_c, with_numpy)


def test_boxes_may_be_views_and_others_are_for_others() -> None:
    """Turned ones are copied; those of other types are numpy's."""
    boxes = boxes_of(np.random.default_rng(0), 50)
    order = [np.arange(50)]
    want = choose_boxes(boxes, order, 9, 0.5)
    assert want is not None
    np.testing.assert_array_equal(choose_boxes(np.asfortranarray(boxes), order, 9, 0.5), want)
    assert choose_boxes(boxes.astype(np.float16), order, 9, 0.5) is None
