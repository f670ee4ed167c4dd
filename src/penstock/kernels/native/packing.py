"""Small results of a program as one, since each array that crosses the border takes long.

In:   values of a program.
Out:  fewer of them; from the arrays that these become, what they stand for.
Not:  knows no XLA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.native.emitter import Emitter, Operand, Traced

#: Bytes of a result that is small: copying them takes less than another array.
_SMALL: Final = 1 << 16
_BYTE: Final = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True)
class _PackedPlace:
    """Where a result is."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    #: Among the packed bytes; or, if that is None, which array it is.
    begin: int | None
    number: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How results are found again."""

    places: tuple[_PackedPlace, ...]

    def unpacked(self, arrays: Sequence[Array]) -> list[Value]:
        """The results, as views of the arrays that came."""
        return [_found(place, arrays) for place in self.places]


def _found(place: _PackedPlace, arrays: Sequence[Array]) -> Value:
    array = arrays[place.number]
    if place.begin is not None:
        count = prod(place.shape)
        end = place.begin + count * place.dtype.itemsize
        array = array[place.begin : end].view(place.dtype)
        return array.reshape(place.shape) if place.shape else array[0]
    return array if place.shape else array[()]


def packed(emitter: Emitter, values: Sequence[Operand]) -> tuple[list[Traced], Layout]:
    """What a program gives instead of some values, and how they are found there."""
    small = [value for value in values if prod(value.shape) * value.dtype.itemsize <= _SMALL]
    small.sort(key=lambda value: -value.dtype.itemsize)  # so that each is aligned
    if len(small) < 2:
        small = []
    places: dict[int, tuple[int | None, int]] = {}
    end = 0
    for value in small:
        places[id(value)] = end, 0
        end += prod(value.shape) * value.dtype.itemsize
    given: list[Operand] = []
    if small:
        given.append(emitter.concatenate([_bytes(emitter, value) for value in small], 0))
    for value in values:
        if id(value) not in places:
            places[id(value)] = None, len(given)
            given.append(value)
    layout = Layout(tuple(_PackedPlace(v.dtype, v.shape, *places[id(v)]) for v in values))
    return [emitter.traced(value) for value in given], layout


def _bytes(emitter: Emitter, value: Operand) -> Operand:
    size = value.dtype.itemsize
    if size == 1:
        turned: Operand = emitter.same("convert", value, dtype=_BYTE)
    else:
        turned = emitter.op("bitcast_convert", [value], _BYTE, [*value.shape, size])
    return emitter.reshape(turned, [prod(value.shape) * size])
