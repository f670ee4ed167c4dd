"""Ops that cut a part out of an array, or put one in.

In:   an array, and where the part begins, ends and how far its elements are apart.
Out:  a view of the part; for the gradient and the update, a new array with the part set.
Not:  takes no lists of indices, gather_ops does.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index as to_index
from types import EllipsisType
from typing import Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.types import FLOAT8, OBJECTS, PLAIN
from penstock.kernels.values.arrays import SMALL, as_array, boxing, shape_text, zeros

#: What numpy takes between square brackets.  Like TensorFlow it clamps the ends of slices
#: to the array, so an index is made without knowing the array's shape.
Place: TypeAlias = int | slice | EllipsisType | None
Index: TypeAlias = tuple[Place, ...]
#: Makes the index that begins, ends and strides mean.
_ReadIndex: TypeAlias = Callable[[Value, Value, Value], Index]

_QUANTIZED: Final = frozenset({dtypes.qint8, dtypes.quint8, dtypes.qint32})
_SLICEABLE: Final = PLAIN | FLOAT8 | _QUANTIZED | {dtypes.string}
_STRIDED: Final = _SLICEABLE | OBJECTS


@kernel("Slice", types={"T": _SLICEABLE}, cost=Cost.CHEAP)
def make_slice(attrs: Attrs) -> Kernel:
    """The part of ``size`` elements from ``begin`` on; size -1 means up to the end."""
    #: Begin, size and shape of the last call, the index that they mean, and whether the
    #: part is copied.
    last: tuple[Value, Value, tuple[int, ...], Index, bool] = (None, None, (), (), False)

    def slice_(values: Array, begin: Value, size: Value) -> Value:
        nonlocal last
        old_begin, old_size, shape, index, is_copied = last
        if begin is not old_begin or size is not old_size or values.shape != shape:
            index = _index_of_part(values.shape, begin, size)
            found = values[index]
            is_small = found.ndim > 1 and found.nbytes <= SMALL
            is_copied = is_small and not found.flags.c_contiguous
            if is_constant(begin) and is_constant(size):
                last = begin, size, values.shape, index, is_copied
        if is_copied:
            return values[index].copy()
        return values[index] if index else as_value(values)

    return boxing(attrs, "T", slice_)


def _index_of_part(shape: tuple[int, ...], begin: Value, size: Value) -> Index:
    index = []
    try:
        for start, count, length in zip(begin.tolist(), size.tolist(), shape, strict=True):
            stop = length if count == -1 else start + count
            if not 0 <= start <= stop <= length:
                raise _outside(shape, begin, size)
            index.append(slice(start, stop))
    except (TypeError, ValueError):
        raise _no_spec(shape, begin, size) from None
    return tuple(index)


def _no_spec(shape: tuple[int, ...], begin: Value, size: Value) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Expected begin and size arguments to be 1-D tensors of size {len(shape)}, but "
        f"got shapes {shape_text(begin.shape)} and {shape_text(size.shape)} instead."
    )


def _outside(shape: tuple[int, ...], begin: Array, size: Array) -> InvalidArgumentError:
    parts = zip(begin.tolist(), size.tolist(), shape, strict=True)
    for axis, (start, count, length) in enumerate(parts):
        if not 0 <= start <= length:
            return InvalidArgumentError(f"Expected begin[{axis}] in [0, {length}], but got {start}")
        if count != -1 and not 0 <= count <= length - start:
            break
    return InvalidArgumentError(f"Expected size[{axis}] in [0, {length - start}], but got {count}")


@dataclass(frozen=True, slots=True)
class Masks:
    """What begins, ends and strides mean; bit i of a mask speaks of place i of a spec."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink_axis: int

    @classmethod
    def of(cls, attrs: Attrs) -> Masks:
        """The masks in a node's attributes."""
        names = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        return cls(*(attrs.int(f"{name}_mask") for name in names))

    def index(self, begin: Value, end: Value, strides: Value) -> Index:
        """The index that a spec means; raises if the spec is wrong for any array."""
        if not (begin.ndim == 1 and begin.shape == end.shape == strides.shape):
            raise InvalidArgumentError(
                "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
                f"{shape_text(begin.shape)}, {shape_text(end.shape)}, and "
                f"{shape_text(strides.shape)} instead."
            )
        if self.ellipsis & (self.ellipsis - 1):
            raise InvalidArgumentError("Multiple ellipses in slice spec not allowed")
        spec = zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)
        return tuple(self._place(i, *place) for i, place in enumerate(spec))

    def _place(self, i: int, begin: int, end: int, stride: int) -> Place:
        bit = 1 << i
        if self.ellipsis & bit:
            return ...
        if self.new_axis & bit:
            return None
        if stride == 0:
            raise InvalidArgumentError(f"strides[{i}] must be non-zero")
        if self.shrink_axis & bit:
            if stride < 0:
                raise InvalidArgumentError("only stride 1 allowed on non-range indexing.")
            return begin
        first = None if self.begin & bit else begin
        return slice(first, None if self.end & bit else end, stride)


