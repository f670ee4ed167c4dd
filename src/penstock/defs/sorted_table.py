"""Tables of sorted keys in one file, in the format of LevelDB.

In:   keys in ascending order with their values; or the bytes of a file.
Out:  the bytes of a file; or keys and values.
Not:  does not know what keys and values mean; opens no file.

A file is a row of blocks: those with data, one that is not used here, an index of the
blocks, and a footer that says where the last two are.  In a block, a key is stored as what
differs from the key before it, except at restart points, whose places stand at the block's
end.  Behind each block stand the way of its compression and a masked checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from penstock.defs.crc32c import crc32c, mask
from penstock.defs.varint import read_varint, write_varint
from penstock.errors import DataLossError, UnimplementedError

_MAGIC: Final = 0xDB4775248B80FB57
_FOOTER_SIZE: Final = 48
_TRAILER_SIZE: Final = 5
_NOT_COMPRESSED: Final = 0
_BLOCK_SIZE: Final = 256 << 10
_KEYS_BETWEEN_RESTARTS: Final = 16


# -- writing ---------------------------------------------------------------------------


class _Block:
    """A block that is being written."""

    def __init__(self, keys_between_restarts: int) -> None:
        self._keys_between_restarts: Final = keys_between_restarts
        self._data = bytearray()
        #: Where the keys that are stored in full begin.
        self._restarts = [0]
        self._count = 0
        self.last_key = b""

    def __len__(self) -> int:
        return len(self._data)

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count % self._keys_between_restarts:
            shared = _shared_prefix(self.last_key, key)
        elif self._count:
            self._restarts.append(len(self._data))
        for number in (shared, len(key) - shared, len(value)):
            self._data += write_varint(number)
        self._data += key[shared:] + value
        self._count += 1
        self.last_key = key

    def finish(self) -> bytes:
        """The block with its trailer."""
        restarts = struct.pack(f"<{len(self._restarts)}I", *self._restarts)
        body = bytes(self._data) + restarts + struct.pack("<I", len(self._restarts))
        body += bytes([_NOT_COMPRESSED])
        return body + struct.pack("<I", mask(crc32c(body)))


def _shared_prefix(a: bytes, b: bytes) -> int:
    limit = min(len(a), len(b))
    return next((at for at in range(limit) if a[at] != b[at]), limit)


def write_table(items: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The file for these keys and values, which must come in ascending order of keys."""
    file = bytearray()
    index = _Block(1)

    def append(block: _Block) -> bytes:
        """Write a block; returns where it is."""
        finished = block.finish()
        handle = write_varint(len(file)) + write_varint(len(finished) - _TRAILER_SIZE)
        file.extend(finished)
        return handle

    block = _Block(_KEYS_BETWEEN_RESTARTS)
    for key, value in items:
        block.add(key, value)
        if len(block) >= _BLOCK_SIZE:
            index.add(block.last_key, append(block))
            block = _Block(_KEYS_BETWEEN_RESTARTS)
    if len(block):
        index.add(block.last_key, append(block))
    unused = append(_Block(1))
    footer = (unused + append(index)).ljust(_FOOTER_SIZE - 8, b"\0")
    return bytes(file) + footer + struct.pack("<Q", _MAGIC)


# -- reading ---------------------------------------------------------------------------


def is_table(file: bytes) -> bool:
    """Whether a file ends as tables do."""
    return len(file) >= _FOOTER_SIZE and file.endswith(struct.pack("<Q", _MAGIC))


def read_table(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a file; raises DataLossError if it is damaged."""
    if len(file) < _FOOTER_SIZE:
        raise DataLossError("file is too short to be an sstable")
    footer = file[-_FOOTER_SIZE:]
    if struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
        raise DataLossError("not an sstable (bad magic number)")
    _, _, at = _read_handle(footer, 0)
    offset, size, _ = _read_handle(footer, at)
    for _, handle in _entries(_read_block(file, offset, size)):
        offset, size, _ = _read_handle(handle, 0)
        yield from _entries(_read_block(file, offset, size))


def _read_handle(data: bytes, at: int) -> tuple[int, int, int]:
    """A block's place and size, and where the next handle begins."""
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return offset, size, at


def _read_block(file: bytes, offset: int, size: int) -> bytes:
    end = offset + size
    if end + _TRAILER_SIZE > len(file):
        raise DataLossError("truncated block read")
    (stored,) = struct.unpack_from("<I", file, end + 1)
    if stored != mask(crc32c(file[offset : end + 1])):
        raise DataLossError("block checksum mismatch")
    if file[end] != _NOT_COMPRESSED:
        raise UnimplementedError(f"blocks with compression {file[end]} cannot be read")
    return file[offset:end]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise DataLossError("bad block contents")
    (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
    end = len(block) - 4 * (restarts + 1)
    at, key = 0, b""
    while at < end:
        shared, at = read_varint(block, at)
        fresh, at = read_varint(block, at)
        size, at = read_varint(block, at)
        if shared > len(key) or at + fresh + size > end:
            raise DataLossError("bad entry in block")
        key = key[:shared] + block[at : at + fresh]
        at += fresh
        yield key, block[at : at + size]
        at += size
