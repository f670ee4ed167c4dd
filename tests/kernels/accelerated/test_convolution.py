"""Convolutions by PyTorch and their gradients, compared with numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.accelerated import convolution, convolution_grads
from penstock.kernels.accelerated.convolution import Convolution
from support.offers import assert_equal, faster, frozen, offer_for

pytest.importorskip("torch")

PADDINGS: list[dict[str, Any]] = [
    {"padding": "SAME"},
    {"padding": "VALID"},
    {"padding": "EXPLICIT", "explicit_paddings": (0, 0, 2, 1, 0, 3, 0, 0)},
]
#: (strides, dilations); TensorFlow allows either, not both.
STEPS = [(1, 1), (2, 1), (3, 1), (1, 2)]
SHAPES = [(2, 12, 9, 4), (1, 11, 13, 3)]


def f32(*shape: int) -> Any:
    return np.random.RandomState(len(shape) + sum(shape)).randn(*shape).astype(np.float32)


def along(count: int, step: int) -> tuple[int, ...]:
    return (1, *(step,) * count, 1)


@pytest.mark.parametrize("how", PADDINGS, ids=str)
@pytest.mark.parametrize(("stride", "dilation"), STEPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_convolutions_agree(
    shape: tuple[int, ...], stride: int, dilation: int, how: dict[str, Any]
) -> None:
    """Over all kinds of windows, also those that need more margin at one end."""
    facts = {"strides": along(2, stride), "dilations": along(2, dilation), **how}
    for size in ((3, 3), (1, 1), (2, 5)):
        assert_equal("Conv2D", f32(*shape), f32(*size, shape[3], 5), **facts)


@pytest.mark.parametrize("how", PADDINGS, ids=str)
@pytest.mark.parametrize(("stride", "dilation"), STEPS)
def test_convolutions_by_channel_agree(stride: int, dilation: int, how: dict[str, Any]) -> None:
    """With one filter for each channel, or several."""
    facts = {"strides": along(2, stride), "dilations": along(2, dilation), **how}
    for several in (1, 2):
        filters = f32(3, 3, 4, several)
        assert_equal("DepthwiseConv2dNative", f32(2, 12, 9, 4), filters, **facts)


@pytest.mark.parametrize("how", PADDINGS, ids=str)
@pytest.mark.parametrize(("stride", "dilation"), STEPS)
def test_many_filters_and_few_places_agree(stride: int, dilation: int, how: dict[str, Any]) -> None:
    """What the places see is copied instead of the filters."""
    facts = {"strides": along(2, stride), "dilations": along(2, dilation), **how}
    for images, size in ((f32(1, 5, 6, 4), (3, 3)), (f32(2, 5, 5, 3), (2, 1))):
        assert_equal("Conv2D", images, f32(*size, images.shape[3], 140), **facts)
    cubes, filters = f32(1, 3, 4, 5, 2), f32(2, 2, 2, 2, 70)
    facts = {"strides": along(3, stride), "padding": "SAME"}
    assert_equal("Conv3D", cubes, filters, **facts)


def test_convolutions_in_groups_agree() -> None:
    """Filters of less depth than the images see a part of it."""
    facts: dict[str, Any] = {"strides": along(2, 1), "padding": "SAME"}
    assert_equal("Conv2D", f32(2, 8, 9, 6), f32(3, 3, 2, 9), **facts)
    assert_equal("Conv2D", f32(2, 8, 9, 6), f32(3, 3, 1, 12), **facts)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1, 1), (2, 1, 3)])
def test_convolutions_over_three_dimensions_agree(strides: tuple[int, ...], padding: str) -> None:
    """Also where windows that are smaller than their strides start in the middle."""
    for size in ((3, 2, 3), (1, 1, 1)):
        facts = {"strides": (1, *strides, 1), "padding": padding}
        assert_equal("Conv3D", f32(2, 7, 6, 8, 3), f32(*size, 3, 4), **facts)


def test_the_depth_may_come_second() -> None:
    """In the other layout as well."""
    facts: dict[str, Any] = {"strides": (1, 1, 2, 2), "padding": "SAME", "data_format": "NCHW"}
    assert_equal("Conv2D", f32(2, 3, 12, 9), f32(3, 3, 3, 5), **facts)


def test_filters_that_change_are_not_remembered() -> None:
    """Only constants keep what was made of them, and each node keeps its own."""
    facts: dict[str, Any] = {"strides": along(2, 1), "padding": "SAME"}
    images = f32(1, 6, 6, 2)
    offer = offer_for("Conv2D", images, f32(3, 3, 2, 4), **facts)
    assert offer is not None
    convolve = offer.build(pytest.importorskip("torch"))
    changing = f32(3, 3, 2, 4)
    first = convolve(images, changing)
    changing *= 2
    np.testing.assert_allclose(convolve(images, changing), 2 * first, rtol=1e-4, atol=1e-5)
    constants = [frozen(factor * f32(3, 3, 2, 4)) for factor in (1, 3)]
    for factor, constant in zip((1, 3, 1), (*constants, constants[0]), strict=True):
        np.testing.assert_allclose(convolve(images, constant), factor * first, rtol=1e-4, atol=1e-5)


def test_constant_filters_go_one_way_from_the_first_call_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last bits of the other way, by a product of matrices, may differ."""
    facts: dict[str, Any] = {"strides": along(2, 1), "padding": "SAME"}
    filters = frozen(f32(3, 3, 48, 400))
    offer = offer_for("Conv2D", f32(1, 7, 7, 48), filters, **facts)
    assert offer is not None
    convolve = offer.build(pytest.importorskip("torch"))
    monkeypatch.setattr(Convolution, "_multiplied", lambda *_: pytest.fail("the other way"))
    calls = [convolve(f32(1, size, size, 48), filters).tobytes() for size in (7, 5, 7, 5)]
    assert calls[:2] == calls[2:]


