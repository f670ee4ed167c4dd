"""Images in files.

In:   files as strings, or images.
Out:  images of 8 or 16 bits, or files.
Not:  knows no format; ``png`` does.
"""

from __future__ import annotations

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.image.png import decode_png, encode_png
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.strings import items_of, string_array


@kernel("DecodePng")
def make_decode_png(attrs: Attrs) -> Kernel:
    """The image in a PNG file, with as many channels as asked for."""
    channels, dtype = attrs.int("channels"), attrs.dtype("dtype")
    if channels not in (0, 1, 3, 4):
        raise InvalidArgumentError(f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    is_deep = dtype is dtypes.uint16

    def decode(contents: Value) -> Array:
        if shape_of(contents) != ():
            raise InvalidArgumentError(
                f"`contents` must be scalar but got shape{shape_text(shape_of(contents))}"
            )
        image = decode_png(items_of(contents)[0], channels)
        if is_deep and image.dtype == np.uint8:
            return image * np.uint16(257)
        if not is_deep and image.dtype == np.uint16:
            return (image >> 8).astype(np.uint8)
        return image

    return decode


@kernel("EncodePng")
def make_encode_png(attrs: Attrs) -> Kernel:
    """A PNG file of each image."""
    level = attrs.int("compression")
    if not -1 <= level <= 9:
        raise InvalidArgumentError(f"compression should be in [-1,9], got {level}")

    def encode(images: Value) -> Value:
        shape = shape_of(images)
        if len(shape) < 3:
            raise InvalidArgumentError(f"images must be at least rank 3{shape_text(shape)}")
        if not 1 <= shape[-1] <= 4:
            raise InvalidArgumentError(f"image must have 1, 2, 3, or 4 channels, got {shape[-1]}")
        if images.size == 0 and 0 in shape[-3:]:
            raise InternalError("PNG encoding failed: an image without pixels")
        flat = images.reshape(-1, *shape[-3:])
        files = (encode_png(image, level) for image in flat)
        return as_value(string_array(files, shape[:-3]))

    return encode
