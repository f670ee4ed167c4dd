"""Outputs of kernels, described without keeping them alive.

In:   values.
Out:  what tells type, shape and memory; a tuple of atoms each, made as fast as can be.
Not:  converts nothing: ``read`` does, later and only if somebody asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core.dtypes import of_numpy
from penstock.core.values import DEAD, Ref, Value, dtype_of, shape_of, size_in_bytes

#: Address of the memory, numpy type and shape of an array; address and class of a numpy scalar;
#: address, number of the type, shape and bytes of anything else; None for no value.
Described: TypeAlias = tuple[Any, ...] | None

#: What is kept of one output alone, or of each; the former begins with a number.
Noted: TypeAlias = tuple[Any, ...]

_ARRAY: Final = np.ndarray
_SCALAR: Final = np.generic
#: The classes of nearly all scalars: to look one up takes half as long as ``isinstance``.
_SCALARS: Final = frozenset(
    {np.float32, np.float64, np.int32, np.int64, np.bool_, np.uint8, np.int8, np.int16, np.uint16}
)
_OBJECT: Final = np.dtype(object)


class Seen(NamedTuple):
    """A value that came out of a node."""

    #: What tells its memory from that of others which are alive.
    address: int
    #: The number of its element type in TensorFlow's messages.
    dtype: int
    shape: tuple[int, ...]
    #: Bytes.
    size: int


def described(outputs: Sequence[Value]) -> Noted:
    """What is kept of the outputs of one activation."""
    if len(outputs) == 1:  # nearly always
        value = outputs[0]
        kind = type(value)
        if kind is _ARRAY:
            if value.dtype is not _OBJECT:
                base = value.base
                return id(value if base is None else base), value.dtype, value.shape
        elif kind in _SCALARS:
            return id(value), kind
    return tuple([_described(value) for value in outputs])


def each(noted: Noted | None) -> Sequence[Described]:
    """The outputs that were noted, by slot; none if there were none."""
    if not noted:
        return ()
    return (noted,) if type(noted[0]) is int else noted


def _described(value: Value) -> Described:
    if value is None or value is DEAD:
        return None
    if isinstance(value, Ref):
        value = value.value
        if value is None:
            return None
    if isinstance(value, _SCALAR):
        return id(value), type(value)
    if isinstance(value, _ARRAY) and not value.dtype.hasobject:
        base = value.base
        return id(value if base is None else base), value.dtype, value.shape
    return id(value), dtype_of(value).number, shape_of(value), size_in_bytes(value)


def read(found: tuple[Any, ...]) -> Seen:
    """What was kept, as facts."""
    if len(found) == 2:
        dtype = np.dtype(found[1])
        return Seen(found[0], of_numpy(dtype).number, (), dtype.itemsize)
    if len(found) == 3:
        address, dtype, shape = found
        return Seen(address, of_numpy(dtype).number, shape, dtype.itemsize * math.prod(shape))
    return Seen(*found)
