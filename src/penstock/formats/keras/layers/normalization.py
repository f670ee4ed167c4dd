"""Normalisation by statistics of training, of channels, of groups and of lengths.

Whatever is known when the graph is built (all of BatchNormalization) is one product and one sum.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.core.values import Array
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Masking, Weight, layer
from penstock.formats.keras.symbol import Symbol, constant_like, reshape


def widened(build: Callable[[Layer, Symbol], Symbol]) -> Callable[[Layer, Symbol], Symbol]:
    """In float32 where the layer's own type is narrower, as Keras computes all of these."""

    @functools.wraps(build)
    def wide(self: Layer, x: Symbol) -> Symbol:
        own = self.config.dtype
        if own not in (dtypes.float16, dtypes.bfloat16):
            return build(self, x)
        settings = {**self.config.settings, "dtype": "float32"}
        twin = Layer(replace(self.config, settings=settings), self.kind, {}, self.arrays)
        made = build(twin, x.made(ops.cast(x.tensor, dtypes.float32)))
        return made.made(ops.cast(made.tensor, own))

    return wide


def _batch_weights(config: Config) -> list[Weight]:
    scale = [Weight("gamma")] if config.flag("scale", default=True) else []
    center = [Weight("beta")] if config.flag("center", default=True) else []
    statistics = [
        Weight("moving_mean", is_trained=False),
        Weight("moving_variance", is_trained=False),
    ]
    if config.flag("renorm", default=False):
        names = ("renorm_mean", "renorm_stddev")
        statistics += [Weight(name, is_trained=False) for name in names]
    return [*scale, *center, *statistics]


@layer(
    "BatchNormalization",
    "BatchNormalizationV1",
    "BatchNormalizationV2",
    "SyncBatchNormalization",
    weights=_batch_weights,
    masking=Masking.PASSES,
)
@widened
def batch_normalization(self: Layer, x: Symbol) -> Symbol:
    """(x - mean) / √(variance + ε) · γ + β, with the statistics of training."""
    axis = self.config.axis("axis", x.rank, -1)
    wanted = (x.shape[axis],)
    epsilon = np.float32(self.config.number("epsilon", 1e-3))
    factor = 1 / np.sqrt(self.array("moving_variance", wanted) + epsilon)
    if "gamma" in self.arrays:
        factor = factor * self.array("gamma", wanted)
    offset = -self.array("moving_mean", wanted) * factor
    if "beta" in self.arrays:
        offset = offset + self.array("beta", wanted)
    scale = self.constant("scale", _along(factor, axis, x.rank))
    shift = self.constant("shift", _along(offset, axis, x.rank))
    return x.made(x.tensor * scale + shift)


def _along(values: Array, axis: int, rank: int) -> Array:
    """Values for one dimension in a form that fits all; the last one needs none."""
    if axis == rank - 1:
        return values
    return values.reshape([-1 if place == axis else 1 for place in range(rank)])


def _scale_and_center(config: Config) -> list[Weight]:
    scale = config.flag("scale", default=True) or config.flag("rms_scaling", default=False)
    center = config.flag("center", default=True) and not config.flag("rms_scaling", default=False)
    return [*([Weight("gamma")] if scale else []), *([Weight("beta")] if center else [])]


@layer("LayerNormalization", weights=_scale_and_center, masking=Masking.PASSES)
@widened
def layer_normalization(self: Layer, x: Symbol) -> Symbol:
    """Mean 0 and variance 1 along some dimensions of each example, then scaled and moved."""
    axes = sorted(self.config.axes("axis", x.rank, -1))
    epsilon = self.config.number("epsilon", 1e-3)
    made = _standardized(x.tensor, axes, epsilon)
    if self.config.flag("rms_scaling", default=False):
        # In spite of its name Keras divides by the standard deviation here, and subtracts nothing.
        made = x.tensor * _inverse_deviation(x.tensor, axes, epsilon)
    return x.made(_scaled(self, made, axes, x))


@layer("RMSNormalization", weights=lambda _: [Weight("scale")], masking=Masking.PASSES)
@widened
def rms_normalization(self: Layer, x: Symbol) -> Symbol:
    """Divide x by its root mean square along some dimensions, then scaled."""
    axes = sorted(self.config.axes("axis", x.rank, -1))
    made = _by_root_mean_square(x.tensor, axes, self.config.number("epsilon", 1e-6))
    return x.made(made * _placed(self, "scale", axes, x))


def _by_root_mean_square(x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    squares = ops.mean(ops.square(x), list(axes), keep_dims=True)
    return x * ops.rsqrt(squares + constant_like(epsilon, x))


def _standardized(x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    centered = x - ops.mean(x, list(axes), keep_dims=True)
    return centered * _inverse_deviation(x, axes, epsilon)


def _inverse_deviation(x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    centered = x - ops.mean(x, list(axes), keep_dims=True)
    variance = ops.mean(ops.square(centered), list(axes), keep_dims=True)
    return ops.rsqrt(variance + constant_like(epsilon, x))


def _scaled(self: Layer, x: Tensor, axes: Sequence[int], like: Symbol) -> Tensor:
    if "gamma" in self.arrays:
        x = x * _placed(self, "gamma", axes, like)
    if "beta" in self.arrays:
        x = x + _placed(self, "beta", axes, like)
    return x


def _placed(self: Layer, name: str, axes: Sequence[int], x: Symbol) -> Tensor:
    """A weight whose dimensions are some of those of ``x``, so that it fits all."""
    sizes = [x.shape[axis] for axis in axes]
    array = self.array(name, sizes)
    if list(axes) == list(range(x.rank - len(axes), x.rank)):
        return self.weight(name)
    form = iter(array.shape)
    return self.constant(
        name, array.reshape([next(form) if a in axes else 1 for a in range(x.rank)])
    )


@layer("GroupNormalization", weights=_scale_and_center, masking=Masking.PASSES)
@widened
def group_normalization(self: Layer, x: Symbol) -> Symbol:
    """Mean 0 and variance 1 in each group of channels of each example."""
    axis = self.config.axis("axis", x.rank, -1)
    channels = x.shape[axis]
    if channels is None:
        raise self.config.error("the number of its input's channels is not known")
    groups = _groups(self.config, channels)
    sizes = x.sizes()
    apart = reshape(x, [*sizes[:axis], groups, channels // groups, *sizes[axis + 1 :]])
    axes = [place for place in range(1, apart.rank) if place != axis]
    made = _standardized(apart.tensor, axes, self.config.number("epsilon", 1e-3))
    return x.made(_scaled(self, reshape(x.made(made), sizes).tensor, [axis], x))


def _groups(config: Config, channels: int) -> int:
    """How many groups there are; -1 stands for one for each channel."""
    groups = config.get("groups", 32)
    groups = channels if groups == -1 else config.integer("groups", 32, at_least=1)
    if channels % groups:
        raise config.error(f"{channels} channels do not make {groups} groups")
    return groups


@layer("UnitNormalization", masking=Masking.PASSES)
def unit_normalization(self: Layer, x: Symbol) -> Symbol:
    """Divide x by its length along some dimensions."""
    axes = list(self.config.axes("axis", x.rank, -1))
    squares = ops.sum(ops.square(x.tensor), axes, keep_dims=True)
    return x.made(x.tensor * ops.rsqrt(ops.maximum(squares, constant_like(1e-12, x.tensor))))
