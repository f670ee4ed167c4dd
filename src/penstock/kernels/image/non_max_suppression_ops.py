"""Non-maximum suppression: of boxes that overlap only the best remains.

In:   boxes, [count, 4], as two opposite corners; a score for each; limits.
Out:  numbers of the boxes that remain, best first.
Not:  does not look at images.

Candidates come in order of their score, a block at a time: a block is compared with all that
remain so far, and then with itself.  Most graphs have enough after one block or two.  Soft
suppression only lowers the scores: Bodla et al., Soft-NMS, 2017.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, freeze
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.c.boxes import choose_boxes
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.selection import floor_of_best

#: How much of candidates (rows) and of boxes that remain (columns) is shared.
_Overlap: TypeAlias = Callable[[Array, Array], Array]

_HALF: Final = frozenset({dtypes.float16, dtypes.float32})
#: Candidates that are compared with each other at once: as many as a number has bits.
_BLOCK: Final = 64
_ZEROS: Final = freeze(np.zeros((2, _BLOCK, _BLOCK), np.float32))
_BITS: Final = tuple(1 << place for place in range(_BLOCK))
#: So few scores are partitioned, and sorted, in no time, even if all of them are equal.
_FEW: Final = 4096
_ALL: Final = np.float32(-np.inf)


@kernel("NonMaxSuppression")
def make_non_max_suppression(attrs: Attrs) -> Kernel:
    """Boxes that overlap no better one by more than a threshold."""
    threshold = np.float32(attrs.float("iou_threshold"))
    suppress = _suppressor(attrs)
    return lambda boxes, scores, size: suppress(boxes, scores, size, threshold, _ALL)


@kernel("NonMaxSuppressionV2", "NonMaxSuppressionV3", types={"T": _HALF, "T_threshold": _HALF})
def make_non_max_suppression_v3(attrs: Attrs) -> Kernel:
    """The same with the thresholds as inputs; in V3 scores must be above one, too."""
    suppress = _suppressor(attrs)

    def of_any(boxes: Value, scores: Value, size: Value, iou: Value, least: Value = _ALL) -> Array:
        return suppress(boxes, scores, size, iou, least)

    return of_any


@kernel("NonMaxSuppressionV4", types={"T": _HALF, "T_threshold": _HALF})
def make_non_max_suppression_v4(attrs: Attrs) -> Kernel:
    """The same, filled up with zeros on demand, and how many there really are."""
    is_padded, choose = attrs.bool("pad_to_max_output_size"), _suppressor(attrs)

    def suppress(
        boxes: Value, scores: Value, size: Value, iou: Value, least: Value
    ) -> tuple[Array, Value]:
        chosen = choose(boxes, scores, size, iou, least)
        count = np.int32(len(chosen))
        return _padded(chosen, int(size)) if is_padded else chosen, count

    return suppress


@kernel("NonMaxSuppressionV5", types={"T": _HALF})
def make_non_max_suppression_v5(attrs: Attrs) -> Kernel:
    """The same with scores; with a sigma overlapping boxes only have theirs lowered."""
    is_padded, dtype = attrs.bool("pad_to_max_output_size"), attrs.dtype("T").numpy
    choose = _suppressor(attrs)

    def suppress(
        boxes: Value, scores: Value, size: Value, iou: Value, least: Value, sigma: Value
    ) -> tuple[Array, Array, Value]:
        if sigma < 0:
            raise ValueError(f"soft_nms_sigma_val must be >= 0, got {sigma}")
        if sigma > 0:
            limit = _checked(boxes, scores, size, iou)
            chosen, kept = _suppress_softly(boxes, scores, limit, least, sigma)
        else:
            chosen = choose(boxes, scores, size, iou, least)
            kept = scores[chosen]
        count = np.int32(len(chosen))
        if is_padded:
            chosen, kept = _padded(chosen, int(size)), _padded(kept, int(size))
        return chosen, kept.astype(dtype, copy=False), count

    return suppress


@kernel("NonMaxSuppressionWithOverlaps")
def make_non_max_suppression_with_overlaps(_attrs: Attrs) -> Kernel:
    """The same where the overlaps of all boxes are given instead of the boxes."""

    def suppress(overlaps: Value, scores: Value, size: Value, iou: Value, least: Value) -> Array:
        if overlaps.ndim != 2 or overlaps.shape[0] != overlaps.shape[1]:
            raise ValueError(f"overlaps must be square{shape_text(overlaps.shape)}")
        _check_scores(scores, len(overlaps))
        limit = _limit_in(size)
        best = _best_first(scores, least)
        return _choose(best, lambda a, b: overlaps[np.ix_(a, b)], limit, iou)

    return suppress


def _suppressor(attrs: Attrs) -> Callable[..., Array]:
    """The function of boxes, scores and limits, in C where that is wanted and has a way."""

    def suppress(boxes: Value, scores: Value, size: Value, iou: Value, least: Value) -> Array:
        limit = _checked(boxes, scores, size, iou)
        chosen = choose_boxes(boxes, scores, least, limit, iou) if attrs.accelerate else None
        return _chosen_by_numpy(boxes, scores, least, limit, iou) if chosen is None else chosen

    return suppress


def _chosen_by_numpy(boxes: Array, scores: Array, least: Value, limit: int, iou: Value) -> Array:
    return _choose(_best_first(scores, least), _overlap_of(boxes), limit, iou)


def _checked(boxes: Value, scores: Value, size: Value, iou: Value) -> int:
    """The limit of how many remain; raises ValueError for inputs that do not fit."""
    limit = _limit_in(size)
    if np.ndim(iou) or not 0 <= iou <= 1:
        raise ValueError(f"iou_threshold must be in [0, 1], got {iou}")
    if boxes.ndim != 2:
        raise ValueError(f"boxes must be 2-D{shape_text(boxes.shape)}")
    if boxes.shape[1] != 4:
        raise ValueError(f"boxes must have 4 columns, got {boxes.shape[1]}")
    _check_scores(scores, len(boxes))
    return limit


def _limit_in(size: Value) -> int:
    if np.ndim(size):
        raise ValueError(f"max_output_size must be 0-D, got shape {shape_text(size.shape)}")
    if size < 0:
        raise ValueError(f"output size must be non-negative, got {size}")
    return int(size)


def _check_scores(scores: Value, count: int) -> None:
    if scores.shape != (count,):
        raise ValueError(
            f"scores has incompatible shape: {shape_text(scores.shape)} for {count} boxes"
        )


def _padded(values: Array, size: int) -> Array:
    padded = np.zeros(size, values.dtype)
    padded[: len(values)] = values
    return padded


def _by_score(scores: Array, least: Value) -> Array:
    """Numbers of the boxes with better scores than ``least``, best first; the first of equals."""
    return _sorted(scores, (scores > least).nonzero()[0])


def _sorted(scores: Array, candidates: Array) -> Array:
    order: Array = np.negative(scores.take(candidates)).argsort(kind="stable")
    return candidates.take(order)


def _best_first(scores: Array, least: Value) -> Iterator[Array]:
    """The numbers that ``_by_score`` gives, in parts: the best few are often enough."""
    if len(scores) <= 4 * _BLOCK:
        yield _by_score(scores, least)
        return
    scores = scores.copy()
    floor = _floor(scores)
    if floor > least:  # it is not if it is NaN
        if len(scores) <= _FEW:
            yield _sorted(scores, (scores >= floor).nonzero()[0])
        else:  # very many may be equal
            better, equal = (scores > floor).nonzero()[0], (scores == floor).nonzero()[0]
            yield np.concatenate([_sorted(scores, better), equal])
        yield _sorted(scores, ((scores > least) & (scores < floor)).nonzero()[0])
    else:
        yield _by_score(scores, least)


def _floor(scores: Array) -> Any:
    """A score that as many as a block has are not less than."""
    if len(scores) > _FEW:
        return floor_of_best(scores, _BLOCK)[0]
    place = len(scores) - _BLOCK
    parted = scores.copy()
    parted.partition(place)
    return parted[place]


def _overlap_of(boxes: Array) -> _Overlap:
    """The overlaps of boxes: the area of what both cover over that of what either covers.

    NaN if neither has an area: then it is above no threshold.
    """

    def overlap(some: Array, others: Array) -> Array:
        low, high, area = mine = _sides(boxes, some)
        its_low, its_high, its_area = mine if others is some else _sides(boxes, others)
        shared = np.minimum(high[:, :, None], its_high[:, None])
        shared -= np.maximum(low[:, :, None], its_low[:, None])
        # Between two arrays a maximum takes a third of the time that it takes with a number.
        zeros = _ZEROS if shared.shape == _ZEROS.shape else np.zeros_like(shared)
        np.maximum(shared, zeros, out=shared)
        rows: Array = shared[0]
        rows *= shared[1]
        whole = area[:, None] + its_area
        whole -= rows
        rows /= whole
        return rows

    return overlap


def _sides(boxes: Array, numbers: Array) -> tuple[Array, Array, Array]:
    """Of some boxes, the lower and the upper corners, [2, count], and the areas."""
    corners = boxes.take(numbers, 0).astype(np.float32, copy=False).T.copy()
    low = np.minimum(corners[:2], corners[2:])
    high = np.maximum(corners[:2], corners[2:])
    sides = high - low
    return low, high, sides[0] * sides[1]


def _choose(orders: Iterable[Array], overlap: _Overlap, limit: int, threshold: Value) -> Array:
    """Candidates, in this order, unless they overlap one that was chosen before."""
    chosen: list[int] = []
    for order in orders if limit else ():
        for start in range(0, len(order), _BLOCK):
            block = order[start : start + _BLOCK]
            if chosen:
                is_covered = (overlap(block, np.array(chosen)) > threshold).any(1)
                block = block[~is_covered]
            chosen += _choose_in_block(block, overlap, limit - len(chosen), threshold)
            if len(chosen) >= limit:
                return np.array(chosen, np.int32)
    return np.array(chosen, np.int32)


def _choose_in_block(block: Array, overlap: _Overlap, limit: int, threshold: Value) -> list[int]:
    covered_by = _as_bits((overlap(block, block) > threshold).T.copy())
    chosen: list[int] = []
    covered = 0
    for number, bit, those in zip(block.tolist(), _BITS, covered_by, strict=False):
        if not covered & bit:
            chosen.append(number)
            covered |= those
    return chosen[:limit]


def _as_bits(rows: Array) -> list[int]:
    """Each row, of at most 64 truths, as the bits of a number, lowest first."""
    packed = np.packbits(rows, 1, "little")
    numbers = packed
    if packed.shape[1] < 8:
        numbers = np.zeros((len(rows), 8), np.uint8)
        numbers[:, : packed.shape[1]] = packed
    bits: list[int] = numbers.view("<u8").ravel().tolist()
    return bits


def _suppress_softly(
    boxes: Array, scores: Array, limit: int, least: Value, sigma: Value
) -> tuple[Array, Array]:
    """Boxes by score, where each one chosen lowers the scores of those it overlaps.

    They shrink by exp(-overlap² / (2 sigma)).  A score is lowered only when its box would be
    the best: then by all that were chosen since it was last lowered, the latest first.
    """
    overlap, scale = _overlap_of(boxes), np.float32(-0.5) / np.float32(sigma)
    has_area = _sides(boxes, np.arange(len(boxes)))[2] > 0
    waiting = [(-scores[box], box, 0) for box in np.flatnonzero(scores > least).tolist()]
    heapq.heapify(waiting)
    chosen: list[int] = []
    kept: list[Any] = []
    while waiting and len(chosen) < limit:
        negative, box, seen = heapq.heappop(waiting)
        score = np.float32(-negative)
        if seen < len(chosen):
            since = np.array(chosen[seen:][::-1])
            shared = overlap(np.array([box]), since)[0]
            shared = np.where(has_area[since] & has_area[box], shared, np.float32(0))
            factors = np.exp(scale * shared * shared)
            lowered = np.multiply.accumulate(np.append(score, factors))[-1]
            if lowered != score:
                if lowered > least:
                    heapq.heappush(waiting, (-lowered, box, len(chosen)))
                continue
        chosen.append(box)
        kept.append(score)
    return np.array(chosen, np.int32), np.array(kept, np.float32)


# -- several classes at once -------------------------------------------------------------------


@kernel("CombinedNonMaxSuppression")
def make_combined_non_max_suppression(attrs: Attrs) -> Kernel:
    """The best boxes of all classes, suppressed class by class, for each image of a batch."""
    is_padded_by_class, is_clipped = attrs.bool("pad_per_class"), attrs.bool("clip_boxes")

    def combined(
        boxes: Value, scores: Value, per_class: Value, total: Value, iou: Value, least: Value
    ) -> tuple[Array, ...]:
        _check_combined(boxes, scores, per_class, total, iou)
        size = int(total)
        if is_padded_by_class:
            size = min(size, int(per_class) * scores.shape[2])
        images = [
            _best_of_classes(*image, int(per_class), size, (iou, least))
            for image in zip(boxes, scores, strict=True)
        ]
        found = _filled(images, len(boxes), size)
        if is_clipped:
            np.clip(found[0], np.float32(0), np.float32(1), out=found[0])
        return found

    return combined


def _check_combined(
    boxes: Value, scores: Value, per_class: Value, total: Value, iou: Value
) -> None:
    shapes = f"boxes {shape_text(boxes.shape)}, scores {shape_text(scores.shape)}"
    if boxes.ndim != 4:
        raise ValueError(f"boxes must be 4-D: {shapes}")
    if scores.ndim != 3:
        raise ValueError(f"scores must be 3-D: {shapes}")
    if len(boxes) != len(scores):
        raise ValueError(f"boxes and scores must have same batch size: {shapes}")
    if boxes.shape[1] != scores.shape[1]:
        raise ValueError(f"scores has incompatible shape: {shapes}")
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise ValueError(f"third dimension of boxes must be either 1 or num classes: {shapes}")
    if boxes.shape[3] != 4:
        raise ValueError(f"boxes must have 4 columns: {shapes}")
    for name, value in (("max_size_per_class", per_class), ("max_total_size", total)):
        if np.ndim(value) or value <= 0:
            raise ValueError(f"{name} must be a positive scalar (> 0), got {value}")
    if np.ndim(iou) or not 0 <= iou <= 1:
        raise ValueError(f"iou_threshold must be in [0, 1], got {iou}")


def _best_of_classes(
    boxes: Array, scores: Array, per_class: int, size: int, limits: tuple[Value, Value]
) -> tuple[Array, Array, Array]:
    """Boxes, scores and classes of what remains of an image, best first."""
    iou, least = limits
    shared = _overlap_of(boxes[:, 0]) if boxes.shape[1] == 1 else None
    numbers, classes = [], []
    for number in range(scores.shape[1]):
        overlap = shared or _overlap_of(boxes[:, number])
        chosen = _choose(_best_first(scores[:, number], least), overlap, per_class, iou)
        numbers.append(chosen)
        classes.append(np.full(len(chosen), number))
    boxes_of, class_of = np.concatenate(numbers), np.concatenate(classes)
    kept = scores[boxes_of, class_of]
    best = np.argsort(-kept, kind="stable")[:size]
    place = class_of[best] if boxes.shape[1] > 1 else 0
    return boxes[boxes_of[best], place], kept[best], class_of[best]


def _filled(
    images: list[tuple[Array, Array, Array]], batch: int, size: int
) -> tuple[Array, Array, Array, Array]:
    """One array each of boxes, scores, classes and counts; zeros where there are none."""
    boxes = np.zeros((batch, size, 4), np.float32)
    scores, classes = np.zeros((2, batch, size), np.float32)
    for row, (found, kept, class_of) in enumerate(images):
        boxes[row, : len(kept)] = found
        scores[row, : len(kept)] = kept
        classes[row, : len(kept)] = class_of
    return boxes, scores, classes, np.array([len(kept) for _, kept, _ in images], np.int32)
