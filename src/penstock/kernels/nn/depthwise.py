"""Sums of products of windows and weights, channel by channel.

In:   images, [batch, rows, columns, depth]; weights, [rows, columns, depth] of a window; or
      images and what is sent back to each place.
Out:  for each place of the window the sum of its products with the weights; or the products'
      gradients.
Not:  knows no ops, no types but floating ones, no order of dimensions but this.

Large windows that move by one go by ``toeplitz``, unless that refuses the images.  For others
the weights are repeated for the places of a row, so that numpy sees long runs of memory
however few the channels are.  Where windows jump along a row, the columns are sorted by their
place in the jump first, and neighbouring places see neighbouring columns of each sort.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod
from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from penstock.core.values import Array
from penstock.kernels.nn.toeplitz import is_worth_it, slide_by_products
from penstock.kernels.parallel.image_tiles import PIECES, Band, in_bands
from penstock.kernels.values.windows import Fit, Window, seen_by

#: Bytes of images that are worked on at a time: measured.
_AT_ONCE: Final = 1 << 22
#: With fewer multiplications it is not worthwhile to wake other threads.
_SHARED: Final = 1 << 19
#: Elements of a row that weights are repeated for.
_RUN: Final = 1 << 14


def slide_weights(
    images: Array,
    weights: Array,
    windows: Sequence[Window],
    out: Array | None = None,
    *,
    is_alone: bool = False,
) -> Array:
    """The sum of each window times the weights, perhaps into an array, and on this thread."""
    fits = _fits(images, windows)
    shape = (len(images), fits[0].places, fits[1].places, images.shape[3])
    result = np.empty(shape, images.dtype) if out is None else out
    if not result.size:
        return result
    run = max(_RUN // max(images.shape[3], 1), 1) * images.shape[3]
    spread = _spread(weights, min(run, fits[1].places * images.shape[3]))
    is_large = is_worth_it(weights, windows, prod(shape[1:3]))

    def some(part: slice, rows: slice) -> None:
        place = result[part, rows]
        if is_large:
            where, above = seen_by(rows, windows[0], fits[0], images.shape[1])
            if slide_by_products(images[part, where], weights, windows, (above, fits[1]), place):
                return
        follows = place[:1].flags.c_contiguous  # one column on the other
        flat = (place if follows else np.empty(place.shape, place.dtype)).reshape(
            *place.shape[:2], -1
        )
        terms = _seen(images[part], windows, fits, rows)
        for first in range(0, flat.shape[2], run):
            _add_up(terms, spread, flat[:, :, first : first + run], first)
        if not follows:
            place[...] = flat.reshape(place.shape)

    work = 0 if is_alone else result.size * prod(weights.shape[:2])
    _in_bands(images, fits[0].places, work, some)
    return result


def weight_gradient(images: Array, grads: Array, windows: Sequence[Window]) -> Array:
    """The gradient of weights: what they saw, times what the place got, over all places."""
    fits, found = _fits(images, windows), dict[tuple[int, int], Array]()

    def some(part: slice, rows: slice) -> None:
        sent = grads[part, rows]
        found[part.start, rows.start] = _sum_over_places(
            _seen(images[part], windows, fits, rows), sent, windows
        )

    sizes = [window.size for window in windows]
    total = np.zeros((*sizes, images.shape[3]), images.dtype)
    if grads.size and images.size:
        _in_bands(images, grads.shape[1], grads.size * prod(sizes), some)
    for place in sorted(found):  # whatever was ready first, the sum is the same
        total += found[place]
    return total


def pieces_for(work: int) -> int:
    """Into how many pieces to cut so many multiplications."""
    return PIECES if work >= _SHARED else 1


def _fits(images: Array, windows: Sequence[Window]) -> list[Fit]:
    return [w.fit(n) for w, n in zip(windows, images.shape[1:3], strict=True)]


def _in_bands(images: Array, rows: int, work: int, some: Band) -> None:
    row_bytes = max(images[:1, :1].nbytes * images.shape[1] // max(rows, 1), 1)
    in_bands(len(images), rows, _AT_ONCE // row_bytes, pieces_for(work), some)


class _Term(NamedTuple):
    """What some elements of the windows' rows see in all places."""

    elements: slice
    #: [batch, rows, rows of the window, elements, columns * depth]
    seen: Array


