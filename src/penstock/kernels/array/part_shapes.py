"""Shapes of parts of arrays: slices, splits, gathered and scattered elements, padding.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  joins and rearranges nothing, array_shapes does.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.partial_shapes import (
    Dim,
    at_least_rank,
    at_most_rank,
    axis_of,
    concat,
    dim,
    merge,
    merge_dims,
    of_rank,
    part_of,
    replaced,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule


@shape_rule("Slice")
def slice_(node: ShapeContext) -> TensorShape:
    """The sizes asked for; -1 is all that follows the beginning."""
    given = node.input(0)
    rank = given.rank
    for slot in (1, 2):
        rank = merge_dims(rank, dim(with_rank(node.input(slot), 1), 0))
    if rank is None:
        return UNKNOWN
    known = with_rank(given, rank).dims or ()
    begins, counts = (node.some_numbers(slot, rank) for slot in (1, 2))
    return shape(*map(_taken, known, begins, counts))


def _taken(size: Dim, begin: Dim, count: Dim) -> Dim:
    """How much of an axis is taken."""
    if count != -1:
        return count
    return None if size is None or begin is None else size - begin


@shape_rule("StridedSlice")
def strided_slice(node: ShapeContext) -> TensorShape:
    """What Python's ``array[spec]`` has, for what is known of the spec."""
    given = node.input(0)
    length = None
    for slot in (1, 2, 3):
        length = merge_dims(length, dim(with_rank(node.input(slot), 1), 0))
    if length is None:
        return UNKNOWN
    return _Spec(node, length).result(given)


@shape_rule("_SliceAt")
def slice_at(node: ShapeContext) -> TensorShape:
    """The shape without the axis along which one slice is taken."""
    at_most_rank(node.input(1), 0)
    given, axis = node.input(0), node.attrs.int("axis")
    if not given.dims:
        return UNKNOWN  # TensorFlow finds only when it runs that a scalar has no parts
    if axis >= len(given.dims):
        raise InvalidArgumentError(
            f"Index out of range using input dim {len(given.dims)}; "
            f"input has only {len(given.dims)} dims"
        )
    sizes = list(given.dims)
    del sizes[axis]
    return shape(*sizes)


class _Spec:
    """Begins, ends, strides and masks, as far as they are known."""

    def __init__(self, node: ShapeContext, length: int) -> None:
        self.length = length
        self.masks = {
            name: node.attrs.int(f"{name}_mask")
            for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        }
        self.begins, self.ends, self.strides = (
            node.some_numbers(slot, length) for slot in (1, 2, 3)
        )

    def has(self, mask: str, place: int) -> bool:
        return bool(self.masks[mask] >> place & 1)

    def result(self, given: TensorShape) -> TensorShape:
        """The shape of the part."""
        places = range(self.length)
        dots = next((i for i in places if self.has("ellipsis", i)), None)
        used = sum(1 for i in places if i != dots and not self.has("new_axis", i))
        if not given.dims:
            return UNKNOWN  # TensorFlow finds only when it runs that a scalar has no parts
        if used > len(given.dims):
            raise InvalidArgumentError(
                f"Index out of range using input dim {len(given.dims)}; "
                f"input has only {len(given.dims)} dims"
            )
        made: list[Dim] = []
        axis = 0
        for i in places:
            if i == dots:
                stop = axis + len(given.dims) - used
                made += given.dims[axis:stop]
                axis = stop
            elif self.has("new_axis", i):
                made.append(1)
            else:
                if not self.has("shrink_axis", i):
                    made.append(self.size(i, given.dims[axis]))
                else:
                    self.check(i, given.dims[axis], axis)
                axis += 1
        return shape(*made, *given.dims[axis:])

    def check(self, i: int, size: Dim, axis: int) -> None:
        """Refuse an index that there is not."""
        begin = self.begins[i]
        if begin is not None and size is not None and not -size <= begin < size:
            wrapped = begin + size if begin < 0 else begin
            raise InvalidArgumentError(f"slice index {wrapped} of dimension {axis} out of bounds.")

    def size(self, i: int, size: Dim) -> Dim:
        """How much of an axis is taken."""
        stride = self.strides[i]
        begin = None if self.has("begin", i) else self.begins[i]
        end = None if self.has("end", i) else self.ends[i]
        if stride is None:
            return None
        if stride == 0:
            raise InvalidArgumentError(f"strides[{i}] must be non-zero")
        if (begin is None and not self.has("begin", i)) or (end is None and not self.has("end", i)):
            return None
        if size is not None:
            return len(range(*slice(begin, end, stride).indices(size)))
        return None


