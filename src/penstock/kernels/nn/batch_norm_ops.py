"""Batch normalisation.

In:   images with the channels last or second, and each channel's scale, offset, mean and
      variance; for gradients what is sent back.
Out:  images whose channels have mean 0 and variance 1, scaled and moved; statistics; or
      gradients of images, scale and offset.
Not:  keeps no running averages, that is the graph's business.

Ioffe and Szegedy, Batch normalization, 2015.  All is computed in float32.  Images are looked
at as matrices: rows of channels, or in the layouts with the channels second rows of pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.parallel.products import sum_of_rows
from penstock.kernels.parallel.tiles import by_images, sum_by_images
from penstock.kernels.values.arrays import shape_text

_HALVES: Final = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32})
_ANY: Final = {"T": _HALVES, "U": frozenset({dtypes.float32})}
_OLD: Final = frozenset({dtypes.float16, dtypes.float32, dtypes.float64})
_Statistics: TypeAlias = tuple[Array, Array]
#: By channel: the mean, and what goes through mean and variance of each image.
_Shares: TypeAlias = tuple[Array, Array, Array]
#: With fewer channels, numbers per channel are repeated, so that numpy sees longer rows.
_FEW: Final = 256
_LONG_ROW: Final = 512


@kernel("FusedBatchNorm", types={"T": {dtypes.float32}})
@kernel("FusedBatchNormV2", "FusedBatchNormV3", types=_ANY)
def make_fused_batch_norm(attrs: Attrs) -> Kernel:
    """Images normalised by their own mean and variance, or by those that are given.

    While training, averages are updated by a factor, the variance without bias; what the
    gradient needs comes out as reserve space.
    """
    channels, epsilon = _ChannelAxis(attrs), np.float32(attrs.float("epsilon"))
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
        y = channels.normalised(wide, own, (scale, offset), epsilon)
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


def _inference(channels: _ChannelAxis, epsilon: np.float32) -> Kernel:
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
        wide = x.astype(np.float32, copy=False)
        y: Array = by_images(normalise, x.shape, wide.dtype, wide)
        return y.astype(x.dtype, copy=False)

    return infer


def _averaged(old: _Statistics, own: _Statistics, size: int, factor: np.float32) -> _Statistics:
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
    channels, epsilon = _ChannelAxis(attrs), np.float32(attrs.float("epsilon"))
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
        of_offset, product = sum_by_images(channels.moments(mean), wide, images)
        if is_training:
            size = np.float32(x.size // count)
            shares = mean, of_offset / size, product * inverse * inverse / size
            gradient = channels.sent_back(wide, images, shares, scale * inverse)
        else:
            gradient = channels.combined(np.multiply, wide, scale * inverse)
        gradient = gradient.astype(x.dtype, copy=False)
        return gradient, product * inverse, of_offset, nothing, nothing

    return fused_batch_norm_grad


class _ChannelAxis:
    """Where the channels of images are, and arithmetic with one number for each of them."""

    def __init__(self, attrs: Attrs) -> None:
        layout = attrs.str("data_format") if "data_format" in attrs.values else "NHWC"
        self._is_second: Final = layout[1] == "C"
        self._layout: Final = layout

    def check(self, x: Value, **values: Value) -> int:
        """The number of channels; raises ValueError unless each value has as many."""
        if x.ndim != len(self._layout):
            raise ValueError(
                f"input must be 4 or 5-dimensional, as {self._layout} is: {shape_text(x.shape)}"
            )
        count: int = x.shape[1 if self._is_second else -1]
        for name, value in values.items():
            if value.ndim != 1:
                raise ValueError(f"{name} must be 1-dimensional: {shape_text(value.shape)}")
            if len(value) != count:
                raise ValueError(
                    f"{name} must have the same number of elements as the channels of x, "
                    f"got {len(value)} and {count}"
                )
        return count

    def combined(self, ufunc: np.ufunc, x: Array, numbers: Array, *, reuse: bool = False) -> Array:
        """A function of each element and its channel's number; into ``x`` on demand."""
        row = self._repeated(numbers, x.shape)
        rows = x if self._is_second else x.reshape(-1, len(row))
        done = ufunc(rows, row, out=rows if reuse else None)
        return np.asarray(done).reshape(x.shape)

    def sums(self, x: Array) -> Array:
        """The sum of each channel."""
        if self._is_second:
            total: Array = x.reshape(*x.shape[:2], -1).sum(-1).sum(0)
            return total
        return sum_of_rows(x.reshape(-1, x.shape[-1]))

    def moments(self, mean: Array) -> Callable[[Array, Array], Array]:
        """Each channel's sum of gradients, and of gradients times how far images are off."""

        def of_some(grads: Array, images: Array) -> Array:
            off = self.combined(np.subtract, images, mean)
            np.multiply(off, grads, out=off)
            return np.stack([self.sums(grads), self.sums(off)])

        return of_some

    def sent_back(self, grads: Array, images: Array, shares: _Shares, scale: Array) -> Array:
        """Gradients of images, less what goes through their mean and their variance."""
        mean, through_mean, through_variance = shares

        def of_some(grads: Array, images: Array) -> Array:
            off = self.combined(np.subtract, images, mean)
            off = self.combined(np.multiply, off, through_variance, reuse=True)
            sent = self.combined(np.subtract, grads, through_mean)
            sent -= off
            return self.combined(np.multiply, sent, scale, reuse=True)

        return by_images(of_some, images.shape, images.dtype, grads, images)

    def statistics(self, x: Array) -> _Statistics:
        """Mean and variance of each channel."""
        size = np.float32(x.size // x.shape[1 if self._is_second else -1])
        mean = sum_by_images(self.sums, x) / size

        def squares(x: Array) -> Array:
            off = self.combined(np.subtract, x, mean)
            np.multiply(off, off, out=off)
            return self.sums(off)

        variance: Array = sum_by_images(squares, x) / size
        return mean, variance

    def normalised(
        self, x: Array, by: _Statistics, affine: _Statistics, epsilon: np.float32
    ) -> Array:
        """(x - mean) / sqrt(variance + epsilon) * scale + offset."""
        return by_images(self.normaliser(x.shape, by, affine, epsilon), x.shape, x.dtype, x)

    def normaliser(
        self,
        shape: tuple[int, ...],
        by: _Statistics,
        affine: _Statistics,
        epsilon: np.float32,
    ) -> Callable[[Array], Array]:
        """What does it to images of this shape, or to some of them."""
        (mean, var), (scale, offset) = by, affine
        factor = scale / np.sqrt(var + epsilon)
        mean, factor, offset = (self._repeated(row, shape) for row in (mean, factor, offset))
        width = -1 if self._is_second else len(mean)

        def normalise(x: Array) -> Array:
            rows = x if width < 0 else x.reshape(-1, width)
            y = rows - mean
            y *= factor
            y += offset
            return y.reshape(x.shape)

        return normalise

    def _repeated(self, numbers: Array, shape: tuple[int, ...]) -> Array:
        """Numbers by channel in a form that fits the images, or long rows of them."""
        if self._is_second:
            return numbers.reshape(-1, *(1,) * (len(shape) - 2))
        if len(numbers) >= _FEW or not prod(shape):
            return numbers
        return np.tile(numbers, _divisor(prod(shape[1:-1]), _LONG_ROW // len(numbers)))


def _divisor(size: int, limit: int) -> int:
    """The greatest divisor of ``size`` up to ``limit``."""
    return next((d for d in range(min(size, limit), 1, -1) if size % d == 0), 1)


# -- the old form ----------------------------------------------------------------------------------


@kernel("BatchNormWithGlobalNormalization", types={"T": _OLD})
def make_batch_norm_with_global_normalization(attrs: Attrs) -> Kernel:
    """(t - m) / sqrt(v + epsilon), times gamma if asked for, plus beta."""
    epsilon = attrs.dtype("T").numpy.type(attrs.float("variance_epsilon"))
    is_scaled, channels = attrs.bool("scale_after_normalization"), _ChannelAxis(attrs)

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
    is_scaled, channels = attrs.bool("scale_after_normalization"), _ChannelAxis(attrs)

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
