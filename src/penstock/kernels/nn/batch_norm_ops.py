"""Batch normalisation.

In:   images with the channels last or second, and each channel's scale, offset, mean and
      variance; for gradients what is sent back.
Out:  images whose channels have mean 0 and variance 1, scaled and moved; statistics; or
      gradients of images, scale and offset.
Not:  keeps no running averages, that is the graph's business.

Ioffe and Szegedy, Batch normalization, 2015.  All is computed in float32.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.nn.channel_axis import ChannelAxis, Statistics
from penstock.kernels.values.arrays import shape_text

_HALVES: Final = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32})
_ANY: Final = {"T": _HALVES, "U": frozenset({dtypes.float32})}
_OLD: Final = frozenset({dtypes.float16, dtypes.float32, dtypes.float64})


@kernel("FusedBatchNorm", types={"T": {dtypes.float32}})
@kernel("FusedBatchNormV2", "FusedBatchNormV3", types=_ANY)
def make_fused_batch_norm(attrs: Attrs) -> Kernel:
    """Images normalised by their own mean and variance, or by those that are given.

    While training, averages are updated by a factor, the variance without bias; what the
    gradient needs comes out as reserve space.
    """
    channels, epsilon = ChannelAxis(attrs), np.float32(attrs.float("epsilon"))
    factor = np.float32(attrs.float("exponential_avg_factor"))
    is_training = attrs.bool("is_training")
    rest = (np.float32(0),) if attrs.op.name.endswith(("V3", "Ex")) else ()
    infer = _inference(channels, epsilon)

    def fused_batch_norm(x: Value, scale: Value, offset: Value, mean: Value, var: Value) -> Any:
        if x.size and not is_training:
            return (infer(x, scale, offset, mean, var), mean, var, mean, var, *rest)
        count = channels.check(x, scale=scale, offset=offset)
        if not is_training or factor != 1:
            channels.check(x, mean=mean, variance=var)
        if not x.size:
            empty = np.full(count, np.nan, np.float32)
            return (np.empty_like(x), empty, empty, empty, empty, *rest)
        wide = x.astype(np.float32, copy=False)
        own = channels.statistics(wide)
        y = channels.normaliser(x.shape, own, (scale, offset), epsilon)(wide)
        new = _averaged((mean, var), own, x.size // count, factor)
        return (y.astype(x.dtype, copy=False), *new, *own, *rest)

    return fused_batch_norm


@kernel("_FusedBatchNormEx", types=_ANY)
def make_fused_batch_norm_ex(attrs: Attrs) -> Kernel:
    """Normalised images, with others added perhaps, and negative numbers made 0 perhaps."""
    normalise, activation = make_fused_batch_norm(attrs), attrs.str("activation_mode")
    if activation not in ("Identity", "Relu"):
        raise InvalidArgumentError(f"Unsupported activation mode: {activation}")
    if attrs.int("num_side_inputs") > 1:
        raise InvalidArgumentError("FusedBatchNormEx supports at most one side input")
    is_cut = activation == "Relu"

    def fused_batch_norm_ex(
        x: Value, scale: Value, offset: Value, mean: Value, var: Value, *side: Value
    ) -> tuple[Value, ...]:
        y, *statistics = normalise(x, scale, offset, mean, var)
        for other in side:
            if other.shape != x.shape:
                raise InvalidArgumentError(
                    f"side_input shape must be equal to input shape: {shape_text(other.shape)} "
                    f"!= {shape_text(x.shape)}"
                )
            y = y + other
        return (np.maximum(y, y.dtype.type(0)) if is_cut else y, *statistics)

    return fused_batch_norm_ex


def _inference(channels: ChannelAxis, epsilon: np.float32) -> Kernel:
    """Images normalised by what is given, which is looked at once if it is constant."""
    #: What came last, the images' shape, and what was made of it; replaced as a whole.
    last: tuple[tuple[Value, ...], tuple[int, ...], Any] = ((None,) * 4, (), None)

    def infer(x: Value, scale: Value, offset: Value, mean: Value, var: Value) -> Array:
        nonlocal last
        (a, b, c, d), shape, normalise = last
        if not (scale is a and offset is b and mean is c and var is d and x.shape == shape):
            channels.check(x, scale=scale, offset=offset, mean=mean, variance=var)
            normalise = channels.normaliser(x.shape, (mean, var), (scale, offset), epsilon)
            given = (scale, offset, mean, var)
            if all(map(is_constant, given)):
                last = given, x.shape, normalise
        y: Array = normalise(x.astype(np.float32, copy=False))
        return y.astype(x.dtype, copy=False)

    return infer


def _averaged(old: Statistics, own: Statistics, size: int, factor: np.float32) -> Statistics:
    """Averages after this batch; a variance without bias is a little larger."""
    mean, var = own[0], own[1] * np.float32(size / max(size - 1, 1))
    if factor == 1:
        return mean, var
    kept = np.float32(1) - factor
    return kept * old[0] + factor * mean, kept * old[1] + factor * var


@kernel("FusedBatchNormGrad", types={"T": {dtypes.float32}})
@kernel("FusedBatchNormGradV2", "FusedBatchNormGradV3", types=_ANY)
def make_fused_batch_norm_grad(attrs: Attrs) -> Kernel:
    """Gradients of images, scale and offset.

    While training the images' mean and variance depend on the images too.
    """
    channels, epsilon = ChannelAxis(attrs), np.float32(attrs.float("epsilon"))
    is_training, nothing = attrs.bool("is_training"), np.empty(0, np.float32)

    def fused_batch_norm_grad(
        grads: Value, x: Value, scale: Value, mean: Value, var: Value, *_rest: Value
    ) -> tuple[Array, ...]:
        if grads.shape != x.shape:
            raise ValueError(
                f"x and y_backprop must have same shape, but x has shape {shape_text(x.shape)} "
                f"and y_backprop has shape {shape_text(grads.shape)}"
            )
        count = channels.check(x, scale=scale, reserve_space_1=mean, reserve_space_2=var)
        if not x.size:
            zeros = np.zeros(count, np.float32)
            return np.empty_like(x), zeros, zeros, nothing, nothing
        wide, images = (value.astype(np.float32, copy=False) for value in (grads, x))
        inverse = np.float32(1) / np.sqrt(var + epsilon)
        of_offset, product = channels.gradient_sums(wide, images, mean)
        if is_training:
            size = np.float32(x.size // count)
            shares = mean, of_offset / size, product * inverse * inverse / size
            gradient = channels.sent_back(wide, images, shares, scale * inverse)
        else:
            gradient = channels.combined(np.multiply, wide, scale * inverse)
        gradient = gradient.astype(x.dtype, copy=False)
        return gradient, product * inverse, of_offset, nothing, nothing

    return fused_batch_norm_grad


# -- the old form ----------------------------------------------------------------------------------


@kernel("BatchNormWithGlobalNormalization", types={"T": _OLD})
def make_batch_norm_with_global_normalization(attrs: Attrs) -> Kernel:
    """(t - m) / sqrt(v + epsilon), times gamma if asked for, plus beta."""
    epsilon = attrs.dtype("T").numpy.type(attrs.float("variance_epsilon"))
    is_scaled, channels = attrs.bool("scale_after_normalization"), ChannelAxis(attrs)

    def batch_norm(t: Value, m: Value, v: Value, beta: Value, gamma: Value) -> Array:
        channels.check(t, m=m, v=v, beta=beta, gamma=gamma)
        inverse = epsilon.dtype.type(1) / np.sqrt(v + epsilon)
        normal: Array = (t - m) * (inverse * gamma if is_scaled else inverse) + beta
        return normal

    return batch_norm


@kernel("BatchNormWithGlobalNormalizationGrad", types={"T": _OLD})
def make_batch_norm_with_global_normalization_grad(attrs: Attrs) -> Kernel:
    """Gradients of all inputs; mean and variance are constants here."""
    number = attrs.dtype("T").numpy.type
    epsilon = number(attrs.float("variance_epsilon"))
    is_scaled, channels = attrs.bool("scale_after_normalization"), ChannelAxis(attrs)

    def batch_norm_grad(
        t: Value, m: Value, v: Value, gamma: Value, grads: Value
    ) -> tuple[Array, ...]:
        channels.check(t, m=m, v=v, gamma=gamma)
        inverse = number(1) / np.sqrt(v + epsilon)
        scale = inverse * gamma if is_scaled else inverse
        total, product = channels.sums(grads), channels.sums(grads * (t - m))
        of_v = product * scale * inverse * inverse * number(-0.5)
        of_gamma = product * inverse if is_scaled else np.zeros_like(gamma)
        return grads * scale, -total * scale, of_v, total, of_gamma

    return batch_norm_grad
