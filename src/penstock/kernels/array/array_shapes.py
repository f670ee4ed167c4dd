"""Shapes of what repeats, fills, joins and rearranges arrays.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  cuts no parts out of arrays, part_shapes does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.partial_shapes import (
    Dim,
    at_least_rank,
    axis_of,
    concat,
    dim,
    elements,
    merge,
    merge_all,
    of_rank,
    part_of,
    replaced,
    shape,
    total,
    with_rank,
    without,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    """
    CheckNumerics CheckNumericsV2 Copy CopyHost DataFormatDimMap DeepCopy GuaranteeConst
    OnesLike PreventGradient Snapshot StopGradient ZerosLike
    """: "s -> s",
    "BroadcastGradientArgs": "[a], [b] -> [?], [?]",
    "BroadcastTo": "*, [?] -> :1",
    "DataFormatVecPermute": "s -> s",
    "Empty": "[?] -> :0",
    "Fill": "[?], [] -> :0",
    "InplaceAdd InplaceSub InplaceUpdate": "s, *, * -> s",
    "InvertPermutation": "[n] -> [n]",
    "LinSpace": "[], [], [] -> [#2]",
    "ListDiff": "[?], [?] -> [?], [?]",
    "LowerBound UpperBound": "*, s -> s",
    "Placeholder PlaceholderV2 _ParallelConcatStart": " -> @shape",
    "Rank Size": "* -> []",
    "ReverseSequence": "s, [?] -> s",
    "Roll": "s, *, * -> s",
    "ScatterNdNonAliasingAdd": "s, *, * -> s",
    """
    TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate
    """: "s, *, * -> s",
    "TensorStridedSliceUpdate": "s, *, *, *, * -> s",
    "StridedSliceGrad": "[?], *, *, *, * -> :0",
    "Unique": "[n] -> [?], [n]",
    "UniqueWithCounts": "s -> [?], s, [?]",
    "_EagerConst": "s -> s",
    "_ParallelConcatUpdate": "s, * -> s",
})  # fmt: skip


@shape_rule("Const", "HostConst")
def const(node: ShapeContext) -> TensorShape:
    """What the tensor says."""
    found: TensorShape = node.attrs.values["value"].shape
    return found


@shape_rule("Identity", "IdentityN")
def identity(node: ShapeContext) -> Sequence[TensorShape]:
    """The inputs' own, and what lies behind them."""
    pass_on(node, range(len(node.inputs)))
    return node.inputs


def pass_on(node: ShapeContext, slots: Sequence[int]) -> None:
    """Say that outputs point to what the inputs of the same numbers point to."""
    for slot in slots:
        if node.attrs.output_types[slot].base.is_object:
            held = node.held(slot)
            if held is not None:
                node.holds[slot] = held


@shape_rule("EnsureShape")
def ensure_shape(node: ShapeContext) -> TensorShape:
    """Both what is known and what is promised."""
    return merge(node.input(0), node.attrs.shape("shape"))


@shape_rule("PlaceholderWithDefault")
def placeholder_with_default(node: ShapeContext) -> TensorShape:
    """What is promised: another value may be fed."""
    merge(node.input(0), node.attrs.shape("shape"))
    return node.attrs.shape("shape")


