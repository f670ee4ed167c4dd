"""Images of other sizes, parts of images and colours: definitions and recorded answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.errors import OutOfRangeError
from penstock.kernels.image import resize_ops
from support.ops import both, run_op

RNG = np.random.default_rng(4)
LINE = np.float32([0, 10, 20, 40]).reshape(1, 1, 4, 1)


def random(*shape: int) -> Any:
    """Numbers from 0 to 1."""
    return RNG.uniform(0, 1, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "attrs", "size", "expected"),
    [
        ("ResizeBilinear", {}, 2, [0, 20]),
        ("ResizeBilinear", {"align_corners": True}, 3, [0, 15, 40]),
        ("ResizeBilinear", {"half_pixel_centers": True}, 2, [5, 30]),
        ("ResizeBilinear", {"half_pixel_centers": True}, 8, [0, 2.5, 7.5, 12.5, 17.5, 25, 35, 40]),
        ("ResizeNearestNeighbor", {}, 2, [0, 20]),
        ("ResizeNearestNeighbor", {"half_pixel_centers": True}, 2, [10, 40]),
        ("ResizeNearestNeighbor", {"align_corners": True}, 3, [0, 20, 40]),
        ("ResizeArea", {}, 2, [5, 30]),
        ("ResizeArea", {}, 3, [2.5, 15, 35]),
        ("ResizeBicubic", {"half_pixel_centers": True}, 4, [0, 10, 20, 40]),
    ],
)
def test_places_of_a_line(op: str, attrs: dict[str, Any], size: int, expected: Any) -> None:
    """Pixels are points or squares, corners may be kept: by the methods' definitions."""
    got = run_op(op, LINE, np.int32([1, size]), **attrs)
    np.testing.assert_allclose(got.ravel(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("attrs", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize("method", ["Bilinear", "Bicubic", "NearestNeighbor"])
def test_resize_gradients_are_transposes(method: str, attrs: dict[str, Any]) -> None:
    """Resizing is linear, so its gradient is the transposed map."""
    images, size = random(2, 5, 7, 3), np.int32([8, 4])
    sent_back = random(2, 8, 4, 3)
    last = np.int32([5, 7]) if method == "NearestNeighbor" else images
    of_images = run_op(f"Resize{method}Grad", sent_back, last, **attrs)
    result = run_op(f"Resize{method}", images, size, **attrs)
    np.testing.assert_allclose((of_images * images).sum(), (result * sent_back).sum(), rtol=1e-4)


@pytest.mark.parametrize("attrs", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize("depth", [3, 16])
@pytest.mark.parametrize("after", [(14, 9), (21, 36), (7, 20), (3, 5), (1, 9), (7, 9)])
def test_bilinear_is_linear_interpolation(
    attrs: dict[str, bool], depth: int, after: tuple[int, int]
) -> None:
    """Doubled, halved or of any size, along one dimension and then along the other."""
    images = np.random.default_rng(1).normal(size=(2, 7, 9, depth)).astype(np.float32)
    expected = images.astype(np.float64)
    for axis, size in enumerate(after, 1):
        before, places = images.shape[axis], np.arange(size)
        is_cornered = "align_corners" in attrs and size > 1
        scale = (before - 1) / (size - 1) if is_cornered else before / size
        origins = (places + 0.5) * scale - 0.5 if "half_pixel_centers" in attrs else places * scale
        blend = np.array([np.interp(origins, np.arange(before), row) for row in np.eye(before)])
        expected = np.moveaxis(np.moveaxis(expected, axis, -1) @ blend, -1, axis)
    result = run_op("ResizeBilinear", images, np.int32(after), **attrs)
    np.testing.assert_allclose(result, expected, atol=1e-5)
    many = run_op("ResizeBilinear", np.tile(images, (500, 1, 1, 1)), np.int32(after), **attrs)
    np.testing.assert_allclose(many, np.tile(result, (500, 1, 1, 1)))


@pytest.mark.parametrize("attrs", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize("shape", [(2, 37, 41, 3), (1, 19, 5, 1), (2, 8, 9, 16), (1, 1, 1, 3)])
@pytest.mark.parametrize("after", [(14, 9), (60, 70), (37, 20), (1, 1)])
def test_bytes_are_blended_like_the_same_numbers(
    attrs: dict[str, bool], shape: tuple[int, ...], after: tuple[int, int]
) -> None:
    """Images as they come out of files are not converted first, but might as well be."""
    images = RNG.integers(0, 256, shape, np.uint8)
    of_floats = both("ResizeBilinear", images.astype(np.float32), np.int32(after), **attrs)
    turned = np.ascontiguousarray(images.swapaxes(1, 2)).swapaxes(1, 2)
    for given in (images, turned):
        of_bytes = both("ResizeBilinear", given, np.int32(after), **attrs)
        np.testing.assert_array_equal(of_bytes, of_floats)


@pytest.mark.parametrize("before", [(5, 7), (10, 7), (15, 28), (1, 1), (20, 35)])
def test_nearest_gradient_counts_picks(before: tuple[int, int]) -> None:
    """Of ones, an element gets back as many as there are places that it was picked for."""
    whole = np.arange(before[0] * before[1], dtype=np.float32).reshape(1, *before, 1)
    picked = run_op("ResizeNearestNeighbor", whole, np.int32([20, 35]))
    counts = np.bincount(picked.astype(int).ravel(), minlength=whole.size).reshape(whole.shape)
    back = run_op("ResizeNearestNeighborGrad", np.ones((1, 20, 35, 1), np.int32), np.int32(before))
    np.testing.assert_array_equal(back, counts)


@pytest.mark.parametrize("kernel_type", ["lanczos3", "gaussian", "box", "keyscubic", "triangle"])
def test_scale_and_translate_keeps_constants(kernel_type: str) -> None:
    """Weights add up to one inside of the image, and there is nothing outside."""
    got = run_op(
        "ScaleAndTranslate", np.ones((1, 6, 6, 1), np.float32), np.int32([9, 9]),
        np.float32([1.5, 1.0]), np.float32([0, 2]), kernel_type=kernel_type,
    )  # fmt: skip
    np.testing.assert_allclose(got[0, :, 2:8], 1, rtol=1e-5)
    assert not got[0, :, :2].any()


@pytest.mark.parametrize(
    ("shape", "size", "message"),
    [
        ((1, 4, 4), [2, 2], "input must be 4-dimensional"),
        ((1, 4, 4, 1), [2], "shape_t must be 1-dimensional"),
        ((1, 4, 4, 1), [0, 2], "output dimensions must be positive"),
        ((1, 0, 4, 1), [2, 2], "input image must be of non-zero size"),
    ],
)
@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor"])
def test_sizes_must_make_sense(op: str, shape: Any, size: Any, message: str) -> None:
    """Sizes that cannot be are refused."""
    with pytest.raises(ValueError, match=message):
        run_op(op, random(*shape), np.int32(size))


def test_whole_boxes_are_resizing_with_kept_corners() -> None:
    """A box around all gives what ResizeBilinear does."""
    images = random(2, 5, 6, 3)
    boxes, owners = np.float32([[0, 0, 1, 1]] * 2), np.int32([1, 0])
    got = run_op("CropAndResize", images, boxes, owners, np.int32([4, 9]))
    expected = run_op("ResizeBilinear", images[::-1], np.int32([4, 9]), align_corners=True)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_outside_of_the_image_is_the_given_value() -> None:
    """Places beyond the last pixel's centre are not blended."""
    boxes = np.float32([[0, 0.5, 0, 1.5]])
    got = run_op("CropAndResize", LINE, boxes, np.int32([0]), np.int32([1, 3]),
                 extrapolation_value=-1.0)  # fmt: skip
    assert got.ravel().tolist() == [15, 40, -1]


def test_box_gradients() -> None:
    """Of images it is the transpose, of boxes a difference."""
    images, boxes = random(2, 6, 7, 2), np.float32([[0.1, 0.2, 0.83, 0.93], [0.9, 0.1, 0.3, 0.7]])
    owners, size = np.int32([1, 0]), np.int32([3, 4])
    sent_back = random(2, 3, 4, 2)
    crops = run_op("CropAndResize", images, boxes, owners, size)
    of_images = run_op(
        "CropAndResizeGradImage", sent_back, boxes, owners, np.int32(images.shape),
        T=dtypes.float32,
    )  # fmt: skip
    total = (crops * sent_back).sum()
    np.testing.assert_allclose((of_images * images).sum(), total, rtol=1e-4)
    of_boxes = run_op("CropAndResizeGradBoxes", sent_back, images, boxes, owners)
    for edge in range(4):
        moved = boxes.copy()
        moved[0, edge] += 1e-3
        change = (run_op("CropAndResize", images, moved, owners, size) - crops) * sent_back
        np.testing.assert_allclose(of_boxes[0, edge], change.sum() / 1e-3, rtol=0.1, atol=0.1)


def test_boxes_must_be_in_an_image() -> None:
    """An owner beyond the batch is out of range."""
    with pytest.raises(OutOfRangeError, match="box_index has values outside"):
        run_op("CropAndResize", LINE, np.float32([[0, 0, 1, 1]]), np.int32([1]), np.int32([1, 1]))


@pytest.mark.parametrize(
    ("rgb", "hsv"),
    [
        ([1, 0, 0], [0, 1, 1]),
        ([0, 1, 0], [1 / 3, 1, 1]),
        ([0, 0, 0.5], [2 / 3, 1, 0.5]),
        ([1, 1, 0], [1 / 6, 1, 1]),
        ([0.5, 0.5, 0.5], [0, 0, 0.5]),
        ([0, 0, 0], [0, 0, 0]),
        ([1, 0, 0.5], [11 / 12, 1, 1]),
    ],
)
def test_colors_there_and_back(rgb: Any, hsv: Any) -> None:
    """Known colours by hue, saturation and value."""
    np.testing.assert_allclose(run_op("RGBToHSV", np.float32(rgb)), hsv, rtol=1e-6)
    np.testing.assert_allclose(run_op("HSVToRGB", np.float32(hsv)), rgb, atol=1e-6)


def test_adjustments() -> None:
    """A full turn of hue changes nothing, no saturation is grey, no contrast is the mean."""
    images = random(2, 3, 3, 3)
    np.testing.assert_allclose(run_op("AdjustHue", images, np.float32(1)), images, atol=1e-6)
    grey = run_op("AdjustSaturation", images, np.float32(0))
    np.testing.assert_allclose(grey, np.repeat(images.max(-1, keepdims=True), 3, -1), atol=1e-6)
    flat = run_op("AdjustContrastv2", images, np.float32(0))
    mean = images.mean((1, 2), keepdims=True)
    np.testing.assert_allclose(flat, np.broadcast_to(mean, images.shape), rtol=1e-5)
    turned = run_op("AdjustHue", np.float32([[[1, 0, 0]]]), np.float32(1 / 3))
    np.testing.assert_allclose(turned, [[[0, 1, 0]]], atol=1e-6)


def test_colors_have_three_parts() -> None:
    """Any other depth is refused."""
    with pytest.raises(ValueError, match="must have 3 channels but instead has 4"):
        run_op("RGBToHSV", random(2, 4))


def interpolated(images: Any, size: tuple[int, int], how: dict[str, bool]) -> Any:
    """Bilinear images by their definition: numbers between those at whole places."""
    for axis, after in enumerate(size, 1):
        before, places = images.shape[axis], np.arange(after)
        if how.get("align_corners") and after > 1:
            origins = places * ((before - 1) / (after - 1))
        elif how.get("half_pixel_centers"):
            origins = (places + 0.5) * (before / after) - 0.5
        else:
            origins = places * (before / after)
        between = np.apply_along_axis(
            lambda line, at=origins: np.interp(at, np.arange(len(line)), line), axis, images
        )
        images = between
    return images


@pytest.mark.parametrize(
    "how", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str
)
@pytest.mark.parametrize("size", [(14, 10), (3, 9), (21, 2), (7, 5), (1, 1)], ids=str)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_images_blended_by_several_threads(
    monkeypatch: pytest.MonkeyPatch, count: int, size: tuple[int, int], how: dict[str, bool]
) -> None:
    """Each does some images, or some rows of one; what the rows see is found out anew."""
    monkeypatch.setattr(resize_ops, "_MANY", 1)
    monkeypatch.setattr(resize_ops, "HELPERS", 3)
    images = random(count, 7, 5, 3)
    found = run_op("ResizeBilinear", images, np.int32(size), **how)
    np.testing.assert_allclose(found, interpolated(images, size, how), rtol=1e-5, atol=1e-6)
