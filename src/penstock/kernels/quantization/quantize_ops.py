"""Between floating-point numbers and quantised integers.

In:   numbers, and the range that the integers are spread over: one, or one per slice of
      an axis.
Out:  quantised integers, the numbers that they stand for, or both steps in one.
Not:  no arithmetic on quantised integers; no fake quantisation for training.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, as_value
from penstock.errors import UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import QUANTIZED
from penstock.kernels.values.arrays import as_array, shape_text

#: Lowest and highest number of a range, shaped to go with the array: rank 0, or sizes 1
#: but along one axis.
_Range: TypeAlias = tuple[Array, Array]
_Round: TypeAlias = Callable[[Array], Array]
_Quantize: TypeAlias = Callable[[Array, _Range], tuple[Array, _Range]]


@kernel("QuantizeV2", types={"T": QUANTIZED})
def make_quantize(attrs: Attrs) -> Kernel:
    """Integers for numbers of a range, and the range that they really stand for.

    The range is first widened to hold zero, and not to be too narrow.
    """
    dtype, axis = attrs.dtype("T"), attrs.int("axis")
    spread, least = _spread(attrs, dtype), np.float32(attrs.float("ensure_minimum_range"))

    def quantize(values: Value, min_range: Value, max_range: Value) -> tuple[Value, Value, Value]:
        array = as_array(values)
        given = _one_range(array, min_range, max_range, axis)
        spread_out, (low, high) = spread(array, _widened(given, least))
        integers = _cast(spread_out, dtype)
        # A single slice has a range of rank 0, as if there was no axis.
        shape = () if low.size == 1 else (-1,)
        return integers, as_value(low.reshape(shape)), as_value(high.reshape(shape))

    return quantize


def _one_range(array: Array, low: Value, high: Value, axis: int) -> _Range:
    """The range in a pair of arguments, shaped to go with the array."""
    return (_bound(array, low, "min_range", axis), _bound(array, high, "max_range", axis))


def _bound(array: Array, value: Value, name: str, axis: int) -> Array:
    bound = np.asarray(value)
    if axis < 0:
        if bound.size != 1:
            raise ValueError(
                f"If axis is not specified, {name} must contain a single float element, but it "
                f"contains {bound.size} elements"
            )
        return bound.reshape(())
    return _along(array, bound, name, axis)


def _along(array: Array, bound: Array, name: str, axis: int) -> Array:
    """A bound for each slice of an axis, shaped to go with the array."""
    if axis >= array.ndim:
        raise ValueError(
            f"Axis must be less than input dimension({array.ndim}), got {axis}: it is on a "
            "zero-based index"
        )
    if bound.shape != (array.shape[axis],):
        raise ValueError(
            f"If axis is specified, {name} must be a 1-D tensor whose size matches the axis "
            f"dimension of the input: expected {array.shape[axis]} elements, "
            f"got shape {shape_text(bound.shape)}"
        )
    shape = [1] * array.ndim
    shape[axis] = -1
    return bound.reshape(shape)


def _widened(given: _Range, least: np.float32) -> _Range:
    """The range, widened to hold zero and to be wide in proportion to its bounds."""
    low, high = given
    if (low > high).any():
        raise ValueError(
            f"input_max_range must be larger than input_min_range, got {low} and {high}"
        )
    below = np.fmin(np.float32(0), low)
    width = np.fmax(np.float32(1), np.maximum(np.abs(low), np.abs(high))) * least
    return below, np.fmax(np.float32(0), np.maximum(high, below + width))


def _cast(numbers: Array, dtype: DType) -> Value:
    """Whole numbers as quantised integers; what is no number is 0, what is too large wraps."""
    finite = np.where(np.isfinite(numbers), numbers, np.float32(0))
    integers = finite.astype(np.int64).astype(_integer(dtype))
    return as_value(np.asarray(integers).view(dtype.numpy))


def _integer(dtype: DType) -> np.dtype[Any]:
    """The plain type of a quantised type's integers."""
    return dtype.numpy[0]


