"""Images as PNG files.

In:   images of 8 or 16 bits.
Out:  files as strings.
Not:  knows no format; ``png`` does.
"""

from __future__ import annotations

from penstock.core.values import Value, as_value, shape_of
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.image.png import encode_png
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.strings import string_array


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
