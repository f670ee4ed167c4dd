"""Distinct elements, differences of lists, and inverses of permutations.

In:   vectors, or arrays whose slices along one axis count as elements.
Out:  elements in the order of their first appearance, and where they stand.
Not:  sorts nothing.

Elements are equal as numbers are: 0 is -0, and NaN is no other NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.types import REALS

_ELEMENTS = REALS | {dtypes.string}
_LISTED = _ELEMENTS | {dtypes.bool_}


@kernel("Unique", "UniqueWithCounts", types={"T": _LISTED})
def make_unique(attrs: Attrs) -> Kernel:
    """The distinct elements of a vector, which one each element is, and their counts."""
    find = _finder(attrs)

    def compute(x: Value) -> tuple[Value, ...]:
        _check_vector(x)
        first, *rest = find(x.tolist())
        return x[first], *rest

    return compute


@kernel("UniqueV2", "UniqueWithCountsV2", types={"T": _LISTED})
def make_unique_slices(attrs: Attrs) -> Kernel:
    """The distinct slices along an axis, which one each slice is, and their counts."""
    find = _finder(attrs)

    def compute(x: Value, axes: Value) -> tuple[Value, ...]:
        axis = _axis_in(x, axes)
        if x.ndim == 1:
            first, *rest = find(x.tolist())
            return x[first], *rest
        slices = np.moveaxis(x, axis, 0)
        rows = slices.reshape((len(slices), math.prod(slices.shape[1:])))
        first, *rest = find(list(map(tuple, rows.tolist())))
        return np.take(x, first, axis), *rest

    return compute


def _finder(attrs: Attrs) -> Kernel:
    """From a list to where each distinct element is first, which one each is, the counts."""
    index_type = attrs.dtype("out_idx").numpy
    wants_counts = "count" in [output.name for output in attrs.op.outputs]

    def find(elements: list[Any]) -> tuple[Array, ...]:
        numbers: dict[Any, int] = {}
        number_of = numbers.setdefault
        which = np.array([number_of(e, len(numbers)) for e in elements], np.intp)
        first = np.empty(len(numbers), np.intp)
        # Backwards, so that of several places of an element the first one stays.
        first[which[::-1]] = np.arange(len(elements) - 1, -1, -1)
        found = first, which.astype(index_type)
        if not wants_counts:
            return found
        return *found, np.bincount(which, minlength=len(numbers)).astype(index_type)

    return find


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
