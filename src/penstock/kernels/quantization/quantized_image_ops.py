"""Images of quantised integers, in other sizes and normed.

In:   quantised integers, [batch, rows, columns, depth], and the numbers that their least and
      greatest stand for; with batch norms, four vectors of quantised integers likewise.
Out:  quantised integers and their range.
Not:  no floating-point images (resize_ops, batch_norm_ops).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.image.resize_methods import Method, bilinear_method
from penstock.kernels.quantization.quantized_ranges import (
    Single,
    double_integers,
    double_numbers,
    integers_of,
    scalars,
)
from penstock.kernels.values.arrays import check_new, shape_text

_QUINT8: Final = frozenset({dtypes.quint8})
_QINT32: Final = frozenset({dtypes.qint32})
_INT32: Final = np.dtype(np.int32)
_Ranged: TypeAlias = tuple[Value, np.float32, np.float32]
#: Corners from left to right and down, and the weights of the lower and of the right ones.
_Blend: TypeAlias = Callable[[list[Array], Array, Array], Any]


# -- other sizes -----------------------------------------------------------------------------------


@kernel("QuantizedResizeBilinear", types={"T": _QUINT8 | _QINT32 | {dtypes.float32}})
def make_quantized_resize(attrs: Attrs) -> Kernel:
    """Rows and columns blended from the two nearest ones, with weights of few bits."""
    dtype, method = attrs.dtype("T"), bilinear_method(attrs)
    blend = _BLENDS[dtype]

    def resize(images: Value, size: Value, low: Value, high: Value) -> _Ranged:
        _check_sizes(images, size)
        for name, value in (("min", low), ("max", high)):
            if np.ndim(value):
                raise ValueError(f"{name} must be a scalar, got shape {shape_text(value.shape)}")
        plain = images if dtype is dtypes.float32 else integers_of(images)
        resized = _resized(plain, size.tolist(), method, blend)
        return resized.view(dtype.numpy), np.float32(low), np.float32(high)

    return resize


def _check_sizes(images: Value, size: Value) -> None:
    if np.ndim(images) != 4:
        raise ValueError(f"input must be 4-dimensional{shape_text(np.shape(images))}")
    if np.shape(size) != (2,):
        raise ValueError(f"shape_t must have two elements, got shape {shape_text(np.shape(size))}")
    if min(size) <= 0:
        raise ValueError(f"output dimensions must be positive, got {size.tolist()}")
    if 0 in images.shape[1:3]:
        raise ValueError(f"input image must be of non-zero size: {shape_text(images.shape)}")
    if not images.shape[3]:
        raise ValueError("image must have at least one channel")
    check_new((images.shape[0], *size.tolist(), images.shape[3]), np.dtype(np.int64))


def _resized(images: Array, size: list[int], method: Method, blend: _Blend) -> Array:
    """Blend columns of the two rows that each row is between, then these."""
    if images.shape[1:3] == tuple(size):
        return images
    by_row, by_column = method(images.shape[1], size[0]), method(images.shape[2], size[1])
    parts = by_row.weights[:, 1, np.newaxis, np.newaxis], by_column.weights[:, 1, np.newaxis]
    # With corners on corners and half pixels at once, places may be beyond the last one.
    rows = [images.take(sources, 1, mode="clip") for sources in by_row.sources.T]
    corners = [row.take(sources, 2, mode="clip") for row in rows for sources in by_column.sources.T]
    result: Array = blend(corners, *parts).astype(images.dtype, copy=False)
    return result


def _blend_numbers(corners: list[Array], down: Array, across: Array) -> Any:
    top = corners[0] + (corners[1] - corners[0]) * across
    bottom = corners[2] + (corners[3] - corners[2]) * across
    return top + (bottom - top) * down


def _blend_by(bits: int) -> _Blend:
    """Blends integers, as float32 has them; weights have some bits, and the rest is cut off."""
    one = 1 << bits

    def blend(corners: list[Array], down: Array, across: Array) -> Any:
        wide = [corner.astype(np.float32).astype(np.int64) for corner in corners]
        below, right = ((part * np.float32(one)).astype(np.int64) for part in (down, across))
        top = wide[0] * one + (wide[1] - wide[0]) * right
        bottom = wide[2] * one + (wide[3] - wide[2]) * right
        return _divided(top + _divided(bottom - top, one) * below + one // 2, one)

    return blend


_BLENDS: Final[dict[DType, _Blend]] = {
    dtypes.float32: _blend_numbers,
    dtypes.quint8: _blend_by(7),
    dtypes.qint32: _blend_by(30),
}


def _divided(x: Any, y: Any) -> Any:
    """Quotients of integers, towards zero."""
    quotient = np.abs(x) // np.abs(y)
    return np.where((x < 0) != (y < 0), -quotient, quotient)


# -- normed ----------------------------------------------------------------------------------------


@kernel("QuantizedInstanceNorm", types={"T": _QUINT8})
def make_quantized_instance_norm(attrs: Attrs) -> Kernel:
    """Every channel of every image less its mean, over its standard deviation."""
    epsilon = np.float32(attrs.float("variance_epsilon"))
    least = np.float32(attrs.float("min_separation"))
    given = None
    if attrs.bool("output_range_given"):
        given = np.float32(attrs.float("given_y_min")), np.float32(attrs.float("given_y_max"))
    dtype = attrs.dtype("T").numpy

    def instance_norm(x: Value, x_min: Value, x_max: Value) -> _Ranged:
        low, high = scalars(x_min=x_min, x_max=x_max)
        _check_order("input_min", "input_max", low, high)
        if given is not None:
            _check_order("given_y_min", "given_y_max", *given)
        if np.ndim(x) != 4:
            raise ValueError(f"input must be 4-dimensional{shape_text(np.shape(x))}")
        normed = _normed(integers_of(x), (high - low) / np.float32(255), epsilon)
        least_out, most_out = given or _own_range(normed, least)
        integers = Single(dtype[0], least_out, most_out).integers(normed)
        return integers.view(dtype), least_out, most_out

    return instance_norm


def _check_order(low_name: str, high_name: str, low: np.float32, high: np.float32) -> None:
    if not low < high:
        raise ValueError(f"{low_name} must be less than {high_name} : {low} >= {high}")


def _normed(integers: Array, scale: np.float32, epsilon: np.float32) -> Array:
    numbers = integers.astype(np.float32) * scale
    count = np.float32(integers.shape[1] * integers.shape[2])
    centred = numbers - numbers.sum((1, 2), keepdims=True) / count
    variance = np.square(centred).sum((1, 2), keepdims=True) / count
    normed: Array = centred / np.sqrt(variance + epsilon)
    return normed


def _own_range(normed: Array, least: np.float32) -> tuple[np.float32, np.float32]:
    """The least and greatest number, or some more than that; of none, infinity."""
    low, high = normed.min(initial=np.inf), normed.max(initial=-np.inf)
    if not high - low >= least:
        high = low + least
    return np.float32(low), np.float32(high)


#: Numbers of the result are whole multiples of 1 / 2048.
_MOST: Final = float(1 << 20)
_VECTORS: Final = ("mean", "variance", "beta", "gamma")


@kernel("QuantizedBatchNormWithGlobalNormalization", types={"Tinput": _QUINT8, "out_type": _QINT32})
def make_quantized_batch_norm(attrs: Attrs) -> Kernel:
    """(t - m) / sqrt(v + epsilon), by gamma if asked to, plus beta, in fixed-point numbers."""
    epsilon = np.float32(attrs.float("variance_epsilon"))
    is_scaled, dtype = attrs.bool("scale_after_normalization"), attrs.dtype("out_type").numpy

    def batch_norm(*tensors_and_ranges: Value) -> _Ranged:
        tensors, ranges = tensors_and_ranges[::3], _ranges(tensors_and_ranges)
        _check_vectors(tensors)
        numbers = [
            double_numbers(integers_of(tensor), *ends)
            for tensor, ends in zip(tensors, ranges, strict=True)
        ]
        _, mean, variance, beta, gamma = numbers
        scale = np.float32(1) / np.sqrt(variance + epsilon)
        scale = scale * gamma if is_scaled else scale
        offset = _fixed(beta - mean * scale)
        # Products and sums that do not fit in 32 bits wrap around.
        product = (_fixed(numbers[0]) * _fixed(scale)).astype(np.int32).astype(np.int64)
        total = _divided(product, _fixed(np.float32(1))) + offset
        return total.astype(np.int32).view(dtype), np.float32(-_MOST), np.float32(_MOST)

    return batch_norm


def _fixed(numbers: Any) -> Any:
    return double_integers(numbers, -_MOST, _MOST, _INT32)


def _ranges(values: tuple[Value, ...]) -> list[tuple[float, float]]:
    names = ("input", *_VECTORS)
    for at, name in enumerate(names):
        for place, word in ((3 * at + 1, "min"), (3 * at + 2, "max")):
            if np.size(values[place]) != 1:
                raise ValueError(f"{name}_{word} must have 1 element, not {np.size(values[place])}")
    bounds = [float(np.ravel(value)[0]) for at, value in enumerate(values) if at % 3]
    return list(zip(bounds[::2], bounds[1::2], strict=True))


def _check_vectors(tensors: tuple[Value, ...]) -> None:
    shapes = [np.shape(tensor) for tensor in tensors]
    if len(shapes[0]) != 4:
        raise ValueError(f"input must be 4-dimensional{shape_text(shapes[0])}")
    for name, shape in zip(_VECTORS, shapes[1:], strict=True):
        if len(shape) != 1:
            raise ValueError(f"{name} must be 1-dimensional{shape_text(shape)}")
    if shapes[1][0] != shapes[0][3]:
        raise ValueError(
            "Must provide as many means as the last dimension of the input tensor: "
            f"{shape_text(shapes[1])} vs. {shape_text(shapes[0])}"
        )
    if shapes[1][0] < 2:
        raise ValueError(f"Must have at least a mean value{shape_text(shapes[1])}")
    for name, shape in zip(_VECTORS[1:], shapes[2:], strict=True):
        if shape != shapes[1]:
            raise ValueError(
                f"Mean and {name} tensors must have the same shape: "
                f"{shape_text(shapes[1])} vs. {shape_text(shape)}"
            )
