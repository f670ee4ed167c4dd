"""Ragged tensors: rows of different lengths, kept one after the other.

In:   the values of all rows, and per ragged dimension where its rows are: splits (where
      each row starts, and the last ends), or the row of each value.
Out:  other ragged tensors, or the same values as a dense or a sparse tensor.
Not:  does not know ragged tensors as variants.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, QUANTIZED
from penstock.kernels.values.arrays import as_array, check_new, shape_text

_INDICES: Final = frozenset({dtypes.int32, dtypes.int64})
_STEPPED: Final = _INDICES | {dtypes.float32, dtypes.float64}
_ELEMENTS: Final = NUMBERS | QUANTIZED | {dtypes.bool_, dtypes.string}


def _ranges(starts: Array, lengths: Array) -> Array:
    """The numbers from each start, so many of them, one range after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    check_new([total], np.dtype(np.int64))
    shifts: Array = np.repeat(starts - (ends - lengths), lengths)
    return shifts + np.arange(total)


def _splits(lengths: Array, dtype: DType) -> Array:
    """Where rows of these lengths start, and the last ends."""
    splits = np.zeros(len(lengths) + 1, dtype.numpy)
    np.cumsum(lengths, out=splits[1:])
    return splits


@kernel("RaggedRange", types={"T": _STEPPED})
def make_ragged_range(attrs: Attrs) -> Kernel:
    """A row of numbers from each start to each limit, by each delta."""
    dtype, splits_type = attrs.dtype("T"), attrs.dtype("Tsplits")

    def ragged_range(starts: Value, limits: Value, deltas: Value) -> tuple[Array, Array]:
        first, last, step = _same_length(starts, limits, deltas)
        if (step == 0).any():
            raise ValueError("Requires delta != 0")
        counts = _counts(first, last, step)
        check_new([sum(counts.tolist())], dtype.numpy)
        splits = _splits(counts, splits_type)
        if dtype.is_integer:
            place = _ranges(np.zeros_like(counts), counts)
            values = np.repeat(first, counts) + place.astype(dtype.numpy) * np.repeat(step, counts)
            return splits, values
        rows = [_accumulated(*row) for row in zip(first, step, counts.tolist(), strict=True)]
        return splits, np.concatenate([np.empty(0, dtype.numpy), *rows])

    return ragged_range


def _same_length(*values: Value) -> list[Array]:
    """The arguments as vectors; scalars are repeated."""
    arrays = [np.asarray(value) for value in values]
    for name, array in zip(("starts", "limits", "deltas"), arrays, strict=True):
        if array.ndim > 1:
            raise ValueError(f"{name} must be a scalar or vector")
    sizes = {array.size for array in arrays if array.ndim}
    if len(sizes) > 1:
        raise ValueError("starts, limits, and deltas must have the same shape")
    size = sizes.pop() if sizes else 1
    return [np.broadcast_to(array, (size,)) for array in arrays]


