"""A random part of an image, which shows enough of what is in it.

In:   an image's size, and boxes around what it shows.
Out:  where the part begins, its size, and its box.
Not:  cuts nothing out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from penstock.core.values import Array, Value
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, context_kernel
from penstock.kernels.api.traits import KernelTraits
from penstock.kernels.random.node_stream import stream_of
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.plain_random import PlainRandom
from penstock.kernels.random.stateless_random_ops import stream_of_seed
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.state.interrupt import Interrupt

#: A side must be shorter.
_MOST_PIXELS: Final = 2**31 - 1
#: Top, left, bottom and right, in pixels.
_Box: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _BoxBounds:
    """What a part must be like."""

    aspects: tuple[float, float]
    areas: tuple[float, float]
    attempts: int
    #: Whether the whole image counts as the box if there are none.
    uses_image: bool


def _wanted(attrs: Attrs) -> _BoxBounds:
    aspects, areas = attrs.list("aspect_ratio_range"), attrs.list("area_range")
    attempts = attrs.int("max_attempts")
    if len(aspects) != 2 or min(aspects) <= 0:
        raise InvalidArgumentError(f"aspect_ratio_range must be two positive numbers: {aspects}")
    if len(areas) != 2 or min(areas) <= 0 or max(areas) > 1:
        raise InvalidArgumentError(f"area_range must be two numbers in (0.0, 1.0]: {areas}")
    if attempts <= 0:
        raise InvalidArgumentError(f"Max attempts must be positive: {attempts}")
    uses_image = attrs.bool("use_image_if_no_bounding_boxes")
    return _BoxBounds((aspects[0], aspects[1]), (areas[0], areas[1]), attempts, uses_image)


@context_kernel("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def make_sample_distorted_bounding_box(attrs: Attrs) -> Kernel:
    """Another part each time."""
    wanted, generator = _wanted(attrs), stream_of(attrs)
    fixed = attrs.float("min_object_covered") if "min_object_covered" in attrs.values else None

    def sample(
        context: OpKernelContext, size: Value, boxes: Value, *covered: Value
    ) -> tuple[Array, Array, Array]:
        least = float(covered[0]) if fixed is None else fixed
        stream = generator.reserve(wanted.attempts)
        size, boxes = as_array(size), as_array(boxes)
        return _sample(stream, size, boxes, least, wanted, context.interrupt)

    return sample


@context_kernel("StatelessSampleDistortedBoundingBox", traits=KernelTraits(is_pure=True))
def make_stateless_sample_distorted_bounding_box(attrs: Attrs) -> Kernel:
    """The same part for the same seed."""
    wanted = _wanted(attrs)

    def sample(
        context: OpKernelContext, size: Value, boxes: Value, covered: Value, seed: Value
    ) -> tuple[Array, Array, Array]:
        stream = stream_of_seed(seed)
        size, boxes = as_array(size), as_array(boxes)
        return _sample(stream, size, boxes, float(covered), wanted, context.interrupt)

    return sample


def _sample(
    stream: Philox,
    size: Array,
    boxes: Array,
    least: float,
    wanted: _BoxBounds,
    interrupt: Interrupt,
) -> tuple[Array, Array, Array]:
    _check(size, boxes, least)
    height, width = int(size[0]), int(size[1])
    seen = [_in_pixels(box, height, width) for box in boxes.reshape(-1, 4).tolist()]
    if not seen:
        if not wanted.uses_image:
            raise InvalidArgumentError(
                "No bounding boxes provided as input. One must enable "
                "use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes."
            )
        seen = [(0, 0, height, width)]
    random = PlainRandom(stream)
    part = (0, 0, height, width)
    for _ in range(wanted.attempts):
        interrupt.check()  # there may be two thousand million attempts
        found = _try(random, height, width, wanted)
        if found is not None and any(_covered(found, box) >= least for box in seen):
            part = found
            break
    return _described(part, height, width, size.dtype)


def _check(size: Array, boxes: Array, least: float) -> None:
    if size.shape != (3,):
        raise InvalidArgumentError(
            f"image_size must contain 3 elements, got {shape_text(size.shape)}"
        )
    for name, length in zip(("height", "width"), size.tolist(), strict=False):
        if not 0 <= length < _MOST_PIXELS:
            raise InvalidArgumentError(f"image {name} cannot be >= int32 max")
    if boxes.ndim != 3 or boxes.shape[2] != 4:
        raise InvalidArgumentError(
            "input boxes must be 3-dimensional [batch, num_boxes, coords] with 4 coordinates: "
            f"{shape_text(boxes.shape)}"
        )
    if least < 0:
        raise InvalidArgumentError(f"Min object covered must be non-negative: {least}")
    if boxes.size and (boxes.min() < 0 or boxes.max() > 1):
        raise InvalidArgumentError("All bounding box coordinates must be in [0.0, 1.0]")


def _in_pixels(box: Sequence[float], height: int, width: int) -> _Box:
    top, left, bottom, right = box
    return int(top * height), int(left * width), int(bottom * height), int(right * width)


def _try(random: PlainRandom, height: int, width: int, wanted: _BoxBounds) -> _Box | None:
    """One random part; None if it does not fit or has not the wanted area."""
    low, high = (np.float32(a) for a in wanted.aspects)
    aspect = np.float32(random.fraction()) * (high - low) + low
    least, most = (np.float32(a) * np.float32(width) * np.float32(height) for a in wanted.areas)

    def columns_of(rows: int) -> int:
        return _rounded(np.float32(rows) * aspect)

    rows, largest = _rounded(np.sqrt(least / aspect)), _rounded(np.sqrt(most / aspect))
    if columns_of(largest) > width:
        largest = int((width + 0.5 - 1e-7) / float(aspect))
        largest -= columns_of(largest) > width
    largest = min(largest, height)
    rows = min(rows, largest)
    if rows < largest:
        rows += random.below(largest - rows + 1)
    columns = columns_of(rows)
    if rows * columns < least:
        rows += 1
        columns = columns_of(rows)
    if rows * columns > most:
        rows -= 1
        columns = columns_of(rows)
    if not (least <= rows * columns <= most and 0 < columns <= width and 0 < rows <= height):
        return None
    top = random.below(height - rows) if rows < height else 0
    left = random.below(width - columns) if columns < width else 0
    return top, left, top + rows, left + columns


def _rounded(value: np.float32) -> int:
    return int(np.rint(value)) if math.isfinite(value) else 0


def _covered(part: _Box, box: _Box) -> float:
    """How much of a box the part shows; -1 of a box that has no area."""
    area = (box[2] - box[0]) * (box[3] - box[1])
    if area <= 0:
        return -1.0
    rows = min(part[2], box[2]) - max(part[0], box[0])
    columns = min(part[3], box[3]) - max(part[1], box[1])
    return max(rows, 0) * max(columns, 0) / area


def _described(
    part: _Box, height: int, width: int, dtype: np.dtype[np.generic]
) -> tuple[Array, Array, Array]:
    top, left, bottom, right = part
    with np.errstate(invalid="ignore"):
        box = np.divide(part, (height, width, height, width))
    return (
        np.array([top, left, 0], dtype),
        np.array([bottom - top, right - left, -1]).astype(dtype),
        np.array([[box]], np.float32),
    )
