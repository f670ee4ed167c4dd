"""Files that Pillow reads.

In:   a file's bytes and its format.
Out:  Pillow's image, and numbers of it.
Not:  decides nothing about channels, and judges no size; the formats' modules do.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.extras import require

#: Pillow's own class for the files of a format, and the module where it is.
_READERS: Final = {
    "GIF": ("GifImagePlugin", "GifImageFile"),
    "JPEG": ("JpegImagePlugin", "JpegImageFile"),
    "PNG": ("PngImagePlugin", "PngImageFile"),
    "WEBP": ("WebPImagePlugin", "WebPImageFile"),
}
#: What Pillow raises for damaged files.
_DAMAGE: Final = (OSError, ValueError, SyntaxError, EOFError, LookupError, struct.error)


@contextmanager
def opened(data: bytes, format_: str, complaint: str) -> Iterator[Any]:
    """Pillow's image of a file; whatever it finds wrong is an InvalidArgumentError.

    Args:
        data: the file.
        format_: the only format that it may have, by Pillow's name.
        complaint: what the error says.

    """
    module, reader = _READERS[format_]
    pillow = require(f"PIL.{module}", "images")
    try:
        yield getattr(pillow, reader)(io.BytesIO(data))
    except _DAMAGE as cause:
        raise InvalidArgumentError(complaint) from cause


def pixels_of(image: Any) -> Array:
    """The numbers of Pillow's image: height, width, channels."""
    pixels: Array = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[:, :, np.newaxis]
