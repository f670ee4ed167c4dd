"""Several inputs as one: sums, products, extremes, pieces behind each other, dot products."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Masking, layer
from penstock.formats.keras.symbol import Shape, Symbol, constant_like


@layer("Add", masking=Masking.OWN)
def add(self: Layer, xs: list[Symbol], *more: Symbol) -> Symbol:
    """The sum of all inputs."""
    return _merged(self, _listed(self.config, xs, more), lambda a, b: a + b)


@layer("Multiply", masking=Masking.OWN)
def multiply(self: Layer, xs: list[Symbol], *more: Symbol) -> Symbol:
    """The product of all inputs."""
    return _merged(self, _listed(self.config, xs, more), lambda a, b: a * b)


@layer("Subtract", masking=Masking.OWN)
def subtract(self: Layer, xs: list[Symbol], *more: Symbol) -> Symbol:
    """The first input less the second."""
    return _merged(self, _listed(self.config, xs, more, 2), lambda a, b: a - b)


@layer("Maximum", masking=Masking.OWN)
def maximum(self: Layer, xs: list[Symbol], *more: Symbol) -> Symbol:
    """The largest of all inputs, number by number."""
    return _merged(self, _listed(self.config, xs, more), ops.maximum)


@layer("Minimum", masking=Masking.OWN)
def minimum(self: Layer, xs: list[Symbol], *more: Symbol) -> Symbol:
    """The smallest of all inputs, number by number."""
    return _merged(self, _listed(self.config, xs, more), ops.minimum)


@layer("Average", masking=Masking.OWN)
def average(self: Layer, xs: list[Symbol], *more: Symbol) -> Symbol:
    """The mean of all inputs, number by number."""
    inputs = _listed(self.config, xs, more)
    total = _merged(self, inputs, lambda a, b: a + b)
    made = ops.real_div(total.tensor, constant_like(len(inputs), total.tensor))
    return total.made(made).masked(total.mask)


def _listed(
    config: Config, xs: object, more: Sequence[Symbol], count: int | None = None
) -> list[Symbol]:
    inputs = [*(xs if isinstance(xs, (list, tuple)) else [xs]), *more]
    if not inputs or not all(isinstance(x, Symbol) for x in inputs):
        raise config.error("its input is no list of tensors")
    if count is not None and len(inputs) != count:
        raise config.error(f"it takes {count} inputs, and is given {len(inputs)}")
    return _of_one_type(inputs)


def _of_one_type(inputs: list[Symbol]) -> list[Symbol]:
    """Whole numbers in the type of the real ones beside them; the widest of whole ones."""
    types = [x.tensor.dtype for x in inputs]
    if all(dtype is types[0] for dtype in types) or dtypes.string in types:
        return inputs
    real = [dtype for dtype in types if dtype.is_floating]
    wanted = max(real or types, key=lambda dtype: dtype.numpy.itemsize)
    return [
        x if x.tensor.dtype is wanted else replace(x, tensor=ops.cast(x.tensor, wanted))
        for x in inputs
    ]


def _merged(
    self: Layer, inputs: list[Symbol], function: Callable[[Tensor, Tensor], Tensor]
) -> Symbol:
    aligned = _of_one_rank(inputs)
    made = functools.reduce(function, (x.tensor for x in aligned))
    shape = functools.reduce(functools.partial(broadcast, self.config), (x.shape for x in aligned))
    return inputs[0].made(made, shape).masked(_common_mask(self.config, inputs))


def _of_one_rank(inputs: list[Symbol]) -> list[Symbol]:
    """Inputs of fewer dimensions get new ones behind the batch, as Keras does it."""
    rank = max(x.rank for x in inputs)
    made = []
    for x in inputs:
        shape = (x.shape[:1] + (1,) * (rank - x.rank) + x.shape[1:]) if x.rank else x.shape
        tensor = x.tensor
        for _ in range(rank - x.rank):
            tensor = ops.expand_dims(tensor, 1)
        made.append(x.made(tensor, shape))
    return made


def broadcast(config: Config, first: Shape, second: Shape) -> Shape:
    """The shape of what two tensors of one rank make, number by number."""
    made: list[int | None] = []
    for a, b in zip(first, second, strict=True):
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise config.error(f"its inputs have the shapes {first} and {second}")
        made.append(b if a == 1 else a if b == 1 else a if a is not None else b)
    return tuple(made)


def _common_mask(config: Config, inputs: list[Symbol]) -> Tensor | None:
    """What counts in some input (Keras 3), or in each of them that has a mask (Keras 2)."""
    masks = [x.mask for x in inputs]
    given = [mask for mask in masks if mask is not None]
    if not given or (config.is_keras_3 and len(given) < len(masks)):
        return None
    joined = ops.logical_or if config.is_keras_3 else ops.logical_and
    made: Tensor = functools.reduce(joined, given)
    return made


@layer("Concatenate", masking=Masking.OWN)
def concatenate(self: Layer, xs: list[Symbol], *more: Symbol) -> Symbol:
    """All inputs behind each other along a dimension."""
    inputs = _listed(self.config, xs, more)
    axis = self.config.axis("axis", inputs[0].rank, -1)
    if any(x.rank != inputs[0].rank for x in inputs):
        raise self.config.error("its inputs differ in rank")
    sizes = [x.shape[axis] for x in inputs]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    shape = [
        total if place == axis else next((s for s in known if s is not None), None)
        for place, known in enumerate(zip(*(x.shape for x in inputs), strict=True))
    ]
    tensors = [x.tensor for x in inputs]
    made = ops.concat_v2(tensors, axis) if len(tensors) > 1 else tensors[0]
    return inputs[0].made(made, shape).masked(_joined_mask(self.config, inputs, axis))


def _joined_mask(config: Config, inputs: list[Symbol], axis: int) -> Tensor | None:
    """What counts in the whole, where in some inputs not all counts."""
    if all(x.mask is None for x in inputs):
        return None
    spread = []
    for x in inputs:
        whole = ops.cast(ops.ones_like(x.tensor), dtypes.bool_)
        mask = x.mask
        if mask is not None:
            for _ in range(x.rank - 2):
                mask = ops.expand_dims(mask, -1)
            whole = ops.logical_and(mask, whole)
        spread.append(whole)
    joined = ops.concat_v2(spread, axis) if len(spread) > 1 else spread[0]
    reduced = ops.any if config.is_keras_3 else ops.all
    made: Tensor = reduced(joined, [-1])
    return made


@layer("Dot")
def dot(self: Layer, xs: list[Symbol], *more: Symbol) -> Symbol:
    """Dot products along one dimension of each of two inputs."""
    first, second = _listed(self.config, xs, more, 2)
    axes = self.config.get("axes")
    given = axes if isinstance(axes, list) else [axes, axes]
    if len(given) != 2 or not all(isinstance(axis, int) for axis in given):
        raise self.config.error("'axes' must be one or two dimensions")
    along = [axis % x.rank for axis, x in zip(given, (first, second), strict=True)]
    if self.config.flag("normalize", default=False):
        first, second = _unit(first, along[0]), _unit(second, along[1])
    return batch_dot(first, second, along[0], along[1])


def _unit(x: Symbol, axis: int) -> Symbol:
    squares = ops.sum(ops.square(x.tensor), [axis], keep_dims=True)
    return x.made(x.tensor * ops.rsqrt(ops.maximum(squares, constant_like(1e-12, x.tensor))))


def batch_dot(first: Symbol, second: Symbol, axis: int, other: int) -> Symbol:
    """Products of each example's two parts along a dimension of each, which goes."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    left = list(letters[: first.rank])
    right = [letters[0], *letters[first.rank : first.rank + second.rank - 1]]
    right[other] = left[axis]
    kept = [(c, s) for c, s in zip(left, first.shape, strict=True) if c != left[axis]]
    kept += [
        (c, s) for c, s in zip(right, second.shape, strict=True) if c not in (left[axis], left[0])
    ]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(c for c, _ in kept)}"
    made = ops.einsum([first.tensor, second.tensor], equation=equation)
    shape = [size for _, size in kept]
    if len(shape) == 1:  # Keras keeps a dimension for what is one number
        return first.made(ops.expand_dims(made, -1), [*shape, 1])
    return first.made(made, shape)
