"""Ops that make an array from a few scalars.

In:   a shape, or where a sequence starts and ends.
Out:  a new array.
Not:  draws no random numbers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import check_new, full, number_in, shape_text, sizes_in, zeros
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.types import FLOATS, OBJECTS, PLAIN, QUANTIZED

_INT4: Final = frozenset(map(dtypes.as_dtype, ("int4", "uint4")))


@kernel("Fill", types={"T": PLAIN | OBJECTS | QUANTIZED | _INT4})
def make_fill(attrs: Attrs) -> Kernel:
    """An array of a given shape with the same scalar everywhere."""
    dtype = attrs.dtype("T").numpy

    def fill(dims: Value, value: Value) -> Value:
        if isinstance(value, np.ndarray):
            value = _scalar(value, "value")
        return as_value(full(sizes_in(dims), value, dtype))

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
    dtype = attrs.dtype("Tidx")
    count_of = _integer_count if dtype.is_integer else _float_count

    def range_(start: Value, limit: Value, delta: Value) -> Array:
        if start.ndim or limit.ndim or delta.ndim:
            start, limit = _scalar(start, "start"), _scalar(limit, "limit")
            delta = _scalar(delta, "delta")
        _check_direction(start, limit, delta)
        count = count_of(start, limit, delta)
        check_new((count,), dtype.numpy)
        numbers: Array = np.arange(count).astype(dtype.numpy, copy=False)
        # Not by adding up: the rounding differs, and TensorFlow multiplies.
        return numbers if start == 0 and delta == 1 else start + numbers * delta

    return range_


def _check_direction(start: Value, limit: Value, delta: Value) -> None:
    if delta == 0:
        raise InvalidArgumentError(f"Requires delta != 0: {delta}")
    if delta > 0 and not start <= limit:
        raise InvalidArgumentError(f"Requires start <= limit when delta > 0: {start}/{limit}")
    if not delta > 0 and not start >= limit:
        raise InvalidArgumentError(f"Requires start >= limit when delta < 0: {start}/{limit}")


def _integer_count(start: Value, limit: Value, delta: Value) -> int:
    count = -((int(start) - int(limit)) // int(delta))
    if count >= 2**63:
        raise InvalidArgumentError(f"Requires ((limit - start) / delta) <= {2**63 - 1}")
    return count


def _float_count(start: Value, limit: Value, delta: Value) -> int:
    count = float(np.ceil(abs((limit - start) / delta)))
    if not count < 2**63:
        raise InvalidArgumentError(f"Requires ((limit - start) / delta) <= {2**63 - 1}")
    return int(count)


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
        count = number_in(num)
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
        rows = full((indices.size, count), off_value, dtype)
        flat = indices.reshape(-1)
        (inside,) = np.nonzero((flat >= 0) & (flat < count))
        rows[inside, flat[inside]] = on_value
        shaped = rows.reshape((*indices.shape, count))
        return shaped if axis in {-1, rank} else np.moveaxis(shaped, -1, axis)

    return one_hot


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
