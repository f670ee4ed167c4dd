"""Ops that put arrays together, and take them apart.

In:   several arrays, or one, and an axis.
Out:  one array that is a copy; or several that are views.
Not:  does not reorder elements.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, freeze, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.types import FLOAT8, OBJECTS, PLAIN, QUANTIZED
from penstock.kernels.parallel.joining import LARGE, join, joined
from penstock.kernels.values.arrays import SMALL, as_array, boxing, number_in, shape_text

_JOINABLE: Final = PLAIN | FLOAT8 | QUANTIZED | {dtypes.string}
_PACKABLE: Final = _JOINABLE | OBJECTS
_UNPACKABLE: Final = PLAIN | FLOAT8 | OBJECTS
_INT4: Final = frozenset(map(dtypes.as_dtype, ("int4", "uint4")))
#: What numpy, or a text of rank 0, says to what does not fit.
_MISFITS: Final = (TypeError, ValueError, AttributeError)
_DIVISIBLE: Final = _UNPACKABLE | _INT4 | {dtypes.quint8}


@kernel("ConcatV2", types={"T": _JOINABLE})
def make_concat_v2(attrs: Attrs) -> Kernel:
    """The inputs one after the other along an axis."""
    return join_two if attrs.int("N") == 2 else _concat_many


def join_two(first: Value, second: Value, axis: Value) -> Array:
    """One value after the other; an error as ConcatV2 has it if they do not fit."""
    try:
        if first.nbytes + second.nbytes >= LARGE:
            return joined((first, second), axis)
        return join((first, second), axis)
    except _MISFITS:
        return concat((first, second), axis)


def _concat_many(*values_and_axis: Value) -> Array:
    try:
        return joined(values_and_axis[:-1], values_and_axis[-1])
    except _MISFITS:
        return concat(values_and_axis[:-1], values_and_axis[-1])


@kernel("Concat", types={"T": _JOINABLE})
def make_concat(_attrs: Attrs) -> Kernel:
    """The inputs one after the other along an axis, which comes first."""

    def axis_first(axis: Value, *values: Value) -> Array:
        return concat(values, axis)

    return axis_first


def concat(values: Sequence[Value], axis: Value) -> Array:
    """The same with an axis in any form; or the error that says what does not fit."""
    number = number_in(axis, "axis tensor should be a scalar integer")
    try:
        return np.concatenate(values, number)
    except ValueError:
        raise _cannot_concat(values, number) from None


def _cannot_concat(values: Sequence[Value], number: int) -> InvalidArgumentError:
    shapes = [shape_of(value) for value in values]
    rank = len(shapes[0])
    if rank == 0:
        return InvalidArgumentError("ConcatOp : Can't concatenate scalars (use tf.stack instead)")
    if not -rank <= number < rank:
        return InvalidArgumentError(
            f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, {rank}), "
            f"but got {number}"
        )
    for i, shape in enumerate(shapes):
        both = f"shape[0] = {shape_text(shapes[0])} vs. shape[{i}] = {shape_text(shape)}"
        if len(shape) != rank:
            return InvalidArgumentError(
                f"ConcatOp : Ranks of all input tensors should match: {both}"
            )
        for dim in set(range(rank)) - {number % rank}:
            if shape[dim] != shapes[0][dim]:
                return InvalidArgumentError(
                    f"ConcatOp : Dimension {dim} in both shapes must be equal: {both}"
                )
    return InvalidArgumentError(f"ConcatOp : cannot join {', '.join(map(shape_text, shapes))}")


@kernel("ConcatOffset", cost=Cost.CHEAP)
def make_concat_offset(attrs: Attrs) -> Kernel:
    """Where each of the shapes starts in the result of their concatenation."""
    dtype = attrs.dtype("shape_type").numpy
    #: Axis and shapes of the last call, and the answer.
    last: tuple[tuple[Value, ...], tuple[Array, ...]] = ((), ())

    def concat_offset(*axis_and_shapes: Value) -> tuple[Array, ...]:
        nonlocal last
        known, offsets = last
        # The gradient of a loop asks for the same in every iteration.
        if len(known) == len(axis_and_shapes) and all(map(operator.is_, known, axis_and_shapes)):
            return offsets
        offsets = _offsets(axis_and_shapes[0], axis_and_shapes[1:], dtype)
        if all(map(is_constant, axis_and_shapes)):
            last = axis_and_shapes, offsets
        return offsets

    return concat_offset


def _offsets(axis: Value, shapes: tuple[Array, ...], dtype: np.dtype[Any]) -> tuple[Array, ...]:
    number, first = _offset_axis(axis, shapes), shapes[0].tolist()
    offset, place = 0, [0] * len(first)
    offsets = []
    for i, shape in enumerate(shapes):
        sizes = shape.tolist()
        length, sizes[number] = sizes[number], first[number]
        if sizes != first:
            raise InvalidArgumentError(
                f"All dimensions except {number} must match. Input {i} has shape "
                f"{_sizes_text(shape)} and doesn't match input 0 with shape {_sizes_text(first)}."
            )
        place[number] = offset
        offsets.append(freeze(np.array(place, dtype)))
        offset = int(np.array(offset + length).astype(dtype))  # beyond the type it wraps around
    return tuple(offsets)


def _sizes_text(sizes: Iterable[int]) -> str:
    return f"[{' '.join(map(str, sizes))}]"


def _offset_axis(axis: Value, shapes: Sequence[Array]) -> int:
    if axis.ndim:
        raise InvalidArgumentError(
            f"Concat dim tensor should be a scalar integer, but got shape {shape_text(axis.shape)}"
        )
    for i, shape in enumerate(shapes):
        if shape.ndim != 1:
            raise InvalidArgumentError(
                f"input {i + 1} should be a vector, but got shape {shape_text(shape.shape)}"
            )
        if shape.size != shapes[0].size:
            raise InvalidArgumentError(
                f"input {i} should contain {shapes[0].size} elements, but got {shape.size}"
            )
    rank = shapes[0].size
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"Concat dim is out of range: {axis} vs. {rank}")
    return int(axis) % rank


@kernel("Pack", types={"T": _PACKABLE})
def make_pack(attrs: Attrs) -> Kernel:
    """The inputs side by side along a new dimension."""
    dtype, axis = attrs.dtype("T").numpy, attrs.int("axis")

    def pack_first(*values: Value) -> Array:
        try:
            return np.array(values, dtype)
        except (TypeError, ValueError):
            raise _cannot_pack(values) from None

    def pack(*values: Value) -> Value:
        rank = len(shape_of(values[0]))
        if not -rank - 1 <= axis <= rank:
            raise InvalidArgumentError(f"axis = {axis} not in [{-rank - 1}, {rank + 1})")
        shape = shape_of(values[0])
        if any(shape_of(value) != shape for value in values):
            raise _cannot_pack(values)
        at = axis if axis >= 0 else axis + rank + 1
        before = (slice(None),) * at
        packed: Any = np.empty((*shape[:at], len(values), *shape[at:]), dtype)
        for i, value in enumerate(values):
            packed[(*before, i)] = value  # one by one: numpy may take an object for a sequence
        return packed

    return pack_first if axis == 0 and not dtype.hasobject else pack


def _cannot_pack(values: Sequence[Value]) -> InvalidArgumentError:
    first = shape_of(values[0])
    for i, value in enumerate(values):
        if shape_of(value) != first:
            return InvalidArgumentError(
                f"Shapes of all inputs must match: values[0].shape = {shape_text(first)} "
                f"!= values[{i}].shape = {shape_text(shape_of(value))}"
            )
    return InvalidArgumentError(f"cannot pack {len(values)} values of shape {shape_text(first)}")


@kernel("Unpack", types={"T": _UNPACKABLE}, cost=Cost.CHEAP)
def make_unpack(attrs: Attrs) -> Kernel:
    """The parts of the input along an axis, which they then lack."""
    count, axis = attrs.int("num"), attrs.int("axis")

    def unpack_rows(values: Array) -> tuple[Value, ...]:
        try:
            if len(values) == count:
                return tuple(values)
        except TypeError:  # a scalar
            pass
        return unpack(values)

    def unpack(values: Value) -> tuple[Value, ...]:
        shape = shape_of(values)
        rank = len(shape)
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"axis = {axis} not in [{-rank}, {rank})")
        if shape[axis] != count:
            raise InvalidArgumentError(
                f"Input shape axis {axis % rank} must equal {count}, got shape {shape_text(shape)}"
            )
        at = axis % rank
        if at == 0:
            return tuple(values)
        in_front = values.transpose((at, *range(at), *range(at + 1, rank)))
        if rank > 2 and values.nbytes <= SMALL:
            in_front = in_front.copy()
        return tuple(in_front)

    return unpack_rows if axis == 0 and not attrs.dtype("T").is_object else unpack


@kernel("Split", types={"T": _DIVISIBLE}, cost=Cost.CHEAP)
def make_split(attrs: Attrs) -> Kernel:
    """Parts of equal size along an axis."""
    count = attrs.int("num_split")
    #: Axis and shape of the last call, and how such an array is split.
    last: tuple[Value, tuple[int, ...], Kernel] = (make_split, (), make_split)

    def split(axis: Value, values: Array) -> tuple[Array, ...]:
        nonlocal last
        known, shape, cut = last
        if axis is not known or values.shape != shape:
            cut = _equal_cut(axis, values, count)
            if is_constant(axis):
                last = axis, values.shape, cut
        parts: tuple[Array, ...] = cut(values)
        return parts

    if attrs.dtype("T").is_object:
        return lambda axis, values: split(axis, as_array(values))
    return split


def _equal_cut(axis: Value, values: Array, count: int) -> Kernel:
    """How arrays of this shape are split; raises if they cannot be."""
    if axis.ndim:
        raise InvalidArgumentError(f"split_dim must be a scalar but has rank {axis.ndim}")
    number = _split_axis(axis, values)
    size, rest = divmod(values.shape[number], count)
    if rest:
        raise InvalidArgumentError(
            "Number of ways to split should evenly divide the split dimension, but got "
            f"split_dim {number} (size = {values.shape[number]}) and num_split {count}"
        )
    is_scattered = count > 1 and prod(values.shape[:number]) > 1
    if is_scattered and values.nbytes <= SMALL:
        return _copying_cut(values.shape, number, (count, size))
    parts = _parts(number, (size,) * count)
    return lambda values: tuple([values[part] for part in parts])


def _copying_cut(shape: tuple[int, ...], axis: int, sizes: tuple[int, int]) -> Kernel:
    folded = (*shape[:axis], *sizes, *shape[axis + 1 :])
    order = (axis, *(dim for dim in range(len(folded)) if dim != axis))
    return lambda values: tuple(values.reshape(folded).transpose(order).copy())


@kernel("SplitV", types={"T": _DIVISIBLE}, cost=Cost.CHEAP)
def make_split_v(attrs: Attrs) -> Kernel:
    """Parts of the given sizes along an axis; one size may be -1 for "the rest"."""
    count = attrs.int("num_split")
    #: Sizes, axis and shape of the last call, and the indices of the parts.
    last: tuple[Value, Value, tuple[int, ...], list[Any]] = (make_split_v, None, (), [])

    def split_v(values: Array, sizes: Value, axis: Value) -> tuple[Array, ...]:
        nonlocal last
        known_sizes, known_axis, shape, parts = last
        if sizes is not known_sizes or axis is not known_axis or values.shape != shape:
            parts = parts_of(values, sizes, axis)
            if is_constant(sizes) and is_constant(axis):
                last = sizes, axis, values.shape, parts
        return tuple([values[part] for part in parts])

    def parts_of(values: Array, sizes: Value, axis: Value) -> list[Any]:
        number = _split_axis(
            number_in(axis, "split_dim_tensor must have exactly one element"), values
        )
        if sizes.ndim != 1 or sizes.size != count:
            raise InvalidArgumentError(
                "size of the split_tensor must be 1-D and have the same elements as outputs "
                f"got {sizes.ndim} -D and {sizes.size} elements"
            )
        known = _split_sizes(sizes.tolist(), values.shape[number])
        return _parts(number, tuple(known))

    return boxing(attrs, "T", split_v)


def _split_axis(axis: Value, values: Value) -> int:
    rank = len(shape_of(values))
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}"
        )
    return int(axis) % rank


def _split_sizes(sizes: list[int], length: int) -> list[int]:
    """The sizes with -1 replaced by the rest; raises if they do not fill ``length``."""
    if len(sizes) == 1 and sizes[0] != length:
        raise InvalidArgumentError(
            "If there is only one output, it must have the same size as the input. "
            f"Input size: {length} output size: {sizes[0]}"
        )
    if sizes.count(-1) > 1:
        raise InvalidArgumentError("There can only be one -1 in the input.")
    for i, size in enumerate(sizes):
        if size < -1:
            raise InvalidArgumentError(f"Split size at index {i} must be >= 0. Got: {size}")
    total = sum(size for size in sizes if size > 0)
    if total > length if -1 in sizes else total != length:
        raise InvalidArgumentError(
            "Determined shape must either match input shape along split_dim exactly if fully "
            "specified, or be less than the size of the input along split_dim if not fully "
            f"specified.  Got: {total}"
        )
    return [length - total if size == -1 else size for size in sizes]


@lru_cache(maxsize=256)
def _parts(axis: int, sizes: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """The indices of parts of these sizes; a loop asks for the same ones in every iteration."""
    before = (slice(None),) * axis
    borders = pairwise([0, *accumulate(sizes)])
    return [(*before, slice(start, stop)) for start, stop in borders]
