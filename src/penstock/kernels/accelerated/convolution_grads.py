"""Gradients of convolutions by PyTorch.

In:   gradients of what a convolution gave; the images, or the filters, that it was given; the
      size of the other.
Out:  the gradient of the other.
Not:  only two dimensions, with the depth last.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated.batches import depth_last, depth_second
from penstock.kernels.accelerated.choice import Offer, accelerated
from penstock.kernels.accelerated.convolution import last_first
from penstock.kernels.accelerated.library import (
    Tensor,
    Torch,
    given,
    in_pieces,
    threads,
)
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel
from penstock.kernels.nn.conv_ops import window_maker
from penstock.kernels.values.windows import Fit, Window, even_margins, pad

#: Multiplications from which on PyTorch is faster: measured.
_HEAVY: Final = 1 << 17
#: Channels from which on it is also for the gradient of images.
_DEEP: Final = 4
#: Multiplications that are worth a thread.
_PIECE: Final = 5_000_000
#: Images from which on PyTorch takes its faster way to the gradient of filters.
_MANY: Final = 16


@accelerated("Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput")
def offer_input_grad(attrs: Attrs) -> Offer | None:
    """The gradient of the images; their shape is given."""
    if attrs.str("data_format") != "NHWC":
        return None

    least_depth = 1 if attrs.op.name.startswith("Depthwise") else _DEEP

    def pays(sizes: Value, filters: Value, grads: Value) -> bool:
        if sizes.ndim != 1 or sizes.size != 4 or filters.ndim != 4:
            return False
        return filters.shape[2] >= least_depth and _is_heavy(filters.shape, grads)

    def build(torch: Torch) -> Kernel:
        gradient = _Gradient(torch, attrs)
        return lambda sizes, filters, grads: gradient.of_images(
            tuple(sizes.tolist()), filters, grads
        )

    return Offer(pays, build)


@accelerated("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter")
def offer_filter_grad(attrs: Attrs) -> Offer | None:
    """The gradient of the filters; their shape is given."""
    if attrs.str("data_format") != "NHWC":
        return None

    def pays(images: Value, sizes: Value, grads: Value) -> bool:
        if images.ndim != 4 or sizes.ndim != 1 or sizes.size != 4:
            return False
        return _is_heavy(tuple(sizes.tolist()), grads)

    def build(torch: Torch) -> Kernel:
        gradient = _Gradient(torch, attrs)
        return lambda images, sizes, grads: gradient.of_filters(
            images, tuple(sizes.tolist()), grads
        )

    return Offer(pays, build)


def _is_heavy(filters: tuple[int, ...], grads: Value) -> bool:
    if grads.ndim != 4 or len(filters) != 4:
        return False
    return bool(grads.size // max(grads.shape[3], 1) * prod(filters) >= _HEAVY)


class _Gradient:
    """Gradients of one convolution."""

    def __init__(self, torch: Torch, attrs: Attrs) -> None:
        self._torch: Final = torch
        self._make_windows: Final = window_maker(attrs)
        self._is_depthwise: Final = attrs.op.name.startswith("Depthwise")
        self._send_back: Final = torch.ops.mkldnn._convolution_transpose_pointwise.default
        self._backward: Final = torch.ops.aten.convolution_backward.default

    def of_images(self, shape: tuple[int, ...], filters: Array, grads: Array) -> Any:
        """The gradient of images of a shape; NotImplemented if nothing fits together."""
        windows = self._make_windows(filters.shape[:2])
        fits = self._fits(windows, shape, filters.shape, grads)
        if fits is None:
            return NotImplemented
        torch, weights = self._torch, self._turned(filters)
        before = [fit.before for fit in fits]
        # What is missing at the end if there is as much padding as at the start: less than
        # nothing if there is more.
        missing = [
            n + 2 * f.before - (f.places - 1) * w.stride - w.extent
            for n, f, w in zip(shape[1:3], fits, windows, strict=True)
        ]
        facts = (before, missing, *self._facts(windows, shape))

        def of_part(part: slice) -> Array:
            y = depth_second(torch, grads[part])
            found = self._send_back(y, weights, None, *facts, "none", [], "")
            return given(depth_last(found))

        pieces = self._pieces(shape[0], filters.size, grads)
        if len(pieces) == 1:
            return np.ascontiguousarray(of_part(pieces[0]))
        result = np.empty(shape, np.float32)

        def body(number: int) -> None:
            result[pieces[number]] = of_part(pieces[number])

        in_pieces(len(pieces), body)
        return result

    def of_filters(self, images: Array, shape: tuple[int, ...], grads: Array) -> Any:
        """The gradient of filters of a shape; NotImplemented if nothing fits together."""
        windows = self._make_windows(shape[:2])
        fits = self._fits(windows, images.shape, shape, grads)
        if fits is None:
            return NotImplemented
        torch, padding = self._torch, even_margins(fits)
        rows, columns, depth, count = shape
        if self._is_depthwise:
            depth, count = 1, depth * count
        # Only the shape of the filters is looked at.
        weights = torch.empty((count, rows, columns, depth)).permute(0, 3, 1, 2)
        strides, dilations, groups = self._facts(windows, images.shape)
        facts = (strides, padding or [0, 0], dilations, False, [0, 0], groups, [False, True, False])
        most = images.shape[0] // _MANY if images.shape[0] >= _MANY else images.shape[0]
        pieces = self._pieces(images.shape[0], prod(shape), grads, most)
        parts: list[Array] = [images] * len(pieces)

        def body(number: int) -> None:
            part = pieces[number]
            seen = pad(images[part], fits, 0) if padding is None else images[part]
            y = depth_second(torch, grads[part])
            x = depth_second(torch, np.ascontiguousarray(seen))
            found = depth_last(self._backward(y, x, weights, None, *facts)[1])
            parts[number] = given(found.reshape(count, -1).t().contiguous())

        in_pieces(len(pieces), body)
        total = parts[0] if len(parts) == 1 else sum(parts[1:], parts[0])
        return np.asarray(total).reshape(shape)

    def _fits(
        self,
        windows: Sequence[Window],
        images: tuple[int, ...],
        filters: tuple[int, ...],
        grads: Array,
    ) -> list[Fit] | None:
        """How the windows fit, if the convolution of such images gives such results."""
        if min(images) < 1 or min(filters) < 1 or images[3] != filters[2]:
            return None
        fits = [w.fit(n) for w, n in zip(windows, images[1:3], strict=True)]
        count = filters[2] * filters[3] if self._is_depthwise else filters[3]
        expected = (images[0], fits[0].places, fits[1].places, count)
        return fits if grads.shape == expected and grads.size else None

    def _turned(self, filters: Array) -> Tensor:
        """Filters as [output depth, input depth, sizes...], the latter last in memory."""
        if self._is_depthwise:
            filters = filters.reshape(*filters.shape[:2], 1, -1)
        return last_first(self._torch, filters).permute(0, 3, 1, 2)

    def _facts(
        self, windows: Sequence[Window], images: tuple[int, ...]
    ) -> tuple[list[int], list[int], int]:
        """Strides, dilations and groups."""
        groups = images[3] if self._is_depthwise else 1
        return [w.stride for w in windows], [w.dilation for w in windows], groups

    def _pieces(self, batch: int, size: int, grads: Array, most: int | None = None) -> list[slice]:
        """Parts of the batch for several threads."""
        work = grads.size // grads.shape[3] * size
        count = max(min(threads(self._torch), most or batch, work // _PIECE), 1)
        step = -(-batch // count)
        return [slice(first, first + step) for first in range(0, batch, step)]