def _counts(first: Array, last: Array, step: Array) -> Array:
    """How many numbers each row has."""
    if first.dtype.kind == "f":
        counts = np.ceil((last - first) / step)
    else:  # with Python's integers where a difference could wrap around
        wide = object if first.dtype.itemsize == 8 else np.int64
        counts = -((first.astype(wide) - last.astype(wide)) // step.astype(wide))
    if not (counts < 2**63).all():
        raise ValueError("Requires ((limit - start) / delta) <= 9223372036854775807")
    return np.asarray(np.maximum(counts, 0)).astype(np.int64)


def _accumulated(first: np.floating, step: np.floating, count: int) -> Array:
    """Numbers by repeated addition, as TensorFlow rounds them."""
    row = np.full(count, step, first.dtype)
    row[:1] = first
    return np.add.accumulate(row, dtype=first.dtype)


@kernel("RaggedGather", types={"Tvalues": _ELEMENTS})
def make_ragged_gather(attrs: Attrs) -> Kernel:
    """The rows with the given numbers, as the innermost of the dimensions of the indices."""
    depth, splits_type = attrs.int("PARAMS_RAGGED_RANK"), attrs.dtype("Tsplits")
    expected = attrs.int("OUTPUT_RAGGED_RANK")

    def ragged_gather(*inputs: Value) -> tuple[Array, ...]:
        nested, values, indices = inputs[:depth], as_array(inputs[depth]), np.asarray(inputs[-1])
        if not values.ndim:
            raise ValueError("params.rank must be nonzero")
        if expected != depth + indices.ndim - 1:
            raise ValueError(
                f"OUTPUT_RAGGED_RANK is {expected}, but indices of rank {indices.ndim} into "
                f"{depth} ragged dimensions give {depth + indices.ndim - 1}"
            )
        _check_rows(indices, len(nested[0]) - 1)
        outer = _regular_splits(indices.shape, splits_type)
        inner, rows = _gathered(nested, indices.reshape(-1), len(values), splits_type)
        return (*outer, *(inner if indices.ndim else inner[1:]), values[rows])

    return ragged_gather


def _check_rows(indices: Array, count: int) -> None:
    """Raise ValueError unless every index is the number of a row."""
    is_bad = (indices < 0) | (indices >= count)
    if is_bad.any():
        place = np.argwhere(is_bad)[0].tolist()
        where = shape_text(place) if place else ""
        raise ValueError(f"indices{where} = {indices[tuple(place)]} is not in [0, {count})")


def _regular_splits(shape: Sequence[int], dtype: DType) -> list[Array]:
    """Splits of the dimensions but the first, whose rows are all of one length."""
    counts = [prod(shape[: axis + 1]) for axis in range(len(shape) - 1)]
    sizes = zip(counts, shape[1:], strict=True)
    return [np.arange(count + 1, dtype=dtype.numpy) * dtype.numpy.type(n) for count, n in sizes]


def _gathered(
    nested: Sequence[Array], rows: Array, count: int, dtype: DType
) -> tuple[list[Array], Array]:
    """Splits of the chosen rows in each dimension, and the numbers of their values."""
    found = []
    for level, splits in enumerate(nested):
        size = len(nested[level + 1]) - 1 if level + 1 < len(nested) else count
        lengths = np.diff(splits)
        if (lengths < 0).any():
            raise ValueError("Ragged splits must be sorted")
        if splits[0] < 0 or splits[-1] > size:
            raise ValueError("Ragged splits must not point past values")
        found.append(_splits(lengths[rows], dtype))
        rows = _ranges(splits[:-1][rows], lengths[rows])
    return found, rows


@kernel("RaggedTensorToSparse")
def make_ragged_tensor_to_sparse(attrs: Attrs) -> Kernel:
    """Indices, values and shape of the sparse tensor with the same values."""
    depth = attrs.int("RAGGED_RANK")

    def ragged_tensor_to_sparse(*inputs: Value) -> tuple[Array, Array, Array]:
        nested, values = [np.asarray(splits) for splits in inputs[:depth]], as_array(inputs[-1])
        _check_nested(nested, values)
        columns: list[Array] = []
        rows = np.arange(len(values))
        for splits in reversed(nested):
            starts = splits[:-1].astype(np.int64)
            row_of = np.repeat(np.arange(len(starts)), np.diff(splits))[rows]
            columns.insert(0, rows - starts[row_of])
            rows = row_of
        columns.insert(0, rows)
        sizes = [len(nested[0]) - 1, *(int(np.diff(s).max(initial=0)) for s in nested)]
        shape = np.array([*sizes, *values.shape[1:]], np.int64)
        return _with_inner(np.stack(columns, 1), values.shape[1:]), values.reshape(-1), shape

    return ragged_tensor_to_sparse


def _check_nested(nested: Sequence[Array], values: Array) -> None:
    """Raise ValueError unless the splits cover the values, level by level."""
    ends = [*(len(splits) - 1 for splits in nested[1:]), len(values) if values.ndim else -1]
    for splits, end in zip(nested, ends, strict=True):
        if splits.ndim != 1 or not splits.size:
            raise ValueError("ragged splits may not be empty, and must be vectors.")
        if splits[0] != 0:
            raise ValueError("First value of ragged splits must be 0.")
        _check_sorted(splits)
        if splits[-1] != end:
            raise ValueError(
                "Final value of ragged splits must match the length the corresponding ragged "
                f"values: {splits[-1]} and {end}"
            )


def _check_sorted(splits: Array) -> None:
    falls = np.flatnonzero(splits[1:] < splits[:-1])
    if falls.size:
        before, after = splits[falls[0] : falls[0] + 2]
        raise ValueError(
            f"Ragged splits should be non decreasing, but we got {before} followed by {after}"
        )


def _with_inner(indices: Array, inner: Sequence[int]) -> Array:
    """Indices of all elements of values that are not scalars."""
    if not inner:
        return indices
    within = np.indices(inner).reshape(len(inner), -1).T
    outside = np.repeat(indices, len(within), 0)
    return np.concatenate([outside, np.tile(within, (len(indices), 1))], 1)


@kernel("RaggedTensorToTensor", types={"T": _ELEMENTS})
def make_ragged_tensor_to_tensor(attrs: Attrs) -> Kernel:
    """The dense tensor with the same values: rows are cut off or padded to one length."""
    kinds = [kind.decode() for kind in attrs.list("row_partition_types")]
    _check_kinds(kinds)

    def ragged_tensor_to_tensor(
        shape: Value, values: Value, default: Value, *partitions: Value
    ) -> Array:
        array, filler = as_array(values), as_array(default)
        _check_default(array, filler)
        inner = array.shape[1:]
        wanted = _wanted(np.asarray(shape), len(kinds) - (kinds[0] == _FIRST) + 1, inner)
        places, sizes = _places(kinds, partitions, wanted)
        if len(places) > len(array):
            raise ValueError(f"Row partitions are for {len(places)} values, not {len(array)}")
        check_new([*sizes, *inner], array.dtype)
        dense = np.empty((prod(sizes), *inner), array.dtype)
        dense[...] = filler
        is_kept = places >= 0
        dense[places[is_kept]] = array[: len(places)][is_kept]
        return dense.reshape(*sizes, *inner)

    return ragged_tensor_to_tensor


_FIRST: Final = "FIRST_DIM_SIZE"
_BY_SPLITS: Final = "ROW_SPLITS"
_BY_ROW: Final = "VALUE_ROWIDS"


def _check_kinds(kinds: Sequence[str]) -> None:
    for kind in kinds:
        if kind not in (_FIRST, _BY_SPLITS, _BY_ROW):
            raise ValueError(f"Unknown string for partition info type: {kind}")
    if kinds[:1] == [_BY_ROW]:
        raise ValueError("Cannot handle VALUE_ROWIDS in first dimension.")
    if not kinds or _FIRST in kinds[1:]:
        raise ValueError(f"Cannot handle the row partitions {list(kinds)}")


def _check_default(values: Array, default: Array) -> None:
    """Raise ValueError unless the default goes with a single value."""
    text = (
        f"default_value.shape={shape_text(default.shape)} and "
        f"rt_input.flat_values.shape={shape_text(values.shape)} are incompatible"
    )
    if default.ndim >= values.ndim:
        raise ValueError(f"{text}: the rank of the first must be less")
    for size, inner in zip(default.shape[::-1], values.shape[::-1], strict=False):
        if size not in (1, inner):
            raise ValueError(f"{text}: size {size} where the values have {inner}")


def _wanted(shape: Array, ragged: int, inner: Sequence[int]) -> list[int]:
    """The sizes asked for in the outer dimensions; -1 where it does not matter."""
    if not shape.ndim:
        if shape != -1:
            raise ValueError(
                "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            )
        return [-1] * ragged
    sizes: list[int] = shape.tolist()
    if min(sizes, default=0) < -1:
        raise ValueError(f"Dimension {min(sizes)} must be >= -1")
    text = f"rt_input.shape and shape={shape_text(sizes)} are incompatible"
    if len(sizes) != ragged + len(inner):
        raise ValueError(
            f"{text}: rt_input.rank = {ragged + len(inner)} but shape.rank = {len(sizes)}"
        )
    for axis, (size, own) in enumerate(zip(sizes[ragged:], inner, strict=True), ragged):
        if size not in (-1, own):
            raise ValueError(f"{text}: rt_input.shape[{axis}] = {own} but shape[{axis}] = {size}")
    return sizes[:ragged]


def _places(
    kinds: Sequence[str], partitions: Sequence[Value], wanted: Sequence[int]
) -> tuple[Array, list[int]]:
    """The place of each value among those of the dense tensor, -1 for those cut off; sizes."""
    levels = [(kind, np.asarray(p)) for kind, p in zip(kinds, partitions, strict=True)]
    if not levels[0][1].size:
        raise ValueError("Invalid first partition input. Tensor requires at least one element.")
    first = levels.pop(0)[1] if kinds[0] == _FIRST else levels[0][1]
    count = int(first.flat[0]) if kinds[0] == _FIRST else first.size - 1
    sizes = [count if wanted[0] < 0 else wanted[0]]
    check_new([count], np.dtype(np.int64))
    places = np.arange(count)
    places[sizes[0] :] = -1
    for (kind, partition), size in zip(levels, wanted[1:], strict=True):
        row_of, within = _rows(kind, partition.reshape(-1), len(places))
        width = int(within.max(initial=-1)) + 1 if size < 0 else size
        rows = places[row_of]
        places = np.where((rows >= 0) & (within < width), rows * width + within, -1)
        sizes.append(width)
    return places, sizes


def _rows(kind: str, partition: Array, count: int) -> tuple[Array, Array]:
    """The row of each value, and its place in that row."""
    if kind == _BY_SPLITS:
        return _rows_of_splits(partition, count)
    for row in partition[(partition < 0) | (partition >= count)][:1]:
        raise ValueError(f"Got next_value_rowid={row} which is not less than {count}")
    if (partition[1:] < partition[:-1]).any():
        raise ValueError("VALUE_ROWIDS must be sorted")
    starts = np.searchsorted(partition, partition)
    return partition, np.arange(len(partition)) - starts


def _rows_of_splits(splits: Array, count: int) -> tuple[Array, Array]:
    lengths = np.diff(splits)
    if not splits.size or splits[0] != 0 or (lengths < 0).any():
        raise ValueError(f"Invalid row split size. Splits start at 0 and never fall: {splits}")
    if len(lengths) > count:
        raise ValueError(
            f"Row partition size is greater than output size: {len(lengths)} > {count}"
        )
    check_new([int(splits[-1])], np.dtype(np.int64))
    return np.repeat(np.arange(len(lengths)), lengths), _ranges(np.zeros_like(lengths), lengths)