def _seen(
    images: Array, windows: Sequence[Window], fits: Sequence[Fit], rows: slice
) -> list[_Term]:
    """What some rows of places see, by the sorts of columns."""
    where, above = seen_by(rows, windows[0], fits[0], images.shape[1])
    columns = _sorted_columns(images[:, where], windows[1].stride, (above, fits[1]))
    batch, row, _, column, unit = columns.strides
    tall, wide = windows
    width = fits[1].places * columns.shape[4]
    terms = []
    for elements, at in _sorts(wide):
        shape = (len(images), above.places, tall.size, len(range(wide.size)[elements]), width)
        step = wide.dilation * (elements.step or 1) // wide.stride * column
        strides = (batch, row * tall.stride, row * tall.dilation, step, unit)
        start = columns[:, :, at % wide.stride, at // wide.stride :]
        terms.append(_Term(elements, as_strided(start, shape, strides, writeable=False)))
    return terms


def _sorts(window: Window) -> Iterator[tuple[slice, int]]:
    """Elements of a window that meet columns of one sort, and the first column they meet."""
    period = window.stride // gcd(window.stride, window.dilation)
    for first in range(min(period, window.size)):
        yield slice(first, None, period), first * window.dilation


def _sorted_columns(images: Array, jump: int, fits: Sequence[Fit]) -> Array:
    """The images with padding, as [batch, rows, jump, columns / jump, depth]."""
    above, beside = fits
    batch, height, width, depth = images.shape
    is_padded = any(fit.before or fit.after for fit in fits)
    if jump == 1 and not is_padded and images[0, 0].flags.c_contiguous:
        return images[:, :, None]
    outer = above.before + height + above.after, beside.before + width + beside.after
    result = np.empty((batch, outer[0], jump, -(-outer[1] // jump), depth), images.dtype)
    result[:, : above.before] = 0
    result[:, above.before + height :] = 0
    rows = result[:, above.before : above.before + height]
    for way in range(jump):
        first = max(-(-(beside.before - way) // jump), 0)
        columns = images[:, :, first * jump + way - beside.before :: jump]
        last = first + columns.shape[2]
        rows[:, :, way, :first] = 0
        rows[:, :, way, first:last] = columns
        rows[:, :, way, last:] = 0
    return result


def _spread(weights: Array, run: int) -> Array:
    """The weights, repeated for as many places as there are in a run."""
    rows, columns, depth = weights.shape
    spread = np.empty((rows, columns, run // max(depth, 1), depth), weights.dtype)
    spread[...] = weights[:, :, None]
    return spread.reshape(rows, columns, run)


def _add_up(terms: Sequence[_Term], weights: Array, result: Array, first: int) -> None:
    """Sums of products in a run of columns, which begins at one of them."""
    run = slice(first, first + result.shape[2])
    for number, (elements, seen) in enumerate(terms):
        some = weights[:, elements, : result.shape[2]]
        if number == 0:
            np.einsum("nhijx,ijx->nhx", seen[..., run], some, out=result)
        else:
            result += np.einsum("nhijx,ijx->nhx", seen[..., run], some)


def _sum_over_places(terms: Sequence[_Term], grads: Array, windows: Sequence[Window]) -> Array:
    """The gradients of the weights from some rows of places."""
    count, rows, columns, depth = grads.shape
    sent = grads.reshape(count, rows, columns * depth)
    result = np.empty((windows[0].size, windows[1].size, depth), grads.dtype)
    for elements, seen in terms:
        products = np.einsum("nhijx,nhx->ijx", seen, sent)
        apart = products.reshape(*products.shape[:2], columns, depth)
        np.add.reduce(apart, 2, out=result[:, elements])
    return result
