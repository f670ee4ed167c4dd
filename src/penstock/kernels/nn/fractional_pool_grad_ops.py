"""Gradients of pooling by a ratio that is no whole number.

In:   what the pooling took and gave, where its parts begin, and the gradient of its result.
Out:  the gradient of the images.
Not:  draws no parts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import as_array, check_new, shape_text

_Shape: TypeAlias = Sequence[int]
#: Where a result is, and what it covers.
_Part: TypeAlias = tuple[tuple[int, int], tuple[slice, slice]]
_TYPES: Final = {"T": frozenset({dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64})}


@kernel("FractionalAvgPoolGrad", types=_TYPES)
def make_fractional_avg_pool_grad(attrs: Attrs) -> Kernel:
    """Each part's gradient, spread evenly over what the part covers."""
    overlap = int(attrs.bool("overlapping"))

    def avg_pool_grad(sizes: Value, grads: Array, rows: Value, columns: Value) -> Array:
        shape = as_array(sizes).tolist()
        _check(shape, grads)
        check_new(shape, grads.dtype)
        total = np.zeros(shape, np.float64)
        for at, part in _parts(shape, grads.shape, rows, columns, overlap):
            covered = total[:, part[0], part[1]]
            count = covered.shape[1] * covered.shape[2]
            covered += (grads[:, at[0], at[1]] / count)[:, None, None]
        return total.astype(grads.dtype)

    return avg_pool_grad


@kernel("FractionalMaxPoolGrad", types=_TYPES)
def make_fractional_max_pool_grad(attrs: Attrs) -> Kernel:
    """Each part's gradient, where the part's greatest number first stands."""
    overlap = int(attrs.bool("overlapping"))

    def max_pool_grad(
        images: Array, pooled: Array, grads: Array, rows: Value, columns: Value
    ) -> Array:
        _check(images.shape, grads)
        if pooled.shape != grads.shape:
            raise InvalidArgumentError(
                f"orig_output and out_backprop have different shapes: {shape_text(pooled.shape)} "
                f"and {shape_text(grads.shape)}"
            )
        total = np.zeros(images.shape, grads.dtype)
        for at, part in _whole(_parts(images.shape, grads.shape, rows, columns, overlap), grads):
            covered = images[:, part[0], part[1]]
            batch, high, wide, depth = covered.shape
            first = covered.reshape(batch, high * wide, depth).argmax(axis=1)
            row, column = part[0].start + first // wide, part[1].start + first % wide
            place = np.arange(batch)[:, None], row, column, np.arange(depth)[None, :]
            total[place] += grads[:, at[0], at[1]]
        return total

    return max_pool_grad


def _check(shape: _Shape, grads: Array) -> None:
    if len(shape) != 4 or grads.ndim != 4 or min(shape) < 0:
        raise InvalidArgumentError(
            f"images and gradients must be 4-dimensional, got {shape_text(shape)} and "
            f"{shape_text(grads.shape)}"
        )


def _parts(
    shape: _Shape, places: _Shape, rows: Value, columns: Value, overlap: int
) -> Iterator[_Part]:
    """Where each part's result is, and what the part covers, unless that is nothing.

    Raises:
        InvalidArgumentError: there are not enough numbers, or a part begins or ends before zero.

    """
    sequences = as_array(rows).tolist(), as_array(columns).tolist()
    for name, count, sequence in zip(("row", "col"), places[1:3], sequences, strict=True):
        if len(sequence) < count + 1:
            raise InvalidArgumentError(
                f"Given out_backprop shape {shape_text(places)}, {name}_seq_tensor must have at "
                f"least {count + 1} elements, but got {len(sequence)}"
            )
    down, across = (
        _stretches(name, sequence[: count + 1], size, overlap)
        for name, sequence, count, size in zip(
            ("Row", "Column"), sequences, places[1:3], shape[1:3], strict=True
        )
    )
    for (row, tall), (column, wide) in itertools.product(enumerate(down), enumerate(across)):
        if tall.start < tall.stop and wide.start < wide.stop:
            yield (row, column), (tall, wide)


def _whole(parts: Iterator[_Part], grads: Array) -> list[_Part]:
    """The parts of pooled images, none of which may be empty."""
    try:
        found = list(parts)
    except InvalidArgumentError:
        found = []
    if len(found) != math.prod(grads.shape[1:3]):
        raise InvalidArgumentError("tensor_out_dup is not the same as tensor_out")
    return found


def _stretches(name: str, sequence: list[int], size: int, overlap: int) -> list[slice]:
    """What the parts cover of a dimension; what lies beyond it is left out."""
    found = [slice(at, min(end + overlap, size)) for at, end in itertools.pairwise(sequence)]
    if any(part.start < 0 or part.stop < 1 for part in found):
        raise InvalidArgumentError(
            f"{name} sequence tensor values must not be negative, got {sequence}"
        )
    return found
