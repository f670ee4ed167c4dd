"""Ops that deal elements out into several arrays, and collect them again.

In:   an array with the number of its part for each element; or parts with their indices.
Out:  the parts, or one array.
Not:  adds nothing up, segment ops do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import OBJECTS, PLAIN
from penstock.kernels.values.arrays import as_array, boxing, shape_text, zeros

_STITCHABLE: Final = PLAIN | {
    dtypes.qint8,
    dtypes.quint8,
    dtypes.qint32,
    dtypes.string,
    dtypes.variant,
}


@kernel("DynamicPartition", types={"T": PLAIN | OBJECTS})
def make_dynamic_partition(attrs: Attrs) -> Kernel:
    """The elements (or slices) by the number of the partition that they are to be in."""
    count = attrs.int("num_partitions")

    def dynamic_partition(values: Array, partitions: Value) -> tuple[Array, ...]:
        depth = partitions.ndim
        if values.shape[:depth] != partitions.shape:
            raise InvalidArgumentError(
                "data.shape must start with partitions.shape, got data.shape = "
                f"{shape_text(values.shape)}, partitions.shape = {shape_text(partitions.shape)}"
            )
        numbers = partitions.reshape(-1)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
            raise _no_partition(partitions, count)
        rows = values.reshape((numbers.size, *values.shape[depth:]))
        sorted_rows = rows[np.argsort(numbers, kind="stable")]
        ends = np.cumsum(np.bincount(numbers, minlength=count))
        return tuple(np.split(sorted_rows, ends[:-1]))

    return boxing(attrs, "T", dynamic_partition)


def _no_partition(partitions: Value, count: int) -> InvalidArgumentError:
    bad = (partitions < 0) | (partitions >= count)
    place = tuple(np.argwhere(bad)[0].tolist()) if partitions.ndim else ()
    at = shape_text(place) if place else ""
    return InvalidArgumentError(f"partitions{at} = {partitions[place]} is not in [0, {count})")


@kernel("DynamicStitch", "ParallelDynamicStitch", types={"T": _STITCHABLE})
def make_dynamic_stitch(attrs: Attrs) -> Kernel:
    """One array of all the parts' slices at their indices; the last one stays.

    Nobody gave a slice for an index between them: it is zeros.
    """
    count, dtype = attrs.int("N"), attrs.dtype("T")

    def dynamic_stitch(*indices_and_parts: Value) -> Array:
        indices = indices_and_parts[:count]
        parts = [as_array(part) for part in indices_and_parts[count:]]
        slice_shape = _slice_shape(indices, parts)
        places = np.concatenate([part.reshape(-1) for part in indices])
        size = int(places.max()) + 1 if places.size else 0
        if size == 2**31:
            raise InvalidArgumentError("Expected a non-negative size, got -2147483648")
        if places.size and places.min() < 0:
            number = next(i for i, part in enumerate(indices) if part.size and part.min() < 0)
            raise InvalidArgumentError(f"indices[{number}] is out of range")
        stitched = zeros((size, *slice_shape), dtype)
        for where, part in zip(indices, parts, strict=True):
            stitched[where.reshape(-1)] = part.reshape((where.size, *slice_shape))
        return stitched

    return dynamic_stitch


def _slice_shape(indices: Sequence[Value], parts: Sequence[Array]) -> tuple[int, ...]:
    """What all the parts have behind the shape of their indices."""
    expected: tuple[int, ...] = parts[0].shape[indices[0].ndim :]
    for i, (where, part) in enumerate(zip(indices, parts, strict=True)):
        if part.shape[: where.ndim] != where.shape:
            raise InvalidArgumentError(
                f"data[{i}].shape = {shape_text(part.shape)} does not start with "
                f"indices[{i}].shape = {shape_text(where.shape)}"
            )
        if part.shape[where.ndim :] != expected:
            raise InvalidArgumentError(
                f"Need data[0].shape[{indices[0].ndim}:] = data[{i}].shape[{where.ndim}:], "
                f"got data[0].shape = {shape_text(parts[0].shape)}, "
                f"data[{i}].shape = {shape_text(part.shape)}, "
                f"indices[0].shape = {shape_text(indices[0].shape)}, "
                f"indices[{i}].shape = {shape_text(where.shape)}"
            )
    return expected
