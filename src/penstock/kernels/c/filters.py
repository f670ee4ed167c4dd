"""Arrays as the library in C takes them.

In:   arrays of float32.
Out:  where they are in memory; filters, and factors, in the order in which the library reads them.
Not:  keeps nothing alive: whoever asks for an address must.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.library import library

FLOAT: Final = np.dtype(np.float32)


def address(array: Array) -> int:
    """Where an array's first element is."""
    place: int = array.__array_interface__["data"][0]
    return place


def packed(filters: Array) -> Array:
    """What ``tiles.c`` reads for filters, [..., count], one block of them after the other."""
    with_c = library()
    assert with_c is not None
    filters = np.ascontiguousarray(filters)
    count = filters.shape[-1]
    elements = filters.size // count
    result = np.empty(with_c.packed_bytes(elements, count) // FLOAT.itemsize, FLOAT)
    with_c.pack(address(filters), elements, count, address(result))
    return result
