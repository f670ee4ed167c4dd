"""Gradients of means over windows, by the library in C.

In:   the shape of images, gradients by their means, and windows.
Out:  what the images get; None where there is no library, or it has no way for such shapes.
Not:  complains about no shape, and knows no layout.
"""

from __future__ import annotations

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.convolution import channel_convolver_for
from penstock.kernels.c.pooling import pool_gradient
from penstock.kernels.nn.window_reduction import divide_by_counts
from penstock.kernels.values.windows import Window, turned_windows


def mean_gradient(
    shape: tuple[int, ...], grads: Array, windows: tuple[Window, ...]
) -> Array | None:
    """Parts that elements collect by windows of their own, or that gradients give them."""
    is_flat = len(windows) == 2 and grads.dtype == np.float32
    turned = turned_windows(windows, shape, grads.shape) if is_flat else None
    if turned is None:
        return pool_gradient(shape, grads, windows, "mean")
    parts = grads.copy()
    divide_by_counts(parts, windows, shape[1:-1])
    ones = np.ones((*(window.size for window in windows), shape[-1]), np.float32)
    return channel_convolver_for(turned)(parts, ones)