def _limits(dtype: DType) -> tuple[int, int]:
    info = np.iinfo(_integer(dtype))
    return int(info.min), int(info.max)


def _round_away(numbers: Array) -> Array:
    """To whole numbers, halves away from zero."""
    whole = np.trunc(numbers)
    rounded: Array = whole + np.copysign(np.abs(numbers - whole) >= 0.5, numbers)
    return rounded.astype(numbers.dtype, copy=False)


def _round_up(numbers: Array) -> Array:
    """To whole numbers, halves up."""
    return np.asarray(np.floor(numbers + numbers.dtype.type(0.5)))


def _spread(attrs: Attrs, dtype: DType) -> _Quantize:
    """The function that maps numbers to whole numbers, by the attribute ``mode``."""
    mode = attrs.str("mode")
    is_even = attrs.str("round_mode") == "HALF_TO_EVEN"
    if mode == "SCALED":
        low, high = _limits(dtype)
        return _spread_scaled(
            low + attrs.bool("narrow_range"), high, np.rint if is_even else _round_away
        )
    if is_even:
        raise ValueError(
            f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode}'."
        )
    if mode == "MIN_COMBINED":
        return _spread_combined(dtype)
    return _spread_from_first(dtype)


def _refuse_slices(given: _Range) -> None:
    if given[0].size != 1:
        raise UnimplementedError("MIN_FIRST mode is not implemented with axis != -1.")


def _spread_combined(dtype: DType) -> _Quantize:
    """MIN_COMBINED: all integers at equal distances over the range."""
    first, last = _limits(dtype)
    steps = np.float32(last - first)
    half = np.float32((last - first + 1) // 2 if first else 0)

    def combined(array: Array, given: _Range) -> tuple[Array, _Range]:
        low, high = given
        inside = np.minimum(np.maximum(array, low), high)
        return _round_away((inside - low) * (steps / (high - low)) - half), given

    return combined


def _spread_from_first(dtype: DType) -> _Quantize:
    """MIN_FIRST: zero has an integer of its own, and the lowest is rounded first."""
    first, last = _limits(dtype)
    steps = np.float32(last - first)
    top = np.float32(last)
    if int(top) > last:
        top = np.nextafter(top, np.float32(0))

    def from_first(array: Array, given: _Range) -> tuple[Array, _Range]:
        _refuse_slices(given)
        low, high = given
        scale = steps / (high - low)
        start = _round_away(low * scale) - np.float32(first)
        return np.fmin(np.fmax(_round_away(array * scale) - start, np.float32(first)), top), given

    return from_first


def _spread_scaled(first: int, last: int, to_whole: _Round) -> _Quantize:
    """SCALED: a multiple of the number, so zero stays zero."""

    def scaled(array: Array, given: _Range) -> tuple[Array, _Range]:
        lowest, highest = np.float32(first), np.float32(last)
        scale = np.minimum(_ratio(lowest, given[0]), _ratio(highest, given[1]))
        low, high = lowest / scale, highest / scale
        return to_whole(np.maximum(np.minimum(array, high), low) * scale), (low, high)

    return scaled


def _ratio(integer: Any, bound: Array) -> Array:
    """Integers per number on one side of zero; without end if that side has none."""
    greatest = np.finfo(bound.dtype).max
    ratio: Array = np.where(integer * bound > 0, integer / bound, greatest)
    return ratio


@kernel("Dequantize", types={"T": QUANTIZED, "dtype": {dtypes.float32, dtypes.bfloat16}})
def make_dequantize(attrs: Attrs) -> Kernel:
    """The numbers of a range that quantised integers stand for."""
    dtype, axis = attrs.dtype("T"), attrs.int("axis")
    result_type = attrs.dtype("dtype").numpy
    restore = _restore(attrs, dtype)
    wide = np.float64 if attrs.str("mode") == "MIN_FIRST" else np.float32

    def dequantize(values: Value, min_range: Value, max_range: Value) -> Value:
        integers = np.asarray(values).view(_integer(dtype))
        given = _one_range(integers, min_range, max_range, axis)
        return as_value(restore(integers.astype(wide), given).astype(result_type, copy=False))

    return dequantize


def _restore(attrs: Attrs, dtype: DType) -> Callable[[Array, _Range], Array]:
    """The function that maps integers to numbers, by the attribute ``mode``."""
    mode = attrs.str("mode")
    if attrs.dtype("dtype") is dtypes.bfloat16 and mode != "MIN_COMBINED":
        raise ValueError(
            f"When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '{mode}'"
        )
    first, last = _limits(dtype)
    if mode == "SCALED":
        return _restore_scaled(first + attrs.bool("narrow_range"), last)
    steps = np.float32(last - first)
    half = np.float32((last - first + 1) // 2 if first else 0)

    def combined(integers: Array, given: _Range) -> Array:
        low, high = given
        return np.asarray((integers + half) * ((high - low) / steps) + low)

    def from_first(integers: Array, given: _Range) -> Array:
        _refuse_slices(given)
        low, high = (bound.astype(np.float64) for bound in given)
        step = (high - low) / (last - first)
        start = _round_away(low / step) * step
        return np.asarray(start + (integers - float(first)) * step, np.float32)

    return combined if mode == "MIN_COMBINED" else from_first


def _restore_scaled(first: int, last: int) -> Callable[[Array, _Range], Array]:
    def scaled(integers: Array, given: _Range) -> Array:
        low, high = given
        scale = high / np.float32(last)
        if first < 0:
            scale = np.maximum(low / np.float32(first), scale)
        return np.asarray(integers * scale)

    return scaled


_TWO_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})


