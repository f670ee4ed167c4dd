"""Pooling by PyTorch and its gradients, compared with numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.accelerated import batches, library, sliding_means
from support.offers import assert_equal, faster, offer_for, plain

pytest.importorskip("torch")

WINDOWS = [((2, 2), (2, 2)), ((3, 3), (2, 2)), ((3, 2), (1, 3)), ((1, 1), (2, 2)), ((2, 2), (5, 5))]


def f32(*shape: int) -> Any:
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32)


def facts(window: Any, padding: str) -> dict[str, Any]:
    return {"ksize": (1, *window[0], 1), "strides": (1, *window[1], 1), "padding": padding}


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("shape", [(3, 12, 9, 3), (1, 7, 8, 5)])
@pytest.mark.parametrize("pieces", [1, 2])
def test_pooling_and_its_gradients_agree(
    monkeypatch: pytest.MonkeyPatch, pieces: int, shape: tuple[int, ...], window: Any, padding: str
) -> None:
    """For windows that overlap, touch, or leave gaps; the batch as one or in parts."""
    monkeypatch.setattr(batches, "threads", lambda _torch: pieces)
    monkeypatch.setattr(batches, "_PIECE", 1)
    how, images = facts(window, padding), f32(*shape)
    for op in ("MaxPool", "AvgPool"):
        if faster(op, images, **how) is NotImplemented:
            return  # no way to say to PyTorch where the windows are
        assert_equal(op, images, **how)
    pooled = plain("MaxPool", images, **how)
    grads = f32(*pooled.shape)
    assert_equal("MaxPoolGrad", images, pooled, grads, **how)
    assert_equal("AvgPoolGrad", np.array(shape, np.int32), grads, **how)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("sizes", [(3, 3), (1, 5), (3, 1), (2, 2)], ids=str)
@pytest.mark.parametrize("pieces", [1, 2])
def test_means_of_windows_that_do_not_jump_agree(
    monkeypatch: pytest.MonkeyPatch, pieces: int, sizes: tuple[int, int], padding: str
) -> None:
    """They are convolutions; padding does not count, and odd windows have as much at each end."""
    monkeypatch.setattr(batches, "threads", lambda _torch: pieces)
    monkeypatch.setattr(sliding_means, "_PIECE", 1)
    how = facts((sizes, (1, 1)), padding)
    for shape in ((3, 6, 7, 4), (2, 2, 9, 1), (1, 5, 5, 20)):
        if padding == "VALID" and sizes[0] > shape[1]:
            continue
        images = f32(*shape)
        if faster("AvgPool", images, **how) is NotImplemented:
            assert (sizes, padding) == ((2, 2), "SAME")
            continue
        assert_equal("AvgPool", images, **how)
        if padding == "SAME":
            assert_equal("AvgPoolGrad", np.array(shape, np.int32), f32(*shape), **how)


def test_a_mean_s_weights_follow_the_depth() -> None:
    """One kernel may see images of several depths."""
    how = facts(((3, 3), (1, 1)), "SAME")
    offer = offer_for("AvgPool", f32(1, 4, 4, 2), **how)
    assert offer is not None
    kernel = offer.build(library.load())
    for depth in (2, 5, 2):
        images = f32(1, 4, 4, depth)
        expected = plain("AvgPool", images, **how)
        np.testing.assert_allclose(kernel(images), expected, rtol=1e-5, atol=1e-6)


def test_of_equals_the_first_gets_the_gradient() -> None:
    """As in TensorFlow."""
    how, images = facts(((2, 2), (2, 2)), "VALID"), np.zeros((1, 4, 4, 1), np.float32)
    ones = np.ones((1, 2, 2, 1), np.float32)
    found = faster("MaxPoolGrad", images, ones * 0, ones, **how)[0, :, :, 0]
    np.testing.assert_array_equal(found, np.tile([[1, 0], [0, 0]], (2, 2)))


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_left_to_numpy(strange: float) -> None:
    """NaN does not count in TensorFlow's windows, in PyTorch's it does."""
    images = f32(1, 4, 4, 2)
    images[:, :2, :2] = strange
    how = facts(((2, 2), (2, 2)), "VALID")
    assert faster("MaxPool", images, **how) is NotImplemented
    grads = f32(1, 2, 2, 2)
    assert faster("MaxPoolGrad", images, grads, grads, **how) is NotImplemented


def test_pooling_over_the_depth_is_not_offered() -> None:
    """Nor are other layouts, nor maxima in windows that move by one: numpy is faster."""
    images = f32(1, 4, 4, 4)
    assert offer_for("MaxPool", images, **facts(((3, 3), (1, 1)), "SAME")) is None
    how: dict[str, Any] = {"ksize": (1, 1, 1, 2), "strides": (1, 1, 1, 2), "padding": "VALID"}
    assert offer_for("MaxPool", images, **how) is None
    how = {"ksize": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "padding": "VALID"}
    assert offer_for("MaxPool", images, **how, data_format="NCHW") is None
