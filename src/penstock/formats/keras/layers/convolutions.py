"""Convolutions of all kinds, in one, two and three dimensions.

Everything is computed with the channels at the end; one dimension is two with a first of size 1,
as TensorFlow does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.formats.keras.activations import activated
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Weight, layer
from penstock.formats.keras.layers.core import kernel_and_bias, refuse_variants
from penstock.formats.keras.symbol import Shape, Size, Symbol, pack
from penstock.formats.keras.windows import in_channels_last, window_sizes

_PADDINGS = ("valid", "same", "causal")


class Windows:
    """The settings that all convolutions share."""

    def __init__(self, config: Config, space: int) -> None:
        self.sizes = config.integers("kernel_size", space)
        self.strides = config.integers("strides", space, 1)
        self.dilations = config.integers("dilation_rate", space, 1)
        self.padding = config.choice("padding", _PADDINGS, "valid")
        if self.padding == "causal" and space != 1:
            raise config.error("only one dimension can be causal")

    def made_from(self, shape: Shape, channels: int) -> Shape:
        """The shape of the result of an input of some shape, both with the channels at the end."""
        space = window_sizes(shape[1:-1], self.sizes, self.strides, self.padding, self.dilations)
        return (shape[0], *space, channels)


def _finished(self: Layer, x: Symbol, channels: int) -> Symbol:
    """Bias and activation, behind the convolution itself."""
    made = x.tensor
    if "bias" in self.arrays:
        made = ops.bias_add(made, self.weight("bias", (channels,)))
    return activated(self.config, x.made(made))


def _checked(x: Symbol, config: Config, space: int) -> None:
    if x.rank != space + 2:
        raise config.error(f"its input has the rank {x.rank}, but must have {space + 2}")


# -- plain ones -----------------------------------------------------------------------------------


@layer("Conv1D", "Convolution1D", weights=kernel_and_bias)
def conv1d(self: Layer, x: Symbol) -> Symbol:
    """A convolution along one dimension, which may look at the past only."""
    return _convolved(self, x, 1)


@layer("Conv2D", "Convolution2D", weights=kernel_and_bias)
def conv2d(self: Layer, x: Symbol) -> Symbol:
    """A convolution along two dimensions."""
    return _convolved(self, x, 2)


@layer("Conv3D", "Convolution3D", weights=kernel_and_bias)
def conv3d(self: Layer, x: Symbol) -> Symbol:
    """A convolution along three dimensions."""
    return _convolved(self, x, 3)


def _convolved(self: Layer, x: Symbol, space: int) -> Symbol:
    refuse_variants(self.config)
    _checked(x, self.config, space)
    windows = Windows(self.config, space)
    filters = self.config.integer("filters", at_least=1)
    groups = self.config.integer("groups", 1, at_least=1)

    def convolved(x: Symbol) -> Symbol:
        channels = x.shape[-1]
        self.array("kernel", (*windows.sizes, channels and channels // groups, filters))
        made = x.made(grouped(self, x, windows, groups), windows.made_from(x.shape, filters))
        return _finished(self, made, filters)

    return in_channels_last(x, convolved, is_channels_first=self.config.is_channels_first)


def grouped(self: Layer, x: Symbol, windows: Windows, groups: int) -> Tensor:
    """A convolution of each group of channels by its own filters."""
    kernel = self.weight("kernel")
    inputs = (
        causal(x, windows.sizes[0], windows.dilations[0])
        if (windows.padding == "causal")
        else x.tensor
    )
    padding = "VALID" if windows.padding == "causal" else windows.padding.upper()
    if groups == 1 or len(windows.sizes) < 3:
        return convolve(inputs, kernel, windows.strides, windows.dilations, padding)
    pieces = zip(
        ops.split(-1, inputs, num_split=groups),
        ops.split(-1, kernel, num_split=groups),
        strict=True,
    )
    made = [convolve(a, b, windows.strides, windows.dilations, padding) for a, b in pieces]
    return ops.concat_v2(made, -1)


def causal(x: Symbol, window: int, dilation: int) -> Tensor:
    """X with so many zeros before it that no window reaches into the future."""
    return ops.pad(x.tensor, [[0, 0], [dilation * (window - 1), 0], [0, 0]])


def convolve(
    x: Tensor, kernel: Tensor, strides: Sequence[int], dilations: Sequence[int], padding: str
) -> Tensor:
    """The convolution's own node, with what one dimension needs around it."""
    if len(strides) == 1:
        made = ops.conv2d(
            ops.expand_dims(x, 1),
            ops.expand_dims(kernel, 0),
            strides=[1, 1, *strides, 1],
            dilations=[1, 1, *dilations, 1],
            padding=padding,
        )
        return ops.squeeze(made, squeeze_dims=[1])
    op: Callable[..., Tensor] = ops.conv2d if len(strides) == 2 else ops.conv3d
    around = {"strides": [1, *strides, 1], "dilations": [1, *dilations, 1]}
    return op(x, kernel, padding=padding, **around)


