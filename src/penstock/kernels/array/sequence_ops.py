"""Ops that make an array from a few scalars.

In:   a shape, or where a sequence starts and ends.
Out:  a new array.
Not:  draws no random numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, freeze
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import remembering
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS, OBJECTS, PLAIN, QUANTIZED
from penstock.kernels.parallel.intra_op import parallel_for
from penstock.kernels.values.arrays import (
    SMALL,
    check_new,
    full,
    number_in,
    shape_text,
    sizes_in,
    zeros,
)

#: Bytes of rows from which on most of memory is that of no index, and comes as zeros; and elements
#: of narrower ones that are copied from a table at a time.
_WIDE_ROW: Final = 1_024
_PIECE: Final = 1 << 17
_INT4: Final = frozenset(map(dtypes.as_dtype, ("int4", "uint4")))


@kernel("Fill", types={"T": PLAIN | OBJECTS | QUANTIZED | _INT4})
def make_fill(attrs: Attrs) -> Kernel:
    """An array of a given shape with the same scalar everywhere."""
    dtype = attrs.dtype("T").numpy

    def read(dims: Value) -> list[int]:
        sizes = sizes_in(dims)
        check_new(sizes, dtype)
        return sizes

    sizes_of = remembering(read)

    def fill(dims: Value, value: Value) -> Value:
        if type(value) is np.ndarray:
            value = _scalar(value, "value")
        sizes = sizes_of(dims)
        if not sizes:
            return value
        filled = np.empty(sizes, dtype)
        filled.fill(value)
        return filled

    return fill


def _scalar(value: Value, name: str) -> Value:
    """The only element of an array; old graphs have scalars of shape [1]."""
    if value.size != 1 or value.ndim > 1:
        raise InvalidArgumentError(f"{name} must be a scalar, not shape {shape_text(value.shape)}")
    return value.reshape(())[()]


@kernel("Empty", types={"dtype": PLAIN | {dtypes.string}})
def make_empty(attrs: Attrs) -> Kernel:
    """An array of zeros: what may be anything is the same in every run."""
    dtype = attrs.dtype("dtype")

    def empty(shape: Value) -> Value:
        if shape.ndim != 1:
            raise InvalidArgumentError(
                f"shape must be a vector of int32, got shape {shape_text(shape.shape)}"
            )
        return as_value(zeros(shape.tolist(), dtype))

    return empty


@kernel("Range", types={"Tidx": FLOATS | {dtypes.int32, dtypes.int64}})
def make_range(attrs: Attrs) -> Kernel:
    """start, start + delta, start + 2 delta … as long as limit is not reached."""
    dtype = attrs.dtype("Tidx").numpy

    def integers(start: Value, limit: Value, delta: Value) -> Array:
        first = number_in(start, "start must be a scalar")
        step = number_in(delta, "delta must be a scalar")
        last = number_in(limit, "limit must be a scalar")
        _check_direction(first, last, step)
        count = -((first - last) // step)
        _check_count(count, dtype)
        numbers: Array = np.arange(count, dtype=dtype)
        return numbers if first == 0 and step == 1 else start + numbers * delta

    def floats(start: Value, limit: Value, delta: Value) -> Array:
        start, limit = _scalar(start, "start"), _scalar(limit, "limit")
        delta = _scalar(delta, "delta")
        _check_direction(start, limit, delta)
        count = float(np.ceil(abs((limit - start) / delta)))
        _check_count(count, dtype)
        # Not by adding up: the rounding differs, and TensorFlow multiplies.
        numbers: Array = start + np.arange(int(count)).astype(dtype) * delta
        return numbers

    return integers if attrs.dtype("Tidx").is_integer else floats


def _check_direction(start: Value, limit: Value, delta: Value) -> None:
    if delta == 0:
        raise InvalidArgumentError(f"Requires delta != 0: {delta}")
    if delta > 0 and not start <= limit:
        raise InvalidArgumentError(f"Requires start <= limit when delta > 0: {start}/{limit}")
    if not delta > 0 and not start >= limit:
        raise InvalidArgumentError(f"Requires start >= limit when delta < 0: {start}/{limit}")


def _check_count(count: float, dtype: np.dtype[Any]) -> None:
    if not count < 2**63:
        raise InvalidArgumentError(f"Requires ((limit - start) / delta) <= {2**63 - 1}")
    check_new((int(count),), dtype)


@kernel("LinSpace", types={"T": {dtypes.float32, dtypes.float64}})
def make_lin_space(attrs: Attrs) -> Kernel:
    """``num`` numbers at equal distances, from start to stop inclusive."""
    dtype: Any = attrs.dtype("T").numpy

    def lin_space(start: Value, stop: Value, num: Value) -> Array:
        for name, value in (("start", start), ("stop", stop), ("num", num)):
            if value.ndim:
                raise InvalidArgumentError(
                    f"{name} must be a scalar, not shape {shape_text(value.shape)}"
                )
        count = number_in(num, "num must be a scalar")
        if count <= 0:
            raise InvalidArgumentError(f"Requires num > 0: {count}")
        check_new((count,), dtype)
        step = (stop - start) / dtype.type(max(count - 1, 1))
        numbers: Array = start + step * np.arange(count).astype(dtype)
        if count > 1:
            numbers[-1] = stop  # exactly, whatever the rounding
        return numbers

    return lin_space


@kernel("OneHot", types={"T": PLAIN | OBJECTS})
def make_one_hot(attrs: Attrs) -> Kernel:
    """A new dimension in which every index has ``on_value`` at its place."""
    axis = attrs.int("axis")
    dtype = attrs.dtype("T").numpy

    def one_hot(indices: Value, depth: Value, on_value: Value, off_value: Value) -> Value:
        count = _depth(depth, on_value, off_value)
        rank = indices.ndim
        if not -1 <= axis <= rank:
            raise InvalidArgumentError(
                f"Expected axis to be -1 or between [0, {rank + 1}).  But received: {axis}"
            )
        if indices.size * count * dtype.itemsize <= SMALL and not dtype.hasobject:
            shaped: Any = np.where(indices[..., None] == _numbers(count), on_value, off_value)
        else:
            shaped = _marked(indices, count, on_value, off_value, dtype)
        return shaped if axis in {-1, rank} else np.moveaxis(shaped, -1, axis)

    return one_hot


def _marked(
    indices: Array, count: int, on_value: Value, off_value: Value, dtype: np.dtype[Any]
) -> Array:
    """A row for each index: itself, and no view, which might have to be copied when fetched."""
    shape = (*indices.shape, count)
    if dtype.hasobject or not 0 < count * dtype.itemsize < _WIDE_ROW:
        shaped = full(shape, off_value, dtype)
        shaped.reshape(-1)[_places_of(indices.reshape(-1), count)] = on_value
        return shaped
    check_new(shape, dtype)
    shaped = np.empty(shape, dtype)
    rows, indices = shaped.reshape(-1, count), indices.reshape(-1)
    # The row of each index that there is, and of all others.
    known = np.full((count + 1, count), off_value, dtype)
    np.fill_diagonal(known, on_value)
    at_once = _PIECE // count

    def pick(number: int) -> None:
        piece = slice(number * at_once, (number + 1) * at_once)
        some = indices[piece]
        if some.min() < 0 or some.max() >= count:
            some = np.where((some >= 0) & (some < count), some, np.intp(count))
        known.take(some, 0, rows[piece], "clip")

    parallel_for(-(-len(rows) // at_once), pick)
    return shaped


def _places_of(indices: Array, count: int) -> Array:
    """Where the indices that there are stand, in rows of so many elements one after the other."""
    starts = np.arange(indices.size) * count
    if not indices.size or (indices.min() >= 0 and indices.max() < count):
        starts += indices.astype(np.intp, copy=False)
        return starts
    is_inside = (indices >= 0) & (indices < count)
    places: Array = starts[is_inside] + indices[is_inside].astype(np.intp)
    return places


@lru_cache(maxsize=64)
def _numbers(count: int) -> Array:
    numbers: Array = freeze(np.arange(count))
    return numbers


def _depth(depth: Value, on_value: Value, off_value: Value) -> int:
    """The depth, when all three are scalars as they must be."""
    for name, value in (("depth", depth), ("on_value", on_value), ("off_value", off_value)):
        if isinstance(value, np.ndarray) and value.ndim:
            raise InvalidArgumentError(
                f"{name} must be a scalar, but got: {shape_text(value.shape)}"
            )
    if depth < 0:
        raise InvalidArgumentError(f"depth must be non-negative, got: {depth}")
    return int(depth)
