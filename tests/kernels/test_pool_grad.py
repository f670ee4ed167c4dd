"""Gradients of pooling, and places of the greatest, against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.ops import run_op

IMAGE = np.float32([[1, 3, 3], [2, 0, 5], [7, 7, 4]]).reshape(1, 3, 3, 1)
PAIRS: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
RNG = np.random.default_rng(3)


def grid(values: Any) -> Any:
    """One channel of one image as nested lists."""
    return values[0, :, :, 0].tolist()


def test_max_pool_grad_goes_to_the_first_of_equals() -> None:
    """In rows: the first three of the upper row, the first seven of the lower."""
    pooled = run_op("MaxPool", IMAGE, **PAIRS)
    grads = np.float32([[1, 2], [4, 8]]).reshape(1, 2, 2, 1)
    result = run_op("MaxPoolGrad", IMAGE, pooled, grads, **PAIRS)
    assert grid(result) == [[0, 1, 0], [0, 0, 2], [4, 8, 0]]


def test_sizes_of_the_window_as_inputs() -> None:
    """MaxPoolGradV2 does the same with sizes and strides that are fed."""
    pooled = run_op("MaxPool", IMAGE, **PAIRS)
    grads = np.float32([[1, 2], [4, 8]]).reshape(1, 2, 2, 1)
    result = run_op(
        "MaxPoolGradV2", IMAGE, pooled, grads, np.int32([1, 2, 2, 1]), np.int32([1, 1, 1, 1]),
        padding="VALID",
    )  # fmt: skip
    assert grid(result) == [[0, 1, 0], [0, 0, 2], [4, 8, 0]]


def test_max_pool_grad_grad_takes_from_the_first_of_equals() -> None:
    """The transpose: what is where the greatest were."""
    pooled = run_op("MaxPool", IMAGE, **PAIRS)
    inner = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
    assert grid(run_op("MaxPoolGradGrad", IMAGE, pooled, inner, **PAIRS)) == [[1, 5], [6, 7]]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_padding_is_never_the_greatest(dtype: Any) -> None:
    """Zeros, or negative numbers, win against what is no element."""
    image = np.zeros((1, 1, 3, 1), dtype) if dtype == np.uint8 else -np.ones((1, 1, 3, 1), dtype)
    attrs: dict[str, Any] = {"ksize": [1, 3, 3, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
    greatest, places = run_op("MaxPoolWithArgmax", image, **attrs)
    assert greatest.tolist() == image.tolist()
    assert places.ravel().tolist() == [0, 0, 1]


def test_nothing_is_greater_than_nan_that_comes_first() -> None:
    """Recorded from TensorFlow: NaN in front stays, behind it is passed over."""
    image = np.float32([np.nan, 1, 2, np.nan]).reshape(1, 1, 4, 1)
    attrs: dict[str, Any] = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"}
    greatest, places = run_op("MaxPoolWithArgmax", image, **attrs)
    np.testing.assert_array_equal(greatest.ravel(), [np.nan, 2])
    assert places.ravel().tolist() == [0, 2]


@pytest.mark.parametrize("counts_batch", [False, True])
def test_places_of_the_greatest_are_flat_indices(counts_batch: bool) -> None:
    """They index an image, or the whole batch; the gradient goes back there."""
    images = RNG.permutation(2 * 4 * 4 * 3).reshape(2, 4, 4, 3).astype(np.float32)
    attrs: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    greatest, places = run_op(
        "MaxPoolWithArgmax", images, include_batch_in_index=counts_batch, **attrs
    )
    flat = images.ravel() if counts_batch else images.reshape(2, -1)
    for number in range(2):
        of_image = flat if counts_batch else flat[number]
        assert of_image[places[number].ravel()].tolist() == greatest[number].ravel().tolist()
    back = run_op(
        "MaxPoolGradWithArgmax", images, greatest, places,
        include_batch_in_index=counts_batch, **attrs,
    )  # fmt: skip
    np.testing.assert_array_equal(back, np.where(np.isin(images, greatest), images, 0))


def test_bad_places_are_refused() -> None:
    """Indices outside of the image are an error."""
    attrs: dict[str, Any] = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"}
    image, grads = np.zeros((1, 1, 4, 1), np.float32), np.zeros((1, 1, 2, 1), np.float32)
    with pytest.raises(ValueError, match="argmax must be in"):
        run_op("MaxPoolGradWithArgmax", image, grads, np.int64([0, 7]).reshape(1, 1, 2, 1), **attrs)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("op", ["AvgPool", "AvgPool3D"])
def test_avg_pool_grad_is_the_transpose(op: str, padding: str) -> None:
    """Pooling means is linear, so its gradient is the transposed map."""
    shape = (2, 5, 4, 3) if op == "AvgPool" else (2, 5, 4, 5, 2)
    kernel = [1, 2, 3, 1] if op == "AvgPool" else [1, 2, 3, 2, 1]
    images, other = RNG.normal(size=(2, *shape)).astype(np.float32)
    attrs: dict[str, Any] = {"ksize": kernel, "strides": [1] * len(shape), "padding": padding}
    sent_back = RNG.normal(size=run_op(op, images, **attrs).shape).astype(np.float32)
    of_images = run_op(f"{op}Grad", np.int32(shape), sent_back, **attrs)
    np.testing.assert_allclose(
        (of_images * other).sum(), (run_op(op, other, **attrs) * sent_back).sum(), rtol=1e-3
    )


def test_in_three_dimensions_the_gradient_goes_to_all_equals() -> None:
    """Recorded from TensorFlow: unlike in two, where only the first gets it."""
    image = np.float32([2, 2, 1, 2]).reshape(1, 1, 1, 4, 1)
    attrs: dict[str, Any] = {
        "ksize": [1, 1, 1, 2, 1],
        "strides": [1, 1, 1, 2, 1],
        "padding": "VALID",
    }
    pooled = run_op("MaxPool3D", image, **attrs)
    grads = np.float32([5, 7]).reshape(1, 1, 1, 2, 1)
    assert run_op("MaxPool3DGrad", image, pooled, grads, **attrs).ravel().tolist() == [5, 5, 0, 7]
    inner = np.float32([1, 2, 3, 4]).reshape(1, 1, 1, 4, 1)
    assert run_op("MaxPool3DGradGrad", image, pooled, inner, **attrs).ravel().tolist() == [1, 4]


def test_shapes_must_fit() -> None:
    """Gradients have the shape of what was pooled."""
    with pytest.raises(ValueError, match="Expected orig_output"):
        run_op("MaxPoolGrad", IMAGE, IMAGE, IMAGE, **PAIRS)
    with pytest.raises(ValueError, match="must have 4 elements"):
        run_op("AvgPoolGrad", np.int32([1, 3, 3]), IMAGE, **PAIRS)
