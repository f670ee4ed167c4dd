"""Gradients of convolutions over two and three spatial dimensions.

In:   gradients of what a convolution gave; the images, or the filters, that it was given; the
      shape of the other.  Channels are last.
Out:  the gradient of the other.
Not:  registers no kernel, checks no shape, and makes no windows.

The gradient of images is itself a convolution, or several if windows have strides.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.kernels.nn.correlation import (
    correlate,
    filter_gradient,
    framed,
    is_few,
    spread_few,
)
from penstock.kernels.nn.depthwise import pieces_for, slide_weights, weight_gradient
from penstock.kernels.nn.stride_phases import SideBySide, StridePhase, side_by_side, ways_along
from penstock.kernels.parallel.image_tiles import in_bands
from penstock.kernels.parallel.products import matrix_product
from penstock.kernels.parallel.strided_copies import put
from penstock.kernels.values.arrays import check_new
from penstock.kernels.values.windows import Fit, Window, cut, pad, tap

_Shape: TypeAlias = tuple[int, ...]
#: Elements of fewer bytes take longer to be put in their places one by one.
_SHORT: Final = 64
#: How many zeros stand around images along each dimension; negative ones take something away.
Margins: TypeAlias = Sequence[tuple[int, int]]
#: Convolves images with margins and filters with dilations, wherever the window fits; puts that
#: where it may, if it is told where.
Convolve: TypeAlias = Callable[[Array, Array, Margins, Sequence[int], "Array | None"], Array]
#: What comes back to elements that are under the windows in some way, along with where to put it.
_SendBack: TypeAlias = "Callable[[Sequence[StridePhase], Array | None], Array]"


def convolve_framed(
    images: Array,
    filters: Array,
    margins: Margins,
    dilations: Sequence[int],
    _into: Array | None = None,
) -> Array:
    """A convolution of the images with zeros around them, in memory of its own."""
    return correlate(framed(images, margins), filters, [1] * len(margins), dilations)


# -- gradients of images ---------------------------------------------------------------------


def input_grad(
    grads: Array,
    filters: Array,
    windows: Sequence[Window],
    shape: _Shape,
    convolve: Convolve = convolve_framed,
) -> Array:
    """What each place got, times the filters, goes back to where the place looked.

    Along a dimension an element of the images is in one of ``stride`` ways under the windows.
    For those that are so in the same way, the gradient is a convolution of what the places
    got, with the filters' elements that meet them, turned around.  Where an element has few
    channels, those that follow each other along the last dimension are computed together.
    """
    check_new(shape, grads.dtype)
    dilations = [w.dilation for w in windows]
    if not grads.size or not prod(shape):
        return np.zeros(shape, grads.dtype)
    if max(w.stride for w in windows) == 1 and is_few(shape, filters.shape):
        return cut(spread_few(grads, filters, dilations), fits_of(windows, shape), shape)
    ways = [
        ways_along(*facts) for facts in zip(windows, shape[1:-1], grads.shape[1:-1], strict=True)
    ]
    if any(way.is_odd for way in itertools.chain(*ways)):
        return _input_grad_by_elements(grads, filters, windows, shape)
    of = _Gradients(grads, filters.swapaxes(-1, -2), dilations, convolve)
    beside = _together(ways[-1], grads, shape[-1])
    if beside is None:
        return _each_way(ways, shape, grads.dtype, of.sent_back)
    rows = functools.partial(of.rows_sent_back, beside=beside, length=shape[-2])
    return _each_way(ways[:-1], shape, grads.dtype, rows)


def _each_way(
    ways: Sequence[Sequence[StridePhase]],
    shape: _Shape,
    dtype: np.dtype[Any],
    sent_back: _SendBack,
) -> Array:
    """What comes back to all elements, some of the ways along each dimension at a time."""
    if all(len(along) == 1 for along in ways):
        return np.ascontiguousarray(sent_back([along[0] for along in ways], None))
    is_all_seen = all(one.taps for one in itertools.chain(*ways))
    result = (np.empty if is_all_seen else np.zeros)(shape, dtype)
    for way in itertools.product(*ways):
        if all(one.taps and one.size for one in way):
            there = result[(slice(None), *(slice(one.first, None, one.stride) for one in way))]
            found = sent_back(way, there)
            if found is not there:
                put(there, found)
    return result


def _together(ways: Sequence[StridePhase], grads: Array, depth: int) -> SideBySide | None:
    """The ways along the last dimension as one, where that is faster and changes nothing."""
    if depth * grads.itemsize >= _SHORT:
        return None
    found = side_by_side(ways, grads.shape[-2])
    # What is not finite makes something of zeros, too.
    if found is None or not found.has_gaps or np.isfinite(np.add.reduce(grads, None)):
        return found
    return None


class _Gradients(NamedTuple):
    """What is sent back by the filters."""

    grads: Array
    #: With what they give before what they see.
    filters: Array
    dilations: Sequence[int]
    convolver: Convolve

    def sent_back(self, ways: Sequence[StridePhase], into: Array | None) -> Array:
        """What comes back to elements that are under the windows in some way."""
        margins = [way.margins for way in ways]
        turned = np.ascontiguousarray(_turned(self.filters, ways))
        return self.convolver(self.grads, turned, margins, self.dilations, into)

    def rows_sent_back(
        self,
        ways: Sequence[StridePhase],
        into: Array | None,
        beside: SideBySide,
        length: int,
    ) -> Array:
        """The same for all elements along the last dimension, of this length."""
        each = [_turned(self.filters, [*ways, way]) for way in beside.ways]
        *outer, _, count, depth = each[0].shape
        shape = (*outer, beside.taps, count, len(each) * depth)
        together = np.zeros(shape, self.filters.dtype)
        for way, begin, own in zip(beside.ways, beside.begins, each, strict=True):
            channels = slice(way.first * depth, (way.first + 1) * depth)
            together[..., begin : begin + way.taps, :, channels] = own
        margins = [*(way.margins for way in ways), beside.margins]
        there = None
        if into is not None and not length % len(each):
            there = into.reshape(*into.shape[:-2], length // len(each), len(each) * depth)
        found = self.convolver(self.grads, together, margins, self.dilations, there)
        if into is not None and found is there:
            return into
        return found.reshape(*found.shape[:-2], -1, depth)[..., :length, :]


def _turned(filters: Array, ways: Sequence[StridePhase]) -> Array:
    """The elements of filters that meet elements in some way, the last one first."""
    some = filters[tuple(slice(way.at, None, way.stride) for way in ways)]
    return np.flip(some, tuple(range(len(ways))))


def _input_grad_by_elements(
    grads: Array, filters: Array, windows: Sequence[Window], shape: _Shape
) -> Array:
    """The same, added up element by element of the windows."""
    depth, count = filters.shape[-2:]
    rows = grads.reshape(prod(grads.shape[:-1]), count)

    def sent_back(element: tuple[int, ...]) -> Array:
        product = matrix_product(rows, filters[element].T)
        return product.reshape(*grads.shape[:-1], depth)

    return _spread(sent_back, windows, shape, grads.dtype)


def depthwise_input_grad(
    grads: Array, filters: Array, windows: Sequence[Window], shape: _Shape
) -> Array:
    """Like ``input_grad``, of filters that each see one channel."""
    depth, multiplier = filters.shape[-2:]
    if multiplier == 1 and grads.size:
        routes = _routes(tuple(windows), shape[1:-1], grads.shape[1:-1])
        if routes is not None:
            return _depthwise_by_ways(grads, filters[..., 0], routes, shape)
    apart = grads.reshape(*grads.shape[:-1], depth, multiplier)

    def sent_back(element: tuple[int, ...]) -> Array:
        return np.asarray(np.einsum("...cm,cm->...c", apart, filters[element]))

    return _spread(sent_back, windows, shape, grads.dtype)


class _Route(NamedTuple):
    """The way back to elements that are under the windows in one way."""

    #: The weights that meet them, turned around.
    weights: tuple[slice, ...]
    #: What they see of the gradients with the margins.
    seen: tuple[slice, ...]
    windows: tuple[Window, ...]
    #: Where they are.
    places: tuple[slice, ...]


class _Routes(NamedTuple):
    """All ways back, and margins that are enough for each of them."""

    margins: list[tuple[int, int]]
    routes: list[_Route]
    #: Whether each element is at the end of one of them.
    is_all_seen: bool


@functools.lru_cache(maxsize=256)
def _routes(windows: tuple[Window, ...], sizes: _Shape, places: _Shape) -> _Routes | None:
    """The ways back to images of these sizes; None if convolutions do not give all of them."""
    along = [ways_along(*facts) for facts in zip(windows, sizes, places, strict=True)]
    if any(way.is_odd for way in itertools.chain(*along)):
        return None
    margins = [_widest(ways) for ways in along]
    routes = [
        _Route(
            # Backwards to the first; before that one there is none.
            tuple(slice(one.at + (one.taps - 1) * one.stride, None, -one.stride) for one in way),
            tuple(map(_seen_along, way, margins, windows)),
            tuple(Window(one.taps, 1, w.dilation) for one, w in zip(way, windows, strict=True)),
            tuple(slice(one.first, None, one.stride) for one in way),
        )
        for way in itertools.product(*along)
        if all(one.taps and one.size for one in way)
    ]
    return _Routes(margins, routes, all(one.taps for one in itertools.chain(*along)))


def _widest(ways: Sequence[StridePhase]) -> tuple[int, int]:
    """Margins that are enough for all ways along a dimension, and never negative."""
    before, after = zip(*(one.margins for one in ways), strict=True)
    return max(0, *before), max(0, *after)


def _seen_along(way: StridePhase, margins: tuple[int, int], window: Window) -> slice:
    """What the way's own margins would have made, of what has wider ones."""
    start = margins[0] - way.margins[0]
    return slice(start, start + way.size + (way.taps - 1) * window.dilation)


