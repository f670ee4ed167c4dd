"""Non-maximum suppression, against a plain loop and recorded answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.ops import run_op

BOXES = np.float32(
    [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 0.5], [0.5, 0.5, 2, 2], [1, 1, 0, 0], [3, 3, 3, 3]]
)
SCORES = np.float32([0.5, 0.5, 0.9, 0.3, 0.7, 0.2])
ALL = np.float32(-np.inf)
RNG = np.random.default_rng(2)


def overlap(a: Any, b: Any) -> float:
    """The area of both over the area of either."""
    (t1, t2), (l1, l2) = sorted((a[0], a[2])), sorted((a[1], a[3]))
    (t3, t4), (l3, l4) = sorted((b[0], b[2])), sorted((b[1], b[3]))
    shared = max(min(t2, t4) - max(t1, t3), 0) * max(min(l2, l4) - max(l1, l3), 0)
    return float(shared / ((t2 - t1) * (l2 - l1) + (t4 - t3) * (l4 - l3) - shared))


def plain(boxes: Any, scores: Any, size: int, iou: float, least: float) -> list[int]:
    """The definition."""
    chosen: list[int] = []
    for number in sorted(range(len(scores)), key=lambda n: (-scores[n], n)):
        is_free = all(overlap(boxes[number], boxes[other]) <= iou for other in chosen)
        if is_free and scores[number] > least:
            chosen.append(number)
    return chosen[:size]


@pytest.mark.parametrize(("count", "size"), [(5, 9), (60, 4), (600, 100), (600, 1000)])
@pytest.mark.parametrize("iou", [0.0, 0.3, 1.0])
def test_selection_is_the_plain_loop(count: int, size: int, iou: float) -> None:
    """Also where several blocks of candidates are needed."""
    corners, sides = RNG.uniform(0, 8, (count, 2)), RNG.uniform(0.5, 3, (count, 2))
    boxes = np.concatenate([corners, corners + sides], 1).astype(np.float32)
    scores = RNG.uniform(0, 1, count).round(2).astype(np.float32)
    got = run_op("NonMaxSuppressionV3", boxes, scores, np.int32(size), np.float32(iou),
                 np.float32(0.2))  # fmt: skip
    assert got.dtype == np.int32
    assert got.tolist() == plain(boxes, scores, size, iou, np.float32(0.2))


@pytest.mark.parametrize("common", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("part", [0.9, 0.99, 1.0])
def test_scores_of_which_most_are_equal(common: float, part: float) -> None:
    """Of boxes with the same score the first comes first, be it the least, or the best."""
    corners, sides = RNG.uniform(0, 8, (900, 2)), RNG.uniform(0.5, 3, (900, 2))
    boxes = np.concatenate([corners, corners + sides], 1).astype(np.float32)
    scores = RNG.uniform(0, 1, 900).astype(np.float32)
    scores[RNG.random(900) < part] = common
    for least in (-1.0, 0.5):
        limits = np.int32(90), np.float32(0.4), np.float32(least)
        got = run_op("NonMaxSuppressionV3", boxes, scores, *limits)
        assert got.tolist() == plain(boxes, scores, 90, 0.4, least)


@pytest.mark.parametrize(
    ("iou", "expected"), [(0.5, [2, 4, 3, 5]), (0.49, [2, 3, 5]), (1.0, [2, 4, 0, 1, 3, 5])]
)
def test_recorded_selections(iou: float, expected: list[int]) -> None:
    """Corners may come in any order; overlap of exactly the threshold is allowed."""
    got = run_op("NonMaxSuppression", BOXES, SCORES, np.int32(9), iou_threshold=iou)
    assert got.tolist() == expected


def test_padding_and_count() -> None:
    """V4 fills up with zeros, and tells how many there are."""
    chosen, count = run_op(
        "NonMaxSuppressionV4", BOXES, SCORES, np.int32(6), np.float32(0.5), ALL,
        pad_to_max_output_size=True,
    )  # fmt: skip
    assert chosen.tolist() == [2, 4, 3, 5, 0, 0]
    assert count == 4


def test_soft_suppression_lowers_scores() -> None:
    """Recorded from TensorFlow, which ignores the threshold of overlap then."""
    chosen, scores, count = run_op(
        "NonMaxSuppressionV5", BOXES, SCORES, np.int32(9), np.float32(0.5), np.float32(0),
        np.float32(0.5),
    )  # fmt: skip
    assert chosen.tolist() == [2, 4, 3, 5, 0, 1]
    expected = [0.9, 0.5451605, 0.2979239, 0.2, 0.142261, 0.0523349]
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert count == 6


def test_nan_scores_are_never_chosen() -> None:
    """NaN is above no threshold; boxes of NaN overlap nothing."""
    scores = np.float32([np.nan, 0.5, 0.9, np.nan, 0.7, 0.2])
    limits = np.int32(9), np.float32(0.5), ALL
    assert run_op("NonMaxSuppressionV3", BOXES, scores, *limits).tolist() == [2, 4, 5]
    unknown = run_op("NonMaxSuppressionV3", BOXES * np.float32(np.nan), SCORES, *limits)
    assert unknown.tolist() == [2, 4, 0, 1, 3, 5]


def test_overlaps_may_be_given() -> None:
    """How much a candidate shares with one chosen before is in the candidate's row."""
    overlaps = np.float32([[1, 0.5, 0.6], [0.5, 1, 0.1], [0.7, 0.1, 1]])
    limits = np.int32(9), np.float32(0.6), np.float32(0)
    got = run_op("NonMaxSuppressionWithOverlaps", overlaps, SCORES[:3], *limits)
    assert got.tolist() == [2, 0, 1]