@shape_rule("Split")
def split(node: ShapeContext) -> Sequence[TensorShape]:
    """Equal parts along an axis."""
    given, axis, count = node.input(1), node.number(0), node.attrs.int("num_split")
    if given.dims is None:
        return [UNKNOWN] * count
    if axis is None:
        return [of_rank(len(given.dims))] * count
    place = axis_of(axis, len(given.dims))
    size = given.dims[place]
    if size is not None and size % count:
        raise InvalidArgumentError(
            f"Dimension size must be evenly divisible by {count} but is {size}"
        )
    return [replaced(given, place, None if size is None else size // count)] * count


@shape_rule("SplitV")
def split_v(node: ShapeContext) -> Sequence[TensorShape]:
    """Parts of given sizes along an axis; one of them may be what is left."""
    given, axis, count = node.input(0), node.number(2), node.attrs.int("num_split")
    if given.dims is None:
        return [UNKNOWN] * count
    if axis is None:
        return [of_rank(len(given.dims))] * count
    place = axis_of(axis, len(given.dims))
    sizes = node.some_numbers(1, count)
    whole = given.dims[place]
    if count == 1 and sizes[0] in (None, -1):
        return [given]
    rest = None
    if whole is not None and None not in sizes and sizes.count(-1) == 1:
        rest = whole - sum(size for size in sizes if size is not None and size >= 0)
        if rest < 0:
            raise InvalidArgumentError(
                f"split sizes {sizes} are more than the size {whole} of dimension {place}"
            )
    return [replaced(given, place, rest if size == -1 else size) for size in sizes]


@shape_rule("GatherV2", "Gather")
def gather(node: ShapeContext) -> TensorShape:
    """The indices' axes in the place of the one that is gathered along."""
    is_new = node.attrs.op.name == "GatherV2"
    axis = node.number(2) if is_new else 0
    if is_new:
        with_rank(node.input(2), 0)
    return gathered(
        at_least_rank(node.input(0), 1),
        node.input(1),
        axis,
        node.attrs.int("batch_dims") if is_new else 0,
    )


def gathered(values: TensorShape, indices: TensorShape, axis: Dim, batch: int) -> TensorShape:
    """Values picked along an axis; the first axes of both are the same ones."""
    if batch < 0:
        if indices.dims is None:
            return UNKNOWN
        batch += len(indices.dims)
    if values.dims is None or indices.dims is None:
        return UNKNOWN
    if axis is None:
        rank = len(values.dims) + len(indices.dims) - 1 - batch
        return of_rank(rank)
    place = axis_of(axis, len(values.dims))
    at_least_rank(indices, batch)
    outer = merge(part_of(values, 0, batch), part_of(indices, 0, batch))
    return concat(
        outer,
        part_of(values, batch, place),
        part_of(indices, batch),
        part_of(values, place + 1),
    )


@shape_rule("GatherNd")
def gather_nd(node: ShapeContext) -> TensorShape:
    """The last axis of the indices holds a place for each of the first axes of the values."""
    return gathered_nd(node.input(0), node.input(1))


def gathered_nd(values: TensorShape, indices: TensorShape) -> TensorShape:
    """Values picked at places of several axes."""
    depth = dim(at_least_rank(indices, 1), -1)
    if values.dims is None or indices.dims is None or depth is None:
        return UNKNOWN
    if depth > len(values.dims):
        raise InvalidArgumentError(
            "indices.shape[-1] must be <= params.rank, but saw indices shape: "
            f"{indices} and params shape: {values}"
        )
    return concat(part_of(indices, 0, -1), part_of(values, depth))


@shape_rule("ScatterNd")
def scatter_nd(node: ShapeContext) -> TensorShape:
    """What is asked for; what the updates say of its last axes must fit."""
    return node.sizes(2)


@shape_rule("Pad", "PadV2", "MirrorPad")
def pad(node: ShapeContext) -> TensorShape:
    """What is added at both ends of each axis makes it longer."""
    return _padded(node, 1)


@shape_rule("MirrorPadGrad")
def mirror_pad_grad(node: ShapeContext) -> TensorShape:
    """What was added goes again."""
    return _padded(node, -1)


def _padded(node: ShapeContext, sign: int) -> TensorShape:
    given, margins = node.input(0), node.numbers(1)
    rank = dim(with_rank(node.input(1), 2), 0)
    merge_dims(dim(node.input(1), 1), 2)
    if rank is None:
        rank = given.rank
    if rank is None:
        return UNKNOWN
    known = with_rank(given, rank)
    if margins is None or known.dims is None:
        return of_rank(rank)
    added = [sign * (before + after) for before, after in zip(*[iter(margins)] * 2, strict=True)]
    return shape(*(
        None if size is None else size + more
        for size, more in zip(known.dims, added, strict=True)
    ))  # fmt: skip