def _depthwise_by_ways(grads: Array, weights: Array, routes: _Routes, shape: _Shape) -> Array:
    """Like ``input_grad``, channel by channel."""
    check_new(shape, grads.dtype)
    result = np.empty(shape, grads.dtype) if routes.is_all_seen else np.zeros(shape, grads.dtype)
    batch = len(grads)
    # All ways of some images on each thread: less waiting than all images of each way.
    pieces = pieces_for(grads.size * prod(weights.shape[:2])) if batch > 1 else 1

    def some_images(part: slice, _: slice) -> None:
        wider = framed(grads[part], routes.margins)
        for route in routes.routes:
            seen, some = wider[(slice(None), *route.seen)], weights[route.weights]
            there = result[(part, *route.places)]
            slide_weights(seen, some, route.windows, there, is_alone=pieces > 1)

    in_bands(batch, 1, batch, pieces, some_images)
    return result


def _spread(
    sent_back: Callable[[tuple[int, ...]], Array],
    windows: Sequence[Window],
    shape: _Shape,
    dtype: np.dtype[Any],
) -> Array:
    """Add up what the places send back for each element of the window."""
    fits = fits_of(windows, shape)
    sizes = shape[1:-1]
    outer = [n + fit.before + fit.after for n, fit in zip(sizes, fits, strict=True)]
    padded_shape = (shape[0], *outer, shape[-1])
    check_new(padded_shape, dtype)
    padded = np.zeros(padded_shape, dtype)
    for element, where in _taps(windows, fits):
        padded[where] += sent_back(element)
    return cut(padded, fits, shape)


