"""Images of another size, blended along rows and along columns, by the library in C.

In:   images of float32 or uint8, [batch, rows, columns, depth]; how rows and columns are blended.
Out:  images of float32; None where there is no library, or nothing to compute.
Not:  does not know where places take from.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Blend, Resizing, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS
from penstock.kernels.values.arrays import check_new

_BYTE: Final = np.dtype(np.uint8)
#: With fewer numbers no other thread is asked to help; a band has as many, and some rows.
_SHARED: Final = 1 << 15
_BAND: Final = 1 << 13
_FEWEST_ROWS: Final = 8


class Line(NamedTuple):
    """Where the places of a dimension take from: two elements, and a part of the second one."""

    first: Array
    second: Array
    #: Of no meaning where both elements are the same.
    parts: Array

    def of_seen(self) -> tuple[Array, Line]:
        """The elements that are taken from, in order, and the same line among these alone."""
        seen, numbers = np.unique(np.stack([self.first, self.second]), return_inverse=True)
        first, second = numbers.reshape(2, -1)
        return seen, Line(first.copy(), second.copy(), self.parts)

    def in_c(self) -> Blend:
        """The same for the library, as long as this lives."""
        return Blend(address(self.first), address(self.second), address(self.parts))


def line_in_c(sources: Array, parts: Array, before: int) -> Line:
    """For sources [places, 2] of so many elements; none is anywhere else, whatever they say.

    Places of more than 2^24 elements are rounded when they are told in float32.
    """
    first, second = (np.clip(one, 0, before - 1).astype(np.int64) for one in sources.T)
    return Line(first, second, np.ascontiguousarray(parts, np.float32))


def resized(images: Array, by_row: Line, by_column: Line) -> Array | None:
    """Images with as many rows and columns as there are places; None if that is for others."""
    with_c = library()
    if with_c is None or images.dtype not in (FLOAT, _BYTE):
        return None
    batch, image_rows, image_columns, depth = images.shape
    rows, columns = len(by_row.first), len(by_column.first)
    check_new((batch, rows, columns, depth), FLOAT)
    result = np.empty((batch, rows, columns, depth), FLOAT)
    if not result.size or not images.size:
        return None
    images = np.ascontiguousarray(images)
    band = max(_BAND // (columns * depth), _FEWEST_ROWS)
    spare = np.empty((batch * -(-rows // band), 2, columns * depth), FLOAT)
    resizing = Resizing(
        images=address(images), out=address(result), spare=address(spare),
        by_row=by_row.in_c(), by_column=by_column.in_c(),
        batch=batch, image_rows=image_rows, image_columns=image_columns, depth=depth,
        rows=rows, columns=columns, band=band, is_of_bytes=images.dtype == _BYTE,
    )  # fmt: skip
    with_c.resize(resizing, contention.helpers(HELPERS) if result.size >= _SHARED else 0)
    return result
