"""Sums, means, products and extrema of the segments of an array.

In:   data and the segment that each of its rows (for Unsorted ops: each of its elements
      or slices) belongs to.
Out:  one row per segment.  Where there is nothing: 0 or 1; of Unsorted extrema the worst
      finite number.
Not:  gathers no rows (sparse_segment_ops).

Integers wrap around.  Sums and products are rounded after each row, in float16 and bfloat16,
too.  A NaN makes an extremum forget what came before it, and is the extremum only where it comes
last.  The second versions of the sorted ops are XLA's: it wants no order, and leaves out rows
that have no segment.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import ml_dtypes
import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, REALS
from penstock.kernels.math.reduction_ops import worst
from penstock.kernels.math.segments import (
    as_divisors,
    check_sorted,
    fold,
    fold_extrema,
    fold_sorted,
    sizes_of_sorted,
    sorted_sums,
)
from penstock.kernels.values.arrays import shape_text

_UFUNCS: Final[dict[str, np.ufunc]] = {
    "Sum": np.add,
    "Prod": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
}
_SORTED_IDS: Final = frozenset({dtypes.int32, dtypes.int64})
_UNSORTED_IDS: Final = frozenset({dtypes.int16, dtypes.int32, dtypes.int64})


@kernel("SegmentSum", "SegmentProd", types={"T": NUMBERS, "Tindices": _SORTED_IDS})
def make_segment_sum(attrs: Attrs) -> Kernel:
    """The sum or product of each run of rows with the same id; ids must be sorted."""
    ufunc = _UFUNCS[attrs.op.name.removeprefix("Segment")]
    default = ufunc.identity
    is_in_c = attrs.accelerate and ufunc is np.add

    def compute(data: Value, ids: Value) -> Value:
        _check_rows(data, ids)
        count = check_sorted(ids)
        in_c = sorted_sums(data, ids, count) if is_in_c else None
        return fold_sorted(ufunc, data, ids, count, default) if in_c is None else in_c

    return compute


@kernel("SegmentMax", "SegmentMin", types={"T": REALS, "Tindices": _SORTED_IDS})
def make_segment_extremum(attrs: Attrs) -> Kernel:
    """The extremum of each run of rows with the same id; 0 where there is none."""
    kind, dtype = attrs.op.name.removeprefix("Segment"), attrs.dtype("T")
    ufunc, neutral = _UFUNCS[kind], worst(dtype, largest=kind == "Max")
    fold_some = fold_extrema if dtype.is_floating else fold_sorted

    def compute(data: Value, ids: Value) -> Value:
        _check_rows(data, ids)
        count = check_sorted(ids)
        folded = fold_some(ufunc, data, ids, count, neutral)
        folded[np.bincount(ids, minlength=count) == 0] = 0
        return folded

    return compute


@kernel("SegmentMean", types={"T": NUMBERS, "Tindices": _SORTED_IDS})
def make_segment_mean(attrs: Attrs) -> Kernel:
    """The mean of each run of rows with the same id, of integers towards zero."""
    dtype = attrs.dtype("T")
    narrow = dtype.numpy
    divide = _quotient_towards_zero if dtype.is_integer else operator.truediv
    size_type = np.dtype(np.int64) if dtype.is_integer else narrow

    def compute(data: Value, ids: Value) -> Value:
        _check_rows(data, ids)
        count = check_sorted(ids)
        total = sorted_sums(data, ids, count) if attrs.accelerate else None
        if total is None:
            total = fold_sorted(np.add, data, ids, count, 0)
        sizes = as_divisors(sizes_of_sorted(ids, count), data.ndim).astype(size_type)
        # Where complex numbers are infinite, not even division by one leaves them alone.
        return np.where(sizes == 1, total, divide(total, sizes)).astype(narrow, copy=False)

    return compute


def _quotient_towards_zero(total: Array, sizes: Array) -> Array:
    sizes = sizes.astype(np.uint64 if total.dtype == np.uint64 else np.int64)
    quotient: Array = (total - np.fmod(total, sizes)) // sizes
    return quotient


def _check_rows(data: Value, ids: Value) -> None:
    if data.ndim == 0:
        raise InvalidArgumentError("input must be at least rank 1")
    if ids.ndim != 1:
        raise InvalidArgumentError("segment_ids should be a vector.")
    if len(ids) != len(data):
        raise InvalidArgumentError(
            "segment_ids should be the same size as dimension 0 of input: "
            f"{len(ids)} against {shape_text(data.shape)}"
        )


@kernel("UnsortedSegmentMax", "UnsortedSegmentMin", types={"T": REALS, "Tindices": _UNSORTED_IDS})
@kernel("SegmentMaxV2", "SegmentMinV2", types={"T": REALS, "Tindices": _SORTED_IDS})
def make_unsorted_segment_extremum(attrs: Attrs) -> Kernel:
    """The extremum of the elements with each id; the worst finite number of none."""
    kind, dtype = _kind_of(attrs), attrs.dtype("T")
    limits = (ml_dtypes.finfo if dtype.is_floating else np.iinfo)(dtype.numpy)
    return _unsorted(attrs, dtype, limits.min if kind == "Max" else limits.max)


@kernel(
    "UnsortedSegmentSum", "UnsortedSegmentProd", types={"T": NUMBERS, "Tindices": _UNSORTED_IDS}
)
@kernel("SegmentSumV2", "SegmentProdV2", types={"T": NUMBERS, "Tindices": _SORTED_IDS})
def make_unsorted_segment_sum(attrs: Attrs) -> Kernel:
    """The sum or product of the elements with each id; 0 or 1 of none."""
    return _unsorted(attrs, attrs.dtype("T"), _UFUNCS[_kind_of(attrs)].identity)


def _kind_of(attrs: Attrs) -> str:
    return attrs.op.name.removeprefix("Unsorted").removeprefix("Segment").removesuffix("V2")


def _unsorted(attrs: Attrs, dtype: DType, neutral: Any) -> Kernel:
    ufunc = _UFUNCS[_kind_of(attrs)]
    choose = _inside if attrs.op.name.endswith("V2") else _with_segment
    is_extremum = _kind_of(attrs) in ("Max", "Min")
    fold_some = fold_extrema if is_extremum and dtype.is_floating else fold

    def compute(data: Value, ids: Value, num_segments: Value) -> Value:
        count = count_in(num_segments)
        if data.shape[: ids.ndim] != ids.shape:
            raise InvalidArgumentError(
                f"data.shape = {shape_text(data.shape)} does not start with "
                f"segment_ids.shape = {shape_text(ids.shape)}"
            )
        rows = data.reshape((ids.size, *data.shape[ids.ndim :]))
        rows, numbers = choose(rows, ids, count)
        return fold_some(ufunc, rows, numbers, count, neutral)

    return compute


def _with_segment(rows: Array, ids: Value, count: int) -> tuple[Array, Array]:
    """The rows that have a segment, which those with negative ids have not."""
    flat: Array = ids.reshape(-1)
    if rows.size and flat.max() >= count:
        place = int(np.argmax(flat >= count))
        at = shape_text([int(i) for i in np.unravel_index(place, ids.shape)]) if ids.ndim else ""
        raise InvalidArgumentError(f"segment_ids{at} = {flat[place]} is out of range [0, {count})")
    if flat.size and flat.min() < 0:
        inside = flat >= 0
        return rows[inside], flat[inside]
    return rows, flat


def _inside(rows: Array, ids: Value, count: int) -> tuple[Array, Array]:
    """The rows whose segment there is."""
    flat: Array = ids.reshape(-1)
    if count == 0 and rows.size:
        raise InvalidArgumentError("Scatter dimension 0 is of size zero: num_segments is 0")
    if flat.size and (flat.min() < 0 or flat.max() >= count):
        inside = (flat >= 0) & (flat < count)
        return rows[inside], flat[inside]
    return rows, flat


def count_in(num_segments: Value) -> int:
    """The number of segments that an input gives."""
    if num_segments.ndim:
        raise InvalidArgumentError(
            f"num_segments should be a scalar, not shape {shape_text(num_segments.shape)}"
        )
    if num_segments < 0:
        raise InvalidArgumentError(f"Input num_segments == {num_segments} must not be negative.")
    return int(num_segments)
