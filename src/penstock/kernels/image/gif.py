"""GIF files, frame by frame as TensorFlow shows them.

In:   a file's bytes.
Out:  frames of red, green and blue.
Not:  decompresses nothing itself: Pillow does, each frame as a file of its own.

What a frame leaves open shows the frame before it, whatever the file says about disposal.
A file that breaks off has the frames before that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.image.pillow_files import opened
from penstock.kernels.values.arrays import check_new

_EXTENSION, _IMAGE = 0x21, 0x2C
_CONTROL: Final = 0xF9
#: Bits of flags: a table of colours follows, lines are in four passes, a color is transparent.
_HAS_TABLE, _IS_INTERLACED, _HAS_TRANSPARENCY = 0x80, 0x40, 0x01
#: Bytes before the first table.
_HEADER: Final = 13
#: The largest size of a code that pixels can begin with.
_MOST_BITS: Final = 8
#: Pixels that a byte can stand for: a code of three bits or more is for no more than 4096.
_MOST_PER_BYTE: Final = 4096 * 8 // 3 + 1
#: What is wrong with a frame whose pixels are not all there.
_CUT: Final = "Image EOF detected before image complete"


@dataclass(frozen=True)
class _Frame:
    """A part of the screen; ``content`` is compressed."""

    left: int
    top: int
    width: int
    height: int
    is_interlaced: bool
    table: Array
    transparent: int
    content: bytes

    @property
    def is_possible(self) -> bool:
        """Whether there may be so many pixels as it says."""
        enough = self.width * self.height <= len(self.content) * _MOST_PER_BYTE
        return enough and self.content[0] <= _MOST_BITS


class _BrokenError(Exception):
    """The file ends too early, or has something else than it should."""


def decode_gif(data: bytes, most: int | None = None) -> Array:
    """The frames of a file: number, height, width and three channels of bytes.

    All are as large as the largest, whatever the file says about the screen.

    Args:
        data: the file.
        most: how many frames are wanted; None for all.

    """
    try:
        flags = _bytes(data, 0, _HEADER)[10]
        shared, start = _table(data, _HEADER, flags)
    except _BrokenError:
        raise _error(data, "failed to open gif file: No screen descriptor detected") from None
    frames, fault = _whole_frames(data, start, shared)
    if not frames:
        raise _error(data, f"failed to slurp gif file: {fault}")
    height = max(frame.height for frame, _ in frames)
    width = max(frame.width for frame, _ in frames)
    shown = np.zeros((len(frames[:most]), height, width, 3), np.uint8)
    for at, (frame, numbers) in enumerate(frames[:most]):
        if at:
            shown[at] = shown[at - 1]
        if not len(frame.table):
            raise _error(data, f"missing color map for frame {at}")
        if fault := _draw(frame, numbers, shown[at]):
            raise _error(data, fault)
    return shown


def _whole_frames(data: bytes, start: int, shared: Array) -> tuple[list[tuple[_Frame, Array]], str]:
    """The frames, with a colour's number for each pixel, and why there is no further one.

    Raises:
        ResourceExhaustedError: there is no memory for all of them.

    """
    frames: list[tuple[_Frame, Array]] = []
    height = width = 0
    try:
        for frame in _frames(data, start, shared):
            if not frame.is_possible:
                return frames, _CUT
            height, width = max(height, frame.height), max(width, frame.width)
            check_new((len(frames) + 1, height, width, 3), np.dtype(np.uint8))
            frames.append((frame, _numbers(frame)))
    except _BrokenError as cause:
        return frames, str(cause)
    return frames, "No Image Descriptor detected"


def _frames(data: bytes, at: int, shared: Array) -> Iterator[_Frame]:
    """One frame after the other."""
    transparent: int | None = None
    while True:
        kind = _bytes(data, at, 1)[0]
        if kind == _EXTENSION:
            label = _bytes(data, at + 1, 1)[0]
            content, at = _blocks(data, at + 2)
            if label == _CONTROL and len(content) > 4 and transparent is None:
                transparent = content[4] if content[1] & _HAS_TRANSPARENCY else -1
        elif kind == _IMAGE:
            frame, at = _frame(data, at + 1, shared, -1 if transparent is None else transparent)
            yield frame
            transparent = None
        else:
            return


def _frame(data: bytes, at: int, shared: Array, transparent: int) -> tuple[_Frame, int]:
    """The frame that is described here, and where it ends."""
    left, top, width, height, flags = struct.unpack("<HHHHB", _bytes(data, at, 9))
    if not width or not height:
        raise _BrokenError("a frame without pixels")
    own, start = _table(data, at + 9, flags)
    _, end = _blocks(data, start + 1)
    table, content = own if len(own) else shared, data[start:end]
    is_interlaced = bool(flags & _IS_INTERLACED)
    return _Frame(left, top, width, height, is_interlaced, table, transparent, content), end


def _table(data: bytes, at: int, flags: int) -> tuple[Array, int]:
    """The colours that may lie here, and where they end."""
    count = 2 << (flags & 7) if flags & _HAS_TABLE else 0
    return np.frombuffer(_bytes(data, at, 3 * count), np.uint8).reshape(-1, 3), at + 3 * count


def _blocks(data: bytes, at: int) -> tuple[bytes, int]:
    """The blocks that begin here with their sizes, the empty last one too, and where they end."""
    start = at
    while size := _bytes(data, at, 1)[0]:
        _bytes(data, at, 1 + size)
        at += 1 + size
    return data[start : at + 1], at + 1


def _bytes(data: bytes, at: int, count: int) -> bytes:
    found = data[at : at + count]
    if len(found) < count:
        raise _BrokenError("Failed to read from given file")
    return found


# -- drawing ---------------------------------------------------------------------------


def _numbers(frame: _Frame) -> Array:
    """Which colour each pixel of a frame has, by its number."""
    size = struct.pack("<HH", frame.width, frame.height)
    flags = _IS_INTERLACED if frame.is_interlaced else 0
    # A file with this frame alone, at its own size and without colours, so that numbers stay.
    screen = b"GIF89a" + size + b"\0\0\0"
    image = b"\x2c\0\0\0\0" + size + bytes([flags]) + frame.content
    try:
        with opened(screen + image + b";", "GIF", _CUT) as file:
            return np.asarray(file)
    except InvalidArgumentError as cause:
        raise _BrokenError(_CUT) from cause


def _draw(frame: _Frame, numbers: Array, screen: Array) -> str:
    """Draw a frame over what is there; returns what is wrong with it, if anything."""
    height, width = screen.shape[:2]
    numbers = numbers[: max(height - frame.top, 0), : max(width - frame.left, 0)]
    is_seen = numbers != frame.transparent
    unknown = numbers[is_seen & (numbers >= len(frame.table))]
    if len(unknown):
        return f"found color index {unknown[0]} outside of color map range {len(frame.table)}"
    part = screen[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
    part[is_seen] = frame.table[numbers[is_seen]]
    return ""


def _error(data: bytes, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Invalid GIF data (size {len(data)}), {what}")
