"""Shapes of what moves elements between space, batch and depth, and of patches.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.partial_shapes import (
    Dim,
    at_least_rank,
    concat,
    dim,
    of_rank,
    part_of,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule

#: The area of blocks of this size and more does not fit into TensorFlow's 32 bits.
_TOO_LARGE: Final = 46_341


def _divided(size: Dim, by: int) -> Dim:
    if size is None:
        return None
    if size % by:
        raise InvalidArgumentError(f"Dimension size must be evenly divisible by {by} but is {size}")
    return size // by


def _times(size: Dim, by: int) -> Dim:
    return None if size is None else size * by


@shape_rule("SpaceToDepth", "DepthToSpace")
def space_to_depth(node: ShapeContext) -> TensorShape:
    """Height and width are divided by the block's size, and the depth grows; or back."""
    block, layout = node.attrs.int("block_size"), node.attrs.str("data_format")
    if layout == "NCHW_VECT_C":
        return of_rank(5)
    given = with_rank(node.input(0), 4)
    if block >= _TOO_LARGE:
        return of_rank(4)
    is_back = node.attrs.op.name == "DepthToSpace"
    grow, shrink = (_divided, _times) if is_back else (_times, _divided)
    depth_axis = 3 if layout == "NHWC" else 1
    depth = grow(dim(given, depth_axis), block * block)
    space = [shrink(dim(given, axis), block) for axis in range(1, 4) if axis != depth_axis]
    sizes = [*space, depth] if depth_axis == 3 else [depth, *space]
    return shape(dim(given, 0), *sizes)


@shape_rule("SpaceToBatch", "SpaceToBatchND")
def space_to_batch(node: ShapeContext) -> TensorShape:
    """Padded axes are divided by the blocks' sizes; the batch grows."""
    blocks, margins, given = _blocks(node)
    if blocks is None:
        return given
    count = len(blocks)
    known = at_least_rank(given, count + 1)
    if known.dims is None:
        return UNKNOWN
    batch, space = known.dims[0], []
    for axis, block in enumerate(blocks):
        size = _sum(known.dims[axis + 1], *margins[2 * axis : 2 * axis + 2])
        space.append(None if block is None else _divided(size, block))
        batch = None if block is None or batch is None else batch * block
    return concat(shape(batch, *space), part_of(known, count + 1))


@shape_rule("BatchToSpace", "BatchToSpaceND")
def batch_to_space(node: ShapeContext) -> TensorShape:
    """Axes grow by the blocks' sizes and are cropped; the batch is divided."""
    blocks, crops, given = _blocks(node)
    if blocks is None:
        return given
    count = len(blocks)
    known = at_least_rank(given, count + 1)
    if known.dims is None:
        return UNKNOWN
    batch, space = known.dims[0], []
    for axis, block in enumerate(blocks):
        size = None if block is None else _times(known.dims[axis + 1], block)
        cut = [None if crop is None else -crop for crop in crops[2 * axis : 2 * axis + 2]]
        space.append(_sum(size, *cut))
        batch = None if block is None else _divided(batch, block)
    return concat(shape(batch, *space), part_of(known, count + 1))


def _sum(*sizes: Dim) -> Dim:
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _blocks(node: ShapeContext) -> tuple[Sequence[Dim] | None, Sequence[Dim], TensorShape]:
    """The sizes of the blocks, if their number is known, what is added or cut, and the input."""
    given = node.input(0)
    if not node.attrs.op.name.endswith("ND"):
        block = node.attrs.int("block_size")
        return (block, block), node.some_numbers(1, 4), with_rank(given, 4)
    count = dim(with_rank(node.input(1), 1), 0)
    if count is None:
        return None, (), UNKNOWN
    return node.some_numbers(1, count), node.some_numbers(2, 2 * count), given


@shape_rule("ExtractImagePatches", "ExtractVolumePatches")
def patches(node: ShapeContext) -> TensorShape:
    """The places of the patch; all of its elements lie along the depth."""
    attrs = node.attrs
    sizes, strides = attrs.list("ksizes"), attrs.list("strides")
    rates = attrs.list("rates") if attrs.has("rates") else (1,) * len(sizes)
    image, padding = with_rank(node.input(0), len(sizes)), attrs.str("padding")
    depth, space = dim(image, -1), []
    for axis in range(1, len(sizes) - 1):
        extent = (sizes[axis] - 1) * rates[axis] + 1
        size = dim(image, axis)
        if size is not None:
            room = size if padding == "SAME" else size - extent + 1
            size = -(-room // strides[axis])
        space.append(size)
        depth = _times(depth, sizes[axis])
    return shape(dim(image, 0), *space, depth)
