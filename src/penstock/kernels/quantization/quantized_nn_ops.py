"""Products, pooling and activations of quantised integers.

In:   quantised integers, and the numbers that their least and greatest stand for.
Out:  quantised integers with their range; products are of 32 bits.
Not:  makes no quantised integers of numbers (quantize_ops).

An integer stands for a number by a scale, and by the integer that stands for zero.  Sums of
products are computed with that taken off, in float64, which holds them exactly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.nn.conv_ops import make_conv2d
from penstock.kernels.nn.pool_ops import make_avg_pool, make_max_pool
from penstock.kernels.values.arrays import as_array, shape_text

#: Integers, and what the least and the greatest one stand for.
_Ranged: TypeAlias = tuple[Array, np.float32, np.float32]

_EIGHT: Final = frozenset({dtypes.qint8, dtypes.quint8})
_QUINT8: Final = frozenset({dtypes.quint8})
_QINT32: Final = frozenset({dtypes.qint32})
_WIDE_OR_BYTE: Final = _QINT32 | _QUINT8


def _integers(value: Value) -> Array:
    """The integers themselves."""
    array = as_array(value)
    return array.view(array.dtype[0])


def _quantized(integers: Array, dtype: DType) -> Array:
    """Whole numbers as quantised integers; those that do not fit become the nearest."""
    kind = dtype.numpy[0]
    limits = np.iinfo(kind)
    return np.clip(integers, limits.min, limits.max).astype(kind).view(dtype.numpy)


def _round(values: Any) -> Any:
    """Halves away from zero."""
    return np.trunc(values + np.copysign(0.5, values))


def _checked(name: str, low: Value, high: Value) -> tuple[float, float]:
    for word, value in ((f"min_{name}", low), (f"max_{name}", high)):
        if np.ndim(value):
            raise ValueError(f"{word} must be a scalar: {shape_text(np.shape(value))}")
    return float(low), float(high)


def _integer_for(number: float, low: float, high: float, kind: np.dtype[Any]) -> float:
    """The integer of a kind that stands for a number."""
    limits = np.iinfo(kind)
    scale = (float(limits.max) - limits.min) / (high - low)
    return float(_round(number * scale) - _round(low * scale) + limits.min)


def _numbers(integers: Array, low: float, high: float) -> Array:
    """The numbers that integers stand for, in float64."""
    limits = np.iinfo(integers.dtype)
    scale = (high - low) / (float(limits.max) - limits.min)
    return np.asarray(low + (integers.astype(np.float64) - limits.min) * scale)


# -- products ------------------------------------------------------------------------------------


def _centred(name: str, value: Value, low: Value, high: Value) -> tuple[Array, float]:
    """Integers so that 0 stands for zero, in float64, and what 1 then stands for."""
    least, most = _checked(name, low, high)
    if not most > least:
        raise ValueError(f"max_{name} must be larger than min_{name}: {most} and {least}")
    integers = _integers(value)
    limits = np.iinfo(integers.dtype)
    zero = _integer_for(0.0, least, most, integers.dtype)
    step = (np.float32(most) - np.float32(least)) / np.float32(limits.max - limits.min)
    return integers.astype(np.float64) - zero, float(step)


def _product(exact: Array, first: float, second: float, dtype: DType) -> _Ranged:
    """The result, and its range if 1 stands for the product of what 1 stood for."""
    step, limits = first * second, np.iinfo(dtype.numpy[0])
    low, high = np.float32(step * limits.min), np.float32(step * limits.max)
    return _quantized(exact, dtype), low, high


@kernel("QuantizedMatMul", types={"T1": _QUINT8, "T2": _QUINT8, "Toutput": _QINT32})
def make_quantized_matmul(attrs: Attrs) -> Kernel:
    """The product of two matrices, each of them possibly transposed first."""
    is_a_turned, is_b_turned = attrs.bool("transpose_a"), attrs.bool("transpose_b")
    dtype = attrs.dtype("Toutput")

    def matmul(
        a: Value, b: Value, min_a: Value, max_a: Value, min_b: Value, max_b: Value
    ) -> _Ranged:
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError(
                f"In[0] and In[1] must be matrices: {shape_text(a.shape)} and {shape_text(b.shape)}"
            )
        left, left_step = _centred("a", a, min_a, max_a)
        right, right_step = _centred("b", b, min_b, max_b)
        left, right = left.T if is_a_turned else left, right.T if is_b_turned else right
        if left.shape[1] != right.shape[0]:
            raise ValueError(
                "Matrix size-compatible: In[0]: "
                f"{shape_text(a.shape)}, In[1]: {shape_text(b.shape)}"
            )
        return _product(left @ right, left_step, right_step, dtype)

    return matmul


@kernel("QuantizedConv2D", types={"Tinput": _QUINT8, "Tfilter": _EIGHT, "out_type": _QINT32})
def make_quantized_conv2d(attrs: Attrs) -> Kernel:
    """Conv2D; padding stands for zero."""
    convolve, dtype = make_conv2d(_like(attrs, "Conv2D")), attrs.dtype("out_type")

    def conv2d(images: Value, filters: Value, *ranges: Value) -> _Ranged:
        left, left_step = _centred("input", images, *ranges[:2])
        right, right_step = _centred("filter", filters, *ranges[2:])
        return _product(convolve(left, right), left_step, right_step, dtype)

    return conv2d


@kernel("QuantizedMul", types={"T1": _QUINT8, "T2": _QUINT8, "Toutput": _QINT32})
def make_quantized_mul(attrs: Attrs) -> Kernel:
    """Products element by element, broadcast."""
    dtype = attrs.dtype("Toutput")

    def mul(x: Value, y: Value, min_x: Value, max_x: Value, min_y: Value, max_y: Value) -> _Ranged:
        left, left_step = _centred("x", x, min_x, max_x)
        right, right_step = _centred("y", y, min_y, max_y)
        return _product(left * right, left_step, right_step, dtype)

    return mul


def _like(attrs: Attrs, op_name: str) -> Attrs:
    """The facts of a node of another op, over float64, that does the work."""
    op = get_op(op_name)
    defaults = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    values = {**defaults, **attrs.values, "T": dtypes.float64}
    return dataclasses.replace(attrs, op=op, values=values)


# -- pooling and activations -----------------------------------------------------------------------


_POOLS: Final[dict[str, Callable[[Attrs], Kernel]]] = {
    "QuantizedAvgPool": make_avg_pool,
    "QuantizedMaxPool": make_max_pool,
}


@kernel(*_POOLS, types={"T": _EIGHT})
def make_quantized_pool(attrs: Attrs) -> Kernel:
    """The greatest or the mean, towards zero, of what is under a window; the range stays."""
    name, dtype = attrs.op.name, attrs.dtype("T")
    pool = _POOLS[name](_like(attrs, name.removeprefix("Quantized")))

    def pooled(images: Value, low: Value, high: Value) -> _Ranged:
        _checked("input", low, high)
        means = pool(_integers(images).astype(np.float64))
        return _quantized(np.trunc(means), dtype), np.float32(low), np.float32(high)

    return pooled


@kernel(
    "QuantizedRelu",
    "QuantizedRelu6",
    types={"Tinput": _WIDE_OR_BYTE, "out_type": _WIDE_OR_BYTE},
)
def make_quantized_relu(attrs: Attrs) -> Kernel:
    """What stands for less than 0 becomes 0, what stands for more than 6 becomes 6."""
    dtype, has_limit = attrs.dtype("out_type"), attrs.op.name.endswith("6")

    def relu(features: Value, low: Value, high: Value) -> _Ranged:
        least, most = _checked("features", low, high)
        integers = _integers(features)
        zero = _integer_for(0.0, least, most, integers.dtype)
        top = _integer_for(6.0, least, most, integers.dtype) if has_limit else np.inf
        kept = np.clip(integers.astype(np.float64), zero, top)
        return _quantized(kept, dtype), np.float32(low), np.float32(high)

    return relu


# -- other ranges --------------------------------------------------------------------------------


@kernel("RequantizationRange", types={"Tinput": _QINT32})
def make_requantization_range(_attrs: Attrs) -> Kernel:
    """The range of the integers that there really are, with zero in it."""

    def requantization_range(value: Value, low: Value, high: Value) -> tuple[Value, Value]:
        return _used_range(_integers(value), *_checked("input", low, high))

    return requantization_range


def _used_range(integers: Array, low: float, high: float) -> tuple[np.float32, np.float32]:
    if not integers.size:
        return np.float32(0), np.float32(0)
    ends = _numbers(np.array([integers.min(), integers.max()]), low, high)
    return np.float32(min(ends[0], 0.0)), np.float32(max(ends[1], 0.0))


@kernel("Requantize", types={"Tinput": _QINT32, "out_type": _EIGHT})
def make_requantize(attrs: Attrs) -> Kernel:
    """The same numbers as integers of fewer bits, for a range that is asked for."""
    dtype = attrs.dtype("out_type")

    def requantize(
        value: Value, low: Value, high: Value, new_low: Value, new_high: Value
    ) -> _Ranged:
        wanted = _checked("requested_output", new_low, new_high)
        if wanted[0] > 0:
            raise ValueError(f"requested_output_min must be <= 0, but got {wanted[0]}")
        if wanted[1] < wanted[0]:
            raise ValueError(
                "requested_output_max must be >= requested_output_min, but got "
                f"{wanted[1]} and {wanted[0]}"
            )
        numbers = _numbers(_integers(value), *_checked("input", low, high))
        return _in_range(numbers, *wanted, dtype), np.float32(new_low), np.float32(new_high)

    return requantize


def _in_range(numbers: Array, low: float, high: float, dtype: DType) -> Array:
    """Integers for numbers; unsigned ones are rounded once, signed ones after their offset."""
    if high == low:
        return _quantized(np.zeros(numbers.shape), dtype)
    limits = np.iinfo(dtype.numpy[0])
    scale = (limits.max - limits.min) / (high - low)
    if dtype is dtypes.quint8:
        return _quantized(np.floor((numbers - low) * scale + 0.5), dtype)
    return _quantized(_round(numbers * scale) - _round(low * scale) + limits.min, dtype)


@kernel("QuantizeDownAndShrinkRange", types={"Tinput": _QINT32, "out_type": _QUINT8})
def make_quantize_down(attrs: Attrs) -> Kernel:
    """The same numbers as integers of fewer bits, for the range that they really have."""
    dtype = attrs.dtype("out_type")

    def quantize_down(value: Value, low: Value, high: Value) -> _Ranged:
        integers, given = _integers(value), _checked("input", low, high)
        used = _used_range(integers, *given)
        numbers = _numbers(integers, *given)
        return _in_range(numbers, float(used[0]), float(used[1]), dtype), *used

    return quantize_down
