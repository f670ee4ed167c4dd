"""Large windows that slide over one channel each, as products with Toeplitz matrices.

In:   images, [batch, rows, columns, depth]; weights, [rows, columns, depth], of windows that
      move on by one.
Out:  for each place of the window the sum of its products with the weights; or word that these
      images need another way.
Not:  knows no ops, no windows that jump, no threads.

A column of weights that slides down an image gives products of the image and a matrix that has
these weights along its diagonals.  Most of the matrix is zeros, but BLAS multiplies so much
faster than ``einsum`` that this is the shorter way for large windows.  What the columns of
weights give, each of them at its distance, is added up as a product with ones.  The channels,
which are last in images, are first in all of this.

Products with zeros are zeros only where all numbers are finite: other images are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from penstock.core.values import Array
from penstock.kernels.parallel.products import multiply_into
from penstock.kernels.values.windows import Fit, Window

#: Windows of fewer rows, or of fewer elements, are not worthwhile; nor are images with
#: fewer multiplications for each channel.  All measured.
_LEAST_ROWS: Final = 5
_LEAST_TAPS: Final = 25
_LEAST_WORK: Final = 18_000
#: Rows of places that a matrix gives: for more of them there are more zeros to multiply, for
#: fewer of them the image is read more often.
_HEIGHT: Final = 4
#: Bytes of products that are added up while they are in a cache: measured.
_AT_ONCE: Final = 1 << 20
#: Bytes that caches keep together.
_LINE: Final = 64


def is_worth_it(weights: Array, windows: Sequence[Window], places: int) -> bool:
    """Whether weights that fit in so many places of an image should slide like this."""
    rows, columns, _ = weights.shape
    return (
        rows >= _LEAST_ROWS
        and rows * columns >= _LEAST_TAPS
        and rows * columns * places >= _LEAST_WORK
        and max(window.stride for window in windows) == 1
        and weights.dtype in (np.float32, np.float64)  # what BLAS has
    )


def slide_by_products(
    images: Array, weights: Array, windows: Sequence[Window], fits: Sequence[Fit], out: Array
) -> bool:
    """Write the sums for all places, unless a number of the images is not finite."""
    if not np.isfinite(np.einsum("nhwc->", images)):  # the fastest sum of all
        return False
    above, beside = fits
    _, height, width, depth = images.shape
    down, across = (window.dilation for window in windows)
    matrices = _diagonal(weights, above.places, down)
    tiles = -(-above.places // matrices.gives)
    pitch = beside.before + width + beside.after
    planes = _planes(depth, (tiles - 1) * matrices.gives + matrices.sees, pitch, images.dtype)
    planes[...] = 0
    rows = slice(above.before, above.before + height)
    pixels = planes[:, rows, beside.before : beside.before + width].transpose(1, 2, 0)
    sums = _planes(depth, tiles * matrices.gives, pitch, images.dtype)
    found = sums[:, : above.places, : beside.places].transpose(1, 2, 0)
    for image, place in zip(images, out, strict=True):
        # A copy would follow the memory of the planes; a sum follows that of the image, which
        # takes half of the time.
        np.add(image, images.dtype.type(0), out=pixels)
        _multiply(planes, matrices, across, sums)
        place[...] = found
    return True


class _Matrices(NamedTuple):
    """Each column of weights, along the diagonals of a matrix."""

    #: [depth, columns, rows that it gives, rows that it sees]
    values: Array
    gives: int
    sees: int


def _diagonal(weights: Array, places: int, dilation: int) -> _Matrices:
    """Matrices for about as many rows as are best, which make up so many places."""
    rows, columns, depth = weights.shape
    gives = -(-places // -(-places // _HEIGHT))
    sees = gives + (rows - 1) * dilation
    values = np.zeros((depth, columns, gives, sees), weights.dtype)
    channel, which, row, column = values.strides
    diagonals = as_strided(
        values, (depth, columns, gives, rows), (channel, which, row + column, dilation * column)
    )
    diagonals[...] = weights.transpose(2, 1, 0)[:, :, None]
    return _Matrices(values, gives, sees)


def _planes(depth: int, rows: int, columns: int, dtype: np.dtype[Any]) -> Array:
    """Room for [depth, rows, columns].

    From plane to plane it is an odd number of a cache's lines: the same pixel of all channels
    would else fall on few places of the cache.
    """
    line = _LINE // dtype.itemsize
    lines = -(-rows * columns // line) | 1
    memory = np.empty((depth, lines * line), dtype)
    return memory[:, : rows * columns].reshape(depth, rows, columns)


def _multiply(planes: Array, matrices: _Matrices, dilation: int, sums: Array) -> None:
    """The sums of all channels, some at a time; beside the places they hold anything."""
    depth, _, pitch = planes.shape
    values, gives, sees = matrices
    columns, tiles = values.shape[1], sums.shape[1] // gives
    channel, row, column = planes.strides
    strips = as_strided(
        planes, (depth, tiles, sees, pitch), (channel, gives * row, row, column), writeable=False
    )
    stacked = values.reshape(depth, 1, columns * gives, sees)
    some = max(_AT_ONCE // (tiles * columns * gives * row), 1)
    products = np.empty((min(some, depth), tiles, columns * gives, pitch), sums.dtype)
    # The last pixels of a strip, which are no places, have no product at every distance.
    length = gives * pitch - (columns - 1) * dilation
    channel, tile, row, column = products.strides
    apart = as_strided(
        products,
        (len(products), tiles, columns, length),
        (channel, tile, gives * row + dilation * column, column),
        writeable=False,
    )
    totals = sums.reshape(depth, tiles, 1, gives * pitch)[..., :length]
    ones = np.ones((1, columns), sums.dtype)
    for first in range(0, depth, some):
        part = slice(first, min(first + some, depth))
        count = part.stop - first
        multiply_into(stacked[part], strips[part], products[:count])
        multiply_into(ones, apart[:count], totals[part])