@kernel("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4", types={"T": _TWO_FLOATS})
def make_quantize_and_dequantize(attrs: Attrs) -> Kernel:
    """Numbers rounded to those that quantised integers of so many bits could stand for."""
    through = _through_integers(attrs)
    bits = _checked_bits(attrs.int("num_bits"), attrs)

    def quantize_and_dequantize(values: Value, low: Value, high: Value) -> Value:
        return through(values, low, high, bits)

    return quantize_and_dequantize


@kernel("QuantizeAndDequantizeV3", types={"T": _TWO_FLOATS})
def make_quantize_and_dequantize_v3(attrs: Attrs) -> Kernel:
    """The form with the number of bits as an input."""
    through = _through_integers(attrs)

    def quantize_and_dequantize(values: Value, low: Value, high: Value, num_bits: Value) -> Value:
        if np.ndim(num_bits):
            raise ValueError(
                "Invalid shape. The `num_bits` tensor should be a scalar. "
                f"Got dimensions: {np.ndim(num_bits)}"
            )
        return through(values, low, high, _checked_bits(int(num_bits), attrs))

    return quantize_and_dequantize


@kernel("QuantizeAndDequantize", types={"T": _TWO_FLOATS})
def make_quantize_and_dequantize_v1(attrs: Attrs) -> Kernel:
    """The form of the early years, with the range as attributes."""
    through = _through_integers(attrs)
    bits = _checked_bits(attrs.int("num_bits"), attrs)
    number = attrs.dtype("T").numpy.type
    low, high = number(attrs.float("input_min")), number(attrs.float("input_max"))

    def quantize_and_dequantize(values: Value) -> Value:
        return through(values, low, high, bits)

    return quantize_and_dequantize


def _checked_bits(bits: int, attrs: Attrs) -> int:
    most = 62 if attrs.bool("signed_input") else 63
    if not 0 < bits <= most:
        raise ValueError(
            f"num_bits is out of range: {bits} with signed_input {attrs.bool('signed_input')}"
        )
    return bits


