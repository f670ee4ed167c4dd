"""Batch normalisation by PyTorch, and its gradient.

In:   images with the channels last; each channel's scale, offset, mean and variance.
Out:  images whose channels are normalised; statistics; or gradients.
Not:  keeps no running averages.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.accelerated.batches import depth_last, depth_second
from penstock.kernels.accelerated.choice import FLOAT32, Offer, accelerated
from penstock.kernels.accelerated.library import Tensor, Torch, given, tensor
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel

#: Elements from which on PyTorch is faster: measured.
_HEAVY: Final = 1 << 13
_TYPES: Final = {"T": FLOAT32, "U": frozenset({dtypes.float32})}


@accelerated("FusedBatchNorm")
@accelerated("FusedBatchNormV2", "FusedBatchNormV3", types=_TYPES)
def offer_batch_norm(attrs: Attrs) -> Offer | None:
    """Images normalised by their own mean and variance, or by those that are given."""
    if attrs.str("data_format") != "NHWC":
        return None
    epsilon, is_training = attrs.float("epsilon"), attrs.bool("is_training")
    factor = np.float32(attrs.float("exponential_avg_factor"))
    rest = (np.float32(0),) if attrs.op.name.endswith("V3") else ()

    def build(torch: Torch) -> Kernel:
        normalise = torch.ops.aten.native_batch_norm.default

        def infer(x: Array, scale: Array, offset: Array, mean: Array, var: Array) -> Any:
            if not _fits(x, scale, offset, mean, var):
                return NotImplemented
            numbers = [tensor(torch, number) for number in (scale, offset, mean, var)]
            y = normalise(depth_second(torch, x), *numbers, is_training, 0.0, epsilon)[0]
            return (_array(y), mean, var, mean, var, *rest)

        def train(x: Array, scale: Array, offset: Array, mean: Array, var: Array) -> Any:
            size = x.size // x.shape[-1]
            if not _fits(x, scale, offset) or size < 2:
                return NotImplemented
            if factor != 1 and not _fits(x, mean, var):
                return NotImplemented
            # Averages of which all is replaced are this batch's own statistics.
            own_mean, unbiased = (np.zeros(x.shape[-1], np.float32) for _ in range(2))
            numbers = [tensor(torch, number) for number in (scale, offset, own_mean, unbiased)]
            y = normalise(depth_second(torch, x), *numbers, is_training, 1.0, epsilon)[0]
            own_var = unbiased * np.float32((size - 1) / size)
            new_mean, new_var = own_mean, unbiased
            if factor != 1:
                kept = np.float32(1) - factor
                new_mean = kept * mean + factor * own_mean
                new_var = kept * var + factor * unbiased
            return (_array(y), new_mean, new_var, own_mean, own_var, *rest)

        return train if is_training else infer

    return Offer(_pays, build)


@accelerated("FusedBatchNormGrad")
@accelerated("FusedBatchNormGradV2", "FusedBatchNormGradV3", types=_TYPES)
def offer_batch_norm_grad(attrs: Attrs) -> Offer | None:
    """Gradients of images, scale and offset."""
    if attrs.str("data_format") != "NHWC":
        return None
    epsilon, is_training = attrs.float("epsilon"), attrs.bool("is_training")
    nothing = np.empty(0, np.float32)

    def build(torch: Torch) -> Kernel:
        backward = torch.ops.aten.native_batch_norm_backward.default

        def batch_norm_grad(
            grads: Array, x: Array, scale: Array, mean: Array, var: Array, *_rest: Value
        ) -> Any:
            if grads.shape != x.shape or not _fits(x, scale, mean, var):
                return NotImplemented
            inverse = np.float32(1) / np.sqrt(var + np.float32(epsilon))
            numbers = [tensor(torch, v) for v in (scale, mean, var, mean, inverse)]
            images = (depth_second(torch, grads), depth_second(torch, x))
            results = backward(*images, *numbers, is_training, epsilon, [True, True, True])
            of_scale, of_offset = given(results[1]), given(results[2])
            return _array(results[0]), of_scale, of_offset, nothing, nothing

        return batch_norm_grad

    return Offer(_pays, build)


def _pays(x: Value, *_rest: Value) -> bool:
    return bool(x.ndim == 4 and x.size >= _HEAVY)


def _fits(x: Array, *numbers: Value) -> bool:
    """Whether there is one number for each channel."""
    return all(number.shape == x.shape[-1:] for number in numbers)


def _array(images: Tensor) -> Array:
    return np.ascontiguousarray(given(depth_last(images)))
