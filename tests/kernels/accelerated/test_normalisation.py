"""Batch normalisation by PyTorch and its gradient, compared with numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.offers import assert_equal, faster

pytest.importorskip("torch")


def f32(*shape: int) -> Any:
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32)


def channels(count: int) -> tuple[Any, Any, Any, Any]:
    scale, offset, mean, spread = f32(4, count)
    return scale, offset, mean, np.abs(spread) + np.float32(0.1)


@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
@pytest.mark.parametrize("is_training", [False, True])
def test_normalised_images_and_statistics_agree(op: str, is_training: bool) -> None:
    """Every output, with given numbers and with the batch's own."""
    images = f32(3, 5, 4, 6) * 3 + 1
    assert_equal(op, images, *channels(6), is_training=is_training, epsilon=0.01)


@pytest.mark.parametrize("factor", [0.0, 0.25, 1.0])
def test_averages_move_by_a_factor(factor: float) -> None:
    """The variance that is kept has no bias, the one for the gradient has."""
    facts = {"is_training": True, "exponential_avg_factor": factor}
    assert_equal("FusedBatchNormV3", f32(3, 5, 4, 6), *channels(6), **facts)


@pytest.mark.parametrize("is_training", [False, True])
def test_gradients_agree(is_training: bool) -> None:
    """Of images, scale and offset."""
    images, (scale, _, mean, var) = f32(3, 5, 4, 6), channels(6)
    if is_training:
        mean, var = images.mean((0, 1, 2)), images.var((0, 1, 2))
    facts = {"is_training": is_training, "epsilon": 0.01}
    inputs = (f32(3, 5, 4, 6)[::-1], images, scale, mean, var, np.float32(0))
    assert_equal("FusedBatchNormGradV3", *inputs, **facts)


def test_what_does_not_fit_is_declined() -> None:
    """Numbers for another count of channels; and one pixel has no variance without bias."""
    images, numbers = f32(2, 2, 2, 4), channels(3)
    for is_training in (False, True):
        found = faster("FusedBatchNormV3", images, *numbers, is_training=is_training)
        assert found is NotImplemented
    single = faster("FusedBatchNormV3", f32(1, 1, 1, 4), *channels(4), is_training=True)
    assert single is NotImplemented
