"""Images out of files of any kind.

In:   files as strings.
Out:  images.
Not:  reads no file itself; each format has a module.

Every op reads nearly every format: it is the file that says what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, shape_of
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.image.bmp import decode_bmp
from penstock.kernels.image.gif import decode_gif
from penstock.kernels.image.jpeg import decode_jpeg, jpeg_size
from penstock.kernels.image.png import decode_png, png_header
from penstock.kernels.image.webp import decode_webp
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import items_of

_JPEG, _PNG, _GIF, _BMP, _WEBP = "JPEG", "PNG", "GIF", "BMP", "WebP"
#: How files begin.
_MAGIC: Final = {b"\xff\xd8\xff": _JPEG, b"\x89PNG\r\n\x1a\n": _PNG, b"GIF8": _GIF, b"BM": _BMP}
_RATIOS: Final = (1, 2, 4, 8)
_METHODS: Final = ("", "INTEGER_FAST", "INTEGER_ACCURATE")


@dataclass(frozen=True)
class _DecodeRequest:
    """What an op asks of an image."""

    op: str
    channels: int = 3
    dtype: DType = dtypes.uint8
    ratio: int = 1
    recovers: bool = False
    has_frames: bool = False


@kernel("DecodePng", "DecodeWebP", "DecodeBmp")
def make_decode_still(attrs: Attrs) -> Kernel:
    """The image in a file."""
    dtype = attrs.dtype("dtype") if attrs.has("dtype") else dtypes.uint8
    return _decoder(_DecodeRequest(attrs.op.name, _channels(attrs), dtype))


@kernel("DecodeGif")
def make_decode_gif(attrs: Attrs) -> Kernel:
    """The frames of a file; another one than a GIF file may have one."""
    return _decoder(_DecodeRequest(attrs.op.name, has_frames=True))


@kernel("DecodeImage")
def make_decode_image(attrs: Attrs) -> Kernel:
    """The image in a file; all frames of it, if it may have more than one."""
    has_frames = attrs.bool("expand_animations")
    wanted = _DecodeRequest(
        attrs.op.name, _channels(attrs), attrs.dtype("dtype"), has_frames=has_frames
    )
    return _decoder(wanted)


@kernel("DecodeJpeg", "DecodeAndCropJpeg")
def make_decode_jpeg(attrs: Attrs) -> Kernel:
    """The image in a file, at half, a quarter or an eighth of its size if asked for; or a part."""
    ratio, method = attrs.int("ratio"), attrs.str("dct_method")
    if ratio not in _RATIOS:
        raise InvalidArgumentError(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    if method not in _METHODS:
        known = "{'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}"
        raise InvalidArgumentError(f"dct_method must be one of {known}")
    recovers = attrs.bool("try_recover_truncated")
    wanted = _DecodeRequest(attrs.op.name, _channels(attrs), ratio=ratio, recovers=recovers)
    return _decoder(wanted)


@kernel("ExtractJpegShape")
def make_extract_jpeg_shape(attrs: Attrs) -> Kernel:
    """Height, width and channels of a JPEG file, read from its header."""
    number = attrs.dtype("output_type").numpy
    return lambda contents: np.array(jpeg_size(_contents(contents)), number)


def _channels(attrs: Attrs) -> int:
    channels = attrs.int("channels")
    if channels not in (0, 1, 3, 4):
        raise InvalidArgumentError(f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    return channels


def _decoder(wanted: _DecodeRequest) -> Kernel:
    def decode(contents: Value, *window: Value) -> Array:
        data = _contents(contents)
        format_ = _format_of(data)
        return _READERS[format_](data, wanted, *map(as_array, window))

    return decode


def _contents(contents: Value) -> bytes:
    if shape_of(contents) != ():
        raise InvalidArgumentError(
            f"`contents` must be scalar but got shape{shape_text(shape_of(contents))}"
        )
    data: bytes = items_of(contents)[0]
    return data


def _format_of(data: bytes) -> str:
    """The kind of file."""
    if not data:
        raise InvalidArgumentError("Input is empty.")
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return kind
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) > 12:
        return _WEBP
    raise InvalidArgumentError(
        "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."
    )


# -- one format after the other --------------------------------------------------------


def _jpeg(data: bytes, wanted: _DecodeRequest, window: Array | None = None) -> Array:
    if wanted.channels == 4:
        raise InvalidArgumentError("JPEG does not support 4 channels")
    _refuse(_JPEG, wanted, "DecodeBmp")
    if window is not None:
        _check_window(window)
    image = decode_jpeg(data, wanted.channels, wanted.ratio, recovers=wanted.recovers)
    part = image if window is None else _cropped(image, window)
    return _shown(_plain(part, wanted.dtype), wanted)


def _png(data: bytes, wanted: _DecodeRequest, *_: Array) -> Array:
    png_header(data)
    _refuse(_PNG, wanted, "DecodeBmp", "DecodeAndCropJpeg")
    return _shown(_deep(decode_png(data, wanted.channels), wanted.dtype), wanted)


def _gif(data: bytes, wanted: _DecodeRequest, *_: Array) -> Array:
    if wanted.channels not in (0, 3):
        raise InvalidArgumentError(f"channels must be 0 or 3 for GIF, got {wanted.channels}")
    _refuse(_GIF, wanted, "DecodeBmp", "DecodeAndCropJpeg")
    if wanted.has_frames:
        return _plain(decode_gif(data), wanted.dtype)
    frames = decode_gif(data, 1 if wanted.op == "DecodeImage" else None)
    if wanted.op == "DecodeWebP":
        raise InvalidArgumentError(f"Bad op type {wanted.op}")
    if len(frames) > 1:
        raise InvalidArgumentError(
            f"Got {len(frames)} frames, but animated gifs can only be "
            "decoded by tf.io.decode_gif or tf.io.decode_image"
        )
    return _plain(frames[0], wanted.dtype)


def _bmp(data: bytes, wanted: _DecodeRequest, *_: Array) -> Array:
    if wanted.channels == 1:
        raise InvalidArgumentError("`channels` must be 0, 3 or 4 for BMP, but got 1")
    _refuse(_BMP, wanted, "DecodeAndCropJpeg")
    if wanted.op not in ("DecodeBmp", "DecodeImage"):
        raise InvalidArgumentError(
            "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` "
            f"instead. Op used: {wanted.op}"
        )
    return _plain(decode_bmp(data, wanted.channels), wanted.dtype)


def _webp(data: bytes, wanted: _DecodeRequest, *_: Array) -> Array:
    if wanted.channels == 1:
        raise InvalidArgumentError("WebP only supports 3 or 4 channels")
    if wanted.dtype is not dtypes.uint8:
        raise InvalidArgumentError("WebP only supports uint8 for dtype")
    frames = decode_webp(data, wanted.channels)
    return frames[0] if wanted.op == "DecodeImage" and not wanted.has_frames else frames


_READERS: Final[dict[str, Callable[..., Array]]] = {
    _JPEG: _jpeg,
    _PNG: _png,
    _GIF: _gif,
    _BMP: _bmp,
    _WEBP: _webp,
}


def _refuse(format_: str, wanted: _DecodeRequest, *ops: str) -> None:
    """Raise if the op is one of those that do not take the format."""
    if wanted.op not in ops:
        return
    if wanted.op == "DecodeBmp":
        raise InvalidArgumentError(
            f"Trying to decode {format_} format using DecodeBmp op. "
            f"Use `decode_{format_.lower()}` or `decode_image` instead."
        )
    raise InvalidArgumentError(
        f"{wanted.op} operation can run on JPEG only, but detected {format_}."
    )


# -- parts and numbers -----------------------------------------------------------------


def _check_window(window: Array) -> None:
    if window.ndim != 1:
        raise InvalidArgumentError(f"crop_window must be 1-D, got shape {shape_text(window.shape)}")
    if len(window) != 4:
        raise InvalidArgumentError(f"crop_size must have four elements {shape_text(window.shape)}")


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


def _shown(image: Array, wanted: _DecodeRequest) -> Array:
    """The only image of a file; DecodeGif has it as one of several."""
    return image[np.newaxis] if wanted.op == "DecodeGif" else image


def _plain(image: Array, dtype: DType) -> Array:
    """An image of bytes as numbers of another kind."""
    if dtype is dtypes.uint8:
        return image
    if dtype is dtypes.uint16:
        return image.astype(np.uint16) * np.uint16(256)
    return image.astype(np.float32) * np.float32(1 / 255)


def _deep(image: Array, dtype: DType) -> Array:
    """An image of bytes or of words as numbers of another kind."""
    if dtype is dtypes.uint8:
        return image if image.dtype == np.uint8 else (image >> 8).astype(np.uint8)
    words = image if image.dtype == np.uint16 else image * np.uint16(257)
    return words if dtype is dtypes.uint16 else words.astype(np.float32) * np.float32(1 / 65535)