def test_images_may_be_views_and_read_only() -> None:
    """Memory in any order gives the same."""
    facts: dict[str, Any] = {"strides": along(2, 1), "padding": "VALID"}
    filters = frozen(f32(3, 3, 4, 5))
    assert_equal("Conv2D", frozen(f32(2, 12, 9, 8))[:, ::2, :, ::2], filters, **facts)
    assert_equal("Conv2D", f32(4, 9, 12, 2).transpose(3, 2, 1, 0), filters, **facts)


@pytest.mark.parametrize("how", PADDINGS, ids=str)
@pytest.mark.parametrize(("stride", "dilation"), STEPS)
@pytest.mark.parametrize("batch", [1, 3])
def test_large_ones_in_bands_agree(
    monkeypatch: pytest.MonkeyPatch, batch: int, stride: int, dilation: int, how: dict[str, Any]
) -> None:
    """Cut into rows for several threads, the result is the same."""
    for name, number in (("_PIECE", 1), ("_PIECE_BY_CHANNEL", 1)):
        monkeypatch.setattr(convolution, name, number)
    facts = {"strides": along(2, stride), "dilations": along(2, dilation), **how}
    for pieces in (2, 5, 99):
        monkeypatch.setattr(convolution, "threads", lambda _torch, n=pieces: n)
        assert_equal("Conv2D", f32(batch, 11, 9, 4), f32(3, 3, 4, 5), **facts)
        assert_equal("Conv2D", f32(batch, 8, 9, 4), f32(1, 1, 4, 5), **facts)
        assert_equal("DepthwiseConv2dNative", f32(batch, 11, 9, 4), f32(3, 3, 4, 2), **facts)


@pytest.mark.parametrize(
    ("images", "filters"),
    [((1, 5, 5, 4), (3, 3, 3, 2)), ((1, 5, 5, 4), (3, 3, 2, 3)), ((0, 5, 5, 4), (3, 3, 4, 2))],
)
def test_what_does_not_fit_is_declined(images: tuple[int, ...], filters: tuple[int, ...]) -> None:
    """Numpy's kernel then says why, or returns nothing for no images."""
    facts: dict[str, Any] = {"strides": along(2, 1), "padding": "VALID"}
    try:
        result = faster("Conv2D", f32(*images), f32(*filters), **facts)
    except (RuntimeError, ValueError):
        return
    assert result is NotImplemented or result.shape[0] == images[0] == 0


@pytest.mark.parametrize("how", PADDINGS, ids=str)
@pytest.mark.parametrize(("stride", "dilation"), STEPS)
@pytest.mark.parametrize("is_depthwise", [False, True])
@pytest.mark.parametrize("pieces", [1, 2])
def test_gradients_agree(
    monkeypatch: pytest.MonkeyPatch,
    pieces: int,
    is_depthwise: bool,
    stride: int,
    dilation: int,
    how: dict[str, Any],
) -> None:
    """Of images and of filters, in one piece or the batch in parts."""
    monkeypatch.setattr(convolution_grads, "threads", lambda _torch: pieces)
    monkeypatch.setattr(convolution_grads, "_PIECE", 1)
    facts = {"strides": along(2, stride), "dilations": along(2, dilation), **how}
    prefix = "DepthwiseConv2dNative" if is_depthwise else "Conv2D"
    shape, sizes = (3, 12, 9, 4), (3, 2, 4, 2)
    images, filters = f32(*shape), f32(*sizes)
    forward = "DepthwiseConv2dNative" if is_depthwise else "Conv2D"
    grads = faster(forward, images, filters, **facts)
    shapes = (np.array(shape, np.int32), np.array(sizes, np.int32))
    assert_equal(f"{prefix}BackpropInput", shapes[0], filters, grads, **facts)
    assert_equal(f"{prefix}BackpropFilter", images, shapes[1], grads, **facts)


def test_gradients_that_do_not_fit_are_declined() -> None:
    """Results of another shape than the convolution gives."""
    facts: dict[str, Any] = {"strides": along(2, 1), "padding": "VALID"}
    sizes = np.array([1, 5, 5, 2], np.int32)
    wrong = f32(1, 4, 4, 3)
    assert faster("Conv2DBackpropInput", sizes, f32(3, 3, 2, 3), wrong, **facts) is NotImplemented
    sizes = np.array([3, 3, 2, 3], np.int32)
    assert faster("Conv2DBackpropFilter", f32(1, 5, 5, 2), sizes, wrong, **facts) is NotImplemented
