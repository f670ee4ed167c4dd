"""Images in PNG files, as arrays.

In:   bytes of a file, or an array of height, width and channels.
Out:  the other.
Not:  registers no kernel; shows nothing.

Files are written here, from the format's description (RFC 2083).  They are read by Pillow,
but for those with 16 bits a channel, of which Pillow would drop half.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.kernels.arrays import check_new
from penstock.kernels.extras import require

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
#: Channels by the file's type of colour, palettes left out.
_CHANNELS: Final = {0: 1, 2: 3, 4: 2, 6: 4}
_COLOR_TYPES: Final = {channels: color for color, channels in _CHANNELS.items()}
_UP: Final = 2
#: TensorFlow reads no larger files.
_LONGEST_SIDE: Final = 1_000_000
_MOST_PIXELS: Final = 1 << 29
#: What Pillow raises for damaged files.
DAMAGE: Final = (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, struct.error)
#: What red, green and blue weigh in grey, in parts of 2**15.
_GREY_WEIGHTS: Final = (9797, 19234, 3737)


# -- writing ---------------------------------------------------------------------------


def encode_png(image: Array, level: int) -> bytes:
    """A file of an image of 8 or 16 bits; ``level`` says how hard to compress it."""
    height, width, channels = image.shape
    depth = 8 * image.dtype.itemsize
    rows = image.astype(image.dtype.newbyteorder(">"), copy=False).reshape(height, -1)
    raw = np.ascontiguousarray(rows).view(np.uint8)
    # Each row says what it adds to the row above it, and that it does so.
    lines = np.empty((height, 1 + raw.shape[1]), np.uint8)
    lines[:, 0] = _UP
    lines[:, 1:] = raw
    lines[1:, 1:] -= raw[:-1]
    header = struct.pack(">IIBBBBB", width, height, depth, _COLOR_TYPES[channels], 0, 0, 0)
    return b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), level)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


# -- reading ---------------------------------------------------------------------------


def decode_png(data: bytes, channels: int) -> Array:
    """The image in a file, with 8 or 16 bits as it has them.

    Args:
        data: the file.
        channels: 1 for grey, 3 for colours, 4 for colours and opacity, 0 for what is there.

    """
    if not data.startswith(_SIGNATURE) or data[12:16] != b"IHDR" or len(data) < 33:
        raise InvalidArgumentError(_no_png(data))
    width, height, depth, color = struct.unpack(">IIBB", data[16:26])
    if not (0 < width <= _LONGEST_SIDE and 0 < height <= _LONGEST_SIDE):
        raise InvalidArgumentError("Invalid PNG. Failed to initialize decoder.")
    if width * height >= _MOST_PIXELS:
        raise InvalidArgumentError(f"PNG size too large for int: {width} by {height}")
    samples = max(_CHANNELS.get(color, 4), channels)
    check_new((height, width, samples), np.dtype(np.uint16 if depth == 16 else np.uint8))
    try:
        if depth == 16:
            image = _decode_deep(data)
        else:
            image = _decode_with_pillow(data, wants_opacity=channels == 4)
    except (*DAMAGE, zlib.error) as cause:
        raise InvalidArgumentError(f"Invalid PNG data, size {len(data)}") from cause
    return _to_channels(image, channels, depth)


def _no_png(data: bytes) -> str:
    """What is wrong with a file that does not begin as it should."""
    if not data:
        return "Input is empty."
    if data.startswith(_SIGNATURE):
        return "Invalid PNG. Failed to initialize decoder."
    return "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."


def _decode_with_pillow(data: bytes, *, wants_opacity: bool) -> Array:
    # By Pillow's own class for such files, which judges no size: that has been done.
    image: Any = require("PIL.PngImagePlugin", "images").PngImageFile(io.BytesIO(data))
    image.load()
    is_transparent = "transparency" in image.info
    if image.mode == "P":
        image = image.convert("RGBA" if is_transparent else "RGB")
    elif is_transparent and wants_opacity:
        image = image.convert("RGBA")
    elif image.mode == "1":
        image = image.convert("L")
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[:, :, np.newaxis]


def _to_channels(image: Array, wanted: int, depth: int) -> Array:
    given = image.shape[2]
    if wanted in (0, given):
        return image
    if wanted == 1:
        return image[:, :, :1] if given < 3 else _grey(image)
    colors = image[:, :, :3] if given >= 3 else np.repeat(image[:, :, :1], 3, axis=2)
    if wanted == 3:
        return colors
    if given == 2:
        return np.concatenate([colors, image[:, :, 1:]], axis=2)
    # Files with few bits get too little of it, as they do in TensorFlow.
    opaque = np.full_like(colors[:, :, :1], (1 << depth) - 1)
    return np.concatenate([colors, opaque], axis=2)


def _grey(image: Array) -> Array:
    """How bright colours are; rounded if there are 16 bits, else cut off."""
    weights = np.array(_GREY_WEIGHTS, np.uint32)
    total = image[:, :, :3].astype(np.uint32) @ weights
    rounding = np.uint32(1 << 14 if image.dtype == np.uint16 else 0)
    return ((total + rounding) >> 15).astype(image.dtype)[:, :, np.newaxis]


def _decode_deep(data: bytes) -> Array:
    """An image with 16 bits a channel."""
    header, compressed = _parts(data)
    width, height, _, color, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if color not in _CHANNELS:
        raise ValueError(f"color type {color}")
    if interlaced:
        raise UnimplementedError("Interlaced PNG images of 16 bits cannot be read")
    step = 2 * _CHANNELS[color]
    line = 1 + width * step
    raw = zlib.decompressobj().decompress(compressed, height * line)
    if len(raw) != height * line:
        raise ValueError("not enough data")
    lines = np.frombuffer(raw, np.uint8).reshape(height, line)
    rows = np.empty((height, width, step), np.uint8)
    above = np.zeros((width, step), np.uint8)
    for row, content in zip(rows, lines, strict=True):
        row[:] = content[1:].reshape(width, step)
        _undo_filter(int(content[0]), row, above)
        above = row
    return rows.view(">u2").astype(np.uint16)


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """The header and the compressed lines."""
    header, lines = b"", []
    for kind, content in _chunks(data):
        if kind == b"IHDR":
            header = content
        elif kind == b"IDAT":
            lines.append(content)
    return header, b"".join(lines)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (checksum,) = struct.unpack_from(">I", data, at + 8 + size)
        if checksum != zlib.crc32(kind + content):
            raise ValueError("checksum mismatch")
        yield kind, content
        at += 12 + size


def _undo_filter(kind: int, row: Array, above: Array) -> None:
    """Turn differences into what they are differences of, in place."""
    if kind == 0:
        return
    if kind == 1:
        np.cumsum(row, axis=0, dtype=np.uint8, out=row)
    elif kind == _UP:
        row += above
    elif kind in (3, 4):
        _undo_with_left(kind, row, above)
    else:
        raise ValueError(f"filter {kind}")


def _undo_with_left(kind: int, row: Array, above: Array) -> None:
    """Undo the filters that need the pixel to the left, which is itself just undone."""
    wide = above.astype(np.int16)
    left = corner = np.zeros(row.shape[1], np.int16)
    for at in range(len(row)):
        up = wide[at]
        guess = (left + up) >> 1 if kind == 3 else _paeth(left, up, corner)
        row[at] += guess.astype(np.uint8)
        left, corner = row[at].astype(np.int16), up


def _paeth(left: Array, up: Array, corner: Array) -> Array:
    """Whichever of the three is nearest to ``left + up - corner``."""
    to_left, to_up = np.abs(up - corner), np.abs(left - corner)
    to_corner = np.abs(left + up - 2 * corner)
    nearest: Array = np.where(to_up <= to_corner, up, corner)
    return np.where((to_left <= to_up) & (to_left <= to_corner), left, nearest)
