"""Arrays as the library in C takes them.

In:   arrays of float32.
Out:  where they are in memory; filters, and factors, in the order in which the library reads them.
Not:  keeps no array alive: whoever asks for an address must.

What was made of a constant is there as long as the constant, for all who ask: a request may have
its kernels made anew, and its weights are not to be in memory once more for each of them.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.api.constants import is_constant
from penstock.kernels.c.library import library

FLOAT: Final = np.dtype(np.float32)

#: What was made of constants, by their identities, and whether they were turned; each goes when the
#: constant does.  Each access is one operation of the dictionary; of two that are made at once,
#: either will do.
_kept: Final[dict[tuple[int, bool], tuple[weakref.ref[Array], Array]]] = {}


def address(array: Array) -> int:
    """Where an array's first element is."""
    place: int = array.__array_interface__["data"][0]
    return place


def packed(filters: Array, *, is_turned: bool = False) -> Array:
    """What ``tiles.c`` reads for filters, [..., count], or [count, depth] if they are turned."""
    key = id(filters), is_turned
    known = _kept.get(key)
    if known is not None and known[0]() is filters:
        return known[1]
    made = _packed(filters.T if is_turned else filters)
    if is_constant(filters):

        def forget(_gone: Any) -> None:
            _kept.pop(key, None)

        _kept[key] = weakref.ref(filters, forget), made
    return made


def _packed(filters: Array) -> Array:
    """One block of filters after the other."""
    with_c = library()
    assert with_c is not None
    filters = np.ascontiguousarray(filters)
    count = filters.shape[-1]
    elements = filters.size // count
    result = np.empty(with_c.packed_bytes(elements, count) // FLOAT.itemsize, FLOAT)
    with_c.pack(address(filters), elements, count, address(result))
    return result
