"""Convolution by PyTorch: dense, in groups and by channel, over two or three dimensions.

In:   images and filters; filters are [sizes..., input depth, output depth].
Out:  at each place of the sliding window, its product with each filter, summed up.
Not:  no gradients.

Images with the depth last are what PyTorch calls channels last, so nothing is copied.  Filters
that come again, and cannot have changed, are put into the order that suits the processor once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated.choice import Offer, accelerated
from penstock.kernels.accelerated.library import (
    Tensor,
    Torch,
    given,
    in_pieces,
    tensor,
    threads,
)
from penstock.kernels.accelerated.products import product_of_matrices
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.nn.conv_ops import window_maker
from penstock.kernels.values.windows import Fit, Window, centred, even_margins, pad, seen_by, slide

#: Multiplications from which on PyTorch is faster: measured, by channel, of windows with
#: several elements, and of windows with one.
_BY_CHANNEL: Final = 1 << 17
_WINDOWED: Final = 1 << 19
_POINTWISE: Final = 1 << 21
#: Multiplications that are worth a thread.
_PIECE: Final = 5_000_000
_PIECE_BY_CHANNEL: Final = 8_000_000
#: Multiplications that take as long as to copy an element into padding.
_COPYING: Final = 8
#: Filters of so many elements are turned faster by PyTorch.
_LARGE: Final = 1 << 16
#: Shapes of images for which filters are kept in the processor's order.
_MOST_SHAPES: Final = 8
_LAYOUTS: Final = ("NHWC", "NCHW", "NDHWC", "NCDHW")


@accelerated("Conv2D", "Conv3D", "DepthwiseConv2dNative")
def offer_convolution(attrs: Attrs) -> Offer | None:
    """The sum of each window times each filter."""
    layout = attrs.str("data_format")
    if layout not in _LAYOUTS:
        return None
    return Offer(has_many_products(attrs, layout), lambda torch: Convolution(torch, attrs))


def has_many_products(attrs: Attrs, layout: str) -> Callable[..., bool]:
    """Whether images and filters are heavy work, and of the right rank."""
    rank, depth_axis = len(layout), layout.index("C")
    jumps = max(prod(attrs.list("strides")), 1)
    is_depthwise = "Depthwise" in attrs.op.name

    def pays(images: Value, filters: Value, *_rest: Value) -> bool:
        if images.ndim != rank or filters.ndim != rank:
            return False
        places = images.size // (max(images.shape[depth_axis], 1) * jumps)
        least = _BY_CHANNEL if is_depthwise else _WINDOWED
        if filters.shape[:-2] == (1, 1):
            least = _POINTWISE
        return bool(places * filters.size >= least)

    return pays


#: Some images, and some rows of their places.
_Piece: TypeAlias = tuple[slice, slice]


@dataclass(frozen=True, slots=True)
class _ConvolutionPlan:
    """How to convolve images of one shape with filters of one shape."""

    shape: tuple[int, ...]
    filter_shape: tuple[int, ...]
    windows: Sequence[Window]
    fits: Sequence[Fit]
    groups: int

    @property
    def is_small(self) -> bool:
        """Whether to copy what the windows see takes less than to turn the filters."""
        places = self.shape[0] * prod(fit.places for fit in self.fits)
        return self.groups == 1 and places <= self.filter_shape[-1]

    def serves(self, images: Array, filters: Array) -> bool:
        """Whether it was made for such inputs."""
        return bool(self.shape == images.shape and self.filter_shape == filters.shape)


class _Known(NamedTuple):
    """Filters that cannot change, and in the processor's order."""

    plan: _ConvolutionPlan
    filters: Array
    packed: Tensor


