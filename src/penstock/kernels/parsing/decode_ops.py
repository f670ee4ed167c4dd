"""Binary data in strings: raw numbers, and base64.

In:   strings.
Out:  the numbers whose bytes they hold, or strings in another encoding.
Not:  knows no file formats.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.strings import each_string, items_of

#: Base64 with the two characters that may stand in addresses of the web.
_WEB_SAFE: Final = re.compile(rb"[A-Za-z0-9_-]*")


@kernel("EncodeBase64")
def make_encode_base64(attrs: Attrs) -> Kernel:
    """Web-safe base64 of each string, padded on request."""
    if attrs.bool("pad"):
        return each_string(base64.urlsafe_b64encode)
    return each_string(lambda text: base64.urlsafe_b64encode(text).rstrip(b"="))


@kernel("DecodeBase64")
def make_decode_base64(_attrs: Attrs) -> Kernel:
    """What each string says in web-safe base64; padding may be missing, but not be wrong."""
    return each_string(_decode_base64)


def _decode_base64(text: bytes) -> bytes:
    if len(text) % 4 == 1:
        raise InvalidArgumentError("Base64 string length cannot be 1 modulo 4.")
    if len(text) % 4 == 0:
        text = text.removesuffix(b"=").removesuffix(b"=")
    if not _WEB_SAFE.fullmatch(text):
        raise InvalidArgumentError("Invalid character found in base64.")
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def _read(dtype: np.dtype[Any], *, is_little_endian: bool) -> Callable[[bytes], Array]:
    """Make a function that reads numbers from bytes."""
    if dtype.kind == "b":
        return lambda data: np.frombuffer(data, np.uint8) != 0
    if is_little_endian or dtype.itemsize == 1:
        return lambda data: np.frombuffer(data, dtype)
    part = np.dtype(f">u{dtype.itemsize // (2 if dtype.kind == 'c' else 1)}")
    return lambda data: np.frombuffer(data, part).astype(part.newbyteorder("=")).view(dtype)


@kernel("DecodeRaw")
def make_decode_raw(attrs: Attrs) -> Kernel:
    """The bytes of each string as a row of numbers; all strings must be of one length."""
    dtype = attrs.dtype("out_type")
    size = dtype.numpy.itemsize
    read = _read(dtype.numpy, is_little_endian=attrs.bool("little_endian"))

    def decode_raw(value: Value) -> Array:
        items = items_of(value)
        length = len(items[0]) if items else 0
        for at, item in enumerate(items):
            if len(item) != length:
                raise InvalidArgumentError(
                    "DecodeRaw requires input strings to all be the same size, "
                    f"but element {at} has size {length} != {len(item)}"
                )
        if length % size:
            raise InvalidArgumentError(
                f"Input to DecodeRaw has length {length} that is not a multiple of "
                f"{size}, the size of {dtype}"
            )
        return read(b"".join(items)).reshape(*shape_of(value), length // size)

    return decode_raw


@kernel("DecodePaddedRaw")
def make_decode_padded_raw(attrs: Attrs) -> Kernel:
    """Like DecodeRaw, but each string is first cut, or filled up with zeros, to a length."""
    dtype = attrs.dtype("out_type")
    size = dtype.numpy.itemsize
    read = _read(dtype.numpy, is_little_endian=attrs.bool("little_endian"))

    def decode_padded_raw(value: Value, fixed_length: Value) -> Array:
        if shape_of(fixed_length) != ():
            raise InvalidArgumentError(
                f"k must be scalar, got shape {shape_text(shape_of(fixed_length))}"
            )
        length = int(fixed_length)
        if length <= 0:
            raise InvalidArgumentError(f"fixed_length ({length}) must be greater than zero.")
        if length % size:
            raise InvalidArgumentError(
                f"fixed_length ({length}) must be a multiple of the size of out_type ({size})"
            )
        rows = [item[:length].ljust(length, b"\0") for item in items_of(value)]
        return read(b"".join(rows)).reshape(*shape_of(value), length // size)

    return decode_padded_raw
