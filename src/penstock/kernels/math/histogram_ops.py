"""Counts of numbers, one by one or in bins of equal width.

In:   numbers, how many of them are counted apart, and a weight for each (or none).
Out:  counts or sums of weights.
Not:  no segments of rows (segment_ops).

Numbers that are too large are not counted; negative ones are an error.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, freeze
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, REALS
from penstock.kernels.values.arrays import check_new, shape_text

_INDICES: Final = frozenset({dtypes.int32, dtypes.int64})
#: Weights that count as ones.
_NONE: Final = freeze(np.empty(0))


@kernel("Bincount", types={"T": NUMBERS})
def make_bincount(attrs: Attrs) -> Kernel:
    """How often each number below a size occurs, or what its weights add up to."""
    dtype = attrs.dtype("T").numpy

    def compute(numbers: Value, size: Value, weights: Value) -> Array:
        if weights.size not in (0, numbers.size):
            raise InvalidArgumentError("Input indices and weights must have the same size.")
        return _count(numbers.reshape(-1), _size_in(size), weights.reshape(-1), dtype)

    return compute


@kernel("DenseBincount", types={"T": NUMBERS, "Tidx": _INDICES})
def make_dense_bincount(attrs: Attrs) -> Kernel:
    """Like Bincount; of a matrix row by row; or only whether each number occurs."""
    dtype, is_binary = attrs.dtype("T").numpy, attrs.bool("binary_output")

    def compute(numbers: Value, size: Value, weights: Value) -> Array:
        width = _size_in(size)
        _check_shapes(numbers, weights)
        rows = len(numbers) if numbers.ndim == 2 else 1
        check_new((rows, width), dtype)
        amounts = _NONE if is_binary else weights.reshape(-1)
        if numbers.ndim == 2:
            # Each row gets numbers of its own; those too large go where nothing is kept.
            spread = np.minimum(numbers, width) + np.arange(rows)[:, None] * (width + 1)
            _check_positive(numbers)
            counts = _count(spread.reshape(-1), rows * (width + 1), amounts, dtype)
            counts = counts.reshape((rows, width + 1))[:, :-1]
        else:
            counts = _count(numbers.reshape(-1), width, amounts, dtype)
        return (counts != 0).astype(dtype) if is_binary else counts

    return compute


def _count(numbers: Array, size: int, weights: Array, dtype: np.dtype[Any]) -> Array:
    _check_positive(numbers)
    check_new((size,), dtype)
    if numbers.size and numbers.max() >= size:
        inside = numbers < size
        numbers, weights = numbers[inside], weights[inside] if weights.size else weights
    if weights.size == 0:
        return np.bincount(numbers, minlength=size).astype(dtype)
    counts = np.zeros(size, dtype)
    np.add.at(counts, numbers, weights)
    return counts


def _check_positive(numbers: Array) -> None:
    if numbers.size and numbers.min() < 0:
        raise InvalidArgumentError(f"Input arr must be non-negative! Found {numbers.min()}")


def _size_in(size: Value) -> int:
    if size.ndim:
        raise InvalidArgumentError(f"Shape must be rank 0 but is rank {size.ndim}: size")
    if size < 0:
        raise InvalidArgumentError(f"size ({size}) must be non-negative")
    return int(size)


def _check_shapes(numbers: Value, weights: Value) -> None:
    if numbers.ndim > 2:
        raise InvalidArgumentError(f"Shape must be at most rank 2 but is rank {numbers.ndim}")
    if weights.size and weights.shape != numbers.shape:
        raise InvalidArgumentError(
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it "
            f"acts as all weights equal to 1. Received {shape_text(weights.shape)}"
        )


@kernel("HistogramFixedWidth", types={"T": REALS, "dtype": _INDICES})
def make_histogram_fixed_width(attrs: Attrs) -> Kernel:
    """How many values fall into each bin; those outside the range into the outer ones."""
    dtype = attrs.dtype("dtype").numpy

    def compute(values: Value, value_range: Value, nbins: Value) -> Array:
        low, high = _range_in(value_range)
        count = _bins_in(nbins)
        check_new((count,), dtype)
        if count == 1:  # even what is no number
            return np.full(1, values.size, dtype)
        if np.isnan(values).any():
            raise InvalidArgumentError("Histogram values must not contain NaN")
        step = (high - low) / count
        bins = np.clip((values.astype(np.float64).reshape(-1) - low) / step, 0, count - 1)
        return np.bincount(bins.astype(np.intp), minlength=count).astype(dtype)

    return compute


def _range_in(value_range: Value) -> tuple[float, float]:
    if value_range.ndim != 1:
        raise InvalidArgumentError("value_range should be a vector.")
    if value_range.size != 2:
        raise InvalidArgumentError("value_range should be a vector of 2 elements.")
    low, high = value_range.tolist()
    if not low < high:
        raise InvalidArgumentError(
            "value_range should satisfy value_range[0] < value_range[1], "
            f"but got '[{low:g}, {high:g}]'"
        )
    if math.isinf(low):
        raise InvalidArgumentError(f"value_range[0] must be finite, got {low}")
    return low, high


def _bins_in(nbins: Value) -> int:
    if nbins.ndim:
        raise InvalidArgumentError("nbins should be a scalar.")
    if nbins <= 0:
        raise InvalidArgumentError(f"nbins should be a positive number, but got '{nbins}'")
    return int(nbins)
