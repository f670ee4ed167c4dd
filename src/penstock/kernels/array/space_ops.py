"""Moving elements between the batch, the depth and the spatial dimensions.

In:   images or other arrays with a batch dimension first.
Out:  the same elements in another arrangement, with zeros where padding asks for them.
Not:  computes nothing from elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import ALL, REALS
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.windows import Fit, pad

#: Elements of larger blocks could not be counted in 32 bits.
_LARGEST_BLOCK: Final = 46340


@kernel("SpaceToBatchND", types={"T": REALS})
def make_space_to_batch_nd(_attrs: Attrs) -> Kernel:
    """Pad the dimensions after the first, and deal each out in turn over so many batches."""
    return _space_to_batch


@kernel("SpaceToBatch", types={"T": REALS})
def make_space_to_batch(attrs: Attrs) -> Kernel:
    """The form for images, with square blocks."""
    return _on_images(_space_to_batch, attrs.int("block_size"))


@kernel("BatchToSpaceND", types={"T": REALS})
def make_batch_to_space_nd(_attrs: Attrs) -> Kernel:
    """The inverse of SpaceToBatchND: interleave batches, then crop."""
    return _batch_to_space


@kernel("BatchToSpace", types={"T": REALS})
def make_batch_to_space(attrs: Attrs) -> Kernel:
    """The form for images, with square blocks."""
    return _on_images(_batch_to_space, attrs.int("block_size"))


def _on_images(
    move: Callable[[Value, Value, Value], Array], block_size: int
) -> Callable[[Value, Value], Array]:
    block_shape = np.array([block_size, block_size])

    def on_images(images: Value, margins: Value) -> Array:
        if np.ndim(images) != 4:
            raise ValueError(f"Input rank should be: 4 instead of: {np.ndim(images)}")
        return move(images, block_shape, margins)

    return on_images


def _space_to_batch(values: Value, block_shape: Value, paddings: Value) -> Array:
    array, block, margins = _blocks(values, block_shape, paddings, "paddings")
    if any(margins.flat):
        array = pad(array, [Fit(0, *pair) for pair in margins.tolist()], 0)
    batch, sizes, rest = _split_shape(array, len(block))
    for i, (size, count) in enumerate(zip(sizes, block, strict=True)):
        if size % count:
            raise ValueError(
                f"padded_shape[{i}]={size} is not divisible by block_shape[{i}]={count}"
            )
    outer = [size // count for size, count in zip(sizes, block, strict=True)]
    pairs = [n for pair in zip(outer, block, strict=True) for n in pair]
    order = [*range(2, 2 * len(block) + 1, 2), 0, *range(1, 2 * len(block) + 1, 2)]
    moved = _permuted(array.reshape(batch, *pairs, *rest), order)
    return moved.reshape(batch * math.prod(block), *outer, *rest)


def _batch_to_space(values: Value, block_shape: Value, crops: Value) -> Array:
    array, block, margins = _blocks(values, block_shape, crops, "crops")
    batch, sizes, rest = _split_shape(array, len(block))
    count = math.prod(block)
    if batch % count:
        raise ValueError(
            f"Input batch dimension ({batch}) is not divisible by product of block sizes ({count})"
        )
    whole = [size * n for size, n in zip(sizes, block, strict=True)]
    for i, (size, (start, end)) in enumerate(zip(whole, margins.tolist(), strict=True)):
        if start + end > size:
            raise ValueError(f"cropped_shape[{i}]={size - start - end} must be non-negative")
    here = len(block)
    order = [here, *(axis for i in range(here) for axis in (here + 1 + i, i))]
    moved = _permuted(array.reshape(*block, batch // count, *sizes, *rest), order)
    joined = moved.reshape(batch // count, *whole, *rest)
    inside = zip(whole, margins.tolist(), strict=True)
    return joined[(slice(None), *(slice(start, size - end) for size, (start, end) in inside))]


def _permuted(array: Array, order: list[int]) -> Array:
    """Transpose the first axes; those that ``order`` does not name keep their place."""
    return array.transpose(*order, *range(len(order), array.ndim))


def _blocks(
    values: Value, block_shape: Value, margins: Value, name: str
) -> tuple[Array, list[int], Array]:
    """The arguments, checked: the array, the sizes of a block, and the margins as pairs."""
    array, block, pairs = np.asarray(values), np.asarray(block_shape), np.asarray(margins)
    if block.ndim != 1:
        raise ValueError(f"block_shape rank should be 1 instead of {block.ndim}")
    if array.ndim < block.size + 1:
        raise ValueError(f"input rank should be >= {block.size + 1} instead of {array.ndim}")
    if pairs.shape != (block.size, 2):
        raise ValueError(
            f"{name} should have shape [{block.size}, 2] instead of {shape_text(pairs.shape)}"
        )
    for i, size in enumerate(block.tolist()):
        if size <= 0:
            raise ValueError(
                f"All values in block_shape must be positive, got value, {size} at index {i}."
            )
    if (pairs < 0).any():
        raise ValueError(f"{name.capitalize()} must be non-negative, got {pairs.tolist()}")
    return array, block.tolist(), pairs


def _split_shape(array: Array, count: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The size of the batch, those of ``count`` dimensions after it, and the others."""
    return array.shape[0], array.shape[1 : count + 1], array.shape[count + 1 :]


