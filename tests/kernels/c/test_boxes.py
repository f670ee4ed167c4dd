"""Boxes that no better one covers are in C those that they are by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c.boxes import choose_boxes
from penstock.kernels.c.library import loaded
from penstock.kernels.image.non_max_suppression_ops import _chosen_by_numpy

pytestmark = pytest.mark.skipif(loaded() is None, reason="there was no C compiler")


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
    """For any thresholds, limit and number of boxes; scores may be equal, endless, or none."""
    rng = np.random.default_rng(seed)
    boxes = boxes_of(rng, int(rng.choice([0, 1, 5, 64, 65, 300, 5000])))
    scores = np.round(rng.normal(size=len(boxes)), 1).astype(np.float32)
    odd = rng.integers(0, 30, len(boxes)) == 0
    scores[odd] = rng.choice(np.float32([np.nan, np.inf, -np.inf, 0, -0.0]), odd.sum())
    for threshold, least in ((0.0, -np.inf), (0.3, 0.5), (0.7, -0.5), (1.0, np.nan), (0.5, 0.0)):
        for limit in (0, 1, 7, 100, 10_000):
            limits = np.float32(least), limit, np.float32(threshold)
            with_c = choose_boxes(boxes, scores, *limits)
            assert with_c is not None
            assert with_c.dtype == np.int32
            np.testing.assert_array_equal(with_c, _chosen_by_numpy(boxes, scores, *limits))


@np.errstate(all="ignore")
def test_boxes_may_be_views_and_others_are_for_others() -> None:
    """Turned ones are copied; those of other types are numpy's."""
    boxes = boxes_of(np.random.default_rng(0), 50)
    scores = np.linspace(1, 2, 50, dtype=np.float32)
    limits = np.float32(0), 9, np.float32(0.5)
    want = _chosen_by_numpy(boxes, scores, *limits)
    assert len(want) == 9
    views = np.asfortranarray(boxes), np.repeat(scores, 2)[::2]
    np.testing.assert_array_equal(choose_boxes(*views, *limits), want)
    assert choose_boxes(boxes.astype(np.float16), scores, *limits) is None
    assert choose_boxes(boxes, scores.astype(np.float16), *limits) is None
