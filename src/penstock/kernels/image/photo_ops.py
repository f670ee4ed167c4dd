"""Images in files of any kind: JPEG, PNG, GIF, BMP.

In:   files as strings, or images.
Out:  images, or JPEG files.
Not:  decodes nothing itself: Pillow does for JPEG, and ``png``, ``gif`` and ``bmp`` for the others.

JPEG leaves the last bits of a decoder open.  Pillow's are those of TensorFlow's
``INTEGER_ACCURATE``; what TensorFlow does by default is faster and may differ by 3 in 255.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import as_array, shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.extras import require
from penstock.kernels.image.bmp import decode_bmp
from penstock.kernels.image.gif import decode_gif
from penstock.kernels.image.png import DAMAGE, decode_png
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.strings import items_of

_JPEG, _PNG, _GIF, _BMP = "JPEG", "PNG", "GIF", "BMP"
#: How files begin.
_MAGIC: Final = {b"\xff\xd8\xff": _JPEG, b"\x89PNG\r\n\x1a\n": _PNG, b"GIF8": _GIF, b"BM": _BMP}
#: TensorFlow reads no larger JPEG files.
_MOST_BYTES: Final = 1 << 29
_LONGEST_SIDE: Final = 65500


def format_of(data: bytes) -> str:
    """The kind of file."""
    if not data:
        raise InvalidArgumentError("Input is empty.")
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return kind
    raise InvalidArgumentError(
        "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."
    )


@kernel("DecodeJpeg", "DecodeAndCropJpeg")
def make_decode_jpeg(attrs: Attrs) -> Kernel:
    """The image in a file, at half, a quarter or an eighth of its size if asked for; or a part."""
    channels, ratio = _channels(attrs), attrs.int("ratio")
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"`ratio` must be in {{1, 2, 4, 8}} but got {ratio}")

    def decode(contents: Value, *window: Value) -> Array:
        data = _contents(contents)
        kind = format_of(data)
        _check_kind(kind, attrs.op.name)
        image = _decode_jpeg(data, channels, ratio) if kind == _JPEG else _still(data, channels)
        return _cropped(image, as_array(window[0])) if window else image

    return decode


def _cropped(image: Array, window: Array) -> Array:
    top, left, height, width = window.tolist()
    rows, columns = image.shape[:2]
    if (
        min(top, left) < 0
        or min(height, width) <= 0
        or top + height > rows
        or left + width > columns
    ):
        raise InvalidArgumentError("jpeg::Uncompress failed. Invalid JPEG data or crop window.")
    return image[top : top + height, left : left + width]


@kernel("DecodeBmp")
def make_decode_bmp(attrs: Attrs) -> Kernel:
    """The image in a BMP file."""
    channels = _channels(attrs)

    def decode(contents: Value) -> Array:
        data = _contents(contents)
        kind = format_of(data)
        if kind != _BMP:
            raise InvalidArgumentError(
                f"Trying to decode {kind} format using DecodeBmp op. Use `decode_"
                f"{kind.lower()}` or `decode_image` instead."
            )
        return _still(data, channels)

    return decode


@kernel("DecodePng")
def make_decode_png(attrs: Attrs) -> Kernel:
    """The image in a file, with as many channels as asked for, and 8 or 16 bits each."""
    channels, dtype = _channels(attrs), attrs.dtype("dtype")

    def decode(contents: Value) -> Array:
        data = _contents(contents)
        kind = format_of(data)
        _check_kind(kind, attrs.op.name)
        if kind != _PNG:
            return _CONVERSIONS[dtype.name](_still(data, channels))
        image = decode_png(data, channels)
        if dtype is dtypes.uint16:
            return image if image.dtype == np.uint16 else image * np.uint16(257)
        return (image >> 8).astype(np.uint8) if image.dtype == np.uint16 else image

    return decode


def _check_kind(kind: str, op: str) -> None:
    """Raise for a kind of file that an op for another kind does not decode all the same."""
    if op == "DecodeAndCropJpeg" and kind != _JPEG:
        raise InvalidArgumentError(
            f"DecodeAndCropJpeg operation can run on JPEG only, but detected {kind}."
        )
    if kind == _BMP:
        raise InvalidArgumentError(
            "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` "
            f"instead. Op used: {op}"
        )


@kernel("DecodeGif")
def make_decode_gif(attrs: Attrs) -> Kernel:
    """The frames of a GIF file; another file has one."""

    def decode(contents: Value) -> Array:
        data = _contents(contents)
        kind = format_of(data)
        _check_kind(kind, attrs.op.name)
        return decode_gif(data) if kind == _GIF else _still(data, 3)[None]

    return decode


@kernel("DecodeImage")
def make_decode_image(attrs: Attrs) -> Kernel:
    """The image in a file of any kind; all frames of a GIF, if it may have more than one."""
    channels, dtype = _channels(attrs), attrs.dtype("dtype")
    is_animated = attrs.bool("expand_animations")

    def decode(contents: Value) -> Array:
        data = _contents(contents)
        kind = format_of(data)
        if kind == _PNG and dtype is not dtypes.uint8:
            return _deep(decode_png(data, channels), dtype is dtypes.float32)
        if kind == _GIF:
            frames = decode_gif(data)
            return _CONVERSIONS[dtype.name](frames if is_animated else frames[0])
        image = _decode_jpeg(data, channels, 1) if kind == _JPEG else _still(data, channels)
        return _CONVERSIONS[dtype.name](image)

    return decode


_CONVERSIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "uint8": lambda image: image,
    "uint16": lambda image: image.astype(np.uint16) * np.uint16(256),
    "float32": lambda image: image.astype(np.float32) * np.float32(1 / 255),
}


def _deep(image: Array, is_float: bool) -> Array:  # noqa: FBT001  (two ways to say one depth)
    words = image if image.dtype == np.uint16 else image * np.uint16(257)
    return words.astype(np.float32) * np.float32(1 / 65535) if is_float else words


def _channels(attrs: Attrs) -> int:
    channels = attrs.int("channels")
    if channels not in (0, 1, 3, 4):
        raise InvalidArgumentError(f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    return channels


def _contents(contents: Value) -> bytes:
    if shape_of(contents) != ():
        raise InvalidArgumentError(
            f"`contents` must be scalar but got shape{shape_text(shape_of(contents))}"
        )
    data: bytes = items_of(contents)[0]
    return data


def _open_jpeg(data: bytes) -> Any:
    """A JPEG file, by Pillow's own class for them: no other kind is tried, nor is a size judged."""
    plugin = require("PIL.JpegImagePlugin", "images")
    image = plugin.JpegImageFile(io.BytesIO(data))
    if max(image.size) > _LONGEST_SIDE:
        raise ValueError(f"sides of {image.size}")
    return image


