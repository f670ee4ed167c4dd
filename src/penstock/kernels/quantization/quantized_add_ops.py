"""Sums of quantised integers, and what is joined from several of them.

In:   quantised integers, and the numbers that their least and greatest stand for.
Out:  quantised integers and their range, in which all operands have a place.
Not:  no products (quantized_nn_ops).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.quantization.quantized_ranges import (
    Single,
    double_integers,
    double_numbers,
    integers_of,
    scalars,
)
from penstock.kernels.values.arrays import shape_text

_QUINT8: Final = frozenset({dtypes.quint8})
_QINT8: Final = frozenset({dtypes.qint8})
_QINT32: Final = frozenset({dtypes.qint32})
#: Numbers fill so small a part of the result's range that a sum does not leave it.
_HEADROOM: Final = np.float32(1 << 14)
_HEADROOM_OF_BIAS: Final = np.float32(1 << 17)
_INT32: Final = np.dtype(np.int32)


# -- sums ----------------------------------------------------------------------------------------


@kernel("QuantizedAdd", types={"T1": _QUINT8, "T2": _QUINT8, "Toutput": _QINT32})
def make_quantized_add(attrs: Attrs) -> Kernel:
    """Sums element by element, broadcast; each step of an operand is a whole number of steps."""
    dtype = attrs.dtype("Toutput").numpy

    def add(
        x: Value, y: Value, min_x: Value, max_x: Value, min_y: Value, max_y: Value
    ) -> tuple[Value, np.float32, np.float32]:
        bounds = scalars(min_x=min_x, max_x=max_x, min_y=min_y, max_y=max_y)
        _check_order("x", *bounds[:2])
        _check_order("y", *bounds[2:])
        left, right = integers_of(x), integers_of(y)
        if not left.size or not right.size:
            raise ValueError(
                "Must have some elements to add: "
                f"{shape_text(left.shape)} and {shape_text(right.shape)}"
            )
        most = _furthest(bounds) * _HEADROOM
        # The operand that is taken to be a single number is not stepped.
        move_x = _moved_exactly if left.size == 1 else _stepped
        move_y = _moved_exactly if right.size == 1 < left.size else _stepped
        low_x, high_x, low_y, high_y = bounds
        total = move_x(left, low_x, high_x, most) + move_y(right, low_y, high_y, most)
        return as_value(total.astype(np.int32).view(dtype)), -most, most

    return add


def _check_order(name: str, low: np.float32, high: np.float32) -> None:
    if not high > low:
        raise ValueError(f"max_{name} must be larger than min_{name}: {high} and {low}")


def _moved_exactly(integers: Array, low: np.float32, high: np.float32, most: np.float32) -> Array:
    """The nearest integers of a wider range."""
    numbers = double_numbers(integers, float(low), float(high))
    return double_integers(numbers, -float(most), float(most), _INT32)


def _stepped(integers: Array, low: np.float32, high: np.float32, most: np.float32) -> Array:
    """The integers of a wider range, from where those for 0 and for 1 are in it."""
    first = np.array([0, 1], integers.dtype)
    start, following = _moved_exactly(first, low, high, most)
    stepped: Array = start + integers.astype(np.int64) * (following - start)
    return stepped


@kernel("QuantizedBiasAdd", types={"T1": _QINT8, "T2": _QINT8, "out_type": _QINT32})
@kernel("QuantizedBiasAdd", types={"T1": _QUINT8, "T2": _QUINT8, "out_type": _QINT32})
def make_quantized_bias_add(attrs: Attrs) -> Kernel:
    """A vector added to all rows."""
    dtype = attrs.dtype("out_type").numpy

    def bias_add(
        x: Value, bias: Value, min_x: Value, max_x: Value, min_bias: Value, max_bias: Value
    ) -> tuple[Value, np.float32, np.float32]:
        bounds = scalars(min_input=min_x, max_input=max_x, min_bias=min_bias, max_bias=max_bias)
        rows, added = integers_of(x), integers_of(bias)
        _check_bias(rows, added)
        most = _furthest(bounds) * _HEADROOM_OF_BIAS
        wide = Single(_INT32, -most, most)
        total: Any = double_integers(np.float32(0), -float(most), float(most), _INT32)
        for integers, ends in ((rows, bounds[:2]), (added, bounds[2:])):
            total = total + wide.integers(Single(integers.dtype, *ends).numbers(integers))
        return as_value(total.astype(np.int32).view(dtype)), -most, most

    return bias_add


def _furthest(bounds: list[np.float32]) -> np.float32:
    """How far the ranges [low, high, low, high] reach from zero."""
    return max(bounds[1], bounds[3], -bounds[0], -bounds[2])


def _check_bias(rows: Array, bias: Array) -> None:
    if rows.ndim < 2:
        raise ValueError(f"Input tensor must be at least 2D: {shape_text(rows.shape)}")
    if bias.ndim != 1:
        raise ValueError(f"Biases must be 1D: {shape_text(bias.shape)}")
    if len(bias) != rows.shape[-1]:
        raise ValueError(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{shape_text(bias.shape)} vs. {shape_text(rows.shape)}"
        )
    if not bias.size:
        raise ValueError("Must provide at least 1 bias")


# -- what is joined --------------------------------------------------------------------------------


@kernel("QuantizedConcat", types={"T": _QUINT8 | _QINT32})
def make_quantized_concat(attrs: Attrs) -> Kernel:
    """The inputs one after the other, as integers of a range that holds all ranges and zero."""
    count, dtype = attrs.int("N"), attrs.dtype("T").numpy

    def concat(axis: Value, *inputs: Value) -> tuple[Value, np.float32, np.float32]:
        lows = _bounds("input_mins", inputs[count : 2 * count])
        highs = _bounds("input_maxes", inputs[2 * count :])
        arrays = [integers_of(value) for value in inputs[:count]]
        number = _checked_axis(axis, inputs[:count])
        common = _common(dtype[0], lows, highs)
        parts = [
            array if (low, high) == common[1:] else _moved(array, low, high, common)
            for array, low, high in zip(arrays, lows, highs, strict=True)
        ]
        return np.concatenate(parts, number).view(dtype), common.low, common.high

    return concat


def _common(kind: np.dtype[Any], lows: list[np.float32], highs: list[np.float32]) -> Single:
    """The range of the result; it is symmetric if integers have signs."""
    low, high = min(np.float32(0), *lows), max(highs)
    if kind.kind == "i":
        high = max(abs(low), abs(high))
        low = -high
    return Single(kind, low, high)


def _moved(integers: Array, low: np.float32, high: np.float32, to: Single) -> Array:
    return to.integers(Single(to.kind, low, high).numbers(integers))


def _bounds(name: str, values: tuple[Value, ...]) -> list[np.float32]:
    for at, value in enumerate(values):
        if np.size(value) != 1:
            raise ValueError(
                f"{name} each tensor's num elements must be 1, given num elements "
                f"{np.size(value)} in index {at}"
            )
    return [np.float32(np.asarray(value).reshape(())) for value in values]


def _checked_axis(axis: Value, values: tuple[Value, ...]) -> int:
    """The axis, which counts from the first one, if all shapes fit."""
    if np.ndim(axis):
        raise ValueError(
            f"Concat dim tensor should be a scalar integer, but got shape {shape_text(axis.shape)}"
        )
    number, shapes = int(axis), [shape_of(value) for value in values]
    rank = len(shapes[0])
    if not 0 <= number < rank:
        raise ValueError(
            f"ConcatOp : Expected concatenating dimensions in the range [0, {rank}), "
            f"but got {number}"
        )
    for at, shape in enumerate(shapes):
        both = f"shape[0] = {shape_text(shapes[0])} vs. shape[{at}] = {shape_text(shape)}"
        if len(shape) != rank:
            raise ValueError(f"ConcatOp : Ranks of all input tensors should match: {both}")
        if shape[:number] + shape[number + 1 :] != shapes[0][:number] + shapes[0][number + 1 :]:
            raise ValueError(f"ConcatOp : Dimensions of inputs should match: {both}")
    return number
