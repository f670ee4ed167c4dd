"""Uniform quantisation: numbers as integers, by scales and zero points.

In:   numbers, or quantised integers; scales and zero points, one or one per slice of an axis.
Out:  quantised integers, or numbers.
Not:  finds no scales (quantize_ops has the ranges of the older kind).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import as_array, shape_text

_QUANTIZED: Final = frozenset({dtypes.qint8, dtypes.qint32})
_FLOAT: Final = frozenset({dtypes.float32})


@kernel("UniformQuantize", types={"Tin": _FLOAT, "Tout": _QUANTIZED})
def make_uniform_quantize(attrs: Attrs) -> Kernel:
    """The nearest integer to number / scale + zero point, within limits."""
    axis, limits = attrs.int("quantization_axis"), _limits(attrs)
    target = attrs.dtype("Tout").numpy

    def quantize(x: Value, scales: Value, zeros: Value) -> Value:
        array = as_array(x)
        scale, zero = along(array, scales, zeros, axis)
        inverse = np.float32(1) / scale
        integers = np.floor(array * inverse + zero.astype(np.float32) + np.float32(0.5))
        whole = np.clip(np.nan_to_num(integers), *limits).astype(target[0])
        return as_value(whole.view(target))

    return quantize


@kernel("UniformDequantize", types={"Tin": _QUANTIZED, "Tout": _FLOAT})
def make_uniform_dequantize(attrs: Attrs) -> Kernel:
    """(integer - zero point) * scale."""
    axis = attrs.int("quantization_axis")

    def dequantize(x: Value, scales: Value, zeros: Value) -> Value:
        array = as_array(x)
        integers: Array = array.view(array.dtype[0])
        scale, zero = along(integers, scales, zeros, axis)
        return as_value((integers.astype(np.int32) - zero).astype(np.float32) * scale)

    return dequantize


def _limits(attrs: Attrs) -> tuple[int, int]:
    return attrs.int("quantization_min_val"), attrs.int("quantization_max_val")


def along(array: Array, scales: Value, zeros: Value, axis: int) -> tuple[Any, Any]:
    """Scales and zero points in a shape that fits the array."""
    scale, zero = as_array(scales), as_array(zeros)
    if scale.shape != zero.shape:
        raise InvalidArgumentError("scales and zero_points shape must be same")
    if axis == -1:
        if scale.ndim:
            raise InvalidArgumentError(
                f"quantization_axis is -1, scales must be scalar, got {shape_text(scale.shape)}"
            )
    elif not 0 <= axis < array.ndim or scale.shape != (array.shape[axis],):
        raise InvalidArgumentError(
            f"quantization_axis {axis} does not fit {shape_text(array.shape)} and scales of shape "
            f"{shape_text(scale.shape)}"
        )
    else:
        shape = [1] * array.ndim
        shape[axis] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise InvalidArgumentError("scales elements must be all positive")
    return scale, zero
