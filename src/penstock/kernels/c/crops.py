"""Parts of images, blended out of the four nearest pixels of each place, by the library in C.

In:   images of float32, and where the places of crops are among their rows and columns.
Out:  the crops, rounded where numpy would round; None where there is no library.
Not:  knows no boxes, and checks no place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Along, Crops, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: With fewer numbers no other thread is asked to help.
_SHARED: Final = 1 << 15


class Places(NamedTuple):
    """Places of crops along a dimension, all [crops, places]."""

    #: Neighbours within the dimension, int64.
    lower: Array
    upper: Array
    #: How far it is from the one to the other, float32.
    part: Array
    #: Whether the place is within the dimension.
    is_inside: Array


def crops(
    images: Array, owners: Array, places: tuple[Places, Places], outside: float
) -> Array | None:
    """[crops, rows, columns, depth]; None if that is for others to do.

    Args:
        images: [batch, rows, columns, depth].
        owners: the image of each crop, int32.
        places: where rows of crops are, and columns.
        outside: what places outside of the images have.

    """
    (rows, columns), with_c = places, library()
    if with_c is None or images.dtype is not FLOAT or owners.dtype != np.int32:
        return None
    (count, height), (_, width) = rows.lower.shape, columns.lower.shape
    result = np.empty((count, height, width, images.shape[3]), FLOAT)
    if not result.size:
        return result
    images, owners = np.ascontiguousarray(images), np.ascontiguousarray(owners)
    (by_row, kept), (by_column, also_kept) = _along(rows), _along(columns)
    work = Crops(
        images=address(images), owners=address(owners), out=address(result),
        by_row=by_row, by_column=by_column, count=count, rows=height, columns=width,
        image_rows=images.shape[1], image_columns=images.shape[2], depth=images.shape[3],
        outside=outside,
    )  # fmt: skip
    with_c.crop(work, contention.helpers(HELPERS) if result.size >= _SHARED else 0)
    del kept, also_kept
    return result


def _along(places: Places) -> tuple[Along, list[Array]]:
    """What the library is told of places; and what must live as long as it works."""
    kept: list[Array] = [
        np.ascontiguousarray(places.lower, np.int64),
        np.ascontiguousarray(places.upper, np.int64),
        np.ascontiguousarray(places.part, FLOAT),
        np.ascontiguousarray(places.is_inside, np.bool_),
    ]
    return Along(*[address(each) for each in kept]), kept
