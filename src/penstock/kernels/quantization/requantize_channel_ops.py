"""32-bit integers with a range for every channel, as integers of 8 bits with one range.

In:   quantised integers, [batch, rows, columns, channels], and the numbers that the least and
      greatest one of each channel stand for.
Out:  the range that holds all of them; or integers for a range that is asked for.
Not:  one range for all channels is for quantized_nn_ops.

All ranges count as symmetric: zero stands for zero, and the greatest integer for the bound
that is further away.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.quantization.quantized_ranges import integers_of, limits_of
from penstock.kernels.values.arrays import shape_text

_QINT32: Final = frozenset({dtypes.qint32})
_EIGHT: Final = frozenset({dtypes.qint8, dtypes.quint8})
#: What an integer of 32 bits is divided by.
_WHOLE: Final = np.float32(2.0**31)
#: The range of nothing but zeros reaches so far.
_LEAST: Final = np.finfo(np.float32).tiny


def _furthest(low: Value, high: Value, channels: int) -> Array:
    """The further bound of each channel; one for all is fine where a kernel says so."""
    least, most = np.ravel(low), np.ravel(high)
    if least.size not in {1, channels}:
        raise ValueError(
            f"input must have same number of channels as length of input_min: {channels} "
            f"vs {least.size}"
        )
    if most.size != least.size:
        raise ValueError(f"input_max has incorrect size, expected {least.size} was {most.size}")
    furthest: Array = np.maximum(np.abs(least), np.abs(most))
    return furthest


@kernel("RequantizationRangePerChannel", types={"T": _QINT32})
def make_range_per_channel(attrs: Attrs) -> Kernel:
    """The range of what all channels hold, symmetric, or from zero if nothing is below."""
    most_allowed = np.float32(attrs.float("clip_value_max"))

    def range_per_channel(value: Value, low: Value, high: Value) -> tuple[Value, Value]:
        integers = integers_of(value)
        if integers.ndim != 4:
            raise ValueError(f"input must be in NHWC format, not {shape_text(integers.shape)}")
        channels = integers.shape[3]
        if np.shape(low) != (channels,):
            raise ValueError(
                f"input must have same number of channels as length of input_min: {channels} "
                f"vs {np.size(low)}"
            )
        bounds = _furthest(low, high, channels) / _WHOLE
        if not integers.size:
            raise ValueError(f"input must not be empty: {shape_text(integers.shape)}")
        ends = [end.astype(np.float32) * bounds for end in _ends(integers)]
        most = min(max(*(np.abs(end).max() for end in ends), _LEAST), most_allowed)
        return (np.float32(0) if ends[0].min() >= 0 else -most), most

    return range_per_channel


def _ends(integers: Array) -> tuple[Array, Array]:
    return integers.min((0, 1, 2)), integers.max((0, 1, 2))


@kernel("RequantizePerChannel", types={"T": _QINT32, "out_type": _EIGHT})
def make_requantize_per_channel(attrs: Attrs) -> Kernel:
    """The same numbers as integers of 8 bits, for a range that is asked for."""
    dtype = attrs.dtype("out_type")
    first, last = limits_of(dtype.numpy[0])

    def requantize(
        value: Value, low: Value, high: Value, new_low: Value, new_high: Value
    ) -> tuple[Value, np.float32, np.float32]:
        integers = integers_of(value)
        if integers.ndim != 4:
            raise ValueError(
                "Current RequantizePerChannel operator supports 4D tensors only, "
                f"not {shape_text(integers.shape)}"
            )
        bounds = _furthest(low, high, integers.shape[3])
        least, most = _wanted(new_low, new_high)
        if first and least >= 0:
            raise ValueError(
                "If out_type is QINT8, requested_output_max must be non negative, "
                f"got {least} as the minimum"
            )
        scales = np.float32(last) / max(abs(least), abs(most)) * bounds / _WHOLE
        whole = np.rint(np.nan_to_num(integers.astype(np.float32) * scales))
        return np.clip(whole, first, last).astype(dtype.numpy[0]).view(dtype.numpy), least, most

    return requantize


def _wanted(low: Value, high: Value) -> list[np.float32]:
    for name, value in (("requested_output_min", low), ("requested_output_max", high)):
        if np.size(value) != 1:
            raise ValueError(f"{name} must be a scalar, got shape {shape_text(np.shape(value))}")
    return [np.float32(np.ravel(value)[0]) for value in (low, high)]