# -- each channel by itself -----------------------------------------------------------------------


def _depthwise_weights(config: Config) -> list[Weight]:
    has_bias = config.flag("use_bias", default=True)
    return [Weight("depthwise_kernel"), *([Weight("bias")] if has_bias else [])]


@layer("DepthwiseConv1D", weights=_depthwise_weights)
def depthwise_conv1d(self: Layer, x: Symbol) -> Symbol:
    """A convolution along one dimension of each channel by its own filters."""
    return _depthwise(self, x, 1)


@layer("DepthwiseConv2D", weights=_depthwise_weights)
def depthwise_conv2d(self: Layer, x: Symbol) -> Symbol:
    """A convolution along two dimensions of each channel by its own filters."""
    return _depthwise(self, x, 2)


def _depthwise(self: Layer, x: Symbol, space: int) -> Symbol:
    _checked(x, self.config, space)

    def convolved(x: Symbol) -> Symbol:
        made = _each_channel(self, x, Windows(self.config, space))
        channels = made.shape[-1]
        assert channels is not None
        return _finished(self, made, channels)

    return in_channels_last(x, convolved, is_channels_first=self.config.is_channels_first)


def _each_channel(self: Layer, x: Symbol, windows: Windows) -> Symbol:
    """The depthwise convolution itself; strides of two dimensions must be equal in TensorFlow."""
    multiplier = self.config.integer("depth_multiplier", 1, at_least=1)
    kernel = self.weight("depthwise_kernel", (*windows.sizes, x.shape[-1], multiplier))
    channels = self.array("depthwise_kernel").shape[-2] * multiplier
    shape = windows.made_from(x.shape, channels)
    inputs, padding = x.tensor, windows.padding.upper()
    if windows.padding == "causal":
        inputs, padding = causal(x, windows.sizes[0], windows.dilations[0]), "VALID"
    if len(windows.sizes) == 1:
        stride, dilation = windows.strides[0], windows.dilations[0]
        made = ops.depthwise_conv2d_native(
            ops.expand_dims(inputs, 1),
            ops.expand_dims(kernel, 0),
            strides=[1, stride, stride, 1],
            dilations=[1, 1, dilation, 1],
            padding=padding,
        )
        return x.made(ops.squeeze(made, squeeze_dims=[1]), shape)
    made = ops.depthwise_conv2d_native(
        inputs,
        kernel,
        strides=[1, *windows.strides, 1],
        dilations=[1, *windows.dilations, 1],
        padding=padding,
    )
    return x.made(made, shape)


def _separable_weights(config: Config) -> list[Weight]:
    has_bias = config.flag("use_bias", default=True)
    kernels = [Weight("depthwise_kernel"), Weight("pointwise_kernel")]
    return [*kernels, *([Weight("bias")] if has_bias else [])]


@layer("SeparableConv1D", "SeparableConvolution1D", weights=_separable_weights)
def separable_conv1d(self: Layer, x: Symbol) -> Symbol:
    """Each channel by itself along one dimension, then all channels at each place."""
    return _separable(self, x, 1)


@layer("SeparableConv2D", "SeparableConvolution2D", weights=_separable_weights)
def separable_conv2d(self: Layer, x: Symbol) -> Symbol:
    """Each channel by itself along two dimensions, then all channels at each place."""
    return _separable(self, x, 2)


