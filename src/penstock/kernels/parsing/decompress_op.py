"""Compressed strings, unpacked.

In:   strings.
Out:  strings of the same shape.
Not:  packs nothing.
"""

from __future__ import annotations

import zlib
from typing import Final

from penstock.core.memory import available_memory
from penstock.core.unpacking import GZIP, ZLIB, unpack
from penstock.errors import DataLossError, InvalidArgumentError, UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.strings import each_string

_METHODS: Final = {"ZLIB": ZLIB, "GZIP": GZIP}


@kernel("DecodeCompressed")
def make_decode_compressed(attrs: Attrs) -> Kernel:
    """What was compressed by zlib or gzip."""
    name = attrs.str("compression_type")
    if not name:
        return lambda value: value
    if name == "ZSTD":
        raise UnimplementedError("compression type ZSTD is not supported here")
    if name not in _METHODS:
        raise InvalidArgumentError("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
    method = _METHODS[name]
    return each_string(lambda text: _unpacked(text, method))


def _unpacked(text: bytes, method: int) -> bytes:
    try:
        # The bytes are copied once, and half of the memory is left to others.
        found = unpack(text, method, available_memory() // 4, "A compressed string")
    except zlib.error as cause:
        raise DataLossError(f"inflate() failed with {cause}") from cause
    if method == GZIP and found.rest:
        raise DataLossError("inflate() failed with error -3: incorrect header check")
    return bytes(found.data)
