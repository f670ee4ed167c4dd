"""Glimpses and boxes drawn, recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.ops import run_op


@pytest.mark.parametrize(
    ("op", "is_centred", "is_normalized", "offset", "start"),
    [
        ("ExtractGlimpse", True, True, (0.2, 0.1), (22, 31)),
        ("ExtractGlimpse", True, False, (5, 7), (21, 31)),
        ("ExtractGlimpse", False, True, (0.25, 0.25), (8, 12)),
        ("ExtractGlimpse", False, False, (10, 10), (8, 7)),
        ("ExtractGlimpseV2", True, True, (0.2, 0.1), (22, 31)),
        ("ExtractGlimpseV2", True, False, (5, 7), (25, 37)),
        ("ExtractGlimpseV2", False, True, (0.25, 0.25), (10, 15)),
        ("ExtractGlimpseV2", False, False, (10, 10), (10, 10)),
    ],
)
def test_where_glimpses_start(
    op: str, is_centred: bool, is_normalized: bool, offset: Any, start: tuple[int, int]
) -> None:
    """Recorded from TensorFlow for images of 41 by 61 and glimpses of 4 by 5."""
    image = (np.arange(41)[:, None] * 100 + np.arange(61)).astype(np.float32)[None, ..., None]
    got = run_op(
        op, image, np.int32([4, 5]), np.float32([offset]),
        centered=is_centred, normalized=is_normalized, uniform_noise=False, noise="zero",
    )  # fmt: skip
    assert divmod(int(got[0, 0, 0, 0]), 100) == start


def test_glimpses_beyond_the_image_are_noise() -> None:
    """Here of zeros."""
    image = np.ones((1, 3, 3, 1), np.float32)
    got = run_op("ExtractGlimpse", image, np.int32([2, 2]), np.float32([[0, 3]]),
                 centered=False, normalized=False, uniform_noise=False, noise="zero")  # fmt: skip
    assert got[0, ..., 0].tolist() == [[0, 0], [1, 0]]


def test_boxes_are_drawn_as_lines() -> None:
    """Colours take turns; what is outside is cut."""
    boxes = np.float32([[[0, 0, 1, 1], [0.5, 0.5, 3, 3]]])
    colors = np.float32([[1, 0, 0], [2, 0, 0]])
    got = run_op("DrawBoundingBoxesV2", np.zeros((1, 5, 5, 3), np.float32), boxes, colors)
    assert got[0, ..., 0].tolist() == [
        [1, 1, 1, 1, 1], [1, 0, 0, 0, 1], [1, 0, 2, 2, 2], [1, 0, 2, 0, 1], [1, 1, 2, 1, 1],
    ]  # fmt: skip
