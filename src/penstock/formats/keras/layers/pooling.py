"""The largest and the mean of windows, and of everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Masking, layer
from penstock.formats.keras.symbol import Symbol
from penstock.formats.keras.windows import in_channels_last, window_sizes


@layer("MaxPooling1D", "MaxPool1D")
def max_pooling1d(self: Layer, x: Symbol) -> Symbol:
    """The largest of each window along one dimension."""
    return _pooled(self, x, 1, is_max=True)


@layer("MaxPooling2D", "MaxPool2D")
def max_pooling2d(self: Layer, x: Symbol) -> Symbol:
    """The largest of each window along two dimensions."""
    return _pooled(self, x, 2, is_max=True)


@layer("MaxPooling3D", "MaxPool3D")
def max_pooling3d(self: Layer, x: Symbol) -> Symbol:
    """The largest of each window along three dimensions."""
    return _pooled(self, x, 3, is_max=True)


@layer("AveragePooling1D", "AvgPool1D")
def average_pooling1d(self: Layer, x: Symbol) -> Symbol:
    """The mean of each window along one dimension; what is beyond the border does not count."""
    return _pooled(self, x, 1, is_max=False)


@layer("AveragePooling2D", "AvgPool2D")
def average_pooling2d(self: Layer, x: Symbol) -> Symbol:
    """The mean of each window along two dimensions; what is beyond the border does not count."""
    return _pooled(self, x, 2, is_max=False)


@layer("AveragePooling3D", "AvgPool3D")
def average_pooling3d(self: Layer, x: Symbol) -> Symbol:
    """The mean of each window along three dimensions; what is beyond the border does not count."""
    return _pooled(self, x, 3, is_max=False)


def _pooled(self: Layer, x: Symbol, space: int, *, is_max: bool) -> Symbol:
    config = self.config
    if x.rank != space + 2:
        raise config.error(f"its input has the rank {x.rank}, but must have {space + 2}")
    # Keras 2.0 called the size of one-dimensional windows pool_length.
    sizes = config.integers("pool_size", space, config.settings.get("pool_length", 2))
    strides = config.integers("strides", space, sizes)
    padding = config.choice("padding", ("valid", "same"), "valid")

    def pooled(x: Symbol) -> Symbol:
        space_made = window_sizes(x.shape[1:-1], sizes, strides, padding)
        made = pool(x.tensor, sizes, strides, padding, is_max=is_max)
        return x.made(made, (x.shape[0], *space_made, x.shape[-1]))

    return in_channels_last(x, pooled, is_channels_first=config.is_channels_first)


def pool(
    x: Tensor, sizes: Sequence[int], strides: Sequence[int], padding: str, *, is_max: bool
) -> Tensor:
    """The node of a pooling, with what one dimension needs around it."""
    if len(sizes) == 1:
        wide = pool(ops.expand_dims(x, 1), [1, *sizes], [1, *strides], padding, is_max=is_max)
        return ops.squeeze(wide, squeeze_dims=[1])
    around = {
        "ksize": [1, *sizes, 1],
        "strides": [1, *strides, 1],
        "padding": padding.upper(),
    }
    is_flat = len(sizes) == 2
    if is_max:
        op: Callable[..., Tensor] = ops.max_pool if is_flat else ops.max_pool3d
    else:
        op = ops.avg_pool if is_flat else ops.avg_pool3d
    return op(x, **around)


# -- of everything --------------------------------------------------------------------------------


def _global(config: Config, x: Symbol, function: Callable[..., Tensor]) -> Symbol:
    """A function of all places of each channel."""
    first = 2 if config.is_channels_first else 1
    axes = list(range(first, x.rank - 1 if first == 1 else x.rank))
    keeps = config.flag("keepdims", default=False)
    shape = [
        (1 if axis in axes else size)
        for axis, size in enumerate(x.shape)
        if keeps or axis not in axes
    ]
    return x.made(function(x.tensor, axes, keep_dims=keeps), shape)


@layer(
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalMaxPooling3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
)
def global_max_pooling(self: Layer, x: Symbol) -> Symbol:
    """The largest of each channel."""
    return _global(self.config, x, ops.max)


@layer(
    "GlobalAveragePooling2D",
    "GlobalAveragePooling3D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
)
def global_average_pooling(self: Layer, x: Symbol) -> Symbol:
    """The mean of each channel."""
    return _global(self.config, x, ops.mean)


@layer("GlobalAveragePooling1D", "GlobalAvgPool1D", masking=Masking.OWN)
def global_average_pooling1d(self: Layer, x: Symbol) -> Symbol:
    """The mean of each channel, of the time steps that count."""
    if x.mask is None:
        return _global(self.config, x, ops.mean)
    is_first = self.config.is_channels_first
    counts = ops.expand_dims(ops.cast(x.mask, x.tensor.dtype), 1 if is_first else 2)
    kept = _global(self.config, x.made(x.tensor * counts), ops.sum)
    keeps = self.config.flag("keepdims", default=False)
    total = ops.sum(counts, [2 if is_first else 1], keep_dims=keeps)
    return kept.made(ops.real_div(kept.tensor, total))


# -- of as many windows as are wanted -------------------------------------------------------------


@layer("AdaptiveAveragePooling1D", "AdaptiveAveragePooling2D", "AdaptiveAveragePooling3D")
def adaptive_average_pooling(self: Layer, x: Symbol) -> Symbol:
    """The mean of each of so many windows, which overlap where the sizes do not divide."""
    return _adaptive(self, x, ops.mean)


@layer("AdaptiveMaxPooling1D", "AdaptiveMaxPooling2D", "AdaptiveMaxPooling3D")
def adaptive_max_pooling(self: Layer, x: Symbol) -> Symbol:
    """The largest of each of so many windows, which overlap where the sizes do not divide."""
    return _adaptive(self, x, ops.max)


def _adaptive(self: Layer, x: Symbol, function: Callable[..., Tensor]) -> Symbol:
    wanted = self.config.integers("output_size", x.rank - 2)

    def pooled(x: Symbol) -> Symbol:
        for axis, count in enumerate(wanted, start=1):
            x = _in_windows(self.config, x, axis, count, function)
        return x

    return in_channels_last(x, pooled, is_channels_first=self.config.is_channels_first)


#: Each window is a node of its own.
_MOST_WINDOWS: Final = 1000


def _in_windows(
    config: Config, x: Symbol, axis: int, count: int, function: Callable[..., Tensor]
) -> Symbol:
    """``function`` of ``count`` windows along an axis: i from ⌊i·n/count⌋ to ⌈(i+1)·n/count⌉."""
    size = x.shape[axis]
    if size is None or count > size or count > _MOST_WINDOWS:
        raise config.unsupported(f"{count} windows along a dimension of size {size}")
    pieces = []
    for window in range(count):
        begin, end = window * size // count, -(-(window + 1) * size // count)
        key = (*[slice(None)] * axis, slice(begin, end))
        pieces.append(function(x.tensor[key], [axis], keep_dims=True))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return x.made(ops.concat_v2(pieces, axis) if count > 1 else pieces[0], shape)