def _separable(self: Layer, x: Symbol, space: int) -> Symbol:
    _checked(x, self.config, space)
    filters = self.config.integer("filters", at_least=1)

    def convolved(x: Symbol) -> Symbol:
        deep = _each_channel(self, x, Windows(self.config, space))
        ones = [1] * space
        kernel = self.weight("pointwise_kernel", (*ones, deep.shape[-1], filters))
        made = convolve(deep.tensor, kernel, ones, ones, "VALID")
        return _finished(self, deep.made(made, (*deep.shape[:-1], filters)), filters)

    return in_channels_last(x, convolved, is_channels_first=self.config.is_channels_first)


# -- the other way round --------------------------------------------------------------------------


@layer("Conv1DTranspose", "Convolution1DTranspose", weights=kernel_and_bias)
def conv1d_transpose(self: Layer, x: Symbol) -> Symbol:
    """The gradient of a convolution along one dimension, as a layer."""
    return _transposed(self, x, 1)


@layer("Conv2DTranspose", "Convolution2DTranspose", "Deconvolution2D", weights=kernel_and_bias)
def conv2d_transpose(self: Layer, x: Symbol) -> Symbol:
    """The gradient of a convolution along two dimensions, as a layer."""
    return _transposed(self, x, 2)


@layer("Conv3DTranspose", "Convolution3DTranspose", "Deconvolution3D", weights=kernel_and_bias)
def conv3d_transpose(self: Layer, x: Symbol) -> Symbol:
    """The gradient of a convolution along three dimensions, as a layer."""
    return _transposed(self, x, 3)


def _transposed(self: Layer, x: Symbol, space: int) -> Symbol:
    _checked(x, self.config, space)
    windows = Windows(self.config, space)
    filters = self.config.integer("filters", at_least=1)

    def convolved(x: Symbol) -> Symbol:
        kernel = self.weight("kernel", (*windows.sizes, filters, x.shape[-1]))
        shape, sizes = _transposed_sizes(self.config, x, windows)
        back = _convolve_back(x, kernel, [x.size(0), *sizes, filters], windows)
        made = x.made(back, (x.shape[0], *shape, filters))
        return _finished(self, made, filters)

    return in_channels_last(x, convolved, is_channels_first=self.config.is_channels_first)


def _transposed_sizes(
    config: Config, x: Symbol, windows: Windows
) -> tuple[list[int | None], list[Size]]:
    """How large the result is: what is known of it, and what a step will compute."""
    space = len(windows.sizes)
    is_given = config.settings.get("output_padding") is not None
    more = config.integers("output_padding", space, at_least=0) if is_given else None
    known: list[int | None] = []
    sizes: list[Size] = []
    for axis, (window, stride) in enumerate(zip(windows.sizes, windows.strides, strict=True)):
        reach = windows.dilations[axis] * (window - 1) + 1
        cut = 0 if windows.padding == "valid" else 2 * (reach // 2)
        if more is not None:
            added = reach - stride - cut + more[axis]
        else:
            added = max(reach - stride, 0) if windows.padding == "valid" else 0
        size = x.size(axis + 1)
        sizes.append(size * stride + added)
        known.append(size * stride + added if isinstance(size, int) else None)
    return known, sizes


def _convolve_back(x: Symbol, kernel: Tensor, sizes: Sequence[Size], windows: Windows) -> Tensor:
    """The node that makes something of ``sizes``, with what one dimension needs around it."""
    padding = windows.padding.upper()
    strides, dilations = [1, *windows.strides, 1], [1, *windows.dilations, 1]
    if len(windows.sizes) == 1:
        made = ops.conv2d_backprop_input(
            pack([sizes[0], 1, *sizes[1:]]),
            ops.expand_dims(kernel, 0),
            ops.expand_dims(x.tensor, 1),
            strides=[1, *strides],
            dilations=[1, *dilations],
            padding=padding,
        )
        return ops.squeeze(made, squeeze_dims=[1])
    is_flat = len(windows.sizes) == 2
    op: Callable[..., Tensor] = (
        ops.conv2d_backprop_input if is_flat else ops.conv3d_backprop_input_v2
    )
    around = {"strides": strides, "dilations": dilations, "padding": padding}
    return op(pack(sizes), kernel, x.tensor, **around)
