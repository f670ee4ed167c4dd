"""Pooling by PyTorch, and its gradients.

In:   images; for gradients also what came out, and what is sent back.
Out:  at each place of the sliding window the greatest or the mean of what is under it; or
      the gradient of the images.
Not:  no pooling over the depth.

PyTorch keeps NaN and TensorFlow does not, so whatever has one is declined.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated.batches import (
    by_images,
    depth_last,
    depth_second,
    filled_by_images,
)
from penstock.kernels.accelerated.choice import Offer, accelerated
from penstock.kernels.accelerated.library import Tensor, Torch
from penstock.kernels.accelerated.pool_geometry import Geometry
from penstock.kernels.accelerated.sliding_means import sliding_mean, sliding_mean_grad
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel
from penstock.kernels.nn.pool_ops import layout_of, pool_windows
from penstock.kernels.values.windows import per_dimension

#: Elements from which on PyTorch is faster: measured.
_HEAVY: Final = {
    "MaxPool": 1 << 17,
    "AvgPool": 1 << 15,
    "MaxPoolGrad": 1 << 11,
    "AvgPoolGrad": 1 << 15,
}
#: Makes a kernel of a certain geometry.
_Make: TypeAlias = Callable[[Torch, Geometry], Kernel]


def _offer(attrs: Attrs, place: int, make: _Make, make_stepwise: _Make | None) -> Offer | None:
    """An offer for pooling over two dimensions; ``place`` is a heavy input of rank 4.

    There may be another one for windows that move by one.
    """
    layout = layout_of(attrs)
    if layout != "NHWC":
        return None
    sizes, strides = (per_dimension(attrs, name, layout) for name in ("ksize", "strides"))
    if sizes["C"] != 1 or sizes["N"] != 1 or strides["C"] != 1 or strides["N"] != 1:
        return None
    if min(*sizes.values(), *strides.values()) < 1:
        return None
    suited = make_stepwise if max(strides.values()) == 1 else make
    if suited is None:
        return None
    geometry, heavy = Geometry(pool_windows(attrs, sizes, strides)), _HEAVY[attrs.op.name]

    def pays(*inputs: Value) -> bool:
        return bool(inputs[place].ndim == 4 and inputs[place].size >= heavy)

    return Offer(pays, lambda torch: suited(torch, geometry))


@accelerated("MaxPool")
def offer_max_pool(attrs: Attrs) -> Offer | None:
    """The greatest element under a window.

    If windows move by one, it is faster as numpy's kernel does it, along one dimension after
    the other.
    """
    return _offer(attrs, 0, _max_pool, None)


def _max_pool(torch: Torch, geometry: Geometry) -> Kernel:
    def max_pool(images: Array) -> Any:
        how = geometry.padding(images.shape)
        if how is None:
            return NotImplemented

        def pool(part: Array) -> Any:
            facts = (geometry.sizes, geometry.strides, how[0], 1, how[1])
            result = torch.max_pool2d(depth_second(torch, part), *facts)
            # An infinite result may be padding, for which TensorFlow has another number.
            return depth_last(result) if _is_finite(result) else NotImplemented

        return by_images(torch, pool, geometry.pooled(images.shape), images)

    return max_pool


@accelerated("AvgPool")
def offer_avg_pool(attrs: Attrs) -> Offer | None:
    """The mean of what is under a window; padding does not count."""
    return _offer(attrs, 0, _avg_pool, sliding_mean)


def _avg_pool(torch: Torch, geometry: Geometry) -> Kernel:
    average, counts_padding = torch.ops.aten.avg_pool2d.out, False

    def avg_pool(images: Array) -> Any:
        how = geometry.padding(images.shape)
        if how is None:
            return NotImplemented
        facts = (geometry.sizes, geometry.strides, *how, counts_padding, None)

        def fill(result: Array, part: Array) -> None:
            average(depth_second(torch, part), *facts, out=depth_second(torch, result))

        return filled_by_images(torch, fill, geometry.pooled(images.shape), images)

    return avg_pool


@accelerated("MaxPoolGrad")
def offer_max_pool_grad(attrs: Attrs) -> Offer | None:
    """Each gradient to the first of the greatest that its window saw."""
    return _offer(attrs, 0, _max_pool_grad, _max_pool_grad)


def _max_pool_grad(torch: Torch, geometry: Geometry) -> Kernel:
    forward = torch.ops.aten.max_pool2d_with_indices.default
    backward = torch.ops.aten.max_pool2d_with_indices_backward.grad_input

    def max_pool_grad(images: Array, pooled: Array, grads: Array) -> Any:
        how = geometry.padding(images.shape)
        if how is None or pooled.shape != grads.shape:
            return NotImplemented
        facts = (geometry.sizes, geometry.strides, how[0], [1, 1], how[1])

        def fill(result: Array, image: Array, gradient: Array) -> Any:
            x, sent, given = (depth_second(torch, a) for a in (image, gradient, result))
            greatest, places = forward(x, *facts)
            if greatest.shape[2:] != sent.shape[2:] or not _is_finite(greatest):
                return NotImplemented
            return backward(sent, x, *facts, places, grad_input=given)

        return filled_by_images(torch, fill, images.shape, images, grads)

    return max_pool_grad


@accelerated("AvgPoolGrad")
def offer_avg_pool_grad(attrs: Attrs) -> Offer | None:
    """Each gradient, in equal parts, to all that its window saw."""
    return _offer(attrs, 1, _avg_pool_grad, sliding_mean_grad)


def _avg_pool_grad(torch: Torch, geometry: Geometry) -> Kernel:
    backward = torch.ops.aten.avg_pool2d_backward.grad_input

    def avg_pool_grad(sizes: Value, grads: Array) -> Any:
        shape = sizes.tolist()
        if np.ndim(sizes) != 1 or len(shape) != 4 or min(shape) < 1:
            return NotImplemented
        how = geometry.padding(shape)
        if how is None:
            return NotImplemented
        if grads.shape[0] != shape[0] or grads.shape[3] != shape[3]:
            return NotImplemented
        facts = (geometry.sizes, geometry.strides, *how, False, None)

        def fill(result: Array, gradient: Array) -> None:
            images = depth_second(torch, result)
            # Of the images, which it is given first, only the shape is looked at.
            backward(depth_second(torch, gradient), images, *facts, grad_input=images)

        return filled_by_images(torch, fill, tuple(shape), grads)

    return avg_pool_grad


def _is_finite(images: Tensor) -> bool:
    """Whether all is; a sum that overflows may say no without need."""
    return isfinite(images.sum().item())
