"""Pooling by PyTorch, and its gradients.

In:   images; for gradients also what came out, and what is sent back.
Out:  at each place of the sliding window the greatest or the mean of what is under it; or
      the gradient of the images.
Not:  no pooling over the depth.

PyTorch keeps NaN and TensorFlow does not, so whatever has one is declined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, prod
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated.batches import (
    by_images,
    depth_last,
    depth_second,
    filled_by_images,
)
from penstock.kernels.accelerated.choice import Offer, accelerated
from penstock.kernels.accelerated.convolution import even_padding
from penstock.kernels.accelerated.library import Tensor, Torch
from penstock.kernels.attrs import Attrs
from penstock.kernels.joining import runs_of_counts
from penstock.kernels.pool_ops import layout_of, pool_windows
from penstock.kernels.registry import Kernel
from penstock.kernels.windows import Fit, Window, per_dimension

#: Elements from which on PyTorch is faster: measured.
_HEAVY: Final = {
    "MaxPool": 1 << 17,
    "AvgPool": 1 << 15,
    "MaxPoolGrad": 1 << 11,
    "AvgPoolGrad": 1 << 15,
}
#: Elements that are worth a thread where memory is what is waited for.
_SLIDING_PIECE: Final = 1 << 20


class _Geometry:
    """How windows slide over images with the depth last."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self.sizes: Final = [w.size for w in windows]
        self.strides: Final = [w.stride for w in windows]
        self._windows: Final = windows

    def pooled(self, images: Sequence[int]) -> tuple[int, ...]:
        """The shape of what comes out."""
        fits = [w.fit(n) for w, n in zip(self._windows, images[1:-1], strict=True)]
        return (images[0], *(fit.places for fit in fits), images[-1])

    def even_margins(self, images: Sequence[int]) -> list[int] | None:
        """The padding at both ends of each dimension, if it is the same."""
        return even_padding([w.fit(n) for w, n in zip(self._windows, images[1:-1], strict=True)])

    def counts(self, images: Sequence[int]) -> list[tuple[tuple[slice, int], ...]]:
        """For each dimension runs of places in which windows see equally much, and how much."""
        return [runs_of_counts(w, n) for w, n in zip(self._windows, images[1:-1], strict=True)]

    def padding(self, images: Sequence[int]) -> tuple[list[int], bool] | None:
        """The padding and whether places are rounded up; None if PyTorch cannot do it."""
        fits = [w.fit(n) for w, n in zip(self._windows, images[1:-1], strict=True)]
        before = [fit.before for fit in fits]
        if any(2 * b > size for b, size in zip(before, self.sizes, strict=True)):
            return None
        for is_rounded_up in (False, True):
            facts = zip(self._windows, images[1:-1], fits, strict=True)
            if all(_places(w, n, fit, is_rounded_up) == fit.places for w, n, fit in facts):
                return before, is_rounded_up
        return None