class Convolution:
    """A convolution with PyTorch; ``unary`` is what it does to each sum, in PyTorch's words."""

    def __init__(
        self, torch: Torch, attrs: Attrs, unary: str = "none", numbers: Sequence[float] = ()
    ) -> None:
        self._torch: Final = torch
        self._make_windows: Final = window_maker(attrs)
        self._layout: Final = attrs.str("data_format")
        self._is_depthwise: Final = "Depthwise" in attrs.op.name
        self._unary: Final = unary
        self._numbers: Final = tuple(numbers)
        rank = len(self._layout)
        #: From the depth last to the depth second, and back.
        self._to_first: Final = (0, rank - 1, *range(1, rank - 1))
        self._to_last: Final = (0, *range(2, rank), 1)
        ops = torch.ops.mkldnn
        self._convolve: Final = ops._convolution_pointwise.default
        #: What is done to sums that were not made by ``_convolve``.
        self._finish: Final[Callable[[Tensor], Any] | None] = {
            "relu": lambda y: torch.clamp_(y, min=0.0),
            "hardtanh": lambda y: torch.clamp_(y, *self._numbers),
            "leaky_relu": lambda y: torch.nn.functional.leaky_relu_(y, *self._numbers),
        }.get(unary)
        self._multiply: Final = product_of_matrices(torch)
        self._pack: Final = ops._reorder_convolution_weight.default
        #: The last plan; replaced as a whole.
        self._plan: _ConvolutionPlan | None = None
        #: The last filters of each shape of images; emptied when there are too many.
        self._known: dict[tuple[int, ...], _Known] = {}

    def __call__(self, images: Array, filters: Array, bias: Array | None = None) -> Any:
        """The convolution; NotImplemented for what does not fit together."""
        if self._layout[1] == "C":
            images = np.ascontiguousarray(images.transpose(self._to_last))
        plan = self._plan
        if plan is None or not plan.serves(images, filters):
            plan = self._plan = self._new_plan(images, filters)
        if plan is None:
            return NotImplemented
        if len(plan.windows) > 2:
            images = centred(images, plan.windows)
        weights = self._packed(plan, filters)
        if weights is None and plan.is_small:
            result = self._multiplied(plan, images, filters, bias)
        else:
            weights = self._turned(filters) if weights is None else weights
            added = None if bias is None else tensor(self._torch, bias)
            result = self._run(plan, images, weights, added)
        if self._layout[1] == "C":
            return np.ascontiguousarray(result.transpose(self._to_first))
        return result

    # -- plans -----------------------------------------------------------------------------

    def _new_plan(self, images: Array, filters: Array) -> _ConvolutionPlan | None:
        depth, (deep, count) = images.shape[-1], filters.shape[-2:]
        if not deep or depth % deep or 0 in filters.shape:
            return None
        groups = depth if self._is_depthwise else depth // deep
        if count % (1 if self._is_depthwise else groups) or (self._is_depthwise and depth != deep):
            return None
        if groups > 1 and len(self._layout) > 4:
            return None
        windows = self._make_windows(filters.shape[:-2])
        seen = centred(images, windows) if len(windows) > 2 else images
        fits = [w.fit(n) for w, n in zip(windows, seen.shape[1:-1], strict=True)]
        if not all(fit.places for fit in fits):
            return None
        return _ConvolutionPlan(images.shape, filters.shape, windows, fits, groups)

    # -- filters ---------------------------------------------------------------------------

    def _turned(self, filters: Array) -> Tensor:
        """Filters as [output depth, input depth, sizes...], the latter last in memory."""
        if self._is_depthwise:
            filters = filters.reshape(*filters.shape[:2], 1, -1)
        return last_first(self._torch, filters).permute(self._to_first)

    def _packed(self, plan: _ConvolutionPlan, filters: Array) -> Tensor | None:
        """Filters in the processor's order, if they cannot change.

        They are from the first call on, since what is computed with them differs in its last
        bits from what is computed without.
        """
        known = self._known.get(plan.shape)
        if known is not None and known.filters is filters:
            return known.packed
        if not is_constant(filters):
            return None
        if len(self._known) >= _MOST_SHAPES:
            self._known.clear()
        packed = self._pack_for(plan, self._turned(filters))
        self._known[plan.shape] = _Known(plan, filters, packed)
        return packed

    def _pack_for(self, plan: _ConvolutionPlan, weights: Tensor) -> Tensor:
        if len(plan.windows) > 2:
            return weights
        sizes = (plan.shape[0], plan.shape[-1], *plan.shape[1:-1])
        padding = even_margins(plan.fits) or [0] * len(plan.fits)
        strides, dilations, groups = self._facts(plan)
        return self._pack(weights, padding, strides, dilations, groups, sizes)

    # -- work ------------------------------------------------------------------------------

    def _multiplied(
        self, plan: _ConvolutionPlan, images: Array, filters: Array, bias: Array | None
    ) -> Array:
        """The same as one product of matrices: what each place sees, times the filters."""
        count = filters.shape[-1]
        seen, columns = slide(images, plan.windows), filters.reshape(-1, count)
        rows = seen.reshape(-1, len(columns))
        sums = self._multiply(tensor(self._torch, rows), tensor(self._torch, columns))
        if bias is not None:
            sums += bias
        if self._finish is not None:
            self._finish(tensor(self._torch, sums))
        return sums.reshape(len(images), *(fit.places for fit in plan.fits), count)

    def _run(
        self, plan: _ConvolutionPlan, images: Array, weights: Tensor, bias: Tensor | None
    ) -> Array:
        padding = even_margins(plan.fits)
        pieces = self._pieces(plan, len(images))
        if len(pieces) > 1:
            return self._run_pieces(plan, images, weights, bias, pieces)
        if padding is None:
            images, padding = pad(images, plan.fits, 0), [0] * len(plan.fits)
        x = tensor(self._torch, images).permute(self._to_first)
        y = self._convolve(x, weights, bias, padding, *self._facts(plan), *self._after())
        return np.ascontiguousarray(given(y.permute(self._to_last)))

    def _facts(self, plan: _ConvolutionPlan) -> tuple[list[int], list[int], int]:
        strides = [w.stride for w in plan.windows]
        return strides, [w.dilation for w in plan.windows], plan.groups

    def _after(self) -> tuple[str, list[float], str]:
        return self._unary, list(self._numbers), ""

    def _pieces(self, plan: _ConvolutionPlan, batch: int) -> list[_Piece]:
        """Pieces for several threads: some images, or some rows of an image."""
        places = prod(fit.places for fit in plan.fits)
        piece = _PIECE_BY_CHANNEL if self._is_depthwise else _PIECE
        if batch == 1:
            piece *= 2  # rows of one image must be padded anew
        work = batch * places * prod(plan.filter_shape)
        if even_margins(plan.fits) is None:
            work += _COPYING * prod(plan.shape)
        count = min(threads(self._torch), work // piece)
        if count < 2:
            return []
        rows = plan.fits[0].places
        many, step = -(-batch // count), -(-rows // -(-count // batch))
        return [
            (slice(image, min(image + many, batch)), slice(row, min(row + step, rows)))
            for image in range(0, batch, many)
            for row in range(0, rows, step)
        ]

    def _run_pieces(
        self,
        plan: _ConvolutionPlan,
        images: Array,
        weights: Tensor,
        bias: Tensor | None,
        pieces: Sequence[_Piece],
    ) -> Array:
        """The same on several threads, each of which does some images or rows."""
        places, count = [fit.places for fit in plan.fits], weights.shape[0]
        result = np.empty((len(images), *places, count), np.float32)

        def body(number: int) -> None:
            part, rows = pieces[number]
            seen, margin = _seen_by(images[part], plan, rows)
            x = tensor(self._torch, seen).permute(self._to_first)
            y = self._convolve(x, weights, bias, margin, *self._facts(plan), *self._after())
            result[part, rows] = y.permute(self._to_last).numpy()

        in_pieces(len(pieces), body)
        return result


def last_first(torch: Torch, array: Array) -> Tensor:
    """A copy with the last dimension first, as numpy makes small ones, and PyTorch large ones.

    PyTorch is fast at it in two dimensions only.
    """
    *outer, last = array.shape
    rows = array.reshape(-1, last)
    if array.size < _LARGE:
        return tensor(torch, rows.T.copy().reshape(last, *outer))
    return tensor(torch, rows).t().contiguous().view(last, *outer)


def _seen_by(images: Array, plan: _ConvolutionPlan, rows: slice) -> tuple[Array, list[int]]:
    """What some rows of places see, and the padding that is still due."""
    where, first = seen_by(rows, plan.windows[0], plan.fits[0], images.shape[1])
    fits = [first, *plan.fits[1:]]
    padding = even_margins(fits)
    if padding is not None:
        return np.ascontiguousarray(images[:, where]), padding
    return pad(images[:, where], fits, 0), [0] * len(fits)
