"""Local response normalisation.

In:   images, [batch, rows, columns, depth]; for the gradient also what came out, and what is
      sent back to it.
Out:  each element divided by a power of the squares around it along the depth; its gradient.
Not:  no windows over rows and columns.

Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional neural
networks, 2012, section 3.3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.narrow.precision import in_float32
from penstock.kernels.parallel.image_tiles import PIECES, in_bands
from penstock.kernels.parallel.products import multiply_into
from penstock.kernels.values.arrays import shape_text

_TYPES = {"T": frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32})}
#: Channels whose sums are one product of matrices.
_BLOCK: Final = 32
#: Elements that are worked on at a time.
_AT_ONCE: Final = 1 << 18
#: With fewer elements it is not worthwhile to wake other threads.
_SHARED: Final = 1 << 16


@kernel("LRN", types=_TYPES)
def make_lrn(attrs: Attrs) -> Kernel:
    """Elements divided by (bias + alpha * sum of squares nearby) ** beta."""
    radius, bias, alpha, beta = _settings(attrs)

    def of_some(images: Array, out: Array) -> None:
        norm = _sum_nearby(images * images, radius, alpha)
        norm += bias
        _divide(images, norm, beta, out)

    def lrn(images: Value) -> Array:
        _check_rank(images)
        return _by_rows(of_some, images)

    return lrn if attrs.dtype("T") is dtypes.float32 else in_float32(lrn, attrs.dtype("T"))


@kernel("LRNGrad", types=_TYPES)
def make_lrn_grad(attrs: Attrs) -> Kernel:
    """Each element's own part of the gradient, less its part in all norms nearby."""
    radius, bias, alpha, beta = _settings(attrs)

    def of_some(grads: Array, images: Array, outputs: Array, out: Array) -> None:
        norm = _sum_nearby(images * images, radius, alpha)
        norm += bias
        shared = _sum_nearby(grads * outputs / norm, radius, np.float32(2) * alpha * beta)
        shared *= images
        _divide(grads, norm, beta, out)
        out -= shared

    def lrn_grad(grads: Value, images: Value, outputs: Value) -> Array:
        _check_rank(images)
        if not grads.shape == images.shape == outputs.shape:
            raise ValueError(
                "input_grads, input_image, and out_image should have the same shape: "
                f"{', '.join(shape_text(x.shape) for x in (grads, images, outputs))}"
            )
        return _by_rows(of_some, grads, images, outputs)

    if attrs.dtype("T") is dtypes.float32:
        return lrn_grad
    return in_float32(lrn_grad, attrs.dtype("T"))


def _by_rows(compute: Callable[..., None], *images: Array) -> Array:
    """What the function of [places, depth] writes into its last array, some places at a time."""
    shape = images[0].shape
    places, result = prod(shape[:-1]), np.empty(shape, np.float32)
    rows = [x.reshape(places, shape[-1]) for x in images]
    out = result.reshape(places, shape[-1])

    def some(_: slice, part: slice) -> None:
        compute(*(x[part] for x in rows), out[part])

    pieces = PIECES if result.size >= _SHARED else 1
    in_bands(1, places, _AT_ONCE // max(shape[-1], 1), pieces, some)
    return result


def _divide(x: Array, norm: Array, beta: np.float32, out: Array) -> None:
    """``x / norm ** beta``, by square roots for the usual powers: three times as fast.

    What is in ``norm`` is lost.
    """
    if beta == 0.5:
        np.divide(x, np.sqrt(norm, out=norm), out=out)
    elif beta == 0.75:
        root = np.sqrt(norm)
        np.sqrt(root, out=norm)
        root *= norm
        np.divide(x, root, out=out)
    else:
        np.power(norm, -beta, out=norm)
        np.multiply(x, norm, out=out)


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


def _sum_nearby(values: Array, radius: int, factor: np.float32) -> Array:
    """Sums over all channels at most ``radius`` away, times a factor, for each place.

    They are products with a band matrix; what is not finite would get into all of them.
    """
    depth = values.shape[1]
    radius, result = min(radius, depth), np.empty_like(values)
    for first in range(0, depth, _BLOCK):
        block = slice(first, min(first + _BLOCK, depth))
        near = slice(max(first - radius, 0), min(block.stop + radius, depth))
        shape = near.stop - near.start, block.stop - first
        band = _band(*shape, first - near.start, radius, float(factor))
        multiply_into(values[:, near], band, result[:, block])
    if _is_finite(result):
        return result
    result[...] = values
    for away in range(1, min(radius, depth - 1) + 1):
        result[:, away:] += values[:, :-away]
        result[:, :-away] += values[:, away:]
    result *= factor
    return result


def _is_finite(values: Array) -> bool:
    """Whether all are, found with two passes that write nothing."""
    largest, least = (join.reduce(values, None, initial=0) for join in (np.maximum, np.minimum))
    return bool(np.isfinite(largest) and np.isfinite(least))


@functools.lru_cache(maxsize=64)
def _band(rows: int, columns: int, middle: int, radius: int, factor: float) -> Array:
    """The factor near the diagonal, which begins in this row, and zeros elsewhere."""
    away = np.arange(rows)[:, None] - np.arange(columns) - middle
    return np.where(np.abs(away) <= radius, np.float32(factor), np.float32(0))
