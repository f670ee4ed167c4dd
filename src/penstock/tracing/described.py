"""Outputs of kernels, described without keeping them alive.

In:   values.
Out:  what tells type, shape and memory; a tuple of atoms each, made as fast as can be.
Not:  converts nothing: ``read`` does, later and only if somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core.dtypes import of_numpy
from penstock.core.values import DEAD, Ref, Value, dtype_of, shape_of, size_in_bytes

#: Address of the memory, numpy type, shape and bytes of an array; address and class of a numpy
#: scalar; address, number of the type, shape and bytes of anything else; None for no value.
Described: TypeAlias = tuple[Any, ...] | None

_ARRAY: Final = np.ndarray
_SCALAR: Final = np.generic


class Seen(NamedTuple):
    """A value that came out of a node."""

    #: What tells its memory from that of others which are alive.
    address: int
    #: The number of its element type in TensorFlow's messages.
    dtype: int
    shape: tuple[int, ...]
    #: Bytes.
    size: int


def described(outputs: Sequence[Value]) -> tuple[Described, ...]:
    """What is kept of the outputs of one activation."""
    if len(outputs) == 1:  # nearly always
        value = outputs[0]
        if type(value) is _ARRAY:
            dtype = value.dtype
            if not dtype.hasobject:
                base = value.base
                return ((id(value if base is None else base), dtype, value.shape, value.nbytes),)
        elif isinstance(value, _SCALAR):
            return ((id(value), type(value)),)
    return tuple([_described(value) for value in outputs])


def _described(value: Value) -> Described:
    if value is None or value is DEAD:
        return None
    if isinstance(value, _SCALAR):
        return id(value), type(value)
    if isinstance(value, Ref):
        value = value.value
        if value is None:
            return None
    if isinstance(value, _ARRAY) and not value.dtype.hasobject:
        base = value.base
        return id(value if base is None else base), value.dtype, value.shape, value.nbytes
    return id(value), dtype_of(value).number, shape_of(value), size_in_bytes(value)


def read(found: tuple[Any, ...]) -> Seen:
    """What was kept, as facts."""
    if len(found) == 2:
        dtype = np.dtype(found[1])
        return Seen(found[0], of_numpy(dtype).number, (), dtype.itemsize)
    address, dtype, shape, size = found
    number = dtype if isinstance(dtype, int) else of_numpy(dtype).number
    return Seen(address, number, shape, size)
