"""GIF files, frame by frame, as TensorFlow puts them together.

In:   the bytes of a file.
Out:  all frames in colours, each as it is seen over those before it.
Not:  unpacks no pixels itself: Pillow does, of one frame at a time.

The file's own canvas counts for nothing, nor does what is to become of a frame once it was shown:
the picture is as large as the largest frame, and what a frame leaves out or makes transparent stays
as it was.  A file that is damaged somewhere is good for the frames before.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import check_new
from penstock.kernels.extras import require
from penstock.kernels.image.png import DAMAGE

_EXTENSION, _IMAGE = 0x21, 0x2C
_CONTROL: Final = 0xF9
_HAS_COLORS: Final = 0x80
#: The largest size of a code that a byte of pixels can begin with.
_MOST_BITS: Final = 8
#: A code of three bits or more stands for no more than 4096 pixels.
_MOST_PER_BYTE: Final = 4096 * 8 // 3 + 1


class _Box(NamedTuple):
    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class _Frame:
    """What a file says of one frame."""

    box: _Box
    flags: int
    #: Colours, three bytes each; empty if there are none.
    colors: bytes
    #: The colour that is none; -1 if all are.
    transparent: int
    #: The size of the codes, and the pixels, in blocks behind their lengths.
    packed: bytes


def decode_gif(data: bytes) -> Array:
    """The frames of a file: frames, rows, columns, and red, green and blue.

    Raises:
        InvalidArgumentError: not even the first frame can be read.
        ResourceExhaustedError: there is no memory for all of them.

    """
    whole: list[tuple[_Frame, Array]] = []
    for frame in _frames(data):
        pixels = _pixels(frame)
        if pixels is None:
            break
        whole.append((frame, pixels))
    if not whole:
        raise InvalidArgumentError(
            f"Invalid GIF data (size {len(data)}), failed to slurp gif file: no frame can be read"
        )
    height = max(frame.box.height for frame, _ in whole)
    width = max(frame.box.width for frame, _ in whole)
    check_new((len(whole), height, width, 3), np.dtype(np.uint8))
    seen = np.zeros((len(whole), height, width, 3), np.uint8)
    for number, (frame, pixels) in enumerate(whole):
        if number:
            seen[number] = seen[number - 1]
        _draw(seen[number], frame, pixels, f"Invalid GIF data (size {len(data)})", number)
    return seen


def _draw(canvas: Array, frame: _Frame, pixels: Array, complaint: str, number: int) -> None:
    """Put a frame's pixels where they belong, and leave the rest as it is."""
    if not frame.colors:
        raise InvalidArgumentError(f"{complaint}, missing color map for frame {number}")
    left, top = frame.box.left, frame.box.top
    under = canvas[top : top + frame.box.height, left : left + frame.box.width]
    inside = pixels[: under.shape[0], : under.shape[1]]
    is_seen = inside != frame.transparent
    colors = np.frombuffer(frame.colors, np.uint8).reshape(-1, 3)
    most = int(inside[is_seen].max(initial=0))
    if most >= len(colors):
        raise InvalidArgumentError(
            f"{complaint}, found color index {most} outside of color map range {len(colors)}"
        )
    under[is_seen] = colors[inside[is_seen]]


def _pixels(frame: _Frame) -> Array | None:
    """The colours' numbers, row by row; None if they are damaged."""
    box, bits = frame.box, frame.packed[0]
    if not 0 < box.width * box.height <= len(frame.packed) * _MOST_PER_BYTE or bits > _MOST_BITS:
        return None
    check_new((box.height, box.width), np.dtype(np.uint8))
    plugin = require("PIL.GifImagePlugin", "images")
    # A file with this frame alone, at its own size and without colours, so that numbers stay.
    head = b"GIF89a" + struct.pack("<HHBBB", box.width, box.height, 0, 0, 0)
    place = struct.pack("<BHHHHB", _IMAGE, 0, 0, *box[2:], frame.flags & ~_HAS_COLORS & 0x78)
    try:
        image: Any = plugin.GifImageFile(io.BytesIO(head + place + frame.packed + b";"))
        return np.asarray(image)
    except DAMAGE:
        return None


# -- the file's parts ------------------------------------------------------------------


class _CutOffError(Exception):
    """The file ends in the middle of something."""


class _Reader:
    """The bytes of a file, one part after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        part = self._data[self.at : self.at + size]
        if len(part) < size:
            raise _CutOffError
        self.at += size
        return part

    def colors(self, flags: int) -> bytes:
        """A table of colours, if the flags say that there is one."""
        return self.take(3 << ((flags & 7) + 1)) if flags & _HAS_COLORS else b""

    def blocks(self) -> bytes:
        """Blocks behind their lengths, to the empty one that ends them."""
        start = self.at
        while size := self.take(1)[0]:
            self.take(size)
        return self._data[start : self.at]


def _frames(data: bytes) -> Iterator[_Frame]:
    """The frames of a file, up to its end or to what makes no sense."""
    file = _Reader(data)
    try:
        yield from _read_frames(file)
    except _CutOffError:
        return


def _read_frames(file: _Reader) -> Iterator[_Frame]:
    file.take(6)
    _, _, flags, _, _ = struct.unpack("<HHBBB", file.take(7))
    colors, transparent = file.colors(flags), -1
    is_controlled = False
    while (kind := file.take(1)[0]) in (_EXTENSION, _IMAGE):
        if kind == _EXTENSION:
            label, blocks = file.take(1)[0], file.blocks()
            if label == _CONTROL and len(blocks) > 4 and not is_controlled:
                is_controlled = True  # The first of several is the one that counts.
                transparent = blocks[4] if blocks[1] & 1 else -1
            continue
        *box, flags = struct.unpack("<HHHHB", file.take(9))
        own = file.colors(flags)
        yield _Frame(_Box(*box), flags, own or colors, transparent, file.take(1) + file.blocks())
        transparent, is_controlled = -1, False
