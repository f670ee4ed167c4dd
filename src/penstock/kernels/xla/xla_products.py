"""XLA's dot, convolution and gather, whose dimensions are numbered in a message.

In:   arrays; which dimension plays which part, as a serialized message in an attribute.
Out:  arrays.
Not:  compiles nothing; ``precision_config`` changes nothing.

The messages are DotDimensionNumbers, ConvolutionDimensionNumbers and GatherDimensionNumbers;
all their fields are numbers or lists of numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.core.values import Array, Value, as_value
from penstock.defs.varint import read_varint
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.parallel.blas import keeps_alone
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.xla.xla_checks import margins, positive, slice_sizes
from penstock.kernels.xla.xla_ops import padded

_Fields = Mapping[int, list[int]]
#: What is added before and after each dimension.
_Sides = tuple[Sequence[int], Sequence[int]]


def fields_of(data: bytes) -> _Fields:
    """The numbers of a message by field."""
    fields: dict[int, list[int]] = defaultdict(list)
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            number, at = read_varint(data, at)
            fields[key >> 3].append(number)
            continue
        if key & 7 != 2:
            raise DataLossError("dimension numbers have a field that is no number")
        length, at = read_varint(data, at)
        end = at + length
        while at < end:
            number, at = read_varint(data, at)
            fields[key >> 3].append(number)
    return fields


def _one(fields: _Fields, field: int) -> int:
    """A single number; 0 if it is not there."""
    return fields[field][-1] if fields.get(field) else 0


def _result_type(attrs: Attrs) -> np.dtype[Any]:
    name = "preferred_element_type" if "preferred_element_type" in attrs.values else "T"
    return attrs.dtype(name).numpy


def _wide(result: np.dtype[Any]) -> np.dtype[Any]:
    """What sums are made in."""
    return np.dtype(np.float32) if result.kind not in "iufcb" or result == np.float16 else result


@kernel("XlaDot", types={"T": NUMBERS})
@kernel("XlaDotV2", types={"LhsT": NUMBERS, "RhsT": NUMBERS, "preferred_element_type": NUMBERS})
@keeps_alone
def make_dot(attrs: Attrs) -> Kernel:
    """Sums of products over some dimensions, for each place of the others; batches first."""
    fields, result = fields_of(attrs.bytes("dimension_numbers")), _result_type(attrs)
    summed = list(zip(fields.get(1, []), fields.get(2, []), strict=True))
    batch = list(zip(fields.get(3, []), fields.get(4, []), strict=True))
    wide = _wide(result)

    def dot(lhs: Value, rhs: Value) -> Value:
        left, right = as_array(lhs).astype(wide), as_array(rhs).astype(wide)
        a, b = list(range(left.ndim)), [left.ndim + n for n in range(right.ndim)]
        for mine, theirs in (*summed, *batch):
            if left.shape[mine] != right.shape[theirs]:
                raise InvalidArgumentError(
                    f"Dot dimensions do not match: {shape_text(left.shape)} and "
                    f"{shape_text(right.shape)}"
                )
            b[theirs] = a[mine]
        shared = {mine for mine, _ in (*summed, *batch)}
        out = [mine for mine, _ in batch]
        out += [n for n in a if n not in shared] + [n for n in b if n >= left.ndim]
        product = np.einsum(left, a, right, b, out, optimize=True)
        return as_value(np.asarray(product).astype(result, copy=False))

    return dot


@kernel("XlaConv", types={"T": NUMBERS})
@kernel("XlaConvV2", types={"LhsT": NUMBERS, "RhsT": NUMBERS, "preferred_element_type": NUMBERS})
@keeps_alone
def make_conv(attrs: Attrs) -> Kernel:
    """Convolution over any number of dimensions, with gaps in the images and the filters."""
    fields, result = fields_of(attrs.bytes("dimension_numbers")), _result_type(attrs)
    images = [_one(fields, 7), *fields.get(11, []), _one(fields, 8)]
    filters = [*fields.get(6, []), _one(fields, 3), _one(fields, 4)]
    output = [_one(fields, 9), *fields.get(12, []), _one(fields, 10)]
    batches = attrs.int("batch_group_count") if "batch_group_count" in attrs.values else 1
    wide = _wide(result)

    def conv(lhs: Value, rhs: Value, *numbers: Value) -> Value:
        stride, padding, lhs_gap, rhs_gap, groups = numbers
        rank = len(images) - 2
        strides = positive("stride", stride, rank)
        gaps = (
            positive("base area dilation factor", lhs_gap, rank),
            positive("window dilation factor", rhs_gap, rank),
        )
        sides = margins(padding, rank)
        x, w = lhs.transpose(images).astype(wide), rhs.transpose(filters).astype(wide)
        y = convolve(x, w, strides, sides, gaps, (int(as_array(groups)[()]), batches))
        return y.transpose(np.argsort(output)).astype(result, copy=False)

    return conv


def convolve(
    x: Array,
    w: Array,
    strides: Sequence[int],
    sides: _Sides,
    gaps: tuple[Sequence[int], Sequence[int]],
    groups: tuple[int, int],
) -> Array:
    """Images [batch, ..., depth] by filters [..., depth, count], in groups of one kind."""
    x, w = _spread(x, sides, gaps[0]), _spread_filters(w, gaps[1])
    parts = _grouped(x, w, *groups)
    return np.concatenate([_correlate(a, b, strides) for a, b in parts], axis=-1)


def _spread(x: Array, sides: _Sides, gaps: Sequence[int]) -> Array:
    """Images with gaps between their elements, and padding around them."""
    low, high = ([0, *side, 0] for side in sides)
    return padded(x, x.dtype.type(0), low, high, [0, *(gap - 1 for gap in gaps), 0])


def _spread_filters(w: Array, gaps: Sequence[int]) -> Array:
    nothing = [0] * w.ndim
    return padded(w, w.dtype.type(0), nothing, nothing, [*(gap - 1 for gap in gaps), 0, 0])


def _grouped(x: Array, w: Array, features: int, batches: int) -> list[tuple[Array, Array]]:
    """Images and filters that belong together."""
    count = features * batches
    if features > 1 and batches > 1:
        raise InvalidArgumentError("only one of feature and batch groups can be more than 1")
    if features < 1 or batches < 1:
        raise InvalidArgumentError(f"there must be at least one group, got {features}, {batches}")
    if w.shape[-1] % count or (x.shape[0] % batches) or x.shape[-1] != w.shape[-2] * features:
        raise InvalidArgumentError(
            f"{count} groups do not fit images {shape_text(x.shape)} and filters "
            f"{shape_text(w.shape)}"
        )
    axis = -1 if batches == 1 else 0
    return list(zip(np.split(x, count, axis), np.split(w, count, -1), strict=True))


def _correlate(x: Array, w: Array, strides: Sequence[int]) -> Array:
    """Each place of the result: the window there, times the filters."""
    rank = x.ndim - 2
    axes = tuple(range(1, rank + 1))
    shape = [
        max(0, -(-(n - k + 1) // s)) for n, k, s in zip(x.shape[1:], w.shape, strides, strict=False)
    ]
    if not all(shape) or not x.size:
        return np.zeros((x.shape[0], *shape, w.shape[-1]), x.dtype)
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:rank], axes)
    windows = windows[(slice(None), *(slice(None, None, s) for s in strides))]
    kernel_axes = (*range(rank + 2, 2 * rank + 2), rank + 1)
    return np.tensordot(windows, w, (kernel_axes, tuple(range(rank + 1))))


@kernel("XlaGather")
def make_gather(attrs: Attrs) -> Kernel:
    """Parts of one size that begin at given places, moved back where they reach over the end."""
    fields = fields_of(attrs.bytes("dimension_numbers"))
    offsets, collapsed = fields.get(1, []), fields.get(2, [])
    targets, vector = fields.get(3, []), _one(fields, 4)
    if fields.get(5):
        raise InvalidArgumentError("XlaGather with operand_batching_dims is not supported")

    def gather(operand: Value, indices: Value, wanted: Value) -> Value:
        array, places = as_array(operand), as_array(indices)
        sizes = slice_sizes(wanted, array.shape)
        vectors = places[..., None] if vector == places.ndim else np.moveaxis(places, vector, -1)
        starts = np.zeros((*vectors.shape[:-1], array.ndim), np.int64)
        starts[..., targets] = vectors
        starts = np.clip(starts, 0, np.array(array.shape, np.int64) - sizes)
        for axis in collapsed:
            if sizes[axis] != 1:
                raise InvalidArgumentError(
                    f"Gather op can only collapse slice dims with bound 1, but bound is "
                    f"{sizes[axis]} for index {axis}."
                )
        kept = [axis for axis in range(array.ndim) if axis not in collapsed]
        window = [int(sizes[axis]) for axis in kept]
        index = []
        for axis in range(array.ndim):
            start = starts[..., axis].reshape(*vectors.shape[:-1], *[1] * len(window))
            if axis in kept:
                shape = [1] * len(window)
                shape[kept.index(axis)] = -1
                start = start + np.arange(int(sizes[axis])).reshape(shape)
            index.append(start)
        taken = array[tuple(index)]
        batch = vectors.ndim - 1
        return as_value(np.moveaxis(taken, range(batch, taken.ndim), offsets))

    return gather
