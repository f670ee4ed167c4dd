"""Pooling that tells where the greatest elements were, and its gradient.

In:   images, [batch, rows, columns, depth]; for the gradient what is sent back, and the places.
Out:  the greatest elements and their places; gradients of the images.
Not:  no other order of dimensions.
"""

from __future__ import annotations

from math import prod

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS
from penstock.kernels.nn.pool_grad_ops import (
    check_like,
    check_places,
    check_rank,
    first_greatest,
    fits_of,
    static_windows,
)
from penstock.kernels.values.windows import trimmed


@kernel("MaxPoolWithArgmax", types={"T": REALS, "Targmax": {dtypes.int32, dtypes.int64}})
def make_max_pool_with_argmax(attrs: Attrs) -> Kernel:
    """The greatest under each window, and its place in the image, or in the whole batch."""
    slid, dtype = static_windows(attrs), attrs.dtype("Targmax").numpy
    counts_batch = attrs.bool("include_batch_in_index")

    def max_pool_with_argmax(images: Array) -> tuple[Array, Array]:
        check_rank(images, 4)
        windows = trimmed(slid, images.shape)
        best, number_of = first_greatest(images, windows)
        first, place = fits_of(windows, images.shape), np.zeros((), np.int64)
        elements = np.unravel_index(np.maximum(number_of, 0), [w.size for w in windows])
        for axis, (window, fit) in enumerate(zip(windows, first, strict=True)):
            start = np.arange(fit.places) * window.stride - fit.before
            start = start.reshape(-1, *(1,) * (len(windows) - axis))
            place = place * images.shape[1 + axis] + start + elements[axis]
        place = place * images.shape[-1] + np.arange(images.shape[-1])
        if counts_batch:
            batch = np.arange(len(images)).reshape(-1, 1, 1, 1)
            place = place + batch * prod(images.shape[1:])
        return best, place.astype(dtype)

    return max_pool_with_argmax


@kernel("MaxPoolGradWithArgmax", types={"T": REALS, "Targmax": {dtypes.int64}})
def make_max_pool_grad_with_argmax(attrs: Attrs) -> Kernel:
    """Each gradient to the place that is given with it."""
    counts_batch = attrs.bool("include_batch_in_index")
    windows = static_windows(attrs)

    def max_pool_grad(images: Array, grads: Array, places: Array) -> Array:
        check_rank(images, 4)
        check_places(images.shape, grads.shape, windows)
        check_like("argmax", places, grads)
        if not counts_batch:
            batch = np.arange(len(images)).reshape(-1, 1, 1, 1)
            places = places + batch * prod(images.shape[1:])
        if places.size and not 0 <= places.min() <= places.max() < images.size:
            raise ValueError(
                f"Invalid indices: argmax must be in [0, {images.size}), "
                f"found {places.min()} to {places.max()}"
            )
        total = np.zeros(images.size, grads.dtype)
        np.add.at(total, places.ravel(), grads.ravel())
        return total.reshape(images.shape)

    return max_pool_grad
