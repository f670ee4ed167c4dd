"""Sums of products of windows and filters: what convolutions and their gradients are made of.

In:   images, [batch, sizes..., depth]; filters, [window sizes..., depth, count]; or images and
      what is sent back to each place.
Out:  for each place of the window its product with each filter, or the products' gradients.
Not:  knows no padding by name, no layouts, no ops.

Three ways to lay out windows as matrices, each where it copies least:

- in every place: along the last spatial dimension only, so that an element is copied as often
  as a window is wide, and one product for each of the other elements of a window;
- with strides: whole windows, which then overlap little;
- of few channels: an element of the window is a row, so that copies are made in long runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from penstock.core.values import Array
from penstock.kernels.parallel.image_tiles import PIECES, Band, in_bands
from penstock.kernels.parallel.intra_op import parallel_for
from penstock.kernels.parallel.products import multiply_into
from penstock.kernels.parallel.strided_copies import gathered

_Sizes: TypeAlias = Sequence[int]
#: Images of fewer channels than this are laid out by elements of the window.
_FEW: Final = 5
#: Bytes that are laid out at a time.
_AT_ONCE: Final = 4 << 20
#: With fewer multiplications it is not worthwhile to wake other threads (see ``products``).
_SHARED: Final = 1 << 24
#: Filters that a thread has at least, and multiples of which it has.
_NARROWEST: Final = 16


def framed(images: Array, margins: Sequence[tuple[int, int]]) -> Array:
    """The images with zeros around them; negative margins take something away."""
    kept = tuple(
        slice(max(-a, 0), n - max(-b, 0))
        for (a, b), n in zip(margins, images.shape[1:], strict=False)
    )
    images = images[(slice(None), *kept)]
    wider = [(max(a, 0), max(b, 0)) for a, b in margins]
    if not any(map(any, wider)):
        return images
    sizes = images.shape[1:-1]
    outer = [a + n + b for (a, b), n in zip(wider, sizes, strict=True)]
    result = np.zeros((len(images), *outer, images.shape[-1]), images.dtype)
    inside = tuple(slice(a, a + n) for (a, _), n in zip(wider, sizes, strict=True))
    result[(slice(None), *inside)] = images
    return result


def correlate(images: Array, filters: Array, strides: _Sizes, dilations: _Sizes) -> Array:
    """The sum of each window times each filter, wherever the window fits."""
    if is_few(images.shape, filters.shape):
        return _correlate_few(images, filters, strides, dilations)
    if max(strides) > 1:
        return _correlate_apart(images, filters, strides, dilations)
    return _correlate_dense(images, filters, dilations)


def filter_gradient(
    images: Array, grads: Array, sizes: _Sizes, strides: _Sizes, dilations: _Sizes
) -> Array:
    """The gradient of the filters: each element of a window times what its place got."""
    if is_few(images.shape, sizes):
        return _filter_gradient_few(images, grads, sizes, strides, dilations)
    if max(strides) > 1:
        return _filter_gradient_apart(images, grads, sizes, strides, dilations)
    return _filter_gradient_dense(images, grads, sizes, dilations)


def is_few(images: _Sizes, sizes: _Sizes) -> bool:
    """Whether images of this shape are laid out by elements of windows of these sizes."""
    return len(images) == 4 and images[-1] < _FEW and sizes[0] * sizes[1] > 1


# -- in every place ----------------------------------------------------------------------------


def _correlate_dense(images: Array, filters: Array, dilations: _Sizes) -> Array:
    *sizes, depth, count = filters.shape
    places = _places(images.shape[1:-1], sizes, dilations)
    result = np.empty((len(images), *places, count), images.dtype)
    if not result.size:
        return result
    work = result.size * prod(sizes) * depth
    if _is_wide(result, work) and images.nbytes * sizes[-1] <= _AT_ONCE:
        _correlate_wide(images, filters, dilations, result)
        return result

    def some(part: slice, rows: slice) -> None:
        seen = slice(rows.start, rows.stop + (sizes[0] - 1) * dilations[0])
        laid_out = _along_last(images[part, seen], sizes[-1], dilations[-1])
        _correlate_part(laid_out, filters, dilations, result[part, rows])

    row_bytes = images[:1, :1].nbytes * sizes[-1]
    _in_parts(len(images), places[0], row_bytes, work, some)
    return result


def _is_wide(result: Array, work: int) -> bool:
    """Whether there are far more filters than places, and enough to do for several threads."""
    count = result.shape[-1]
    is_enough = work >= _SHARED and count >= PIECES * _NARROWEST
    return PIECES > 1 and is_enough and 2 * result.size <= count**2


def _correlate_wide(images: Array, filters: Array, dilations: _Sizes, result: Array) -> None:
    """Each thread has some of the filters: the larger factor is read by one of them only."""
    size, count = filters.shape[-3], filters.shape[-1]
    laid_out = _along_last(images, size, dilations[-1])
    step = -(-count // (PIECES * _NARROWEST)) * _NARROWEST

    def some(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        _correlate_part(laid_out, filters[..., part], dilations, result[..., part])

    parallel_for(-(-count // step), some)


def _places(lengths: _Sizes, sizes: _Sizes, dilations: _Sizes) -> list[int]:
    facts = zip(lengths, sizes, dilations, strict=True)
    return [max(n - (size - 1) * dilation, 0) for n, size, dilation in facts]


def _in_parts(batch: int, rows: int, row_bytes: int, work: int, do: Band) -> None:
    """Do what there is to do for all images and rows, in parts that fit into the cache."""
    in_bands(batch, rows, _AT_ONCE // max(row_bytes, 1), PIECES if work >= _SHARED else 1, do)


def _correlate_part(laid_out: Array, filters: Array, dilations: _Sizes, result: Array) -> None:
    *sizes, depth, count = filters.shape
    total = _merged(result)
    term: Any = None
    for element in itertools.product(*map(range, sizes[:-1])):
        seen = _seen(laid_out, element, dilations, result.shape[1:-1])
        matrix = filters[element].reshape(sizes[-1] * depth, count)
        if term is None:
            multiply_into(seen, matrix, total)
            term = np.empty_like(total) if prod(sizes[:-1]) > 1 else total
        else:
            multiply_into(seen, matrix, term)
            np.add(total, term, out=total)


def _along_last(images: Array, size: int, dilation: int) -> Array:
    """Windows along the last spatial dimension: [batch, sizes..., places, size * depth]."""
    *outer, length, depth = images.shape
    places = length - (size - 1) * dilation
    if size == 1:
        return images
    *steps, step, unit = images.strides
    if dilation == 1 and step == depth * unit:
        shape, strides = (*outer, places, size * depth), (*steps, step, unit)
        # Overlapping rows may well be a view, but products of matrices need them apart.
        return np.ascontiguousarray(gathered(as_strided(images, shape, strides, writeable=False)))
    view = as_strided(
        images,
        (*outer, places, size, depth),
        (*steps, step, step * dilation, unit),
        writeable=False,
    )
    return np.ascontiguousarray(view.reshape(*outer, places, size * depth))


def _merged(images: Array) -> Array:
    """With the last two spatial dimensions as one; a view."""
    *outer, rows, columns, depth = images.shape
    if len(outer) == 0:  # one spatial dimension
        return images
    return images.reshape(*outer, rows * columns, depth)


def _seen(laid_out: Array, element: _Sizes, dilations: _Sizes, places: _Sizes) -> Array:
    """What all places see at an element of the window, over all but the last dimension."""
    facts = zip(element, dilations, places, strict=False)
    starts = [(at * dilation, count) for at, dilation, count in facts]
    return _merged(laid_out[(slice(None), *(slice(a, a + n) for a, n in starts))])


def _filter_gradient_dense(images: Array, grads: Array, sizes: _Sizes, dilations: _Sizes) -> Array:
    def of_part(part: slice, rows: slice) -> Array:
        seen = slice(rows.start, rows.stop + (sizes[0] - 1) * dilations[0])
        return _filter_gradient_part(images[part, seen], grads[part, rows], sizes, dilations)

    row_bytes = images[:1, :1].nbytes * sizes[-1]
    return _summed(images, grads, sizes, row_bytes, of_part)


def _summed(
    images: Array,
    grads: Array,
    sizes: _Sizes,
    row_bytes: int,
    of_part: Callable[[slice, slice], Array],
) -> Array:
    """The gradient of filters as the sum of what comes from parts of the images."""
    total = np.zeros((*sizes, images.shape[-1], grads.shape[-1]), images.dtype)
    found: dict[tuple[int, int], Array] = {}

    def take(part: slice, rows: slice) -> None:
        found[part.start, rows.start] = of_part(part, rows)

    if grads.size and total.size:
        work = grads.size * prod(sizes) * images.shape[-1]
        _in_parts(len(images), grads.shape[1], row_bytes, work, take)
    for place in sorted(found):  # whatever was ready first, the sum is the same
        total += found[place].reshape(total.shape)
    return total


def _filter_gradient_part(images: Array, grads: Array, sizes: _Sizes, dilations: _Sizes) -> Array:
    depth, count = images.shape[-1], grads.shape[-1]
    laid_out, sent = _along_last(images, sizes[-1], dilations[-1]), _merged(grads)
    result = np.empty((*sizes, depth, count), images.dtype)
    for element in itertools.product(*map(range, sizes[:-1])):
        seen = _seen(laid_out, element, dilations, grads.shape[1:-1])
        products = _products(seen.swapaxes(-1, -2), sent)
        np.add.reduce(products.reshape(-1, sizes[-1], depth, count), 0, out=result[element])
    return result


def _products(x: Array, y: Array) -> Array:
    """The products of matrices in pairs."""
    result = np.empty((*x.shape[:-1], y.shape[-1]), x.dtype)
    multiply_into(x, y, result)
    return result


# -- with strides ------------------------------------------------------------------------------


def _correlate_apart(images: Array, filters: Array, strides: _Sizes, dilations: _Sizes) -> Array:
    *sizes, depth, count = filters.shape
    places = _places_apart(images.shape[1:-1], sizes, strides, dilations)
    result = np.empty((len(images), *places, count), images.dtype)
    if not result.size:
        return result
    matrix = filters.reshape(prod(sizes) * depth, count)

    def some(part: slice, rows: slice) -> None:
        out = result[part, rows]
        laid_out = _windows(images[part], sizes, strides, dilations, (rows, *places[1:]))
        multiply_into(laid_out, matrix, out.reshape(len(out), -1, count))

    row_bytes = prod(places[1:]) * len(matrix) * images.itemsize
    _in_parts(len(images), places[0], row_bytes, result.size * len(matrix), some)
    return result


def _filter_gradient_apart(
    images: Array, grads: Array, sizes: _Sizes, strides: _Sizes, dilations: _Sizes
) -> Array:
    def of_part(part: slice, rows: slice) -> Array:
        sent = grads[part, rows]
        laid_out = _windows(images[part], sizes, strides, dilations, (rows, *grads.shape[2:-1]))
        sent = sent.reshape(len(sent), -1, sent.shape[-1])
        total: Array = np.add.reduce(_products(laid_out.swapaxes(1, 2), sent), 0)
        return total

    row_bytes = prod(grads.shape[2:-1]) * prod(sizes) * images.shape[-1] * images.itemsize
    return _summed(images, grads, sizes, row_bytes, of_part)


def _windows(
    images: Array,
    sizes: _Sizes,
    strides: _Sizes,
    dilations: _Sizes,
    there: tuple[Any, ...],
) -> Array:
    """[batch, places, elements of a window]; of the first dimension's places some only."""
    rows, *places = there
    batch, *steps, unit = images.strides
    view = as_strided(
        images[:, rows.start * strides[0] :],
        (len(images), rows.stop - rows.start, *places, *sizes, images.shape[-1]),
        (
            batch,
            *(step * stride for step, stride in zip(steps, strides, strict=True)),
            *(step * dilation for step, dilation in zip(steps, dilations, strict=True)),
            unit,
        ),
        writeable=False,
    )
    count = (rows.stop - rows.start) * prod(places)
    return view.reshape(len(images), count, prod(sizes) * images.shape[-1])


