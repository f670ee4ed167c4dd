"""Shapes that are stretched to fit each other, and arrays stretched to a shape.

In:   an array and a shape, or two shapes.
Out:  a read-only view of the stretched array; the common shape; the stretched dimensions.
Not:  copies no element.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, freeze, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.values.arrays import SMALL, as_array, check_new, shape_text

_INDEX = frozenset({dtypes.int32, dtypes.int64})
_FLOAT8 = {dtypes.as_dtype("float8_e5m2"), dtypes.as_dtype("float8_e4m3fn")}
_ELEMENTS = NUMBERS | _FLOAT8 | {dtypes.bool_, dtypes.string, dtypes.resource, dtypes.variant}


@kernel("BroadcastTo", types={"T": _ELEMENTS, "Tidx": _INDEX}, cost=Cost.CHEAP)
def make_broadcast_to(attrs: Attrs) -> Kernel:
    """The input repeated along new dimensions and those of size 1."""
    dtype = attrs.dtype("T").numpy
    last: tuple[Value, tuple[int, ...]] = (make_broadcast_to, ())

    def broadcast_to(value: Value, shape: Value) -> Value:
        nonlocal last
        known, sizes = last
        if shape is not known:
            sizes = _sizes(shape, "shape")
            if is_constant(shape):
                last = shape, sizes
        given = shape_of(value)
        if given == sizes:
            return value
        _check_stretch(given, sizes)
        check_new(sizes, dtype)  # A view takes no memory, but who reads it will.
        if dtype.hasobject or math.prod(sizes) * dtype.itemsize > SMALL:
            return _stretch(value, sizes)
        # A small copy is made faster than a view, and used faster.
        stretched = np.empty(sizes, dtype)
        try:
            stretched[...] = value
        except ValueError:
            return _stretch(value, sizes)
        return stretched

    return broadcast_to


def _check_stretch(given: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    if sizes and min(sizes) < 0:
        raise ValueError(f"Dimension {min(sizes)} must be >= 0")
    if len(given) > len(sizes):
        raise ValueError(
            f"Rank of input ({len(given)}) must be no greater than rank of output shape "
            f"({len(sizes)})."
        )


def _stretch(value: Value, sizes: tuple[int, ...]) -> Value:
    array = as_array(value)
    try:
        return np.broadcast_to(array, sizes)
    except ValueError:
        raise ValueError(
            f"Incompatible shapes: {shape_text(array.shape)} vs. {shape_text(sizes)}"
        ) from None


def _sizes(shape: Value, name: str) -> tuple[int, ...]:
    if shape.ndim != 1:
        given = shape_text(shape_of(shape))
        raise ValueError(f"{name} must be a vector of {{int32,int64}}, got shape {given}")
    return tuple(shape.tolist())


@kernel("BroadcastArgs", types={"T": _INDEX}, cost=Cost.CHEAP)
def make_broadcast_args(attrs: Attrs) -> Kernel:
    """The shape that two shapes have in common once they are stretched."""
    index = attrs.dtype("T").numpy

    def broadcast_args(s0: Value, s1: Value) -> Value:
        pairs = _aligned(_sizes(s0, "s0"), _sizes(s1, "s1"))
        return np.array([b if a == 1 else a for a, b in pairs], index)

    return broadcast_args


@kernel("BroadcastGradientArgs", types={"T": _INDEX}, cost=Cost.CHEAP)
def make_broadcast_gradient_args(attrs: Attrs) -> Kernel:
    """The dimensions that each of two shapes was stretched along, to be summed over.

    A dimension that is 1 in both counts for both, unless the shapes are equal.
    """
    index = attrs.dtype("T").numpy

    def broadcast_gradient_args(s0: Value, s1: Value) -> tuple[Array, Array]:
        return _stretched(_sizes(s0, "s0"), _sizes(s1, "s1"), index)

    return broadcast_gradient_args


# A loop's gradient asks for the same shapes in every iteration.
@functools.lru_cache(maxsize=256)
def _stretched(a: tuple[int, ...], b: tuple[int, ...], index: np.dtype[Any]) -> tuple[Array, Array]:
    """The dimensions of the common shape in which each of two shapes has size 1."""
    pairs = [] if a == b else _aligned(a, b)
    of_a = [i for i, (size, _) in enumerate(pairs) if size == 1]
    of_b = [i for i, (_, size) in enumerate(pairs) if size == 1]
    return freeze(np.array(of_a, index)), freeze(np.array(of_b, index))


def _aligned(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs of sizes, first dimension first; the shorter shape begins with ones."""
    pairs = list(_backwards(a, b))[::-1]
    if any(x not in (1, y) and y != 1 for x, y in pairs):
        raise ValueError(f"Incompatible shapes: {shape_text(a)} vs. {shape_text(b)}")
    return pairs


def _backwards(a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    return itertools.zip_longest(reversed(a), reversed(b), fillvalue=1)
