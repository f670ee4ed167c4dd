"""The lines of PNG files, unpacked: filters undone, interlaced images put together.

In:   compressed lines, and what the header says of them (RFC 2083, chapters 2 and 6).
Out:  samples: height, width, channels, as they stand in the file.
Not:  knows neither chunks nor palettes, and scales nothing.

Three filters of five take the pixel to the left, which is itself just undone.  So lines are undone
along diagonals: of all pixels whose row and column have one sum, what is to the left and above is
known, and numpy does them together.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from penstock.core.values import Array

#: How a row may differ from what is to its left, above it, or both.
NONE, SUB, UP, AVERAGE, PAETH = range(5)
#: Where each pass of an interlaced image begins, and how far apart its pixels are: rows, columns.
_PASSES: Final = (
    *((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4)),
    *((2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)),
)


class Layout(NamedTuple):
    """What a header says of its lines."""

    height: int
    width: int
    channels: int
    #: Bits of a sample: 1, 2, 4, 8 or 16.
    depth: int
    is_interlaced: bool


def samples_of(compressed: bytes, layout: Layout) -> Array:
    """All samples, uint16 if they have 16 bits and else uint8.

    Raises:
        ValueError: there are not enough lines, or a filter that there is not.
        zlib.error: the lines are damaged.

    """
    passes = list(_passes(layout))
    sizes = [rows * (1 + _row_bytes(columns, layout)) for _, rows, columns in passes]
    raw = zlib.decompressobj().decompress(compressed, max(1, sum(sizes)))
    if len(raw) < sum(sizes):
        raise ValueError("not enough data")
    kind = np.uint16 if layout.depth == 16 else np.uint8
    image = np.empty((layout.height, layout.width, layout.channels), kind)
    at = 0
    for (places, rows, columns), size in zip(passes, sizes, strict=True):
        lines = np.frombuffer(raw, np.uint8, size, at).reshape(rows, -1)
        image[places] = _unpacked(undone(lines, _step(layout)), columns, layout)
        at += size
    return image


def _passes(layout: Layout) -> Iterator[tuple[tuple[slice, slice], int, int]]:
    """Where the pixels of each pass are, and how many rows and columns it has; none is empty."""
    height, width = layout.height, layout.width
    for row, column, down, across in _PASSES if layout.is_interlaced else ((0, 0, 1, 1),):
        rows, columns = len(range(row, height, down)), len(range(column, width, across))
        if rows and columns:
            yield (slice(row, None, down), slice(column, None, across)), rows, columns


def _step(layout: Layout) -> int:
    """Bytes from a pixel to the next one, at least one."""
    return max(1, layout.channels * layout.depth // 8)


def _row_bytes(columns: int, layout: Layout) -> int:
    return -(-columns * layout.channels * layout.depth // 8)


def _unpacked(rows: Array, columns: int, layout: Layout) -> Array:
    """The samples in rows of bytes."""
    depth = layout.depth
    if depth == 16:
        samples = rows.reshape(len(rows), -1).view(">u2").astype(np.uint16)
    elif depth == 8:
        samples = rows
    else:
        bits = np.unpackbits(rows, axis=1).reshape(len(rows), -1, depth)
        places = np.arange(depth, dtype=np.uint8)[::-1]
        samples = (bits << places).sum(2, np.uint8)[:, : columns * layout.channels]
    return samples.reshape(len(rows), columns, layout.channels)


# -- filters ---------------------------------------------------------------------------


def undone(lines: Array, step: int) -> Array:
    """Rows of bytes, out of lines that begin with the number of their filter."""
    kinds, content = lines[:, 0], lines[:, 1:]
    if kinds.max(initial=0) > PAETH:
        raise ValueError(f"filter {kinds.max()}")
    if kinds.max(initial=0) >= AVERAGE:
        return _along_diagonals(kinds, content, step)
    rows = content.copy()
    above = np.zeros(rows.shape[1], np.uint8)
    for kind, row in zip(kinds.tolist(), rows, strict=True):
        if kind == SUB:
            pixels = row.reshape(-1, step)
            np.cumsum(pixels, axis=0, dtype=np.uint8, out=pixels)
        elif kind == UP:
            row += above
        above = row
    return rows


def _along_diagonals(kinds: Array, content: Array, step: int) -> Array:
    """The same for all filters; a diagonal after the other."""
    height, size = content.shape
    width = size // step
    # A margin of zeros above and to the left; row by row, a column later.
    known = np.zeros((height + 1, width + 1, step), np.int16)
    given = content.reshape(height, width, step)
    by_row = kinds[:, np.newaxis]
    is_sub, is_up = by_row == SUB, by_row == UP
    is_average, is_paeth = by_row == AVERAGE, by_row == PAETH
    everything = np.arange(height)
    for diagonal in range(height + width - 1):
        first, last = max(0, diagonal - width + 1), min(height, diagonal + 1)
        rows = everything[first:last]
        columns = diagonal - rows
        left, up = known[rows + 1, columns], known[rows, columns + 1]
        corner = known[rows, columns]
        here = slice(first, last)
        guess = left * is_sub[here] + up * is_up[here]
        guess += ((left + up) >> 1) * is_average[here]
        guess += paeth(left, up, corner) * is_paeth[here]
        known[rows + 1, columns + 1] = (given[rows, columns] + guess) & 0xFF
    return known[1:, 1:].astype(np.uint8).reshape(height, size)


def paeth(left: Array, up: Array, corner: Array) -> Array:
    """Whichever of the three is nearest to ``left + up - corner``."""
    to_left, to_up = np.abs(up - corner), np.abs(left - corner)
    to_corner = np.abs(left + up - 2 * corner)
    nearest: Array = np.where(to_up <= to_corner, up, corner)
    return np.where((to_left <= to_up) & (to_left <= to_corner), left, nearest)
