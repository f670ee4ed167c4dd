"""Compressed strings, unpacked.

In:   strings.
Out:  strings of the same shape.
Not:  packs nothing.
"""

from __future__ import annotations

import zlib
from typing import Final

from penstock.errors import DataLossError, InvalidArgumentError, UnimplementedError
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.strings import each_string

#: How zlib is told which header to expect.
_WINDOW_BITS: Final = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}


@kernel("DecodeCompressed")
def make_decode_compressed(attrs: Attrs) -> Kernel:
    """What was compressed by zlib or gzip."""
    method = attrs.str("compression_type")
    if not method:
        return lambda value: value
    if method == "ZSTD":
        raise UnimplementedError("compression type ZSTD is not supported here")
    if method not in _WINDOW_BITS:
        raise InvalidArgumentError("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
    bits = _WINDOW_BITS[method]
    return each_string(lambda text: _unpack(text, bits))


def _unpack(text: bytes, bits: int) -> bytes:
    parts: list[bytes] = []
    while text:
        stream = zlib.decompressobj(bits)
        try:
            parts.append(stream.decompress(text) + stream.flush())
        except zlib.error as cause:
            raise DataLossError(f"inflate() failed with {cause}") from cause
        if not stream.eof:
            raise DataLossError("compressed data ends too early")
        text = stream.unused_data if bits > zlib.MAX_WBITS else b""
    return b"".join(parts)
