"""The elements of arrays in HDF5 files.

In:   where an array's elements are, and how they are packed.
Out:  their bytes.
Not:  reads no headers.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np

from penstock.dataclass import dataclass
from penstock.formats.keras.hdf5_bytes import LONGEST, Bytes, DamagedError, NewerFormError, Type

#: The largest array, in bytes.
LARGEST: Final = 1 << 31
#: What a piece may unpack to, in multiples of its size: DEFLATE's own limit is about 1030.
_EXPANSION: Final = 1100


@dataclass(frozen=True, slots=True)
class Extent:
    """What a header says of an array's elements."""

    type: Type
    shape: tuple[int, ...]
    layout: bytes
    filters: bytes


def stored(file: Bytes, node: Extent, size: int) -> bytes:
    """The bytes of an array's elements."""
    if len(node.layout) < 2:
        raise DamagedError("an array without a place")
    version, kind = node.layout[0], node.layout[1]
    if version not in (3, 4) or kind > 2 or (kind == 2 and version == 4):
        raise NewerFormError(f"arrays of layout {version}.{kind}")
    if kind == 0:
        data = node.layout[4:]
    elif kind == 1:
        place = int.from_bytes(node.layout[2 : 2 + file.offset_size], "little")
        data = bytes(size) if _is_unwritten(file, place, size) else file.take(place, size)
    else:
        data = _Chunks(file, node, size).data()
    if len(data) < size:
        raise DamagedError("an array that is longer than its place")
    return data[:size]


def _is_unwritten(file: Bytes, place: int, size: int) -> bool:
    """Whether nothing was written to an array, which is then zeros, and not a large one."""
    return file.is_nowhere(place) and size <= LONGEST


class _Chunks:
    """An array that lies in pieces, which may be packed."""

    def __init__(self, file: Bytes, node: Extent, size: int) -> None:
        self.file, self.node, self.size = file, node, size
        rank = node.layout[2] - 1
        begin = 3 + file.offset_size
        sizes = struct.unpack_from(f"<{rank + 1}I", node.layout, begin) if rank >= 0 else ()
        self.root = int.from_bytes(node.layout[3:begin], "little")
        self.piece = tuple(sizes[:-1])
        self.itemsize = node.type.dtype.itemsize
        bytes_ = math.prod(self.piece) * self.itemsize
        is_odd = len(self.piece) != len(node.shape) or not all(self.piece)
        if is_odd or bytes_ > LARGEST or size > max(LONGEST, _EXPANSION * len(file.content)):
            raise DamagedError("pieces that do not fit their array")
        self.piece_bytes = bytes_
        self.filters = list(_filters(node.filters))

    def data(self) -> bytes:
        """All elements."""
        whole = np.zeros(self.node.shape, self.node.type.dtype)
        if self.file.is_nowhere(self.root):
            return whole.tobytes()
        room = -(-math.prod(self.node.shape) // max(math.prod(self.piece), 1)) * 2 + 64
        for number, (begin, content) in enumerate(self._pieces(self.root, set())):
            if number > room * 4:
                raise DamagedError("more pieces than the array has room for")
            piece = np.frombuffer(content, self.node.type.dtype, math.prod(self.piece))
            piece = piece.reshape(self.piece)
            where = tuple(slice(b, b + n) for b, n in zip(begin, self.piece, strict=True))
            part = whole[where]
            part[...] = piece[tuple(slice(n) for n in part.shape)]
        return whole.tobytes()

    def _pieces(self, place: int, seen: set[int]) -> Iterator[tuple[tuple[int, ...], bytes]]:
        if place in seen:
            raise DamagedError("pieces in a circle")
        seen.add(place)
        file = self.file
        if file.take(place, 5) != b"TREE\x01":
            raise DamagedError("no list of pieces")
        level, count = file.number(place + 5, 1), file.number(place + 6, 2)
        rank = len(self.piece)
        key_size = 8 + 8 * (rank + 1)
        entry = place + 8 + 2 * file.offset_size
        for _ in range(count):
            stored, skipped = struct.unpack("<II", file.take(entry, 8))
            begin = struct.unpack(f"<{rank}Q", file.take(entry + 8, 8 * rank))
            child = file.offset(entry + key_size)
            if level:
                yield from self._pieces(child, seen)
            else:
                yield begin, self._unpacked(file.take(child, stored), skipped)
            entry += key_size + file.offset_size

    def _unpacked(self, content: bytes, skipped: int) -> bytes:
        """A piece as it was before it was packed; filters are undone from the last to the first."""
        for place, number in reversed(list(enumerate(self.filters))):
            if skipped >> place & 1:
                continue
            if number == 1:
                try:
                    content = zlib.decompressobj().decompress(content, self.piece_bytes + 8)
                except zlib.error as cause:
                    raise DamagedError(f"a packed piece: {cause}") from None
            elif number == 2:
                count = len(content) // self.itemsize
                mixed = np.frombuffer(content, np.uint8, count * self.itemsize)
                content = mixed.reshape(self.itemsize, count).T.tobytes()
            elif number == 3:
                content = content[:-4]
            else:
                raise NewerFormError(f"arrays packed by filter {number}")
        if len(content) < self.piece_bytes:
            raise DamagedError("a piece that is too short")
        return content[: self.piece_bytes]


def _filters(message: bytes) -> Iterator[int]:
    """The numbers of an array's filters, in the order in which they were applied."""
    if not message:
        return
    version, count = message[0], message[1]
    place = 8 if version == 1 else 2
    for _ in range(count):
        number, named = struct.unpack_from("<HH", message, place)
        place += 4 if version == 1 or number >= 256 else 2
        name_size = named if version == 1 or number >= 256 else 0
        _, values = struct.unpack_from("<HH", message, place)
        place += 4 + (-(-name_size // 8) * 8 if version == 1 else name_size) + 4 * values
        if version == 1 and values % 2:
            place += 4
        yield number
