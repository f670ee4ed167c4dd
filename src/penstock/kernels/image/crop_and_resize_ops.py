"""Parts of images, brought to one size.

In:   images, [batch, rows, columns, depth]; boxes in parts of their size, and the image that
      each box is in; for gradients what is sent back.
Out:  what is in the boxes, [boxes, rows, columns, depth], in float32; gradients of images or
      boxes.
Not:  no whole images (resize_ops).

He et al., Mask R-CNN, 2017, call it ROIAlign: corners of a box fall on elements of the crop.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.dataclass import dataclass
from penstock.errors import OutOfRangeError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS
from penstock.kernels.c.crops import Places
from penstock.kernels.c.crops import crops as crops_in_c
from penstock.kernels.parallel.blas import alone
from penstock.kernels.values.arrays import check_new, shape_text

_ONE: Final = np.float32(1)


@dataclass(frozen=True, slots=True)
class _Samples:
    """Where the places of crops, [boxes, places], lie along one dimension of the images."""

    lower: Array
    upper: Array
    #: How far from the lower neighbour to the upper one.
    part: Array
    nearest: Array
    is_inside: Array

    @classmethod
    def of(cls, starts: Array, ends: Array, places: int, length: int) -> _Samples:
        """Those of boxes from ``starts`` to ``ends``, in parts of the dimension."""
        last = np.float32(length - 1)
        if places > 1:
            step = (ends - starts) * last / np.float32(places - 1)
            at = starts[:, None] * last + np.arange(places, dtype=np.float32) * step[:, None]
        else:
            at = (np.float32(0.5) * (starts + ends) * last)[:, None]
        is_inside = (at >= 0) & (at <= last)
        at = np.where(is_inside, at, np.float32(0))
        lower = np.floor(at)
        nearest = np.floor(at + np.float32(0.5))
        return cls(
            lower.astype(np.intp),
            np.ceil(at).astype(np.intp),
            at - lower,
            nearest.astype(np.intp),
            is_inside,
        )

    def near(self) -> Places:
        """Their neighbours."""
        return Places(self.lower, self.upper, self.part, self.is_inside)


@kernel("CropAndResize", types={"T": REALS})
def make_crop_and_resize(attrs: Attrs) -> Kernel:
    """What is in each box, blended from the four nearest elements, or the nearest."""
    is_nearest = _method(attrs) == "nearest"
    outside = np.float32(attrs.float("extrapolation_value"))
    is_in_c = attrs.accelerate and not is_nearest

    def crop_and_resize(images: Value, boxes: Value, owners: Value, size: Value) -> Array:
        _check_image(images.shape)
        _check_boxes(boxes, owners, len(images))
        if np.shape(size) != (2,):
            raise ValueError(f"crop_size must have two elements: {shape_text(size.shape)}")
        rows, columns = _samples(boxes, size.tolist(), images.shape)
        check_new((*rows.lower.shape, columns.lower.shape[1], images.shape[3]), np.dtype("f4"))
        near = rows.near(), columns.near()
        in_c = crops_in_c(images, owners, near, float(outside)) if is_in_c else None
        if in_c is not None:
            return in_c
        owner = owners[:, None, None]
        if is_nearest:
            found: Array = images[owner, rows.nearest[:, :, None], columns.nearest[:, None]]
            crops = found.astype(np.float32)
        else:
            crops = _blended(images, owner, rows, columns)
        is_inside = rows.is_inside[:, :, None] & columns.is_inside[:, None]
        if not is_inside.all():
            crops[~is_inside] = outside
        return crops

    return crop_and_resize


def _method(attrs: Attrs) -> str:
    method = attrs.str("method")
    if method not in ("bilinear", "nearest"):
        raise ValueError(f"method must be 'bilinear' or 'nearest': {method}")
    return method


def _samples(boxes: Array, size: list[int], shape: tuple[int, ...]) -> tuple[_Samples, _Samples]:
    """Along rows and along columns."""
    if min(size) <= 0:
        raise ValueError(f"crop dimensions must be positive: {size}")
    rows = _Samples.of(boxes[:, 0], boxes[:, 2], size[0], shape[1])
    return rows, _Samples.of(boxes[:, 1], boxes[:, 3], size[1], shape[2])


def _corners(images: Array, owner: Array, rows: _Samples, columns: _Samples) -> list[Array]:
    """The elements up left, up right, down left and down right of each place."""
    return [
        images[owner, row[:, :, None], column[:, None]].astype(np.float32, copy=False)
        for row in (rows.lower, rows.upper)
        for column in (columns.lower, columns.upper)
    ]


def _blended(images: Array, owner: Array, rows: _Samples, columns: _Samples) -> Array:
    up_left, up_right, down_left, down_right = _corners(images, owner, rows, columns)
    x, y = columns.part[:, None, :, None], rows.part[:, :, None, None]
    up = up_left + (up_right - up_left) * x
    down = down_left + (down_right - down_left) * x
    blended: Array = up + (down - up) * y
    return blended


@kernel("CropAndResizeGradImage", types={"T": {dtypes.float16, dtypes.float32, dtypes.float64}})
def make_crop_and_resize_grad_image(attrs: Attrs) -> Kernel:
    """The gradient of the images: to each element by how much the crops took of it."""
    is_nearest, dtype = _method(attrs) == "nearest", attrs.dtype("T").numpy

    def grad_image(grads: Value, boxes: Value, owners: Value, size: Value) -> Array:
        shape = tuple(size.tolist())
        if len(shape) != 4:
            raise ValueError(f"image_size must have 4 elements: {shape_text(np.shape(size))}")
        _check_image(shape)
        _check_grads(grads, boxes, shape)
        _check_boxes(boxes, owners, shape[0])
        check_new(shape, dtype)
        rows, columns = _samples(boxes, list(grads.shape[1:3]), shape)
        is_inside = rows.is_inside[:, :, None] & columns.is_inside[:, None]
        wide = np.where(is_inside[..., None], grads, np.float32(0))
        total = np.zeros(shape, np.float64 if dtype == np.float64 else np.float32)
        for row, row_part, column, column_part in _taken(rows, columns, is_nearest=is_nearest):
            weight = row_part[:, :, None] * column_part[:, None]
            where = (owners[:, None, None], row[:, :, None], column[:, None])
            np.add.at(total, where, wide * weight[..., None])
        return total.astype(dtype, copy=False)

    return grad_image


def _taken(rows: _Samples, columns: _Samples, *, is_nearest: bool) -> list[tuple[Any, ...]]:
    """Which rows and columns each place took from, and how much."""
    if is_nearest:
        ones = np.ones_like(rows.part), np.ones_like(columns.part)
        return [(rows.nearest, ones[0], columns.nearest, ones[1])]
    return [
        (row, row_part, column, column_part)
        for row, row_part in ((rows.lower, _ONE - rows.part), (rows.upper, rows.part))
        for column, column_part in (
            (columns.lower, _ONE - columns.part),
            (columns.upper, columns.part),
        )
    ]


@kernel("CropAndResizeGradBoxes", types={"T": REALS})
def make_crop_and_resize_grad_boxes(attrs: Attrs) -> Kernel:
    """The gradient of the boxes: how the crops change when an edge of their box moves."""
    _method(attrs)

    def grad_boxes(grads: Value, images: Value, boxes: Value, owners: Value) -> Array:
        _check_image(images.shape)
        _check_grads(grads, boxes, images.shape)
        _check_boxes(boxes, owners, len(images))
        rows, columns = _samples(boxes, list(grads.shape[1:3]), images.shape)
        corners = _corners(images, owners[:, None, None], rows, columns)
        up_left, up_right, down_left, down_right = corners
        x, y = columns.part[:, None, :, None], rows.part[:, :, None, None]
        downwards = (_ONE - x) * (down_left - up_left) + x * (down_right - up_right)
        rightwards = (_ONE - y) * (up_right - up_left) + y * (down_right - down_left)
        is_inside = (rows.is_inside[:, :, None] & columns.is_inside[:, None])[..., None]
        grads = np.where(is_inside, grads, np.float32(0))
        by_row = (grads * downwards).sum((2, 3), dtype=np.float32)
        by_column = (grads * rightwards).sum((1, 3), dtype=np.float32)
        top, bottom = _of_edges(by_row, images.shape[1])
        left, right = _of_edges(by_column, images.shape[2])
        return np.stack([top, left, bottom, right], -1)

    return grad_boxes


def _of_edges(by_place: Array, length: int) -> tuple[Array, Array]:
    """How much both edges of a box count, from how much each place between them does."""
    places, last = by_place.shape[1], np.float32(length - 1)
    towards = np.full(1, 0.5) if places == 1 else np.arange(places) / (places - 1)
    shares = towards.astype(np.float32) * last
    return alone(np.dot, by_place, last - shares), alone(np.dot, by_place, shares)


def _check_image(shape: tuple[int, ...]) -> None:
    if len(shape) != 4:
        raise ValueError(f"input image must be 4-D{shape_text(shape)}")
    if min(shape[1:3]) <= 0:
        raise ValueError(f"image dimensions must be positive: {shape_text(shape)}")


def _check_grads(grads: Value, boxes: Value, shape: tuple[int, ...]) -> None:
    if grads.ndim != 4 or min(grads.shape[1:3]) <= 0:
        raise ValueError(f"grads image must be 4-D and not empty: {shape_text(grads.shape)}")
    if grads.shape[0] != len(boxes) or grads.shape[3] != shape[3]:
        raise ValueError(
            f"boxes and grads have incompatible shape: {shape_text(boxes.shape)} and "
            f"{shape_text(grads.shape)} for images of shape {shape_text(shape)}"
        )


def _check_boxes(boxes: Value, owners: Value, batch: int) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes must have 4 columns, and be 2-D{shape_text(boxes.shape)}")
    if owners.shape != boxes.shape[:1]:
        raise ValueError(
            f"box_index has incompatible shape: {shape_text(owners.shape)} for {len(boxes)} boxes"
        )
    if owners.size and not 0 <= owners.min() <= owners.max() < batch:
        raise OutOfRangeError(f"box_index has values outside [0, batch_size): {batch}")
