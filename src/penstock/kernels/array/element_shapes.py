"""Shapes of what finds, counts and sorts the elements of arrays.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  of what moves whole arrays, array_shapes has these.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import (
    at_least_rank,
    axis_of,
    concat,
    dim,
    elements,
    merge,
    part_of,
    replaced,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule


@shape_rule("EditDistance")
def edit_distance(node: ShapeContext) -> TensorShape:
    """One number per sequence: the shapes of the sparse tensors but for their last axes."""
    one, other = node.numbers(2), node.numbers(5)
    if one is None or other is None or len(one) != len(other):
        return UNKNOWN
    return shape(*map(max, one[:-1], other[:-1]))


@shape_rule("UniqueV2", "UniqueWithCountsV2")
def unique(node: ShapeContext) -> Sequence[TensorShape]:
    """Along the axis nobody knows how much is left."""
    given, axes = node.input(0), node.numbers(1)
    kept = UNKNOWN
    rest: tuple[TensorShape, ...] = (shape(None),) * (len(node.attrs.output_types) - 1)
    if axes == []:
        kept = shape(None)
    elif axes is not None and given.dims is not None:
        kept = replaced(given, axis_of(axes[0], len(given.dims)), None)
        rest = (shape(dim(given, axes[0])), *rest[1:])
    return (kept, *rest)


@shape_rule("UnravelIndex")
def unravel_index(node: ShapeContext) -> TensorShape:
    """One row per axis, and the shape of the indices."""
    given, count = node.input(0), dim(with_rank(node.input(1), 1), 0)
    if given.rank == 0:
        return shape(count)
    return shape(count, elements(given)) if given.dims is not None else UNKNOWN


@shape_rule("Where")
def where(node: ShapeContext) -> TensorShape:
    """One row per element that is true, one column per axis."""
    return shape(None, node.input(0).rank)


@shape_rule("DynamicPartition")
def dynamic_partition(node: ShapeContext) -> Sequence[TensorShape]:
    """Nobody knows how many go where; what follows their axes stays."""
    data, places = node.input(0), node.input(1)
    count = node.attrs.int("num_partitions")
    if data.dims is None or places.dims is None:
        return [UNKNOWN] * count
    merge(part_of(at_least_rank(data, len(places.dims)), 0, len(places.dims)), places)
    return [concat(shape(None), part_of(data, len(places.dims)))] * count


@shape_rule("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(node: ShapeContext) -> TensorShape:
    """As many rows as the greatest index says."""
    half = len(node.inputs) // 2
    rows, rest, greatest, are_all_known = UNKNOWN, UNKNOWN, -1, True
    for slot in range(half):
        indices, data = node.input(slot), node.input(half + slot)
        known = node.numbers(slot)
        are_all_known &= known is not None
        greatest = max([greatest, *(known or ())])
        if indices.dims is not None and data.dims is not None:
            merge(part_of(data, 0, len(indices.dims)), indices)
            rest = merge(rest, part_of(data, len(indices.dims)))
    exact = are_all_known and node.attrs.op.name == "DynamicStitch"
    rows = shape(greatest + 1 if exact or are_all_known else None)
    return concat(rows, rest)
