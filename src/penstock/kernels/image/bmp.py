"""BMP files, as TensorFlow reads them: pixels behind a header, and nothing else.

In:   the bytes of a file.
Out:  an image; of one channel, three or four.
Not:  knows no colour tables and no compression: numbers of colours are taken for brightness.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError

_HEADER: Final = 32
_MOST_BYTES: Final = 1 << 30


def decode_bmp(data: bytes, channels: int) -> Array:
    """The image in a file.

    Args:
        data: the file.
        channels: 3 or 4, or 0 for what is there.

    """
    if channels == 1:
        raise InvalidArgumentError(f"`channels` must be 0, 3 or 4 for BMP, but got {channels}")
    if len(data) < _HEADER:
        raise InvalidArgumentError(
            f"Incomplete bmp content, requires at least {_HEADER} bytes to find the header size, "
            f"width, height, and bpp, got {len(data)} bytes"
        )
    start, width, height, bits = struct.unpack_from("<10xi4xiixxh", data)
    own = bits // 8
    row = _check(len(data), start, width, height, own)
    lines = np.frombuffer(data, np.uint8, row * abs(height), start).reshape(abs(height), row)
    image = lines[:, : width * own].reshape(abs(height), width, own)
    if height > 0:
        image = image[::-1]
    return _to_channels(image, channels or own)


def _check(size: int, start: int, width: int, height: int, channels: int) -> int:
    """Raise unless the header fits the file; returns the bytes of a row."""
    if start < 0:
        raise InvalidArgumentError("header size must be nonnegative")
    if channels not in (1, 3, 4):
        raise InvalidArgumentError(
            f"Number of channels inherent in the image must be 1, 3 or 4, was {channels}"
        )
    if width <= 0:
        raise InvalidArgumentError("Width must be positive")
    if height == 0:
        raise InvalidArgumentError("Height must be nonzero")
    row = (width * channels + 3) // 4 * 4
    if width * abs(height) * max(channels, 4) >= _MOST_BYTES:
        raise InvalidArgumentError("Total possible pixel bytes must be less than 2^30")
    excess = size - (start + row * abs(height))
    if excess:
        raise InvalidArgumentError(
            "Input size should match (header_size + row_size * abs_height) but they differ by "
            f"{excess}"
        )
    return row


def _to_channels(image: Array, wanted: int) -> Array:
    """Blue, green and red, or one number, as what is wanted; new ones are opaque."""
    height, width, own = image.shape
    made = np.full((height, width, wanted), 255, np.uint8)
    if own == 1:
        made[:, :, : min(wanted, 3)] = image
        return made
    made[:, :, :3] = image[:, :, 2::-1]
    if own == wanted == 4:
        made[:, :, 3] = image[:, :, 3]
    return made