def _decode_jpeg(data: bytes, channels: int, ratio: int) -> Array:
    if channels == 4:
        raise InvalidArgumentError("JPEG does not support 4 channels")
    try:
        image = _open_jpeg(data)
        mode = "L" if channels == 1 or (channels == 0 and image.mode == "L") else "RGB"
        size = tuple(-(-side // ratio) for side in image.size)
        if prod(size) * len(mode) >= _MOST_BYTES:
            raise ValueError(f"{size} pixels")
        image.draft(mode, size)
        return _array(image.convert(mode))
    except DAMAGE as cause:
        raise InvalidArgumentError(
            "jpeg::Uncompress failed. Invalid JPEG data or crop window."
        ) from cause


def _still(data: bytes, channels: int) -> Array:
    """The only image of a file that is no JPEG."""
    kind = format_of(data)
    if kind == _PNG:
        image = decode_png(data, channels)
        return (image >> 8).astype(np.uint8) if image.dtype == np.uint16 else image
    if kind == _GIF:
        frames = decode_gif(data)
        if len(frames) > 1:
            raise InvalidArgumentError(
                f"Got {len(frames)} frames, but animated gifs can only be "
                "decoded by tf.io.decode_gif or tf.io.decode_image"
            )
        only: Array = frames[0]
        return only
    if kind == _JPEG:
        return _decode_jpeg(data, channels, 1)
    return decode_bmp(data, channels)


def _array(image: Any) -> Array:
    array: Array = np.asarray(image)
    return array.reshape(*array.shape[:2], -1)


@kernel("ExtractJpegShape")
def make_extract_jpeg_shape(attrs: Attrs) -> Kernel:
    """Height, width and channels of a JPEG file, read from its header."""
    number = attrs.dtype("output_type").numpy

    def extract(contents: Value) -> Array:
        data = _contents(contents)
        try:
            image = _open_jpeg(data)
        except DAMAGE as cause:
            raise InvalidArgumentError(f"Invalid JPEG data, size {len(data)}") from cause
        return np.array([image.height, image.width, len(image.getbands())], number)

    return extract


@kernel("EncodeJpeg")
def make_encode_jpeg(attrs: Attrs) -> Kernel:
    """A JPEG file of an image."""
    quality, wanted = attrs.int("quality"), attrs.str("format")
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(f"quality must be in [0,100], got {quality}")
    options = {
        "progressive": attrs.bool("progressive"),
        "optimize": attrs.bool("optimize_size"),
        "subsampling": 2 if attrs.bool("chroma_downsampling") else 0,
        "dpi": (attrs.int("x_density"), attrs.int("y_density")),
    }
    channels = {"grayscale": 1, "rgb": 3}.get(wanted)
    return lambda image: _encode(image, channels, quality, options)


@kernel("EncodeJpegVariableQuality")
def make_encode_jpeg_variable_quality(_: Attrs) -> Kernel:
    """A JPEG file of an image; how good is an input."""

    def encode(image: Value, quality: Value) -> Value:
        if not 0 <= quality <= 100:
            raise InvalidArgumentError(f"quality must be in [0,100], got {quality}")
        return _encode(image, None, int(quality), {"subsampling": 2})

    return encode


def _encode(image: Array, channels: int | None, quality: int, options: dict[str, Any]) -> Value:
    if np.ndim(image) != 3 or image.shape[2] not in (1, 3):
        raise InvalidArgumentError(f"image must be 3-dimensional{shape_text(shape_of(image))}")
    if channels is not None and image.shape[2] != channels:
        raise InvalidArgumentError(
            f"format needs {channels} channels, got {shape_text(image.shape)}"
        )
    pixels = image[..., 0] if image.shape[2] == 1 else image
    target = io.BytesIO()
    pillow = require("PIL.Image", "images")
    pillow.fromarray(np.ascontiguousarray(pixels)).save(
        target, "JPEG", quality=max(quality, 1), **options
    )
    return as_value(target.getvalue())