def _through_integers(attrs: Attrs) -> Callable[[Value, Value, Value, int], Value]:
    """What the forms share; they differ in where the range and the bits come from."""
    number = attrs.dtype("T").numpy.type
    is_signed, is_given = attrs.bool("signed_input"), attrs.bool("range_given")
    is_narrow = "narrow_range" in attrs.values and attrs.bool("narrow_range")
    axis = attrs.int("axis") if "axis" in attrs.values else -1
    is_up = "round_mode" in attrs.values and attrs.str("round_mode") == "HALF_UP"
    to_whole: _Round = _round_up if is_up else np.rint
    if axis < -1:
        raise ValueError(f"Axis must be at least -1. Found {axis}")

    def through(values: Value, low: Value, high: Value, bits: int) -> Value:
        array = as_array(values)
        if axis >= array.ndim:
            raise ValueError(f"Shape must be at least rank {axis + 1} but is rank {array.ndim}")
        if not array.size:
            return array
        found = _checked_range(array, low, high, axis) if is_given else _own_range(array, axis)
        first = -(1 << (bits - 1)) + is_narrow if is_signed else 0
        last = (1 << (bits - 1)) - 1 if is_signed else (1 << bits) - 1
        scale, inverse, inside = _symmetric(found, number(first), number(last))
        if is_given:
            array = np.maximum(np.minimum(array, inside[1]), inside[0])
        return as_value(to_whole(np.asarray(array * scale)) * inverse)

    return through


def _checked_range(array: Array, low: Value, high: Value, axis: int) -> _Range:
    bounds = np.asarray(low), np.asarray(high)
    for name, bound in zip(("input_min", "input_max"), bounds, strict=True):
        if axis < 0 and bound.ndim:
            raise ValueError(f"{name} must be a scalar, got shape {shape_text(bound.shape)}")
    if not (bounds[0] <= bounds[1]).all():
        raise ValueError(f"Invalid range: input_min {low} > input_max {high}")
    if axis < 0:
        return bounds
    names = "input_min", "input_max"
    return (_along(array, bounds[0], names[0], axis), _along(array, bounds[1], names[1], axis))


def _own_range(array: Array, axis: int) -> _Range:
    """The range of the numbers themselves."""
    if axis < 0:
        return np.asarray(array.min()), np.asarray(array.max())
    others = tuple(other for other in range(array.ndim) if other != axis)
    return array.min(others, keepdims=True), array.max(others, keepdims=True)


def _symmetric(found: _Range, first: Any, last: Any) -> tuple[Array, Array, _Range]:
    """Integers per number, numbers per integer, and the range of all integers.

    The side of zero that needs fewer integers per number decides for both.
    """
    low, high = found
    by_low, by_high = _ratio(first, low), _ratio(last, high)
    is_low = by_low < by_high
    inverse = np.where(is_low, low / first, high / last)
    inside = (np.where(is_low, low, first * inverse), np.where(is_low, last * inverse, high))
    return np.where(is_low, by_low, by_high), inverse, inside


@kernel("QuantizeAndDequantizeV4Grad", types={"T": _TWO_FLOATS})
def make_quantize_and_dequantize_grad(attrs: Attrs) -> Kernel:
    """The gradient where the input is in the range, and zeros for the range itself."""
    axis = attrs.int("axis")
    if axis < -1:
        raise ValueError(f"Axis must be at least -1. Found {axis}")

    def gradient(
        gradients: Value, values: Value, low: Value, high: Value
    ) -> tuple[Value, Value, Value]:
        array = as_array(values)
        if np.shape(gradients) != array.shape:
            raise ValueError(
                "gradient and input must be the same size: shapes "
                f"{shape_text(np.shape(gradients))} and {shape_text(array.shape)}"
            )
        if axis < 0 and (np.ndim(low) or np.ndim(high)):
            raise ValueError("input_min and input_max must be scalars if axis is unspecified")
        least, most = _one_range(array, low, high, axis)
        is_inside = (array >= least) & (array <= most)
        return gradients * is_inside, np.zeros_like(low)[()], np.zeros_like(high)[()]

    return gradient
