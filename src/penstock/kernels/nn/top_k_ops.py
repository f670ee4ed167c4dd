"""The largest elements of each row, and ranks within rows.

In:   an array whose last axis is a row, and how many elements, or which rank.
Out:  elements in falling order with their positions, of equal ones the first; one element
      by rank; or whether a target is among the best.
Not:  no position along other axes (argmax_ops).

NaN counts as larger than all numbers; TensorFlow's order of NaN is an accident.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.selection import floor_of_best, nth_smallest, sortable

#: Rows that are longer than this and than 4 k are thinned out before they are sorted.
_LONG_ROW: Final = 512
#: If more than so many times k elements of each row are left, the rows are thinned out one by one.
_MANY_EACH: Final = 8


@kernel("TopK", types={"T": REALS})
def make_top_k_of_old(attrs: Attrs) -> Kernel:
    """The k largest elements of each row, and where they stand; k is an attribute."""
    count = attrs.int("k")
    return lambda x: _top_k(x, count, np.dtype(np.int32))


@kernel("TopKV2", types={"T": REALS})
def make_top_k(attrs: Attrs) -> Kernel:
    """The k largest elements of each row, and where they stand; always in falling order."""
    index_type = attrs.dtype("index_type").numpy

    def compute(x: Value, k: Value) -> tuple[Value, Value]:
        if k.ndim:
            raise InvalidArgumentError(f"k must be scalar, got shape {shape_text(k.shape)}")
        return _top_k(x, int(k), index_type)

    return compute


def _top_k(x: Value, k: int, index_type: np.dtype[Any]) -> tuple[Array, Array]:
    if x.ndim == 0:
        raise InvalidArgumentError("input must be >= 1-D, got shape []")
    if k < 0:
        raise InvalidArgumentError(f"Need k >= 0, got {k}")
    size = x.shape[-1]
    if k > size:
        raise InvalidArgumentError(f"input must have at least k columns. Had {size}, needed {k}")
    keys = sortable(x)
    if x.ndim == 1:
        places = _best_places(keys, k)
        return x.take(places), places.astype(index_type)
    rows = keys.reshape((math.prod(x.shape[:-1]), size))
    places = _best_places_of_all(rows, k)
    starts = np.arange(len(rows))[:, None] * size
    shape = (*x.shape[:-1], k)
    best = x.reshape(-1).take(places + starts).reshape(shape)
    return best, places.astype(index_type).reshape(shape)


def _best_places_of_all(rows: Array, k: int) -> Array:
    """Positions of the k largest elements of rows, in falling order."""
    if k == 1 <= rows.size:
        best: Array = rows.argmax(1)[:, None]
        return best
    return _best_places_of_rows(rows, k) if _is_long(rows.shape[1], k) else _falling(rows)[:, :k]


def _is_long(size: int, k: int) -> bool:
    """Whether a row is thinned out before it is sorted."""
    return size > _LONG_ROW and size > 4 * k


def _falling(x: Array) -> Array:
    """Positions in falling order of their elements, equal ones in rising order."""
    # A stable sort of the reversed row, read backwards, needs no negation of elements.
    order = x[..., ::-1].argsort(axis=-1, kind="stable")[..., ::-1]
    falling: Array = x.shape[-1] - 1 - order
    return falling


def _best_places(row: Array, k: int) -> Array:
    """Positions of the k largest elements of one row, in falling order."""
    if not _is_long(len(row), k):
        return _falling(row)[:k]
    if k == 0:
        return np.empty(0, np.intp)
    floor = floor_of_best(row, k)[0]
    is_nan = bool(np.isnan(floor))
    better = np.empty(0, np.intp) if is_nan else np.flatnonzero(~(row <= floor))
    best: Array
    if len(better) >= k:  # no more than half of the row
        best = better[_best_places(row[better], k)]
        return best
    equal = np.flatnonzero(np.isnan(row) if is_nan else row == floor)
    best = np.concatenate([better[_falling(row[better])], equal[: k - len(better)]])
    return best


def _best_places_of_rows(rows: Array, k: int) -> Array:
    """Positions of the k largest elements of long rows, in falling order."""
    count, size = rows.shape
    if k == 0:
        return np.empty((count, 0), np.intp)
    candidates = np.flatnonzero(~(rows < floor_of_best(rows, k)))
    if len(candidates) > _MANY_EACH * count * k:  # many equal ones, or NaN
        return np.array([_best_places(row, k) for row in rows]).reshape(count, k)
    ranked = candidates[_falling(rows.reshape(-1).take(candidates))]
    ranked = ranked[(ranked // size).argsort(kind="stable")]
    starts = np.searchsorted(candidates, np.arange(count) * size)
    best: Array = ranked[starts[:, np.newaxis] + np.arange(k)] % size
    return best


@kernel("NthElement", types={"T": REALS})
def make_nth_element(attrs: Attrs) -> Kernel:
    """The element of each row that would stand at place n, were the row sorted."""
    reverse = attrs.bool("reverse")

    def compute(x: Value, n: Value) -> Value:
        _check_rank(x, n)
        place = x.shape[-1] - 1 - int(n) if reverse else int(n)
        return as_value(nth_smallest(sortable(x), place).astype(x.dtype, copy=False))

    return compute


def _check_rank(x: Value, n: Value) -> None:
    if n.ndim:
        raise InvalidArgumentError(f"N must be scalar but has rank {n.ndim}")
    if n < 0:
        raise InvalidArgumentError(f"n must be non-negative but is {n}")
    if x.ndim == 0:
        raise InvalidArgumentError("Input must be at least rank 1 but is rank 0")
    if n >= x.shape[-1]:
        raise InvalidArgumentError(f"Input must have last dimension > n = {n}")


@kernel("InTopK", types={"T": {dtypes.int32, dtypes.int64}})
def make_in_top_k_of_old(attrs: Attrs) -> Kernel:
    """Whether each row's target is among its k best; k is an attribute."""
    count = attrs.int("k")
    return lambda predictions, targets: _in_top_k(predictions, targets, count)


@kernel("InTopKV2", types={"T": {dtypes.int32, dtypes.int64}})
def make_in_top_k(_: Attrs) -> Kernel:
    """Whether each row's target is among its k best: fewer than k are better."""

    def compute(predictions: Value, targets: Value, k: Value) -> Value:
        if k.ndim:
            raise InvalidArgumentError(f"k must be 0-D, got shape {shape_text(k.shape)}")
        return _in_top_k(predictions, targets, int(k))

    return compute


def _in_top_k(predictions: Value, targets: Value, k: int) -> Array:
    """Rows with a number that is not finite, or a target outside, have no best ones."""
    _check_targets(predictions, targets)
    rows, classes = predictions.shape
    is_inside: Array = (targets >= 0) & (targets < classes)
    if classes == 0:
        return is_inside
    chosen = predictions[np.arange(rows), np.where(is_inside, targets, 0)]
    better = np.count_nonzero(predictions > chosen[:, None], axis=1)
    is_in: Array = is_inside & (better < k) & np.isfinite(predictions).all(axis=1)
    return is_in


def _check_targets(predictions: Value, targets: Value) -> None:
    if predictions.ndim != 2:
        raise InvalidArgumentError("predictions must be 2-dimensional")
    if targets.ndim != 1:
        raise InvalidArgumentError("targets must be 1-dimensional")
    if len(predictions) != len(targets):
        raise InvalidArgumentError(
            f"First dimension of predictions {len(predictions)} must match length of "
            f"targets {len(targets)}"
        )
