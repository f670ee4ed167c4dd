"""Distinct elements, differences of lists, and inverses of permutations.

In:   vectors, or arrays whose slices along one axis count as elements.
Out:  elements in the order of their first appearance, and where they stand.
Not:  the elements found are not sorted.

Elements are equal as numbers are: 0 is -0, and NaN is no other NaN.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS

_ELEMENTS = REALS | {dtypes.string}
_LISTED = _ELEMENTS | {dtypes.bool_}
#: Fewer elements than these are numbered fastest by a dictionary.
_MANY: Final = 128
#: A table of all integers between the extremes may have so many places per element.
_PLACES_PER_ELEMENT: Final = 8

#: Where each distinct element is first, and which one each element is.
_Found: TypeAlias = tuple[Array, Array]


@kernel("Unique", "UniqueWithCounts", types={"T": _LISTED})
def make_unique(attrs: Attrs) -> Kernel:
    """The distinct elements of a vector, which one each element is, and their counts."""
    find = _finder(attrs)

    def compute(x: Value) -> tuple[Value, ...]:
        _check_vector(x)
        first, *rest = find(*_distinct_numbers(x))
        return x[first], *rest

    return compute


@kernel("UniqueV2", "UniqueWithCountsV2", types={"T": _LISTED})
def make_unique_slices(attrs: Attrs) -> Kernel:
    """The distinct slices along an axis, which one each slice is, and their counts."""
    find = _finder(attrs)

    def compute(x: Value, axes: Value) -> tuple[Value, ...]:
        axis = _axis_in(x, axes)
        if x.ndim == 1:
            first, *rest = find(*_distinct_numbers(x))
            return x[first], *rest
        slices = np.moveaxis(x, axis, 0)
        rows = slices.reshape((len(slices), math.prod(slices.shape[1:])))
        first, *rest = find(*_distinct(list(map(tuple, rows.tolist()))))
        return np.take(x, first, axis), *rest

    return compute


def _finder(attrs: Attrs) -> Kernel:
    """From what was found to where each distinct element is first, and the other outputs."""
    index_type = attrs.dtype("out_idx").numpy
    wants_counts = "count" in [output.name for output in attrs.op.outputs]

    def find(first: Array, which: Array) -> tuple[Array, ...]:
        found = first, which.astype(index_type, copy=False)
        if not wants_counts:
            return found
        return *found, np.bincount(which, minlength=len(first)).astype(index_type)

    return find


def _distinct(elements: list[Any]) -> _Found:
    """By a dictionary."""
    numbers: dict[Any, int] = {}
    number_of = numbers.setdefault
    which = np.array([number_of(e, len(numbers)) for e in elements], np.intp)
    first = np.empty(len(numbers), np.intp)
    # Backwards, so that of several places of an element the first one stays.
    first[which[::-1]] = np.arange(len(elements) - 1, -1, -1)
    return first, which


def _distinct_numbers(x: Array) -> _Found:
    """Those of a vector by the shortest way."""
    if len(x) < _MANY or x.dtype.char not in "bhilqBHILQfd":
        return _distinct(x.tolist())
    if x.dtype.kind != "f":
        least = x.min()
        span = int(x.max()) - int(least) + 1
        if span <= len(x) * _PLACES_PER_ELEMENT:
            wide = x if x.itemsize == 8 else x.astype(np.int64)
            return _distinct_by_table((wide - wide.dtype.type(least)).astype(np.intp), span)
    return _distinct_by_order(x)


def _distinct_by_table(x: Array, span: int) -> _Found:
    """Those of numbers from 0 to below ``span``."""
    count = len(x)
    places = np.full(span, count, np.intp)
    places[x[::-1]] = np.arange(count - 1, -1, -1)
    places.sort()
    first = places[: np.searchsorted(places, count)].copy()
    places[x[first]] = np.arange(len(first))
    return first, places[x]


def _distinct_by_order(x: Array) -> _Found:
    """Equal numbers are next to each other when sorted; a NaN equals nothing."""
    order = np.argsort(x)
    ordered = x[order]
    is_new = np.ones(len(x), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], is_new[1:])
    starts = np.flatnonzero(is_new)
    first = np.minimum.reduceat(order, starts)
    rank = np.argsort(first)
    number = np.empty(len(first), np.intp)
    number[rank] = np.arange(len(first))
    which = np.empty(len(x), np.intp)
    which[order] = np.repeat(number, np.diff(starts, append=len(x)))
    return first[rank], which


def _check_vector(x: Value) -> None:
    # At rank 0 a string is bytes and has no rank of its own.
    if getattr(x, "ndim", 0) != 1:
        raise InvalidArgumentError("unique expects a 1D vector.")


def _axis_in(x: Value, axes: Value) -> int:
    if axes.ndim != 1:
        raise InvalidArgumentError("axis expects a 1D vector.")
    if axes.size > 1:
        raise InvalidArgumentError("axis does not support input tensors larger than 1 elements")
    if axes.size == 0:
        _check_vector(x)
        return 0
    axis, rank = int(axes[0]), getattr(x, "ndim", 0)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"axis has to be between [0, {rank})")
    return axis


@kernel("ListDiff", types={"T": _ELEMENTS})
def make_list_diff(attrs: Attrs) -> Kernel:
    """The elements of a vector that another one has not, and where they stand."""
    index_type = attrs.dtype("out_idx").numpy

    def compute(x: Value, y: Value) -> tuple[Array, Array]:
        for name, value in (("x", x), ("y", y)):
            if getattr(value, "ndim", 0) != 1:
                raise InvalidArgumentError(f"{name} should be a 1D vector.")
        unwanted = set(y.tolist())
        kept = [place for place, e in enumerate(x.tolist()) if e not in unwanted]
        places = np.array(kept, index_type)
        return x[places], places

    return compute


@kernel("InvertPermutation", types={"T": {dtypes.int32, dtypes.int64}})
def make_invert_permutation(attrs: Attrs) -> Kernel:
    """Where each of the numbers 0 to n - 1 stands in a permutation of them."""
    dtype = attrs.dtype("T").numpy

    def compute(x: Value) -> Array:
        if x.ndim != 1:
            raise InvalidArgumentError("invert_permutation expects a 1D vector.")
        outside = (x < 0) | (x >= len(x))
        if outside.any():
            raise InvalidArgumentError(f"{x[outside][0]} is not between 0 and {len(x)}")
        inverse = np.full(len(x), -1, dtype)
        inverse[x] = np.arange(len(x), dtype=dtype)
        if inverse.size and inverse.min() < 0:
            twice = np.argmax(np.bincount(x) > 1)
            raise InvalidArgumentError(f"{twice} is duplicated in the input.")
        return inverse

    return compute
