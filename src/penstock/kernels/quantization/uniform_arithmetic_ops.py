"""Arithmetic on uniformly quantised integers.

In:   integers, with the scales and zero points of what comes in and what is to go out.
Out:  integers, within the limits of what is to go out.
Not:  quantises no numbers (uniform_quantize_ops).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.parallel.products import matrix_product
from penstock.kernels.quantization.quantized_ranges import integers_of
from penstock.kernels.quantization.uniform_quantize_ops import along
from penstock.kernels.values.arrays import as_array, shape_text

_QINT8: Final = frozenset({dtypes.qint8})
_QINT32: Final = frozenset({dtypes.qint32})
_FLOAT: Final = frozenset({dtypes.float32})


def fitted(attrs: Attrs, which: str, dtype: str) -> Callable[[Array], Value]:
    """A function that cuts whole numbers to the limits of an operand, as its integers."""
    target = attrs.dtype(dtype).numpy
    low = attrs.int(f"{which}quantization_min_val")
    high = attrs.int(f"{which}quantization_max_val")
    return lambda numbers: as_value(np.clip(numbers, low, high).astype(target[0]).view(target))


def scaled(numbers: Any, scale: Any) -> Any:
    """The nearest whole numbers, halves up."""
    return np.floor(numbers * scale + 0.5)


def less(integers: Array, zero: Any) -> Any:
    """Integers from their zero point; differences of 32 bits wrap around."""
    return integers.astype(np.int32) - np.asarray(zero).astype(np.int32)


def wide(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    """Scales and zero points in float64."""
    return pair[0].astype(np.float64), pair[1].astype(np.float64)


@kernel("UniformRequantize", types={"Tin": _QINT32 | _QINT8, "Tout": _QINT8})
def make_requantize(attrs: Attrs) -> Kernel:
    """The same numbers by other scales and zero points."""
    fit = fitted(attrs, "output_", "Tout")
    axis, new_axis = attrs.int("input_quantization_axis"), attrs.int("output_quantization_axis")

    def requantize(x: Value, scales: Value, zeros: Value, outs: Value, out_zeros: Value) -> Value:
        integers = integers_of(x)
        scale, zero = wide(along(integers, scales, zeros, axis))
        out, out_zero = wide(along(integers, outs, out_zeros, new_axis))
        return fit(scaled(less(integers, zero), scale / out) + out_zero)

    return requantize


@kernel("UniformQuantizedAdd", types={"T": _QINT32})
def make_add(attrs: Attrs) -> Kernel:
    """Sums, broadcast; each operand is first brought to the scale of the result."""
    fit = fitted(attrs, "output_", "T")
    axes = [attrs.int(f"{which}_quantization_axis") for which in ("lhs", "rhs", "output")]

    def add(a: Value, b: Value, *facts: Value) -> Value:
        left, right = integers_of(a), integers_of(b)
        shape = np.broadcast_shapes(left.shape, right.shape)
        out, out_zero = wide(along(np.broadcast_to(left, shape), facts[4], facts[5], axes[2]))
        total: Any = -out_zero
        for operand, pair, axis in ((left, facts[:2], axes[0]), (right, facts[2:4], axes[1])):
            scale, zero = wide(along(operand, pair[0], pair[1], axis))
            total = total + scaled(less(operand, zero), scale / out) + out_zero
        return fit(total)

    return add


@kernel("UniformQuantizedClipByValue", types={"T": _QINT32})
def make_clip(attrs: Attrs) -> Kernel:
    """Integers between two others."""
    axis, dtype = attrs.int("quantization_axis"), attrs.dtype("T").numpy

    def clip(x: Value, low: Value, high: Value, scales: Value, zeros: Value) -> Value:
        integers = integers_of(x)
        along(integers, scales, zeros, axis)
        ends = [integers_of(end) for end in (low, high)]
        if axis >= 0:
            shape = [-1 if at == axis else 1 for at in range(integers.ndim)]
            ends = [end.reshape(shape) for end in ends]
        return as_value(np.minimum(np.maximum(integers, ends[0]), ends[1]).view(dtype))

    return clip


def _check_matrices(left: Array, right: Array) -> None:
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise InvalidArgumentError(
            f"lhs and rhs must be matrices that fit: {shape_text(left.shape)} and "
            f"{shape_text(right.shape)}"
        )


@kernel("UniformQuantizedDot", types={"Tin": _QINT8, "Tout": _QINT32})
def make_dot(attrs: Attrs) -> Kernel:
    """The product of two matrices."""
    fit = fitted(attrs, "output_", "Tout")
    axes = [attrs.int(f"{which}_quantization_axis") for which in ("lhs", "rhs", "output")]

    def dot(a: Value, b: Value, *facts: Value) -> Value:
        left, right = integers_of(a), integers_of(b)
        _check_matrices(left, right)
        (scale, zero), (other, other_zero) = (
            wide(along(left, facts[0], facts[1], axes[0])),
            wide(along(right, facts[2], facts[3], axes[1])),
        )
        product = (left - zero) @ (right - other_zero)
        out, out_zero = wide(along(product, facts[4], facts[5], axes[2]))
        return fit(scaled(product, scale * other / out) + out_zero)

    return dot


@kernel("UniformQuantizedDotHybrid", types={"Tlhs": _FLOAT, "Trhs": _QINT8, "Tout": _FLOAT})
def make_dot_hybrid(attrs: Attrs) -> Kernel:
    """The product of a matrix, its rows rounded to 256 levels, and of a quantised one."""
    axis = attrs.int("rhs_quantization_axis")
    if axis not in {-1, 1}:
        raise InvalidArgumentError(
            "rhs_quantization_axis Attr must be 1 (per-channel) or -1 (per-tensor)."
        )

    def dot(a: Value, b: Value, scales: Value, zeros: Value) -> Value:
        left, right = as_array(a), integers_of(b)
        _check_matrices(left, right)
        scale, zero = along(right, scales, zeros, axis)
        return matrix_product(in_levels(left), less(right, zero).astype(np.float32) * scale)

    return dot


def in_levels(rows: Array) -> Array:
    """Numbers at 256 equal distances, of which zero is one, from a row's least to its greatest."""
    low = np.fmin(rows.min(1, keepdims=True, initial=0), 0)
    high = np.fmax(rows.max(1, keepdims=True, initial=0), 0)
    span, last, half = high - low, np.float32(255), np.float32(0.5)
    step, count = span / last, np.where(span > 0, last / span, np.float32(0))
    zero = np.floor(-low * count + half)
    levels: Array = np.fmin(np.fmax(np.floor(rows * count + zero + half), 0), last)
    levels -= zero
    levels *= step
    return levels
