"""Pooling by PyTorch, and its gradients.

In:   images; for gradients also what came out, and what is sent back.
Out:  at each place of the sliding window the greatest or the mean of what is under it; or
      the gradient of the images.
Not:  no pooling over the depth.

PyTorch keeps NaN and TensorFlow does not, so whatever has one is declined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated.choice import Offer, accelerated
from penstock.kernels.accelerated.library import Tensor, Torch, in_pieces, tensor, threads
from penstock.kernels.attrs import Attrs
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
#: Elements that are worth a thread.
_PIECE: Final = 1 << 17


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
    if max(strides.values()) == 1 and attrs.op.name != "MaxPoolGrad":
        return None  # one dimension after the other, as numpy's kernels do it, is faster
    geometry, heavy = _Geometry(pool_windows(attrs, sizes, strides)), _HEAVY[attrs.op.name]

    def pays(*inputs: Value) -> bool:
        return bool(inputs[place].ndim == 4 and inputs[place].size >= heavy)

    return Offer(pays, lambda torch: make(torch, geometry))


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
            result = torch.max_pool2d(_first(torch, part), *facts)
            # An infinite result may be padding, for which TensorFlow has another number.
            return result if _is_finite(result) else NotImplemented

        return _by_parts(torch, pool, geometry.pooled(images.shape), images)

    return max_pool


@accelerated("AvgPool")
def offer_avg_pool(attrs: Attrs) -> Offer | None:
    """The mean of what is under a window; padding does not count."""
    return _offer(attrs, 0, _avg_pool)


def _avg_pool(torch: Torch, geometry: _Geometry) -> Kernel:
    average, counts_padding = torch.nn.functional.avg_pool2d, False

    def avg_pool(images: Array) -> Any:
        how = geometry.padding(images.shape)
        if how is None:
            return NotImplemented
        facts = (geometry.sizes, geometry.strides, *how, counts_padding)
        shape = geometry.pooled(images.shape)
        return _by_parts(torch, lambda part: average(_first(torch, part), *facts), shape, images)

    return avg_pool


@accelerated("MaxPoolGrad")
def offer_max_pool_grad(attrs: Attrs) -> Offer | None:
    """Each gradient to the first of the greatest that its window saw."""
    return _offer(attrs, 0, _max_pool_grad)


def _max_pool_grad(torch: Torch, geometry: _Geometry) -> Kernel:
    forward = torch.ops.aten.max_pool2d_with_indices.default
    backward = torch.ops.aten.max_pool2d_with_indices_backward.default

    def max_pool_grad(images: Array, pooled: Array, grads: Array) -> Any:
        how = geometry.padding(images.shape)
        if how is None or pooled.shape != grads.shape:
            return NotImplemented
        facts = (geometry.sizes, geometry.strides, how[0], [1, 1], how[1])

        def give_back(image: Array, gradient: Array) -> Any:
            x = _first(torch, image)
            greatest, places = forward(x, *facts)
            if greatest.shape[2:] != gradient.shape[1:3] or not _is_finite(greatest):
                return NotImplemented
            return backward(_first(torch, gradient), x, *facts, places)

        return _by_parts(torch, give_back, images.shape, images, grads)

    return max_pool_grad


@accelerated("AvgPoolGrad")
def offer_avg_pool_grad(attrs: Attrs) -> Offer | None:
    """Each gradient, in equal parts, to all that its window saw."""
    return _offer(attrs, 1, _avg_pool_grad)


def _avg_pool_grad(torch: Torch, geometry: _Geometry) -> Kernel:
    backward = torch.ops.aten.avg_pool2d_backward.default

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

        def give_back(gradient: Array) -> Any:
            # Only the shape of the images is looked at.
            x = torch.empty((len(gradient), *shape[1:])).permute(0, 3, 1, 2)
            return backward(_first(torch, gradient), x, *facts)

        return _by_parts(torch, give_back, tuple(shape), grads)

    return avg_pool_grad


def _by_parts(
    torch: Torch, compute: Callable[..., Any], shape: tuple[int, ...], *inputs: Array
) -> Any:
    """What ``compute`` makes of parts of the batch, on several threads if that pays."""
    batch = shape[0]
    count = min(threads(torch), batch, max(x.size for x in inputs) // _PIECE)
    if count < 2:
        found = compute(*inputs)
        return found if found is NotImplemented else np.ascontiguousarray(_last(found))
    step, result, declined = -(-batch // count), np.empty(shape, np.float32), list[int]()

    def body(number: int) -> None:
        where = slice(number * step, (number + 1) * step)
        found = compute(*(x[where] for x in inputs))
        if found is NotImplemented:
            declined.append(number)
        else:
            result[where] = _last(found)

    in_pieces(-(-batch // step), body)
    return NotImplemented if declined else result


def _first(torch: Torch, images: Array) -> Tensor:
    return tensor(torch, images).permute(0, 3, 1, 2)


def _last(images: Tensor) -> Array:
    last: Array = images.permute(0, 2, 3, 1).numpy()
    return last


def _is_finite(images: Tensor) -> bool:
    """Whether all is; a sum that overflows may say no without need."""
    return isfinite(images.sum().item())