def _places_apart(lengths: _Sizes, sizes: _Sizes, strides: _Sizes, dilations: _Sizes) -> list[int]:
    dense = _places(lengths, sizes, dilations)
    return [-(-n // stride) for n, stride in zip(dense, strides, strict=True)]


# -- few channels ------------------------------------------------------------------------------


def _correlate_few(images: Array, filters: Array, strides: _Sizes, dilations: _Sizes) -> Array:
    rows, columns, depth, count = filters.shape
    places = _places_apart(images.shape[1:3], (rows, columns), strides, dilations)
    result = np.empty((len(images), *places, count), images.dtype)
    if not result.size:
        return result
    matrix = filters.reshape(rows * columns * depth, count)

    def some(part: slice, there: slice) -> None:
        height = there.stop - there.start
        laid_out = _planes(images[part], (rows, columns), strides, dilations, (there, places[1]))
        out = result[part, there].reshape(-1, height * places[1], count)
        multiply_into(laid_out.swapaxes(1, 2), matrix, out)

    row_bytes = places[1] * len(matrix) * images.itemsize
    _in_parts(len(images), places[0], row_bytes, result.size * len(matrix), some)
    return result


def _filter_gradient_few(
    images: Array, grads: Array, sizes: _Sizes, strides: _Sizes, dilations: _Sizes
) -> Array:
    def of_part(part: slice, rows: slice) -> Array:
        laid_out = _planes(images[part], sizes, strides, dilations, (rows, grads.shape[2]))
        sent = grads[part, rows].reshape(len(laid_out), -1, grads.shape[-1])
        total: Array = np.add.reduce(_products(laid_out, sent), 0)
        return total

    row_bytes = grads.shape[2] * prod(sizes) * images.shape[-1] * images.itemsize
    return _summed(images, grads, sizes, row_bytes, of_part)


def _planes(
    images: Array, sizes: _Sizes, strides: _Sizes, dilations: _Sizes, there: tuple[slice, int]
) -> Array:
    """What an element of the window sees of a channel in all places, as a row of a matrix."""
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    (rows, width), (batch, channel, row, column) = there, planes.strides
    height = rows.stop - rows.start
    view = as_strided(
        planes[:, :, rows.start * strides[0] :],
        (len(images), *sizes, images.shape[-1], height, width),
        (
            *(batch, row * dilations[0], column * dilations[1], channel),
            *(row * strides[0], column * strides[1]),
        ),
        writeable=False,
    )
    return gathered(view).reshape(len(images), prod(sizes) * images.shape[-1], height * width)


def spread_few(grads: Array, filters: Array, dilations: _Sizes) -> Array:
    """The gradient of images of few channels, of two dimensions, from windows in every place."""
    rows, columns, depth, count = filters.shape
    batch, height, width, _ = grads.shape
    outer = (height + (rows - 1) * dilations[0], width + (columns - 1) * dilations[1])
    result = np.zeros((batch, depth, *outer), grads.dtype)
    if not grads.size:
        return result.transpose(0, 2, 3, 1)
    matrix = filters.reshape(rows * columns * depth, count)

    def some(part: slice, _: slice) -> None:
        sent = grads[part].reshape(-1, height * width, count).swapaxes(1, 2)
        back = np.empty((len(sent), len(matrix), height * width), grads.dtype)
        multiply_into(matrix, sent, back)
        planes = back.reshape(len(sent), rows, columns, depth, height, width)
        for i, j in itertools.product(range(rows), range(columns)):
            y, x = i * dilations[0], j * dilations[1]
            result[part, :, y : y + height, x : x + width] += planes[:, i, j]

    row_bytes = height * width * len(matrix) * grads.itemsize
    _in_parts(batch, 1, row_bytes, grads.size * len(matrix), some)
    return result.transpose(0, 2, 3, 1)