@kernel("StridedSlice", types={"T": _STRIDED}, cost=Cost.CHEAP)
def make_strided_slice(attrs: Attrs) -> Kernel:
    """What ``array[spec]`` gives in Python, spec being begins, ends, strides and masks."""
    masks = Masks.of(attrs)
    index_of = index_maker(masks)

    def strided_slice(values: Array, begin: Value, end: Value, strides: Value) -> Value:
        index = index_of(begin, end, strides)
        try:
            return values[index]
        except IndexError:
            raise _no_such_part(values.shape, index) from None

    def with_ellipsis(values: Array, begin: Value, end: Value, strides: Value) -> Value:
        return as_value(strided_slice(values, begin, end, strides))

    return boxing(attrs, "T", with_ellipsis if masks.ellipsis else strided_slice)


@kernel("_SliceAt", types={"T": _STRIDED}, cost=Cost.CHEAP)
def make_slice_at(attrs: Attrs) -> Kernel:
    """One slice along an axis, which goes; -1 is the last one, and counts from the end like it."""
    axis = attrs.int("axis")
    before: Index = (...,) if axis < 0 else (slice(None),) * axis

    def slice_at(values: Array, number: Value) -> Value:
        try:
            return values[(*before, to_index(number))]
        except IndexError:
            raise _no_such_part(values.shape, (*before, to_index(number))) from None
        except TypeError:
            raise InvalidArgumentError(
                "Expected the number of a slice to be a scalar, but got shape "
                f"{shape_text(shape_of(number))}"
            ) from None

    def as_values(values: Array, number: Value) -> Value:
        return as_value(slice_at(values, number))

    return boxing(attrs, "T", as_values if axis < 0 else slice_at)


def index_maker(masks: Masks) -> _ReadIndex:
    """A ``masks.index`` that remembers what it has read of constants.

    Specs are mostly constants, so the same read-only arrays come again in every step.  In loops
    begins and ends change, and strides do not: then only places are read that are in the index.
    """
    last: tuple[Value, Value, Value, Index] = (None, None, None, ())
    plan = _Plan(masks, None, 0)

    def index_of(begin: Value, end: Value, strides: Value) -> Index:
        nonlocal last, plan
        old_begin, old_end, old_strides, index = last
        if begin is old_begin and end is old_end and strides is old_strides:
            return index
        known = plan
        if strides is known.strides and begin.shape == end.shape == known.shape:
            return known.index(begin, end)
        index = masks.index(begin, end, strides)
        if is_constant(strides):
            if is_constant(begin) and is_constant(end):
                last = begin, end, strides, index
            else:
                plan = _Plan(masks, strides, strides.size)
        return index

    return index_of


