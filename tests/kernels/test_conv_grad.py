"""Gradients of convolutions, against the definition of a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from support.ops import run_op

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
SETTINGS = [
    {"strides": [1, 1, 1, 1], "padding": "SAME"},
    {"strides": [1, 2, 1, 1], "padding": "VALID"},
    {"strides": [1, 3, 2, 1], "padding": "SAME"},
    {"strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 2, 1, 1]},
    {
        "strides": [1, 2, 2, 1],
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, 1, 0, 0, 2, 0, 0],
    },
]


def random(*shape: int, dtype: Any = np.float64) -> Array:
    """Numbers from -1 to 1."""
    return RNG.uniform(-1, 1, shape).astype(dtype)


def check_adjoint(op: str, grad: str, images: Array, filters: Array, **attrs: Any) -> None:
    """A convolution is linear in both arguments, so gradients are transposed maps."""
    result = run_op(op, images, filters, **attrs)
    sent_back = random(*result.shape)
    of_images = run_op(f"{grad}Input", np.int32(images.shape), filters, sent_back, **attrs)
    of_filters = run_op(f"{grad}Filter", images, np.int32(filters.shape), sent_back, **attrs)
    assert of_images.shape == images.shape
    assert of_filters.shape == filters.shape
    other_images, other_filters = random(*images.shape), random(*filters.shape)
    np.testing.assert_allclose(
        (of_images * other_images).sum(),
        (run_op(op, other_images, filters, **attrs) * sent_back).sum(),
        rtol=1e-9,
    )
    np.testing.assert_allclose(
        (of_filters * other_filters).sum(),
        (run_op(op, images, other_filters, **attrs) * sent_back).sum(),
        rtol=1e-9,
    )


@pytest.mark.parametrize("attrs", SETTINGS)
def test_conv2d_gradients_are_transposes(attrs: dict[str, Any]) -> None:
    """Both gradients of Conv2D."""
    check_adjoint("Conv2D", "Conv2DBackprop", random(2, 7, 6, 3), random(3, 2, 3, 4), **attrs)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("columns", [6, 7, 8, 9])
@pytest.mark.parametrize(
    ("width", "stride"),
    [(1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (7, 2), (2, 3), (3, 3), (7, 3), (6, 4)],
)
@pytest.mark.parametrize("depth", [1, 3, 40])
def test_gradients_along_rows_with_strides(
    depth: int, width: int, stride: int, columns: int, padding: str
) -> None:
    """Elements that follow each other in a row are computed together if they are few channels."""
    if padding == "VALID" and width > columns:
        return
    attrs = {"strides": [1, 2, stride, 1], "padding": padding}
    images, filters = random(2, 5, columns, depth), random(3, width, depth, 4)
    check_adjoint("Conv2D", "Conv2DBackprop", images, filters, **attrs)


@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_a_gradient_that_is_not_finite_goes_to_what_its_window_saw(odd: float) -> None:
    """And to nothing beside that."""
    attrs: dict[str, Any] = {"strides": [1, 1, 2, 1], "padding": "SAME"}
    filters, grads = np.ones((1, 3, 2, 4)), np.ones((1, 1, 8, 4))
    sizes = np.int32([1, 1, 16, 2])
    expected = run_op("Conv2DBackpropInput", sizes, filters, grads, **attrs)
    grads[0, 0, 3, 1] = odd
    expected[0, 0, 6:9] = odd
    result = run_op("Conv2DBackpropInput", sizes, filters, grads, **attrs)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("attrs", SETTINGS)
def test_depthwise_gradients_are_transposes(attrs: dict[str, Any], multiplier: int) -> None:
    """Both gradients of DepthwiseConv2dNative."""
    images, filters = random(2, 7, 6, 3), random(3, 2, 3, multiplier)
    check_adjoint(
        "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackprop", images, filters, **attrs
    )


def test_gradients_of_images_with_the_channels_second() -> None:
    """NCHW gives what NHWC gives, turned."""
    images, filters = random(2, 3, 7, 6), random(3, 2, 3, 4)
    attrs = {"strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"}
    check_adjoint("Conv2D", "Conv2DBackprop", images, filters, **attrs)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
def test_conv3d_and_its_gradients(padding: str, stride: int) -> None:
    """Conv3D is the sum over its windows; gradients are transposes."""
    images, filters = random(1, 4, 5, 4, 2), random(2, 3, 2, 2, 3)
    attrs: dict[str, Any] = {"strides": [1, stride, stride, stride, 1], "padding": padding}
    result = run_op("Conv3D", images, filters, **attrs)
    if padding == "VALID":
        window = images[0, :2, stride : stride + 3, :2]
        np.testing.assert_allclose(result[0, 0, 1, 0], np.einsum("abcd,abcde->e", window, filters))
    sent_back = random(*result.shape)
    of_images = run_op("Conv3DBackpropInputV2", np.int32(images.shape), filters, sent_back, **attrs)
    of_filters = run_op(
        "Conv3DBackpropFilterV2", images, np.int32(filters.shape), sent_back, **attrs
    )
    total = (result * sent_back).sum()
    np.testing.assert_allclose((of_images * images).sum(), total)
    np.testing.assert_allclose((of_filters * filters).sum(), total)


def test_conv3d_windows_smaller_than_their_stride_start_inside() -> None:
    """Recorded from TensorFlow: of six elements, windows of one and strides of three see 1, 4."""
    images = np.arange(6, dtype=np.float32).reshape(1, 1, 6, 1, 1)
    one = np.ones((1, 1, 1, 1, 1), np.float32)
    result = run_op("Conv3D", images, one, strides=[1, 1, 3, 1, 1], padding="SAME")
    assert result.ravel().tolist() == [1, 4]


def test_sizes_may_be_rows_and_columns_only() -> None:
    """Two sizes are enough for Conv2D; batch and depth follow from the rest."""
    result = run_op(
        "Conv2DBackpropInput",
        np.int32([5, 5]),
        random(3, 3, 2, 4),
        random(3, 5, 5, 4),
        strides=[1, 1, 1, 1],
        padding="SAME",
    )
    assert result.shape == (3, 5, 5, 2)


def test_half_precision_is_rounded_once() -> None:
    """Sums are taken in float32."""
    ones = np.ones((1, 64, 64, 1), np.float16)
    result = run_op("Conv2DBackpropFilter", ones, np.int32([1, 1, 1, 1]), ones,
                    strides=[1, 1, 1, 1], padding="VALID")  # fmt: skip
    assert result.dtype == np.float16
    assert result.item() == 4096


def test_empty_batches_have_gradients() -> None:
    """No images, no gradient of images, and zeros for filters."""
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    none, filters = random(0, 5, 5, 2), random(3, 3, 2, 4)
    grads = random(0, 5, 5, 4)
    assert run_op("Conv2DBackpropInput", np.int32([0, 5, 5, 2]), filters, grads, **attrs).size == 0
    of_filters = run_op("Conv2DBackpropFilter", none, np.int32([3, 3, 2, 4]), grads, **attrs)
    assert not of_filters.any()


@pytest.mark.parametrize(
    ("sizes", "grads", "message"),
    [
        ([1, 5, 5, 4], (1, 5, 5, 4), "Gradients for grouped convolutions"),
        ([1, 5, 5, 2], (1, 5, 4, 4), "Size of out_backprop doesn't match computed"),
        ([2, 5, 5, 2], (1, 5, 5, 4), "must have the same batch size"),
        ([1, 5, 5, 2], (1, 5, 5, 3), "must have the same out_depth"),
        ([5, 5, 2], (1, 5, 5, 4), "to contain 4 values"),
        ([[5, 5]], (1, 5, 5, 4), "input_sizes input must be 1-dim"),
        ([1, 5, -5, 2], (1, 5, 5, 4), "must be >= 0"),
        ([1, 5, 5, 2], (1, 5, 5), "must be 4-dimensional"),
    ],
)
def test_shapes_must_fit(sizes: Any, grads: tuple[int, ...], message: str) -> None:
    """What cannot come from such a convolution is refused."""
    with pytest.raises(ValueError, match=message):
        run_op("Conv2DBackpropInput", np.int32(sizes), random(3, 3, 2, 4), random(*grads),
               strides=[1, 1, 1, 1], padding="SAME")  # fmt: skip


@pytest.mark.parametrize("op", ["Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"])
def test_filters_that_are_too_large(op: str) -> None:
    """Sizes of which nothing could be made are refused before anything is."""
    images = np.ones((1, 4, 4, 2), np.float32)
    sizes = np.full(4, 2**31 - 1, np.int32)
    with pytest.raises(errors.InvalidArgumentError, match="would have more than"):
        run_op(op, images, sizes, images, strides=[1, 1, 1, 1], padding="SAME")