def test_combined_takes_the_best_of_all_classes() -> None:
    """Classes do not suppress each other; boxes are clipped; the rest is zeros."""
    boxes = BOXES.reshape(1, 6, 1, 4)
    scores = np.stack([SCORES, SCORES[::-1]], -1)[None]
    limits = np.int32(2), np.int32(5), np.float32(0.5), np.float32(0.1)
    found, kept, classes, count = run_op("CombinedNonMaxSuppression", boxes, scores, *limits)
    np.testing.assert_allclose(kept, [[0.9, 0.9, 0.7, 0.7, 0]])
    assert classes.tolist() == [[0, 1, 0, 1, 0]]
    assert count.tolist() == [4]
    assert found[0, 1].tolist() == [0.5, 0.5, 1, 1]  # was to 2
    assert found[0, 4].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("boxes", "scores", "size", "iou", "message"),
    [
        (BOXES, SCORES, -1, 0.5, "output size must be non-negative"),
        (BOXES, SCORES, 2, 1.5, r"iou_threshold must be in \[0, 1\]"),
        (BOXES[:, :3], SCORES, 2, 0.5, "boxes must have 4 columns"),
        (BOXES[0], SCORES, 2, 0.5, "boxes must be 2-D"),
        (BOXES, SCORES[:3], 2, 0.5, "scores has incompatible shape"),
    ],
)
def test_bad_arguments(boxes: Any, scores: Any, size: int, iou: float, message: str) -> None:
    """What does not fit is refused."""
    with pytest.raises(ValueError, match=message):
        run_op("NonMaxSuppressionV3", boxes, scores, np.int32(size), np.float32(iou), ALL)


def test_no_boxes() -> None:
    """Of nothing, nothing remains."""
    got = run_op("NonMaxSuppression", BOXES[:0], SCORES[:0], np.int32(3))
    assert got.shape == (0,)


@pytest.mark.parametrize("common", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("part", [0.0, 0.97, 1.0])
def test_many_scores_of_which_most_are_equal(common: float, part: float) -> None:
    """Where nothing is suppressed, boxes come by falling score, and of equal ones the first."""
    scores = RNG.uniform(0, 1, 9000).astype(np.float32)
    scores[RNG.random(9000) < part] = common
    boxes = RNG.uniform(0, 8, (9000, 4)).astype(np.float32)
    got = run_op("NonMaxSuppressionV3", boxes, scores, np.int32(300), np.float32(1), ALL)
    assert got.tolist() == sorted(range(9000), key=lambda n: (-scores[n], n))[:300]
