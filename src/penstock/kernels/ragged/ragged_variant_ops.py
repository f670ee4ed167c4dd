"""Ragged tensors as variants, so that they can be elements of lists, maps and datasets.

In:   splits and values; or variants.
Out:  one variant, or one per row; or splits and values.
Not:  looks into no values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, EncodedVariant, Value, dtype_of, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import as_array, check_new, shape_text, sizes_in, zeros
from penstock.kernels.values.variant_elements import plus, zeros_like
from penstock.kernels.values.variants import Variant, variant_in

_SPLITS: Final = (dtypes.int32, dtypes.int64)


class Ragged(Variant):
    """Values, and per ragged dimension where its rows start and the last ends."""

    __slots__ = ("dtype", "splits", "values")
    type_name: ClassVar[str] = "RaggedTensorVariant"

    def __init__(self, splits: tuple[Array, ...], values: Array, dtype: DType) -> None:
        self.splits: Final = splits
        self.values: Final = values
        self.dtype: Final = dtype

    def zeros_like(self) -> Variant:
        """Zeros in rows of the same lengths."""
        return Ragged(self.splits, as_array(zeros_like(self.values, self.dtype)), self.dtype)

    def plus(self, other: Variant) -> Variant:
        """The sums of the values, if the rows have the same lengths."""
        assert isinstance(other, Ragged)
        mine, theirs = self.splits, other.splits
        if len(mine) != len(theirs) or not all(map(np.array_equal, mine, theirs)):
            raise InvalidArgumentError("Can't add RaggedTensorVariants with different row_splits.")
        return Ragged(mine, as_array(plus(self.values, other.values, self.dtype)), self.dtype)

    def encoded(self) -> EncodedVariant:
        """The splits, outermost first, and the values."""
        splits = tuple((dtype_of(split), split) for split in self.splits)
        return EncodedVariant(self.type_name, tensors=(*splits, (self.dtype, self.values)))

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """The ragged tensor of these splits and values."""
        if not encoded.tensors:
            raise ValueError("there are no values")
        *splits, (dtype, values) = encoded.tensors
        if any(kind not in _SPLITS or as_array(split).ndim != 1 for kind, split in splits):
            raise ValueError("splits must be vectors of int32 or int64")
        return cls(tuple(as_array(split) for _, split in splits), as_array(values), dtype)

    def __str__(self) -> str:
        kind = type_text(dtype_of(self.splits[0])) if self.splits else "INVALID"
        # There is no bracket at the end of TensorFlow's, either.
        return (
            f"RaggedTensorVariant(dtype={type_text(self.dtype)}, ragged_rank={len(self.splits)}, "
            f"splits_dtype={kind}"
        )


@kernel("RaggedTensorToVariant")
def make_ragged_tensor_to_variant(attrs: Attrs) -> Kernel:
    """The ragged tensor as one variant, or each of its rows as one."""
    dtype, is_batched = attrs.dtype("Tvalues"), attrs.bool("batched_input")

    def to_variant(*inputs: Value) -> Value:
        *splits, values = map(as_array, inputs)
        for cuts, part in itertools.pairwise([*splits, values]):
            _check_splits(cuts, len(part) - (part is not values))
        if not is_batched:
            return Ragged(tuple(splits), values, dtype)
        if not splits:
            return _objects([Ragged((), row, dtype) for row in map(as_array, values)])
        ends = splits[0].tolist()
        rows = itertools.pairwise(ends)
        return _objects([_part(splits[1:], values, at, end, dtype) for at, end in rows])

    return to_variant


def _check_splits(splits: Array, count: int) -> None:
    """Raise unless splits cut so many values into rows."""
    wrong = "Invalid ragged splits:"
    if not len(splits):
        raise InvalidArgumentError(
            f"{wrong} ragged splits must have at least one splits, but is empty"
        )
    if splits[0] != 0:
        raise InvalidArgumentError(
            f"{wrong} first element of ragged splits  must be 0 but is {splits[0]}"
        )
    falls = np.flatnonzero(splits[1:] < splits[:-1])
    if len(falls):
        at = int(falls[0]) + 1
        raise InvalidArgumentError(
            f"{wrong} ragged splits must be monotonically increasing, but ragged_splits[{at}]="
            f"{splits[at]} is smaller than row_splits[{at - 1}]={splits[at - 1]}"
        )
    if splits[-1] != count:
        raise InvalidArgumentError(
            f"{wrong} last element of ragged splits must be the number of ragged values({count}) "
            f"but is {splits[-1]}"
        )


def _part(splits: Sequence[Array], values: Array, at: int, end: int, dtype: DType) -> Ragged:
    """The rows from ``at`` to ``end`` of the outermost dimension."""
    parts = []
    for split in splits:
        part = split[at : end + 1]
        at, end = int(part[0]), int(part[-1])
        parts.append(part - part[0])
    return Ragged(tuple(parts), values[at:end], dtype)


def _objects(items: Sequence[Ragged]) -> Array:
    array = np.empty(len(items), object)
    array[:] = items
    return array


@kernel("RaggedTensorFromVariant")
def make_ragged_tensor_from_variant(attrs: Attrs) -> Kernel:
    """A ragged tensor out of one variant, or out of an array of them, which are its rows."""
    dtype, splits_type = attrs.dtype("Tvalues"), attrs.dtype("Tsplits")
    wanted, given = attrs.int("output_ragged_rank"), attrs.int("input_ragged_rank")

    def from_variant(encoded: Value) -> tuple[Array, ...]:
        shape = shape_of(encoded)
        inner = given if given >= 0 else max(wanted - len(shape), 0)
        if inner + len(shape) != wanted:
            raise InvalidArgumentError(
                f"output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
                f"output_ragged_rank: {wanted}, input_ragged_rank: {inner}, "
                f"encoded_ragged.dims(): {len(shape)}."
            )
        items = encoded.reshape(-1).tolist() if shape else [encoded]
        parts = [_checked(item, inner, dtype, splits_type) for item in items]
        if not shape:
            return (*parts[0].splits, parts[0].values)
        return (*_regular(shape, splits_type), *_joined(parts, inner, dtype, splits_type))

    return from_variant


def _checked(item: Value, rank: int, dtype: DType, splits_type: DType) -> Ragged:
    part = variant_in(item, Ragged, "Input Variant element does not hold a RaggedTensorVariant")
    if len(part.splits) != rank:
        raise InvalidArgumentError(
            f"Encoded input RaggedTensorVariant has ragged_rank={len(part.splits)}.  "
            f"Expected ragged_rank={rank}."
        )
    if part.dtype is not dtype:
        raise InvalidArgumentError(
            f"Expected values Tensor dtype: {type_text(dtype)}, found: {type_text(part.dtype)}"
        )
    for split in part.splits:
        if split.dtype != splits_type.numpy:
            raise InvalidArgumentError(
                f"Expected row_splits Tensor dtype: {type_text(splits_type)}, found: {split.dtype}"
            )
    return part


def _regular(shape: Sequence[int], dtype: DType) -> list[Array]:
    """The splits of all but the last dimension of an array of variants: rows of one length."""
    result, count = [], 1
    for size, following in itertools.pairwise(shape):
        count *= size
        result.append(np.arange(count + 1, dtype=dtype.numpy) * following)
    return result


def _joined(
    parts: Sequence[Ragged], rank: int, dtype: DType, splits_type: DType
) -> tuple[Array, ...]:
    """Parts as rows of one ragged tensor."""
    columns = [[len(p.splits[0]) - 1 if rank else len(p.values) for p in parts]]
    outer = np.concatenate([[0], np.cumsum(columns[0])]).astype(splits_type.numpy)
    inner = [_chained([p.splits[at] for p in parts], splits_type) for at in range(rank)]
    values = [part.values for part in parts]
    shapes = {value.shape[1:] for value in values}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            f"All flat_values must have compatible shapes.  Shapes: {sorted(shapes)}"
        )
    joined = np.concatenate(values) if values else zeros((0,), dtype)
    return (outer, *inner, joined)


def _chained(splits: Sequence[Array], dtype: DType) -> Array:
    """Splits one after the other, each beginning where the last ended."""
    lengths = [np.diff(split) for split in splits]
    every = np.concatenate([np.zeros(1, np.int64), *lengths])
    return np.cumsum(every).astype(dtype.numpy)


@kernel("RaggedTensorToVariantGradient")
def make_ragged_tensor_to_variant_gradient(attrs: Attrs) -> Kernel:
    """The values of a vector of variants, as one array; zeros where there is no variant."""
    dtype = attrs.dtype("Tvalues")

    def gradient(encoded: Value, row_splits: Value, shape: Value) -> Array:
        sizes = sizes_in(shape)
        check_new(sizes, dtype.numpy)
        items = encoded.reshape(-1).tolist() if shape_of(encoded) else [encoded]
        lengths = np.diff(as_array(row_splits)).tolist() or [None]
        parts = [
            item.values
            if isinstance(item, Ragged)
            else zeros((sizes[0] if length is None else length, *sizes[1:]), dtype)
            for item, length in zip(items, lengths, strict=False)
        ]
        if len(row_splits) == 0 and parts:
            whole = parts[0]
        else:
            whole = np.concatenate(parts) if parts else zeros((0,), dtype)
        if whole.size < math.prod(sizes):
            raise InvalidArgumentError(
                f"The gradients are of {whole.size} values, which do not fit the shape "
                f"{shape_text(sizes)} of the values"
            )
        return whole.reshape(-1)[: math.prod(sizes)].reshape(sizes)

    return gradient