@shape_rule("Bitcast")
def bitcast(node: ShapeContext) -> TensorShape:
    """A last axis comes or goes where the sizes of elements differ."""
    given, made = (node.attrs.dtype(name).numpy.itemsize for name in ("T", "type"))
    if given == made:
        return node.input(0)
    if given > made:
        return concat(node.input(0), shape(given // made))
    return part_of(at_least_rank(node.input(0), 1), 0, -1)


@shape_rule("BroadcastArgs")
def broadcast_args(node: ShapeContext) -> TensorShape:
    """As many sizes as the longer of the two has."""
    one, other = (dim(with_rank(node.input(slot), 1), 0) for slot in (0, 1))
    return shape(None if one is None or other is None else max(one, other))


@shape_rule("Concat", "ConcatV2")
def concatenated(node: ShapeContext) -> TensorShape:
    """The sizes are added up along the axis, and equal along all others."""
    last = node.attrs.op.name == "ConcatV2"
    parts = node.inputs[:-1] if last else node.inputs[1:]
    with_rank(node.input(-1 if last else 0), 0)
    return joined(parts, node.number(-1 if last else 0))


def joined(parts: Sequence[TensorShape], axis: Dim) -> TensorShape:
    """Arrays one after the other along an axis, which may be unknown."""
    ranks = [len(part.dims) for part in parts if part.dims is not None]
    if not ranks:
        return UNKNOWN
    if axis is None:
        return merge_all(of_rank(rank) for rank in ranks) if max(ranks) else UNKNOWN
    place = axis_of(axis, ranks[0]) if axis < 0 or axis >= ranks[0] else axis
    others = merge_all(
        replaced(part, place, None) for part in parts if len(part.dims or ()) > place
    )
    merge_all(of_rank(rank) for rank in ranks)
    return replaced(others, place, total(dim(part, place) for part in parts))


@shape_rule("ConcatOffset")
def concat_offset(node: ShapeContext) -> Sequence[TensorShape]:
    """Offsets for each vector of sizes."""
    return node.inputs[1:]


@shape_rule("Pack")
def pack(node: ShapeContext) -> TensorShape:
    """A new axis as long as there are inputs."""
    known = merge_all(node.inputs)
    if known.dims is None:
        return UNKNOWN
    place = axis_of(node.attrs.int("axis"), len(known.dims) + 1)
    return concat(part_of(known, 0, place), shape(len(node.inputs)), part_of(known, place))


@shape_rule("Unpack")
def unpack(node: ShapeContext) -> Sequence[TensorShape]:
    """One axis goes; it must be as long as there are outputs."""
    given, count = node.input(0), node.attrs.int("num")
    if given.dims is None:
        return [UNKNOWN] * count
    place = axis_of(node.attrs.int("axis"), len(given.dims))
    size = given.dims[place]
    if size is not None and size != count:
        raise InvalidArgumentError(f"Dimension must be {count} but is {size}")
    return [without(given, place)] * count


@shape_rule("Diag")
def diag(node: ShapeContext) -> TensorShape:
    """The sizes twice."""
    return concat(at_least_rank(node.input(0), 1), node.input(0))


@shape_rule("DiagPart")
def diag_part(node: ShapeContext) -> TensorShape:
    """Half of the sizes; both halves are the same."""
    given = node.input(0)
    if given.dims is None:
        return UNKNOWN
    half, odd = divmod(len(given.dims), 2)
    if odd or not half:
        raise InvalidArgumentError(
            f"Input must have even and non-zero rank, input rank is {len(given.dims)}"
        )
    return merge(part_of(given, 0, half), part_of(given, half))


@shape_rule("ExpandDims")
def expand_dims(node: ShapeContext) -> TensorShape:
    """A new axis of one element."""
    given, axis = node.input(0), node.number(1)
    if given.dims is None:
        return UNKNOWN
    if axis is None:
        return of_rank(len(given.dims) + 1)
    if not -len(given.dims) - 1 <= axis <= len(given.dims):
        raise InvalidArgumentError(
            f"dim {axis} not in the interval [{-len(given.dims) - 1}, {len(given.dims)}]."
        )
    place = axis % (len(given.dims) + 1)
    return concat(part_of(given, 0, place), shape(1), part_of(given, place))


@shape_rule("Squeeze")
def squeeze(node: ShapeContext) -> TensorShape:
    """Axes of one element go: those that are named, or all of them."""
    given, axes = node.input(0), node.attrs.list("squeeze_dims")
    if given.dims is None:
        return UNKNOWN
    if not axes:
        if None in given.dims:
            return UNKNOWN
        return shape(*(size for size in given.dims if size != 1))
    gone = {axis_of(axis, len(given.dims)) for axis in axes}
    for place in gone:
        if given.dims[place] not in (1, None):
            raise InvalidArgumentError(
                f"Can not squeeze dim[{place}], expected a dimension of 1, got {given.dims[place]}"
            )
    return shape(*(size for place, size in enumerate(given.dims) if place not in gone))


@shape_rule("OneHot")
def one_hot(node: ShapeContext) -> TensorShape:
    """A new axis as long as the depth says."""
    given, axis, depth = node.input(0), node.attrs.int("axis"), node.number(1)
    if depth is not None and depth < 0:
        raise InvalidArgumentError(
            f"Dimension size, given by scalar input 1, must be non-negative but is {depth}"
        )
    if given.dims is None:
        return UNKNOWN
    place = axis_of(axis, len(given.dims) + 1)
    return concat(part_of(given, 0, place), shape(depth), part_of(given, place))


@shape_rule("Range")
def arange(node: ShapeContext) -> TensorShape:
    """As many numbers as there are from start to limit."""
    values: list[Any] = [node.value(slot) for slot in range(3)]
    for given in node.inputs:
        with_rank(given, 0)
    if any(value is None for value in values):
        return shape(None)
    if node.attrs.dtype("Tidx").is_integer:
        start, limit, delta = (int(value) for value in values)
        if delta == 0:
            raise InvalidArgumentError("Requires delta != 0")
        return shape(max(-((start - limit) // delta), 0))
    first, last, step = (float(value) for value in values)
    return shape(max(int(-((first - last) // step)), 0))


@shape_rule("Reshape")
def reshape(node: ShapeContext) -> TensorShape:
    """What is asked for; one unknown size follows from the number of elements."""
    wanted, count = node.sizes(1), elements(node.input(0))
    if wanted.dims is None:
        return UNKNOWN
    known = elements(TensorShape(tuple(size for size in wanted.dims if size is not None)))
    assert known is not None  # nothing else was taken
    if None not in wanted.dims:
        if count is not None and count != known:
            raise InvalidArgumentError(
                f"Cannot reshape a tensor with {count} elements to shape {wanted} "
                f"({known} elements)"
            )
        return wanted
    if wanted.dims.count(None) > 1 or count is None or not known:
        return wanted
    if count % known:
        raise InvalidArgumentError(
            f"Cannot reshape a tensor with {count} elements to shape {wanted}: "
            f"{count} is no multiple of {known}"
        )
    return replaced(wanted, wanted.dims.index(None), count // known)


@shape_rule("ParallelConcat")
def parallel_concat(node: ShapeContext) -> TensorShape:
    """What the attribute says, if the inputs agree."""
    return node.attrs.shape("shape")


@shape_rule("Reverse", "ReverseV2")
def reverse(node: ShapeContext) -> TensorShape:
    """The input's own; which axes are turned round says what rank it has at least."""
    given = node.input(0)
    if node.attrs.op.name == "Reverse":
        return merge(given, of_rank(dim(with_rank(node.input(1), 1), 0)))
    if given.dims is not None:
        for axis in node.numbers(1) or ():
            axis_of(axis, len(given.dims))
    return given


@shape_rule("Shape", "ShapeN")
def shape_of(node: ShapeContext) -> Sequence[TensorShape]:
    """One number per axis."""
    return [shape(given.rank) for given in node.inputs]


@shape_rule("Tile")
def tile(node: ShapeContext) -> TensorShape:
    """Each size times how often it is repeated."""
    given, times = node.input(0), node.sizes(1)
    if given.dims is None or times.dims is None:
        return of_rank(given.rank if times.rank is None else times.rank)
    if len(given.dims) != len(times.dims):
        raise InvalidArgumentError(
            f"Shape must be rank {len(times.dims)} but is rank {len(given.dims)}"
        )
    pairs = zip(given.dims, times.dims, strict=True)
    return shape(*(None if one is None or n is None else one * n for one, n in pairs))


@shape_rule("Transpose", "ConjugateTranspose")
def transpose(node: ShapeContext) -> TensorShape:
    """The sizes in another order."""
    given, order = node.input(0), node.numbers(1)
    if order is None:
        count = dim(with_rank(node.input(1), 1), 0)
        return of_rank(given.rank if count is None else with_rank(given, count).rank)
    known = with_rank(given, len(order))
    assert known.dims is not None  # with_rank saw to it
    if len(set(order)) != len(order):
        raise InvalidArgumentError(f"perm must be a permutation, got {order}")
    return shape(*(known.dims[axis_of(axis, len(order))] for axis in order))
