"""JPEG files.

In:   a file's bytes, or an image.
Out:  an image, its size, or a file.
Not:  transforms nothing itself: Pillow does.

JPEG leaves the last bits of a decoder open.  Pillow's are those of TensorFlow's
``INTEGER_ACCURATE``; what TensorFlow does by default is faster and may differ by 3 in 255.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.extras import require
from penstock.kernels.image.pillow_files import opened, pixels_of

_COMPLAINT: Final = "jpeg::Uncompress failed. Invalid JPEG data or crop window."
#: What ends a file, and ends it early where the rest is missing.
_END: Final = b"\xff\xd9"
#: TensorFlow reads no larger files: pixels along a side, bytes of an image.
_LONGEST_SIDE: Final = 65500
_MOST_BYTES: Final = 1 << 29
#: Where the first header says in what unit densities are, and where it ends.
_UNIT_AT, _HEADER_END = 13, 20
#: How further data begin, and how one knows XMP among them.
_APP1, _XMP = b"\xff\xe1", b"http://ns.adobe.com/xap/1.0/\0"


def decode_jpeg(data: bytes, channels: int, ratio: int = 1, *, recovers: bool = False) -> Array:
    """The image in a file.

    Args:
        data: the file.
        channels: 1 for grey, 3 for colours, 0 for what is there.
        ratio: 1, 2, 4, 8: how many times smaller the image shall be.
        recovers: whether what is missing at the end may be grey.

    """
    file = data + _END if recovers else data
    with _opened(file, _COMPLAINT) as image:
        if channels == 1 and image.mode == "CMYK":
            raise InvalidArgumentError(_COMPLAINT)
        mode = "L" if channels == 1 or (channels == 0 and image.mode == "L") else "RGB"
        if math.prod(-(-side // ratio) for side in image.size) * len(mode) >= _MOST_BYTES:
            raise InvalidArgumentError(_COMPLAINT)
        image.draft(mode, tuple(side / ratio for side in image.size))
        return pixels_of(image.convert(mode))


def jpeg_size(data: bytes) -> tuple[int, int, int]:
    """Height, width and channels of a file, read from its header."""
    with _opened(data, f"Invalid JPEG data, size {len(data)}") as image:
        return image.height, image.width, len(image.getbands())


@contextmanager
def _opened(data: bytes, complaint: str) -> Iterator[Any]:
    with opened(data, "JPEG", complaint) as image:
        if max(image.size) > _LONGEST_SIDE:
            raise InvalidArgumentError(complaint)
        yield image


@dataclass(frozen=True)
class JpegOptions:
    """How a file is written; densities are dots per inch or per centimetre."""

    quality: int = 95
    progressive: bool = False
    optimize_size: bool = False
    chroma_downsampling: bool = True
    density: tuple[int, int] = (300, 300)
    is_metric: bool = False
    xmp: bytes = b""


def encode_jpeg(image: Array, options: JpegOptions) -> bytes:
    """A file of an image: height, width and one or three channels of bytes."""
    target = io.BytesIO()
    is_grey = image.shape[2] == 1
    pixels = image[..., 0] if is_grey else image
    pillow = require("PIL.Image", "images")
    pillow.fromarray(np.ascontiguousarray(pixels)).save(
        target,
        "JPEG",
        quality=max(options.quality, 1),
        progressive=options.progressive,
        optimize=options.optimize_size,
        subsampling="4:2:0" if options.chroma_downsampling and not is_grey else "4:4:4",
        dpi=options.density,
    )
    file = bytearray(target.getvalue())
    file[_UNIT_AT] = 1 + options.is_metric
    if options.xmp:
        content = _XMP + options.xmp
        file[_HEADER_END:_HEADER_END] = _APP1 + struct.pack(">H", 2 + len(content)) + content
    return bytes(file)