@kernel("SpaceToDepth", types={"T": ALL})
def make_space_to_depth(attrs: Attrs) -> Kernel:
    """Stack the pixels of each square block along the depth."""
    size = attrs.int("block_size")

    def space_to_depth(images: Array) -> Array:
        if np.ndim(images) != 4:
            raise ValueError(f"Input rank should be 4 instead of {np.ndim(images)}")
        batch, height, width, depth = images.shape
        if height % size or width % size:
            raise ValueError(
                f"Image width {width} and height {height} should be divisible by block_size: {size}"
            )
        rows, columns = height // size, width // size
        blocks = images.reshape(batch, rows, size, columns, size, depth)
        moved = blocks.transpose(0, 1, 3, 2, 4, 5)
        return moved.reshape(batch, rows, columns, size * size * depth)

    return _in_layout(attrs, space_to_depth)


@kernel("DepthToSpace", types={"T": ALL - {dtypes.qint8}})
def make_depth_to_space(attrs: Attrs) -> Kernel:
    """The inverse of SpaceToDepth: spread the depth of each pixel over a square block."""
    size = attrs.int("block_size")
    if not 1 < size <= _LARGEST_BLOCK:
        raise InvalidArgumentError(
            f"Block size should be > 1 and <= {_LARGEST_BLOCK} but was: {size}"
        )

    def depth_to_space(images: Array) -> Array:
        if np.ndim(images) != 4:
            raise ValueError(f"Input rank should be: 4 instead of: {np.ndim(images)}")
        batch, height, width, depth = images.shape
        if depth % (size * size):
            raise ValueError(f"Input depth dimension {depth} should be divisible by: {size * size}")
        rest = depth // (size * size)
        blocks = images.reshape(batch, height, width, size, size, rest)
        moved = blocks.transpose(0, 1, 3, 2, 4, 5)
        return moved.reshape(batch, height * size, width * size, rest)

    return _in_layout(attrs, depth_to_space)


def _in_layout(attrs: Attrs, on_nhwc: Callable[[Array], Array]) -> Kernel:
    """A kernel for images in the layout that ``data_format`` says."""
    layout = attrs.str("data_format")
    if layout == "NHWC":
        return on_nhwc
    if layout != "NCHW":
        raise UnimplementedError(f"{attrs.op.name} of images in the layout {layout}")

    def on_nchw(images: Array) -> Array:
        if np.ndim(images) != 4:
            raise ValueError(f"Input rank should be: 4 instead of: {np.ndim(images)}")
        return on_nhwc(images.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)

    return on_nchw


@kernel("DataFormatDimMap")
def make_data_format_dim_map(attrs: Attrs) -> Kernel:
    """Where each dimension of the source layout is in the destination layout.

    Numbers outside the layout are taken modulo its length.
    """
    source, destination = _layouts(attrs)
    place = np.array([destination.index(letter) for letter in source], attrs.dtype("T").numpy)

    def data_format_dim_map(dimensions: Value) -> Value:
        return place[np.mod(dimensions, len(place))]

    return data_format_dim_map


@kernel("DataFormatVecPermute")
def make_data_format_vec_permute(attrs: Attrs) -> Kernel:
    """Reorder what is given per dimension, or per spatial dimension, to another layout."""
    source, destination = _layouts(attrs)
    spatial = [letter for letter in source if letter not in "NC"]
    all_places = [source.index(letter) for letter in destination]
    spatial_places = [spatial.index(letter) for letter in destination if letter not in "NC"]
    rank = len(source)

    def data_format_vec_permute(values: Array) -> Array:
        _check_per_dimension(values, rank)
        if len(values) == rank:
            return values[all_places]
        if len(spatial_places) != rank - 2:
            raise ValueError(f"{source} has no {rank - 2} spatial dimensions")
        return values[spatial_places]

    return data_format_vec_permute


def _check_per_dimension(values: Value, rank: int) -> None:
    """Raise ValueError unless there is a number or a pair per (spatial) dimension."""
    shape = np.shape(values)
    if len(shape) not in (1, 2):
        raise ValueError(f"input must be a vector or 2D tensor, but got shape {shape_text(shape)}")
    if shape[0] not in (rank - 2, rank):
        word = "1D input" if len(shape) == 1 else "First dimension of 2D input"
        raise ValueError(
            f"{word} must be of size {rank - 2} or {rank}, but got shape {shape_text(shape)}"
        )
    if len(shape) == 2 and shape[1] != 2:
        raise ValueError(
            f"Second dimension of 2D input must be of size 2, but got shape {shape_text(shape)}"
        )


def _layouts(attrs: Attrs) -> tuple[str, str]:
    """The source and the destination layout, which must have the same letters."""
    source, destination = attrs.str("src_format"), attrs.str("dst_format")
    for word, layout in (("Source", source), ("Destination", destination)):
        if len(layout) not in (4, 5):
            raise ValueError(f"{word} format must be of length 4 or 5, received {layout}")
    if sorted(source) != sorted(destination) or len(set(source)) != len(source):
        raise ValueError(
            "Destination and source format must determine a permutation, "
            f"got {source} and {destination}"
        )
    return source, destination