def fits_of(windows: Sequence[Window], shape: _Shape) -> list[Fit]:
    """How the windows lie on images of a shape, along each dimension."""
    return [w.fit(n) for w, n in zip(windows, shape[1:-1], strict=True)]


def _taps(
    windows: Sequence[Window], fits: Sequence[Fit]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each element of the window, and where the padded images meet it."""
    for element in itertools.product(*(range(w.size) for w in windows)):
        facts = zip(windows, fits, element, strict=True)
        yield element, (slice(None), *(tap(*fact) for fact in facts))


# -- gradients of filters ----------------------------------------------------------------------


def filter_grad(images: Array, grads: Array, windows: Sequence[Window], shape: _Shape) -> Array:
    """What the windows saw times what their places got."""
    padded = pad(images, fits_of(windows, images.shape), 0)
    strides, dilations = [w.stride for w in windows], [w.dilation for w in windows]
    return filter_gradient(padded, grads, shape[:-2], strides, dilations)


def depthwise_filter_grad(
    images: Array, grads: Array, windows: Sequence[Window], shape: _Shape
) -> Array:
    """Like ``filter_grad``, of filters that each see one channel."""
    multiplier = shape[-1]
    if multiplier != 1:
        images = np.repeat(images, multiplier, -1)
    return weight_gradient(images, grads, windows).reshape(shape)
