"""Local response normalisation.

In:   images, [batch, rows, columns, depth]; for the gradient also what came out, and what is
      sent back to it.
Out:  each element divided by a power of the squares around it along the depth; its gradient.
Not:  no windows over rows and columns.

Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional neural
networks, 2012, section 3.3.
"""

from __future__ import annotations

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.portions import by_images
from penstock.kernels.precision import in_float32
from penstock.kernels.registry import Kernel, kernel

_TYPES = {"T": frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32})}


@kernel("LRN", types=_TYPES)
def make_lrn(attrs: Attrs) -> Kernel:
    """Elements divided by (bias + alpha * sum of squares nearby) ** beta."""
    radius, bias, alpha, beta = _settings(attrs)

    def of_some(images: Array) -> Array:
        norm = _sum_nearby(images * images, radius)
        norm *= alpha
        norm += bias
        np.power(norm, -beta, out=norm)
        norm *= images
        return norm

    def lrn(images: Value) -> Array:
        _check_rank(images)
        return by_images(of_some, images.shape, images.dtype, images)

    return lrn if attrs.dtype("T") is dtypes.float32 else in_float32(lrn, attrs.dtype("T"))


@kernel("LRNGrad", types=_TYPES)
def make_lrn_grad(attrs: Attrs) -> Kernel:
    """Each element's own part of the gradient, less its part in all norms nearby."""
    radius, bias, alpha, beta = _settings(attrs)

    def lrn_grad(grads: Value, images: Value, outputs: Value) -> Array:
        _check_rank(images)
        if not grads.shape == images.shape == outputs.shape:
            raise ValueError(
                "input_grads, input_image, and out_image should have the same shape: "
                f"{', '.join(shape_text(x.shape) for x in (grads, images, outputs))}"
            )
        norm = _sum_nearby(images * images, radius) * alpha + bias
        shared = _sum_nearby(grads * outputs / norm, radius)
        total: Array = grads * norm**-beta - np.float32(2) * alpha * beta * images * shared
        return total

    if attrs.dtype("T") is dtypes.float32:
        return lrn_grad
    return in_float32(lrn_grad, attrs.dtype("T"))


def _settings(attrs: Attrs) -> tuple[int, np.float32, np.float32, np.float32]:
    """Radius, bias, alpha and beta."""
    radius = attrs.int("depth_radius")
    if not 0 <= radius < 2**31:
        raise ValueError(f"depth_radius = {radius} is negative or larger than int max")
    bias, alpha, beta = (np.float32(attrs.float(name)) for name in ("bias", "alpha", "beta"))
    return radius, bias, alpha, beta


def _check_rank(images: Value) -> None:
    if images.ndim != 4:
        raise ValueError(f"in must be 4-dimensional: {shape_text(images.shape)}")


def _sum_nearby(values: Array, radius: int) -> Array:
    """Sums over all channels that are at most ``radius`` away."""
    total, depth = values.copy(), values.shape[-1]
    for away in range(1, min(radius, depth - 1) + 1):
        total[..., away:] += values[..., :-away]
        total[..., :-away] += values[..., away:]
    return total
