"""What functions between layers are called with: symbols, numbers, dimensions.

In:   what a file gives as arguments.
Out:  symbols of one type, dimensions that are not negative, the shapes of results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from penstock.builder import ops
from penstock.core.dtypes import DType
from penstock.formats.keras.config import Config
from penstock.formats.keras.symbol import Shape, Symbol

#: Takes the layer's description, and then what the call brings.
Function: TypeAlias = Callable[..., Any]


def alike(config: Config, x: Any, y: Any) -> tuple[Symbol, Symbol]:
    """Both as symbols of one type; a number becomes a constant of the other's type."""
    given = x if isinstance(x, Symbol) else y
    if not isinstance(given, Symbol):
        raise config.error("it is called without a tensor")
    dtype = given.tensor.dtype
    return as_symbol(config, x, dtype), as_symbol(config, y, dtype)


def as_symbol(config: Config, value: Any, dtype: DType) -> Symbol:
    """A symbol as it is; numbers as a constant."""
    if isinstance(value, Symbol):
        return value
    try:
        array = np.asarray(value).astype(dtype.numpy)
    except (TypeError, ValueError):
        raise config.error("an argument of it is neither a tensor nor a number") from None
    return Symbol(ops.constant(array), array.shape)


def broadcast_shape(config: Config, first: Shape, second: Shape) -> Shape:
    """The shape of what two tensors make, number by number."""
    rank = max(len(first), len(second))
    made: list[int | None] = []
    for place in range(-rank, 0):
        a = first[place] if -place <= len(first) else 1
        b = second[place] if -place <= len(second) else 1
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise config.error(f"its arguments have the shapes {first} and {second}")
        made.append(b if a == 1 else a if b == 1 or b is None else b)
    return tuple(made)


def axes_of(config: Config, axis: Any, rank: int) -> list[int]:
    """Dimensions, none negative; all if none is named."""
    if axis is None:
        return list(range(rank))
    given = axis if isinstance(axis, (list, tuple)) else [axis]
    if not all(isinstance(a, int) and -rank <= a < rank for a in given):
        raise config.error(f"{axis!r} are no dimensions of an input of rank {rank}")
    return [a % rank for a in given]


def without(shape: Shape, axes: Sequence[int], *, keeps: bool) -> Shape:
    """A shape after a reduction."""
    return tuple(
        1 if axis in axes else size for axis, size in enumerate(shape) if keeps or axis not in axes
    )
