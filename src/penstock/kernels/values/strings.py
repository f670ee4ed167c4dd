"""String values, element by element.

In:   strings of any rank, and what to do with one.
Out:  values of the same shape.
Not:  registers no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from penstock.core.values import Array, Value, as_value
from penstock.kernels.api.registry import Kernel


def each_string(convert: Callable[[bytes], bytes]) -> Kernel:
    """A kernel that turns every string of its input into another string."""

    def compute(value: Value) -> Value:
        if isinstance(value, bytes):
            return convert(value)
        return as_value(string_array(map(convert, value.flat), value.shape))

    return compute


def each_to_number(convert: Callable[[bytes], Any], dtype: np.dtype[Any]) -> Kernel:
    """A kernel that turns every string of its input into a number."""

    def compute(value: Value) -> Value:
        if isinstance(value, bytes):
            return dtype.type(convert(value))
        numbers = np.array([convert(item) for item in value.flat], dtype)
        return as_value(numbers.reshape(value.shape))

    return compute


def string_array(items: Iterable[bytes], shape: tuple[int, ...]) -> Array:
    """An array of these strings; there must be as many as the shape has room for."""
    listed = list(items)
    flat = np.empty(len(listed), object)
    flat[:] = listed
    return flat.reshape(shape)


def items_of(value: Value) -> list[bytes]:
    """All strings of a value, in order."""
    return [value] if isinstance(value, bytes) else list(value.flat)


def character_starts(text: bytes) -> list[int]:
    """Where the characters of UTF-8 text begin; bytes that continue one begin none."""
    return [at for at, byte in enumerate(text) if byte & 0xC0 != 0x80]