def _places(window: Window, length: int, fit: Fit, is_rounded_up: bool) -> int:  # noqa: FBT001
    """How many places PyTorch finds for a window."""
    room = length + 2 * fit.before - window.size
    if not is_rounded_up:
        return room // window.stride + 1
    places = -(-room // window.stride) + 1
    # A window that would start beyond the image is left out.
    return places - ((places - 1) * window.stride >= length + fit.before)


def _offer(attrs: Attrs, place: int, make: Callable[[Torch, _Geometry], Kernel]) -> Offer | None:
    """An offer for pooling over two dimensions; ``place`` is a heavy input of rank 4."""
    layout = layout_of(attrs)
    if layout != "NHWC":
        return None
    sizes, strides = (per_dimension(attrs, name, layout) for name in ("ksize", "strides"))
    if sizes["C"] != 1 or sizes["N"] != 1 or strides["C"] != 1 or strides["N"] != 1:
        return None
    if min(*sizes.values(), *strides.values()) < 1:
        return None
    if max(strides.values()) == 1:
        make = _STEPLESS.get(attrs.op.name, make)
        if make is _max_pool:
            return None  # one dimension after the other, as numpy's kernel does it, is faster
    geometry, heavy = _Geometry(pool_windows(attrs, sizes, strides)), _HEAVY[attrs.op.name]

    def pays(*inputs: Value) -> bool:
        return bool(inputs[place].ndim == 4 and inputs[place].size >= heavy)

    return Offer(pays, lambda torch: make(torch, geometry))


# -- windows that do not jump --------------------------------------------------------------


class _SlidingMean:
    """Means, or their gradient, as the convolution of each channel with equal numbers.

    It works on all elements of a channel's vector at once, and so takes a third of the time
    that pooling takes.
    """

    def __init__(self, torch: Torch, geometry: _Geometry) -> None:
        self._torch: Final = torch
        self._geometry: Final = geometry
        self._convolve: Final = torch.ops.mkldnn._convolution_pointwise.default
        #: For images of so many channels; replaced as a whole.
        self._weights: Tensor = torch.empty(0)

    def of(self, images: Array) -> Any:
        """The sum of each window divided by its size, whatever part of it is padding."""
        margins = self._geometry.even_margins(images.shape)
        if margins is None or 0 in images.shape:
            return NotImplemented
        depth, sizes = images.shape[3], self._geometry.sizes
        weights = self._weights
        if len(weights) != depth:
            equal = np.full((depth, 1, *sizes), 1 / prod(sizes), np.float32)
            self._weights = weights = self._torch.from_numpy(equal)

        def means(part: Array) -> Tensor:
            facts: tuple[Any, ...] = (None, margins, [1, 1], [1, 1], depth, "none", [], "")
            return depth_last(self._convolve(depth_second(self._torch, part), weights, *facts))

        shape = self._geometry.pooled(images.shape)
        return by_images(self._torch, means, shape, images, piece=_SLIDING_PIECE)

    def count_inside(self, means: Array, images: Sequence[int]) -> None:
        """Multiply where windows see padding, so that this does not count; in place."""
        for axis, along in enumerate(self._geometry.counts(images), 1):
            for places, count in along:
                size = self._geometry.sizes[axis - 1]
                if count != size:
                    means[(slice(None),) * axis + (places,)] *= np.float32(size / count)


def _avg_pool_everywhere(torch: Torch, geometry: _Geometry) -> Kernel:
    mean = _SlidingMean(torch, geometry)

    def avg_pool(images: Array) -> Any:
        means = mean.of(images)
        if means is not NotImplemented:
            mean.count_inside(means, images.shape)
        return means

    return avg_pool


def _avg_pool_grad_everywhere(torch: Torch, geometry: _Geometry) -> Kernel:
    """With margins that are the same at both ends a window sees what sees it."""
    mean = _SlidingMean(torch, geometry)

    def avg_pool_grad(sizes: Value, grads: Array) -> Any:
        if np.ndim(sizes) != 1 or tuple(sizes.tolist()) != grads.shape:
            return NotImplemented
        parts = grads.copy()
        mean.count_inside(parts, grads.shape)
        return mean.of(parts)

    return avg_pool_grad


@accelerated("MaxPool")
def offer_max_pool(attrs: Attrs) -> Offer | None:
    """The greatest element under a window."""
    return _offer(attrs, 0, _max_pool)


def _max_pool(torch: Torch, geometry: _Geometry) -> Kernel:
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
    return _offer(attrs, 0, _avg_pool)


def _avg_pool(torch: Torch, geometry: _Geometry) -> Kernel:
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
    return _offer(attrs, 0, _max_pool_grad)


def _max_pool_grad(torch: Torch, geometry: _Geometry) -> Kernel:
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
    return _offer(attrs, 1, _avg_pool_grad)


def _avg_pool_grad(torch: Torch, geometry: _Geometry) -> Kernel:
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


#: What is done instead if windows do not jump.
_STEPLESS: Final = {"AvgPool": _avg_pool_everywhere, "AvgPoolGrad": _avg_pool_grad_everywhere}
