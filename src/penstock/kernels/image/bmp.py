"""BMP files, as TensorFlow reads them.

In:   a file's bytes.
Out:  an image.
Not:  no palettes, no compression: 8 bits are grey, 24 colours, 32 colours and opacity.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError
from penstock.kernels.values.arrays import check_new

#: Bytes of a file until its depth is known.
_LEAST: Final = 32
_DEPTH_AT: Final = 28
#: TensorFlow reads no image that would take more with opacity.
_MOST_BYTES: Final = 1 << 30


def decode_bmp(data: bytes, channels: int) -> Array:
    """The image in a file.

    Args:
        data: the file.
        channels: 3 or 4, or 0 for what is there.

    Returns:
        Height, width and channels of bytes: red, green, blue, opacity, or grey.

    """
    if len(data) < _LEAST:
        raise InvalidArgumentError(
            f"Incomplete bmp content, requires at least {_LEAST} bytes to find the header "
            f"size, width, height, and bpp, got {len(data)} bytes"
        )
    start, _, width, height = struct.unpack_from("<iiii", data, 10)
    (depth,) = struct.unpack_from("<h", data, _DEPTH_AT)
    given = depth // 8
    if given not in (1, 3, 4):
        raise InvalidArgumentError(
            f"Number of channels inherent in the image must be 1, 3 or 4, was {given}"
        )
    if start < 0:
        raise InvalidArgumentError("header size must be nonnegative")
    if width <= 0:
        raise InvalidArgumentError("Width must be positive")
    if height == 0:
        raise InvalidArgumentError("Height must be nonzero")
    if width * abs(height) * 4 >= _MOST_BYTES:
        raise InvalidArgumentError("Total possible pixel bytes must be less than 2^30")
    line = (8 * given * width + 31) // 32 * 4
    excess = len(data) - (start + line * abs(height))
    if excess:
        raise InvalidArgumentError(
            "Input size should match (header_size + row_size * abs_height) "
            f"but they differ by {excess}"
        )
    lines = np.frombuffer(data, np.uint8, line * abs(height), start).reshape(-1, line)
    image = lines[:, : width * given].reshape(-1, width, given)
    return _in_order(image[::-1] if height > 0 else image, channels or given)


def _in_order(image: Array, wanted: int) -> Array:
    """Red first, as many channels as wanted, opaque where nothing is said."""
    given = image.shape[2]
    if given == wanted == 1:
        return image.copy()
    check_new((*image.shape[:2], wanted), image.dtype)
    out = np.full((*image.shape[:2], wanted), 255, np.uint8)
    out[:, :, :3] = image if given == 1 else image[:, :, 2::-1]
    if given == wanted == 4:
        out[:, :, 3] = image[:, :, 3]
    return out
