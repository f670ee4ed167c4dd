"""Images of other sizes by PyTorch, compared with numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.accelerated import batches
from support.offers import assert_equal, faster

pytest.importorskip("torch")

CENTRES: list[dict[str, Any]] = [{}, {"align_corners": True}, {"half_pixel_centers": True}]


def f32(*shape: int) -> Any:
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32)


def size(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


@pytest.mark.parametrize("how", CENTRES, ids=str)
@pytest.mark.parametrize("depth", [1, 3, 20])
@pytest.mark.parametrize("after", [(14, 10), (7, 5), (3, 9), (1, 1), (30, 4), (21, 13)], ids=str)
def test_blended_images_agree(after: tuple[int, int], depth: int, how: dict[str, Any]) -> None:
    """Doubled, as they are, shrunk, or at places that may be anywhere."""
    assert_equal("ResizeBilinear", f32(2, 7, 5, depth), size(*after), **how)


@pytest.mark.parametrize("how", CENTRES, ids=str)
@pytest.mark.parametrize("pieces", [1, 2])
def test_sums_of_what_was_picked_agree(
    monkeypatch: pytest.MonkeyPatch, pieces: int, how: dict[str, Any]
) -> None:
    """Where every element was picked for as many places; all else is left to numpy."""
    monkeypatch.setattr(batches, "threads", lambda _torch: pieces)
    monkeypatch.setattr(batches, "_PIECE", 1)
    for before in ((6, 4), (3, 2), (2, 4), (1, 1)):
        found = faster("ResizeNearestNeighborGrad", f32(3, 6, 4, 5), size(*before), **how)
        if found is NotImplemented:
            assert how == {"align_corners": True}
            continue
        assert_equal("ResizeNearestNeighborGrad", f32(3, 6, 4, 5), size(*before), **how)


@pytest.mark.parametrize("before", [(4, 4), (5, 3), (12, 8)], ids=str)
def test_uneven_sums_are_left_to_numpy(before: tuple[int, int]) -> None:
    """There is no window that slides evenly."""
    grads = f32(1, 6, 4, 2)
    assert faster("ResizeNearestNeighborGrad", grads, size(*before)) is NotImplemented
