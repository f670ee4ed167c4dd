"""Ops that put single rows together, each as soon as it is there.

In:   arrays of one row each.
Out:  one array that is a copy of them all.
Not:  asks for no axis: it is the first.
"""

from __future__ import annotations

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import PLAIN
from penstock.kernels.array.concat_ops import concat
from penstock.kernels.values.arrays import full, shape_text


@kernel("ParallelConcat", types={"T": PLAIN | {dtypes.string}})
def make_parallel_concat(attrs: Attrs) -> Kernel:
    """The inputs, each of which is a single row, one after the other."""
    expected = attrs.shape("shape")

    def parallel_concat(*values: Value) -> Array:
        rows = concat(values, np.int32(0))
        if not expected.accepts(rows.shape):
            raise InvalidArgumentError(
                f"ParallelConcat made {shape_text(rows.shape)} where shape {expected} was promised"
            )
        return rows

    return parallel_concat


@kernel("_ParallelConcatStart", types={"dtype": PLAIN | {dtypes.string}})
def make_parallel_concat_start(attrs: Attrs) -> Kernel:
    """An array for rows to be put into."""
    sizes, dtype = attrs.shape("shape").as_tuple(), attrs.dtype("dtype")
    nothing = b"" if dtype is dtypes.string else 0
    return lambda: full(sizes, nothing, dtype.numpy)


@kernel("_ParallelConcatUpdate", types={"T": PLAIN | {dtypes.string}})
def make_parallel_concat_update(attrs: Attrs) -> Kernel:
    """The array with one row replaced."""
    place = attrs.int("loc")

    def parallel_concat_update(value: Value, update: Value) -> Array:
        if value.ndim == 0:
            raise InvalidArgumentError("value must be at least rank 1")
        if update.shape[1:] != value.shape[1:] or update.ndim != value.ndim:
            raise InvalidArgumentError(
                "value and update shape doesn't match: "
                f"{shape_text(value.shape)} vs. {shape_text(update.shape)}"
            )
        if len(update) != 1:
            raise InvalidArgumentError(f"update shape doesn't match: {shape_text(update.shape)}")
        if not -len(value) <= place < len(value):
            raise InvalidArgumentError(
                f"0th dimension of value = {len(value)} must be greater than loc_ = {place}"
            )
        result = np.array(value)
        result[place] = update[0]
        return result

    return parallel_concat_update
