"""Images in PNG files, as arrays.

In:   bytes of a file, or an array of height, width and channels.
Out:  the other.
Not:  registers no kernel; shows nothing.

Both are done here, from the format's description (RFC 2083).  Where Pillow is installed, it reads
files, which is faster; but not those with 16 bits a channel, of which it would drop half.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.kernels.image.pillow_files import opened, pixels_of
from penstock.kernels.image.png_lines import AVERAGE, PAETH, SUB, UP, Layout, paeth, samples_of
from penstock.kernels.values.arrays import check_new

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
#: Channels by the file's type of colour, palettes left out.
_CHANNELS: Final = {0: 1, 2: 3, 4: 2, 6: 4}
_COLOR_TYPES: Final = {channels: color for color, channels in _CHANNELS.items()}
#: The type of colour whose samples are places in a palette.
_PALETTE: Final = 3
#: Bits that a sample may have, by the type of colour.
_DEPTHS: Final = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
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
        yield SUB, raw - left.astype(np.uint8)
    if is_high:
        yield UP, raw - up.astype(np.uint8)
    if is_wide and is_high:
        yield AVERAGE, raw - ((left + up) >> 1).astype(np.uint8)
        yield PAETH, raw - paeth(left, up, corner).astype(np.uint8)


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
        with suppress(UnimplementedError), opened(data, "PNG", complaint) as file:
            return _to_channels(_plain(file, wants_opacity=channels == 4), channels, depth)
    try:
        return _to_channels(_decode(data, wants_opacity=channels == 4), channels, depth)
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


def _decode(data: bytes, *, wants_opacity: bool) -> Array:
    """An image with 8 bits a sample, or 16; without a palette."""
    chunks = _parts(data)
    width, height, depth, color, method, filters, interlaced = struct.unpack(
        ">IIBBBBB", chunks[b"IHDR"]
    )
    if depth not in _DEPTHS.get(color, ()) or method or filters or interlaced > 1:
        raise ValueError("a header that means nothing")
    layout = Layout(height, width, _CHANNELS.get(color, 1), depth, bool(interlaced))
    samples = samples_of(chunks.get(b"IDAT", b""), layout)
    if color == _PALETTE:
        return _colors_of(chunks)[samples[:, :, 0]]
    transparent = chunks.get(b"tRNS", b"") if wants_opacity and depth != 16 else b""
    image = samples if depth >= 8 else samples * np.uint8(255 // ((1 << depth) - 1))
    if color not in (0, 2) or len(transparent) != 2 * layout.channels:
        return image
    wanted = np.frombuffer(transparent, ">u2")
    opaque = np.where((samples == wanted).all(axis=2, keepdims=True), 0, 255).astype(np.uint8)
    colors = np.broadcast_to(image, (height, width, 3))
    return np.concatenate([colors, opaque], axis=2)


def _colors_of(chunks: Mapping[bytes, bytes]) -> Array:
    """What the places of a palette mean; with opacity, if the file says of it anything."""
    given = np.frombuffer(chunks.get(b"PLTE", b""), np.uint8)
    if given.size == 0 or given.size % 3:
        raise ValueError("no palette")
    # A place that the palette lacks is black.
    colors = np.zeros((256, 3), np.uint8)
    colors[: given.size // 3] = given.reshape(-1, 3)[:256]
    if b"tRNS" not in chunks:
        return colors
    opaque = np.full((256, 1), 255, np.uint8)
    told = np.frombuffer(chunks[b"tRNS"], np.uint8)[:256]
    opaque[: told.size, 0] = told
    return np.concatenate([colors, opaque], axis=1)


def _parts(data: bytes) -> dict[bytes, bytes]:
    """What the chunks of each kind hold; those of one kind are put together."""
    found: dict[bytes, list[bytes]] = {}
    for kind, content in _chunks(data):
        found.setdefault(kind, []).append(content)
    return {kind: b"".join(contents) for kind, contents in found.items()}


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (checksum,) = struct.unpack_from(">I", data, at + 8 + size)
        if checksum == zlib.crc32(kind + content):
            yield kind, content
        elif kind[:1].isupper():  # others are not needed to see the image
            raise ValueError("checksum mismatch")
        if kind == b"IEND":
            return
        at += 12 + size
