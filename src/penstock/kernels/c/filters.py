"""Filters, and factors, as the library in C takes them.

In:   arrays of float32.
Out:  the same, in the order in which the library reads them, or how it puts them there itself.
Not:  computes nothing.

What was made of a constant is there as long as the constant, for all who ask: a request may have
its kernels made anew, and its weights are not to be in memory once more for each of them.  It is
made for the second who asks, unless it is large: of what changes with each step, as weights in
training do, nobody asks twice.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from ctypes import addressof
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.kernels.api.constants import is_constant
from penstock.kernels.c.address import address
from penstock.kernels.c.library import Convolution, Packing, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

FLOAT: Final = np.dtype(np.float32)
#: What Winograd's way makes of the nine elements of a window; and filters of its blocks, at most.
_POINTS: Final = 36
_WIDEST_BLOCK: Final = 32
#: Fewer numbers are transformed by one thread.
_SHARED: Final = 1 << 16
#: More numbers are packed for the first work, and kept: to pack them takes long.
_LARGE: Final = 1 << 18

_Make: TypeAlias = Callable[[Array], Array]
#: What was made of constants, by their identities, and who makes it; None if somebody asked once.
#: Each goes when the constant does.  Each access is one operation of the dictionary; of two that
#: are made at once, either will do.
_kept: Final[dict[tuple[int, _Make], tuple[weakref.ref[Array], Array | None]]] = {}


class Factors(NamedTuple):
    """What a work multiplies by; all of it must stay until the work is done."""

    #: As the library reads them; or room for that.
    numbers: Array
    #: How the work itself puts them there, and from where; None if they are there.
    packing: Packing | None = None
    source: Array | None = None

    def give_to(self, work: Convolution) -> None:
        """Have a work use them."""
        work.filters = address(self.numbers)
        work.packing = None if self.packing is None else addressof(self.packing)


def factors_of(filters: Array, *, is_turned: bool = False) -> Factors:
    """Filters, [..., depth, count], or [count, depth] if turned; constants are packed only once."""
    if is_constant(filters):
        pack = _pack_turned if is_turned else _pack
        if filters.size > _LARGE or _is_known(filters, pack):
            return Factors(_made_once(pack, filters))
        _keep(filters, pack, None)
    return _factors_turned(filters) if is_turned else _factors(filters)


def factors_for(factors: Array, depth: int) -> Factors:
    """The same for a batch of factors, [batch, elements, count], which may have any strides.

    Args:
        factors: of float32.
        depth: so many elements come from one pixel.

    """
    with_c = library()
    assert with_c is not None
    batch, elements, count = factors.shape
    size = with_c.packed_bytes(elements, count)
    result = np.empty((batch, size // FLOAT.itemsize), FLOAT)
    packing = Packing(
        filters=address(factors), packed=address(result), packed_step=size,
        batch=batch, elements=elements, depth=depth, count=count,
    )  # fmt: skip
    packing.batch_step, packing.element_step, packing.filter_step = factors.strides
    return Factors(result, packing, factors)


def _factors(filters: Array) -> Factors:
    return factors_for(filters.reshape(1, -1, filters.shape[-1]), filters.shape[-2])


def _factors_turned(filters: Array) -> Factors:
    return factors_for(filters.T[np.newaxis], filters.shape[1])


def transformed(filters: Array) -> Array:
    """What ``winograd.c`` reads for filters, [3, 3, depth, count], or by planes of these."""
    return _made_once(_transform, filters)


def _made_once(make: _Make, filters: Array) -> Array:
    """``make(filters)``, which constants are given only once."""
    known = _kept.get((id(filters), make))
    if known is not None and known[1] is not None and known[0]() is filters:
        return known[1]
    made = make(filters)
    if is_constant(filters):
        _keep(filters, make, made)
    return made


def _is_known(filters: Array, make: _Make) -> bool:
    """Whether somebody has asked for this before."""
    known = _kept.get((id(filters), make))
    return known is not None and known[0]() is filters


def _keep(filters: Array, make: _Make, made: Array | None) -> None:
    key = id(filters), make

    def forget(_gone: Any) -> None:
        _kept.pop(key, None)

    _kept[key] = weakref.ref(filters, forget), made


def _pack(filters: Array) -> Array:
    return _packed_now(_factors(filters))


def _pack_turned(filters: Array) -> Array:
    return _packed_now(_factors_turned(filters))


def _packed_now(factors: Factors) -> Array:
    with_c = library()
    assert with_c is not None
    assert factors.packing is not None
    with_c.pack(factors.packing, contention.helpers(HELPERS))
    return factors.numbers


def _transform(filters: Array) -> Array:
    with_c = library()
    assert with_c is not None
    filters = np.ascontiguousarray(filters)
    *planes, _, _, depth, count = filters.shape
    elements, blocks = math.prod(planes) * depth, -(-count // _WIDEST_BLOCK)
    result = np.empty((blocks, _POINTS, elements, _WIDEST_BLOCK), FLOAT)
    packing = Packing(
        filters=address(filters), packed=address(result),
        elements=elements, depth=depth, count=count,
    )  # fmt: skip
    with_c.transform_filters(packing, contention.helpers(HELPERS) if filters.size >= _SHARED else 0)
    return result
