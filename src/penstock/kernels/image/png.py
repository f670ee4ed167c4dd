"""Images in PNG files, as arrays.

In:   bytes of a file, or an array of height, width and channels.
Out:  the other.
Not:  registers no kernel; shows nothing.

Files are written here, from the format's description (RFC 2083).  They are read by Pillow,
but for those with 16 bits a channel, of which Pillow would drop half.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.kernels.image.pillow_files import opened, pixels_of
from penstock.kernels.values.arrays import check_new

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
#: Channels by the file's type of colour, palettes left out.
_CHANNELS: Final = {0: 1, 2: 3, 4: 2, 6: 4}
_COLOR_TYPES: Final = {channels: color for color, channels in _CHANNELS.items()}
#: How a row may differ from what is to its left, above it, or both.
_SUB, _UP, _AVERAGE, _PAETH = 1, 2, 3, 4
#: Bytes in one part of the compressed data.
_PART: Final = 8192
#: TensorFlow reads no larger files.
_LONGEST_SIDE: Final = 1_000_000
_MOST_PIXELS: Final = 1 << 29
#: What red, green and blue weigh in grey, in parts of 2**15.
_GREY_WEIGHTS: Final = (9797, 19234, 3737)


# -- writing ---------------------------------------------------------------------------


def encode_png(image: Array, level: int) -> bytes:
    """A file of an image of 8 or 16 bits; ``level`` says how hard to compress it, -1 by default.

    Filters and compression are those of libpng, so that files are as large as TensorFlow's.
    """
    height, width, channels = image.shape
    depth = 8 * image.dtype.itemsize
    rows = image.astype(image.dtype.newbyteorder(">"), copy=False).reshape(height, -1)
    raw = np.ascontiguousarray(rows).view(np.uint8)
    lines = _filtered(raw, channels * image.dtype.itemsize)
    header = struct.pack(">IIBBBBB", width, height, depth, _COLOR_TYPES[channels], 0, 0, 0)
    data = _compressed(lines.tobytes(), level)
    parts = (data[at : at + _PART] for at in range(0, len(data), _PART))
    content = b"".join(_chunk(b"IDAT", part) for part in parts)
    return b"".join((_SIGNATURE, _chunk(b"IHDR", header), content, _chunk(b"IEND", b"")))


def _filtered(raw: Array, step: int) -> Array:
    """Each row as what it adds to its surroundings, with the number of the way in front.

    That way is taken whose differences are smallest; of equally good ones, the first.
    """
    height, size = raw.shape
    best = np.empty((height, 1 + size), np.uint8)
    least = np.full(height, np.iinfo(np.int64).max)
    for kind, lines in _filters(raw, step):
        total = np.abs(lines.view(np.int8).astype(np.int16)).sum(1, np.int64)
        is_better = total < least
        best[is_better, 0] = kind
        best[is_better, 1:] = lines[is_better]
        least = np.minimum(least, total)
    return best


def _filters(raw: Array, step: int) -> Iterator[tuple[int, Array]]:
    """Every way there is, and what it makes of all rows: RFC 2083, chapter 6."""
    height, size = raw.shape
    yield 0, raw
    left, up, corner = np.zeros((3, height, size), np.int16)
    left[:, step:] = raw[:, :-step]
    up[1:] = raw[:-1]
    corner[1:, step:] = raw[:-1, :-step]
    is_wide, is_high = size > step, height > 1
    if is_wide:
        yield _SUB, raw - left.astype(np.uint8)
    if is_high:
        yield _UP, raw - up.astype(np.uint8)
    if is_wide and is_high:
        yield _AVERAGE, raw - ((left + up) >> 1).astype(np.uint8)
        yield _PAETH, raw - _paeth(left, up, corner).astype(np.uint8)


def _compressed(data: bytes, level: int) -> bytes:
    """The data in zlib's format, with no larger a window than they fill."""
    bits = 15
    while bits > 9 and len(data) + 262 <= 1 << bits - 1:
        bits -= 1
    packer = zlib.compressobj(level, zlib.DEFLATED, bits, 8, zlib.Z_FILTERED)
    return packer.compress(data) + packer.flush()


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


# -- reading ---------------------------------------------------------------------------


class PngHeader(NamedTuple):
    """What a file says of its image: pixels, bits, and the number of a type of colour."""

    width: int
    height: int
    depth: int
    color: int


def png_header(data: bytes) -> PngHeader:
    """How a file begins; raises InvalidArgumentError if there is no image that could be read."""
    if data.startswith(_SIGNATURE) and data[12:16] == b"IHDR" and len(data) >= 33:
        header = PngHeader(*struct.unpack(">IIBB", data[16:26]))
        if 0 < header.width <= _LONGEST_SIDE and 0 < header.height <= _LONGEST_SIDE:
            return header
    raise InvalidArgumentError("Invalid PNG. Failed to initialize decoder.")


def decode_png(data: bytes, channels: int) -> Array:
    """The image in a file, with 8 or 16 bits as it has them.

    Args:
        data: the file.
        channels: 1 for grey, 3 for colours, 4 for colours and opacity, 0 for what is there.

    """
    width, height, depth, color = png_header(data)
    if width * height >= _MOST_PIXELS:
        raise InvalidArgumentError(f"PNG size too large for int: {width} by {height}")
    samples = max(_CHANNELS.get(color, 4), channels)
    check_new((height, width, samples), np.dtype(np.uint16 if depth == 16 else np.uint8))
    complaint = f"Invalid PNG data, size {len(data)}"
    if depth != 16:
        with opened(data, "PNG", complaint) as file:
            return _to_channels(_plain(file, wants_opacity=channels == 4), channels, depth)
    try:
        return _to_channels(_decode_deep(data), channels, depth)
    except (ValueError, struct.error, zlib.error) as cause:
        raise InvalidArgumentError(complaint) from cause


def _plain(image: Any, *, wants_opacity: bool) -> Array:
    """The numbers of Pillow's image, without palettes."""
    image.load()
    is_transparent = "transparency" in image.info
    if image.mode == "P":
        image = image.convert("RGBA" if is_transparent else "RGB")
    elif is_transparent and wants_opacity:
        image = image.convert("RGBA")
    elif image.mode == "1":
        image = image.convert("L")
    return pixels_of(image)


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
    if kind == _SUB:
        np.cumsum(row, axis=0, dtype=np.uint8, out=row)
    elif kind == _UP:
        row += above
    elif kind in (_AVERAGE, _PAETH):
        _undo_with_left(kind, row, above)
    else:
        raise ValueError(f"filter {kind}")


def _undo_with_left(kind: int, row: Array, above: Array) -> None:
    """Undo the filters that need the pixel to the left, which is itself just undone."""
    wide = above.astype(np.int16)
    left = corner = np.zeros(row.shape[1], np.int16)
    for at in range(len(row)):
        up = wide[at]
        guess = (left + up) >> 1 if kind == _AVERAGE else _paeth(left, up, corner)
        row[at] += guess.astype(np.uint8)
        left, corner = row[at].astype(np.int16), up


def _paeth(left: Array, up: Array, corner: Array) -> Array:
    """Whichever of the three is nearest to ``left + up - corner``."""
    to_left, to_up = np.abs(up - corner), np.abs(left - corner)
    to_corner = np.abs(left + up - 2 * corner)
    nearest: Array = np.where(to_up <= to_corner, up, corner)
    return np.where((to_left <= to_up) & (to_left <= to_corner), left, nearest)