class _Plan:
    """How to read begins and ends that come with certain strides, which suit their masks."""

    __slots__ = ("_fixed", "_moving", "_picked", "shape", "strides")

    def __init__(self, masks: Masks, strides: Value, count: int) -> None:
        #: The strides, which live on so that no other object is taken for them.
        self.strides = strides
        #: The shape of all three.
        self.shape = (count,)
        first = masks.index(np.zeros(count, int), np.zeros(count, int), strides) if count else ()
        #: The index, right where neither begin nor end has a say.
        self._fixed: Final[list[Place]] = list(first)
        #: Places that are single elements, and parts that begin or end somewhere, with strides.
        self._picked = [i for i, place in enumerate(first) if isinstance(place, int)]
        self._moving = [
            (i, place.start is None, place.stop is None, place.step)
            for i, place in enumerate(first)
            if isinstance(place, slice) and not place.start is place.stop is None
        ]

    def index(self, begin: Value, end: Value) -> Index:
        """What ``Masks.index`` gives."""
        places = self._fixed.copy()
        for i in self._picked:
            places[i] = begin.item(i)
        for i, is_from_start, is_to_end, stride in self._moving:
            start = None if is_from_start else begin.item(i)
            places[i] = slice(start, None if is_to_end else end.item(i), stride)
        return tuple(places)


def part(values: Array, index: Index) -> Value:
    """``values[index]``, or an error as TensorFlow words it."""
    try:
        return as_value(values[index])
    except IndexError:
        raise _no_such_part(values.shape, index) from None


def _no_such_part(shape: tuple[int, ...], index: Index) -> InvalidArgumentError:
    """Why an array of this shape has no such part."""
    places = [place for place in index if place is not None and place is not ...]
    if not shape:
        return InvalidArgumentError("Attempting to slice scalar input.")
    if len(places) > len(shape):
        return InvalidArgumentError(
            f"Index out of range using input dim {len(shape)}; input has only {len(shape)} dims"
        )
    before = index.index(...) if ... in index else len(index)
    tail = len([place for place in index[before + 1 :] if place is not None])
    axes = [*range(len(places) - tail), *range(len(shape) - tail, len(shape))]
    for axis, place in zip(axes, places, strict=True):
        if isinstance(place, int) and not -shape[axis] <= place < shape[axis]:
            wrapped = place + shape[axis] if place < 0 else place
            return InvalidArgumentError(f"slice index {wrapped} of dimension {axis} out of bounds.")
    return InvalidArgumentError(f"no such part of shape {shape_text(shape)}: {index}")


@kernel("StridedSliceGrad", types={"T": _STRIDED})
def make_strided_slice_grad(attrs: Attrs) -> Kernel:
    """Zeros of ``shape`` with the part set to the gradient that came from it."""
    index_of = index_maker(Masks.of(attrs))
    dtype = attrs.dtype("T")

    def strided_slice_grad(
        shape: Value, begin: Value, end: Value, strides: Value, dy: Value
    ) -> Value:
        if shape.ndim != 1:
            raise InvalidArgumentError(
                f"shape must be 1-D, got shape.shape = {shape_text(shape.shape)}"
            )
        whole = zeros(shape.tolist(), dtype)
        index = index_of(begin, end, strides)
        expected, given = shape_of(part(whole, index)), shape_of(dy)
        if given != expected:
            raise InvalidArgumentError(
                f"shape of dy was {shape_text(given)} instead of {shape_text(expected)}"
            )
        whole[index] = dy
        return as_value(whole)

    return strided_slice_grad


@kernel("TensorStridedSliceUpdate", types={"T": _STRIDED})
def make_tensor_strided_slice_update(attrs: Attrs) -> Kernel:
    """A copy of the input in which the part has the values given."""
    index_of = index_maker(Masks.of(attrs))

    def update(values: Value, begin: Value, end: Value, strides: Value, new: Value) -> Value:
        return with_part(values, index_of(begin, end, strides), new)

    return update


def with_part(values: Value, index: Index, new: Value) -> Value:
    """A copy of ``values`` in which the part is ``new``, repeated to fill it if need be."""
    whole = np.array(as_array(values))
    target = shape_of(part(whole, index))
    try:
        if 0 not in target:
            whole[index] = new
    except ValueError:
        raise InvalidArgumentError(
            f"Cannot broadcast input shape {shape_text(shape_of(new))} "
            f"into final shape {shape_text(target)}"
        ) from None
    return as_value(whole)
