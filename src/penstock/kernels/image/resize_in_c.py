"""Whole images of other sizes, by the library in C.

In:   images of any real type, [batch, rows, columns, depth]; how rows and columns are blended.
Out:  images of float32; None where there is no library, or nothing to compute.
Not:  registers no kernel.
"""

from __future__ import annotations

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.resizing import Line, line_in_c, resized
from penstock.kernels.c.weighing import weighed
from penstock.kernels.image.resize_methods import Blend, Method


def line_by(method: Method, before: int, after: int) -> Line:
    """How a dimension of so many elements is blended to another one, from two each."""
    by = method(before, after)
    return line_in_c(by.sources, by.weights[:, 1], before)


def resized_in_c(images: Array, by_row: Line, by_column: Line) -> Array | None:
    """Blended from two rows and columns; of most types, only rows that are seen are converted."""
    if images.dtype not in (np.float32, np.uint8):
        seen, by_row = by_row.of_seen()
        images = (images if len(seen) == images.shape[1] else images[:, seen]).astype(np.float32)
    return resized(images, by_row, by_column)


def weighed_in_c(images: Array, by_row: Blend, by_column: Blend) -> Array | None:
    """Blended from any number of rows and columns."""
    rows = weighed(images.astype(np.float32, copy=False), 1, *by_row)
    return None if rows is None else weighed(rows, 2, *by_column)
