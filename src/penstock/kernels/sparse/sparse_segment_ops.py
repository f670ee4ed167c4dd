"""Sums and means of segments whose rows are gathered first, and their gradients.

In:   data, the numbers of the rows to gather, and the segment of each of them (sorted).
Out:  one row per segment: the sum, the mean, or the sum by the root of the count.
      Of a gradient: what each row of the data gets back.
Not:  no sparse tensors.

Sums are those of TensorFlow to the last bit: what is more than a multiple of eight rows comes
first, then eight at a time.  float16 and bfloat16 are summed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS, REALS
from penstock.kernels.c.segments import sum_segments
from penstock.kernels.math.reduction_ops import accumulator
from penstock.kernels.math.segment_ops import count_in
from penstock.kernels.math.segments import (
    as_divisors,
    check_sorted,
    fold,
    fold_sorted,
    sizes_of,
    starts_of,
)
from penstock.kernels.values.arrays import shape_text

_INDICES: Final = frozenset({dtypes.int32, dtypes.int64})
_IDS: Final = {"Tidx": _INDICES, "Tsegmentids": _INDICES}
#: From the number of rows in each segment to what its sum is divided by.
Divisor: TypeAlias = Callable[[Array], Array]
#: Of fewer rows sums are multiplied by the divisor's reciprocal, and taken at once.
_MANY_ROWS: Final = 10
_AT_ONCE: Final = 8

_DIVISORS: Final[dict[str, Divisor | None]] = {
    "Sum": None,
    "Mean": lambda sizes: sizes,
    "SqrtN": np.sqrt,
}


def _divisor(attrs: Attrs) -> Divisor | None:
    kind = attrs.op.name.removeprefix("SparseSegment")
    return _DIVISORS[kind.removesuffix("WithNumSegments").removesuffix("V2").removesuffix("Grad")]


@kernel("SparseSegmentSum", "SparseSegmentSumWithNumSegments", types={"T": REALS, **_IDS})
@kernel(
    "SparseSegmentMean",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtN",
    "SparseSegmentSqrtNWithNumSegments",
    types={"T": FLOATS, **_IDS},
)
def make_sparse_segment(attrs: Attrs) -> Kernel:
    """The sum, mean, or sum by root of count, of the gathered rows of each segment."""
    dtype, divisor = attrs.dtype("T"), _divisor(attrs)
    wide, narrow = accumulator(dtype), dtype.numpy

    def compute(data: Value, indices: Value, ids: Value, *num_segments: Value) -> Value:
        given = _count(*num_segments)
        _check_rows(data, indices, ids)
        count = check_sorted(ids, given)
        # Copied before it is checked: in C, a number that somebody changes later is a wrong place.
        places = _checked(indices.astype(np.int64), len(data))
        sizes = np.bincount(ids, minlength=count)
        folded = sum_segments(data, places, sizes) if attrs.accelerate else None
        if folded is None:
            folded = _sums(data[places].astype(wide, copy=False), ids, sizes)
        if divisor is not None:
            sizes = as_divisors(sizes, data.ndim)
            _divide(folded, divisor(sizes.astype(wide)), sizes)
        return folded.astype(narrow, copy=False)

    return compute


def _sums(rows: Array, ids: Array, sizes: Array) -> Array:
    """The sum of each segment: first what is more than a multiple of eight rows, then eights."""
    # What every number can be added to, the negative zero among them.
    nothing = -0.0
    sums = _folded(rows, ids, sizes, nothing)
    sums[sizes == 0] = 0
    return sums


def _folded(rows: Array, ids: Array, sizes: Array, nothing: float) -> Array:
    if sizes.max(initial=0) < _MANY_ROWS:
        return fold_sorted(np.add, rows, ids, len(sizes), nothing)
    starts = starts_of(ids)
    lengths = np.diff(starts, append=len(ids))
    firsts = lengths % _AT_ONCE
    # A single row is no sum: it goes with the first eight.
    firsts[firsts <= 1] += _AT_ONCE
    later = np.arange(len(ids)) - np.repeat(starts + firsts, lengths)
    parts = np.maximum(later // _AT_ONCE + 1, 0)
    parts += np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
    numbers, part_ids = np.unique(parts, return_inverse=True)
    summed = fold_sorted(np.add, rows, part_ids, len(numbers), nothing)
    return fold_sorted(np.add, summed, ids[starts_of(part_ids)], len(sizes), nothing)


def _divide(sums: Array, divisors: Array, sizes: Array) -> None:
    """Divide sums of many rows; multiply those of few by the reciprocals."""
    is_few = sizes < _MANY_ROWS
    one = divisors.dtype.type(1)
    sums *= np.where(is_few, one / divisors, one)
    sums /= np.where(is_few, one, divisors)


def _count(num_segments: Value | None = None) -> int | None:
    if num_segments is None:
        return None
    if num_segments.ndim == 0 and num_segments < 0:
        raise InvalidArgumentError("segment ids must be >= 0")
    return count_in(num_segments)


def _checked(indices: Array, size: int) -> Array:
    """The indices; raises if one is outside."""
    outside = (indices < 0) | (indices >= size)
    if outside.any():
        place = int(np.argmax(outside))
        raise InvalidArgumentError(
            f"Bad: indices[{place}] == {indices[place]} out of range [0, {size})"
        )
    return indices


def _check_rows(data: Value, indices: Value, ids: Value) -> None:
    if data.ndim == 0:
        raise InvalidArgumentError("Shape must be at least rank 1")
    for name, value in (("indices", indices), ("segment_ids", ids)):
        if value.ndim != 1:
            raise InvalidArgumentError(f"{name} should be a vector.")
    if len(indices) != len(ids):
        raise InvalidArgumentError(
            f"segment_ids and indices should have same size, not {len(ids)} and {len(indices)}"
        )


_GRADS: Final = ("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")


@kernel(*_GRADS, types={"T": FLOATS, **_IDS})
def make_sparse_segment_grad(attrs: Attrs) -> Kernel:
    """What the rows of the data get back, for all rows."""
    spread, narrow = _spread(attrs), attrs.dtype("T").numpy

    def compute(grad: Value, indices: Value, ids: Value, size: Value) -> Value:
        rows = spread(grad, indices, ids, _size(size))
        places = indices[: len(rows)]
        return fold(np.add, rows, places, int(size), 0).astype(narrow, copy=False)

    return compute


@kernel(*(f"{name}V2" for name in _GRADS), types={"T": FLOATS, **_IDS})
def make_sparse_segment_grad_v2(attrs: Attrs) -> Kernel:
    """What the rows of the data get back, for the rows that get something."""
    spread, narrow = _spread(attrs), attrs.dtype("T").numpy

    def compute(grad: Value, indices: Value, ids: Value, size: Value) -> tuple[Value, Value]:
        rows = spread(grad, indices, ids, _size(size))
        places, numbers = np.unique(indices[: len(rows)], return_inverse=True)
        folded = fold(np.add, rows, numbers, len(places), 0)
        return folded.astype(narrow, copy=False), places

    return compute


def _size(size: Value) -> int:
    if size.ndim:
        raise InvalidArgumentError(
            f"output_dim0 should be a scalar, not of shape {shape_text(size.shape)}"
        )
    if size < 0:
        raise InvalidArgumentError(f"Expected a non-negative size, got {size}")
    return int(size)


def _spread(attrs: Attrs) -> Callable[[Value, Value, Value, int], Array]:
    """What each gathered row gets back: its segment's gradient by the segment's divisor."""
    divisor, wide = _divisor(attrs), accumulator(attrs.dtype("T"))

    def spread(grad: Value, indices: Value, ids: Value, size: int) -> Array:
        _check_rows(grad, indices, ids)
        if size == 0:  # nothing gets anything
            return np.zeros((0, *grad.shape[1:]), wide)
        _check_range("Index", indices, size)
        if ids.size and ids[-1] >= len(grad):
            raise InvalidArgumentError("Invalid number of segments")
        _check_range("Segment id", ids, len(grad))
        rows: Array = grad[ids].astype(wide, copy=False)
        if divisor is None:
            return rows
        scale = (1 / divisor(sizes_of(ids, len(grad), grad.ndim))).astype(wide)
        rows *= scale[ids]
        return rows

    return spread


def _check_range(what: str, numbers: Array, size: int) -> None:
    outside = (numbers < 0) | (numbers >= size)
    if outside.any():
        first = numbers[np.argmax(outside)]
        raise InvalidArgumentError(f"{what} {first} out of range [0, {size}).")
