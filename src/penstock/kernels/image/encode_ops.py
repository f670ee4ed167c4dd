"""Images into files.

In:   images of 8 or 16 bits.
Out:  PNG and JPEG files as strings.
Not:  knows no format; ``png`` and ``jpeg`` do.
"""

from __future__ import annotations

import math
from typing import Final

from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.image.jpeg import JpegOptions, encode_jpeg
from penstock.kernels.image.png import encode_png
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import string_array

#: Channels of an image by the format that an attribute names.
_CHANNELS: Final = {"grayscale": 1, "rgb": 3}
#: How many images an error names.
_MOST_NAMED: Final = 8


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
        flat = images.reshape(-1, *shape[-3:]) if images.size else ()
        _check_pixels(shape)
        return as_value(string_array((encode_png(image, level) for image in flat), shape[:-3]))

    return encode


def _check_pixels(shape: tuple[int, ...]) -> None:
    """Raise if there are images, but without pixels."""
    *outer, height, width, _ = shape
    count = math.prod(outer)
    if count and 0 in (height, width):
        some = ", ".join(map(str, range(min(count, _MOST_NAMED))))
        raise InternalError(
            f"PNG encoding failed at the following flattened batch indices: {some}"
            f"{', ...' if count > _MOST_NAMED else ''}; the images have no pixels"
        )


@kernel("EncodeJpeg")
def make_encode_jpeg(attrs: Attrs) -> Kernel:
    """A JPEG file of an image."""
    quality, wanted = attrs.int("quality"), attrs.str("format")
    _check_quality(quality)
    options = JpegOptions(
        quality,
        attrs.bool("progressive"),
        attrs.bool("optimize_size"),
        attrs.bool("chroma_downsampling"),
        (attrs.int("x_density"), attrs.int("y_density")),
        attrs.str("density_unit") == "cm",
        attrs.bytes("xmp_metadata"),
    )

    def encode(image: Value) -> Value:
        _check_image(image)
        channels = _CHANNELS.get(wanted, image.shape[2])
        if image.shape[2] != channels:
            raise InvalidArgumentError(
                f"format {wanted} expects {channels} channels, got {shape_text(image.shape)}"
            )
        return _encoded(image, options)

    return encode


@kernel("EncodeJpegVariableQuality")
def make_encode_jpeg_variable_quality(_: Attrs) -> Kernel:
    """A JPEG file of an image; how good is an input."""

    def encode(image: Value, quality: Value) -> Value:
        _check_image(image)
        if shape_of(quality) != ():
            raise InvalidArgumentError(f"quality must be scalar: {shape_text(shape_of(quality))}")
        _check_quality(int(quality))
        return _encoded(image, JpegOptions(int(quality)))

    return encode


def _check_quality(quality: int) -> None:
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(f"quality must be in [0,100], got {quality}")


def _check_image(image: Value) -> None:
    shape = shape_of(image)
    if len(shape) != 3:
        raise InvalidArgumentError(f"image must be 3-dimensional{shape_text(shape)}")


def _encoded(image: Array, options: JpegOptions) -> Value:
    if image.shape[2] not in (1, 3):
        raise InvalidArgumentError(
            f"image must have 1 or 3 channels, got {shape_text(image.shape)}"
        )
    if not image.size:
        raise InternalError("JPEG encoding failed: the image has no pixels")
    return as_value(encode_jpeg(as_array(image), options))
