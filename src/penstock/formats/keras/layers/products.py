"""Functions between layers that bring numbers of several places together, and choose among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.formats.keras.config import Config
from penstock.formats.keras.layers.arguments import (
    Function,
    alike,
    as_symbol,
    axes_of,
    broadcast_shape,
)
from penstock.formats.keras.layers.core import einsum_of
from penstock.formats.keras.layers.reshaping import resized
from penstock.formats.keras.symbol import Symbol

# -- products and places --------------------------------------------------------------------------


def matmul(config: Config, x: Any, y: Any, **more: Any) -> Symbol:
    """The product of matrices, of which there may be many."""
    first, second = alike(config, x, y)
    if first.rank < 2 or second.rank < 2:
        raise config.unsupported("a product with a vector")
    turn_x, turn_y = bool(more.get("transpose_a")), bool(more.get("transpose_b"))
    made = ops.batch_mat_mul_v2(first.tensor, second.tensor, adj_x=turn_x, adj_y=turn_y)
    rows = first.shape[-1 if turn_x else -2]
    columns = second.shape[-2 if turn_y else -1]
    around = broadcast_shape(config, first.shape[:-2], second.shape[:-2])
    return first.made(made, (*around, rows, columns))


def einsum(config: Config, *operands: Symbol, equation: str = "", **_: Any) -> Symbol:
    """The product along the dimensions that an equation names."""
    if len(operands) != 2 or not isinstance(equation, str):
        raise config.unsupported("a product of other than two tensors")
    return einsum_of(config, equation, *operands)


def take(config: Config, x: Symbol, indices: Any, axis: Any = None, **_: Any) -> Symbol:
    """The parts of a tensor that numbers name."""
    if axis is None:
        if config.is_keras_3:
            raise config.unsupported("places in the whole of a tensor")
        axis = 0
    (along,) = axes_of(config, axis, x.rank)
    places = as_symbol(config, indices, dtypes.int32)
    shape = (*x.shape[:along], *places.shape, *x.shape[along + 1 :])
    return x.made(ops.gather_v2(x.tensor, places.tensor, along), shape)


def one_hot(config: Config, x: Symbol, depth: int, axis: int = -1, **more: Any) -> Symbol:
    """A 1 at the place of each number, and zeros elsewhere."""
    dtype = config.named_type(more.get("dtype") or "float32")
    if axis not in (-1, x.rank):
        raise config.unsupported("a new dimension that is not the last")
    one, zero = np.ones((), dtype.numpy), np.zeros((), dtype.numpy)
    return x.made(ops.one_hot(x.tensor, depth, one, zero), (*x.shape, depth))


def resize(config: Config, x: Symbol, size: Any, method: str = "bilinear", **_: Any) -> Symbol:
    """Images of another size."""
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise config.unsupported("a size that is computed")
    return resized(config, x, [int(n) for n in size], method)


def blocks(op: Callable[..., Tensor], *, is_deeper: bool) -> Function:
    """A function that moves square blocks of images into channels, or back."""

    def rearrange(config: Config, x: Symbol, block_size: Any, **_: Any) -> Symbol:
        if x.rank != 4 or not isinstance(block_size, int) or block_size < 1:
            raise config.error("it takes an image, and the size of blocks")
        batch, rows, columns, channels = x.shape
        b = block_size
        space = [n if n is None else n // b if is_deeper else n * b for n in (rows, columns)]
        deep = None if channels is None else _deep(channels, b * b, is_deeper=is_deeper)
        return x.made(op(x.tensor, block_size=b), (batch, *space, deep))

    return rearrange


def _deep(channels: int, cells: int, *, is_deeper: bool) -> int:
    return channels * cells if is_deeper else channels // cells
