"""Means of windows that move by one, by PyTorch's convolution.

In:   images; or gradients of their means.
Out:  at each place the mean of what is under the window, padding not counted; or the gradient
      of the images.
Not:  no windows that jump, and none that need more padding at one end.

As the convolution of each channel with equal numbers it takes a third of the time that
PyTorch's pooling takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated.batches import by_images, depth_last, depth_second
from penstock.kernels.accelerated.library import Tensor, Torch
from penstock.kernels.accelerated.pool_geometry import Geometry
from penstock.kernels.api.registry import Kernel

#: Elements that are worth a thread, which waits for memory most of the time: measured.
_PIECE: Final = 1 << 20


class _SlidingMean:
    """The convolution of each channel with equal numbers."""

    def __init__(self, torch: Torch, geometry: Geometry) -> None:
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
        return by_images(self._torch, means, shape, images, piece=_PIECE)

    def count_inside(self, means: Array, images: Sequence[int]) -> None:
        """Multiply where windows see padding, so that this does not count; in place."""
        for axis, along in enumerate(self._geometry.counts(images), 1):
            for places, count in along:
                size = self._geometry.sizes[axis - 1]
                if count != size:
                    means[(slice(None),) * axis + (places,)] *= np.float32(size / count)


def sliding_mean(torch: Torch, geometry: Geometry) -> Kernel:
    """The mean of what is inside of each window."""
    mean = _SlidingMean(torch, geometry)

    def avg_pool(images: Array) -> Any:
        means = mean.of(images)
        if means is not NotImplemented:
            mean.count_inside(means, images.shape)
        return means

    return avg_pool


def sliding_mean_grad(torch: Torch, geometry: Geometry) -> Kernel:
    """To each element its part of all means that it went into.

    With margins that are the same at both ends, a window sees what sees it.
    """
    mean = _SlidingMean(torch, geometry)

    def avg_pool_grad(sizes: Value, grads: Array) -> Any:
        if np.ndim(sizes) != 1 or tuple(sizes.tolist()) != grads.shape:
            return NotImplemented
        parts = grads.copy()
        mean.count_inside(parts, grads.shape)
        return mean.of(parts)

    return avg_pool_grad
