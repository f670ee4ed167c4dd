"""WebP files.

In:   a file's bytes.
Out:  its frames.
Not:  decompresses nothing itself: Pillow does.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError
from penstock.kernels.image.pillow_files import opened, pixels_of
from penstock.kernels.values.arrays import check_new

#: Bits of the extended header.
_HAS_MOTION, _HAS_OPACITY = 0x02, 0x10
#: Of a header without losses: the bit that says whether there is opacity.
_LOSSLESS_OPACITY: Final = 0x10
_MODES: Final = {3: "RGB", 4: "RGBA"}


def decode_webp(data: bytes, channels: int) -> Array:
    """All frames: their number, height, width, channels.

    Args:
        data: the file.
        channels: 3 or 4 as the file must have, or 0 for what is there.

    """
    given, is_animated = _header(data)
    if channels not in (0, given):
        raise InvalidArgumentError("Number of channels requested does not match input")
    if is_animated and given != 4:
        raise InvalidArgumentError("WebP Animation must be 4 channel RGBA")
    what = "Animation: failed to decode WebP Animation" if is_animated else "image."
    with opened(data, "WEBP", f"Failed to decode WebP {what}") as image:
        count = getattr(image, "n_frames", 1)
        check_new((count, image.height, image.width, given), np.dtype(np.uint8))
        frames = []
        for at in range(count):
            image.seek(at)
            frames.append(pixels_of(image.convert(_MODES[given])))
        return np.stack(frames)


def _header(data: bytes) -> tuple[int, bool]:
    """The number of channels, and whether the file may have several frames."""
    kind, first = data[12:16], data[20:25]
    if len(first) == 5 and kind == b"VP8X":
        return 3 + bool(first[0] & _HAS_OPACITY), bool(first[0] & _HAS_MOTION)
    if len(first) == 5 and kind == b"VP8L":
        return 3 + bool(first[4] & _LOSSLESS_OPACITY), False
    if len(first) == 5 and kind == b"VP8 ":
        return 3, False
    raise InvalidArgumentError("Failed to decode WebP header.")
