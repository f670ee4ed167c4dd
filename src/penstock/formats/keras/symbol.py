"""What travels between layers while their graph is built.

In:   a tensor of the builder, and what Keras would know of its shape.
Out:  ``Symbol``: the tensor, its shape as far as it is known, and the mask that goes with it.
Not:  makes nodes only where a size has to be asked for when a step runs.

The builder infers no shapes, so layers say what they make; what they cannot know is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.dataclass import dataclass

#: Sizes; None for those that only a step knows.
Shape: TypeAlias = tuple[int | None, ...]
#: A number, or the tensor that will be it.
Size: TypeAlias = "int | Tensor"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A tensor between two layers."""

    tensor: Tensor
    shape: Shape
    #: True where a time step counts; None where all do.
    mask: Tensor | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions, which is always known."""
        return len(self.shape)

    def made(self, tensor: Tensor, shape: Sequence[int | None] | None = None) -> Symbol:
        """What an op made of this: another tensor, of the same shape unless told; no mask."""
        return Symbol(tensor, self.shape if shape is None else tuple(shape))

    def masked(self, mask: Tensor | None) -> Symbol:
        """The same with another mask, or none."""
        return replace(self, mask=mask)

    def size(self, axis: int) -> Size:
        """A size: a number if it is known, otherwise what a step will say."""
        known = self.shape[axis]
        return known if known is not None else self.sizes_tensor()[axis]

    def sizes(self) -> list[Size]:
        """All sizes."""
        return [self.size(axis) for axis in range(self.rank)]

    def sizes_tensor(self) -> Tensor:
        """The shape that the tensor will have, as int32."""
        return ops.shape(self.tensor)


#: What a layer takes and gives: one Symbol, several, or several by name.
Nest: TypeAlias = Any


def pack(sizes: Iterable[Size]) -> Any:
    """Sizes as the argument of a Reshape and its like: an array, or a tensor if it must be."""
    listed = list(sizes)
    if all(isinstance(size, int) for size in listed):
        return np.array(listed, np.int32)
    return ops.pack(listed)


def reshape(x: Symbol, sizes: Sequence[Size]) -> Symbol:
    """The same elements in another form; one unknown size needs nobody to ask for it."""
    unknown = [place for place, size in enumerate(sizes) if not isinstance(size, int)]
    wanted = list(sizes)
    if len(unknown) == 1 and 0 not in sizes:
        wanted[unknown[0]] = -1
    shape = tuple(size if isinstance(size, int) and size >= 0 else None for size in sizes)
    return x.made(ops.reshape(x.tensor, pack(wanted)), shape)


def transpose(x: Symbol, order: Sequence[int]) -> Symbol:
    """The dimensions in another order; the mask goes unless the first two stay."""
    if list(order) == list(range(x.rank)):
        return x
    turned = ops.transpose(x.tensor, np.array(order, np.int32))
    return x.made(turned, tuple(x.shape[place] for place in order))


def each(function: Callable[[Symbol], Any], nest: Nest) -> Any:
    """``nest`` with ``function`` of every symbol in it; whatever else is in it stays."""
    if isinstance(nest, Symbol):
        return function(nest)
    if isinstance(nest, dict):
        return {key: each(function, item) for key, item in nest.items()}
    if isinstance(nest, (list, tuple)):
        return type(nest)(each(function, item) for item in nest)
    return nest


def flatten(nest: Nest) -> list[Symbol]:
    """Every symbol of ``nest``; those of a dict in the order of its keys, as Keras has it."""
    if isinstance(nest, Symbol):
        return [nest]
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in flatten(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [leaf for item in nest for leaf in flatten(item)]
    return []


def product(sizes: Iterable[int | None]) -> int | None:
    """How many elements there are, if all sizes are known."""
    count = 1
    for size in sizes:
        if size is None:
            return None
        count *= size
    return count


def constant_like(value: float, x: Tensor) -> Tensor:
    """A number of the type of ``x``."""
    return ops.constant(np.asarray(value, cast("Any", x.dtype.numpy)))
