"""TFRecord: bytes behind their length, with a checksum behind each of the two.

In:   records, one by one; or a file.
Out:  the same in the file's format; or records and where they begin.
Not:  opens no file; does not know what records hold.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from penstock.core.memory import fits_memory
from penstock.core.unpacking import GZIP, ZLIB, Readable, UnpackedFile
from penstock.defs.crc32c import crc32c, mask
from penstock.errors import DataLossError, ResourceExhaustedError

#: How files may be packed, by TensorFlow's names.
METHODS: Final = {"GZIP": GZIP, "ZLIB": ZLIB}
#: A length and its checksum; and the checksum of a record.
_HEAD: Final = struct.Struct("<QI")
_TAIL: Final = struct.Struct("<I")
#: A long record is read in such pieces: its length may be a lie.
_PIECE: Final = 16 << 20


def framed(record: bytes) -> bytes:
    """A record with its length in front, and a checksum behind each of them."""
    length = struct.pack("<Q", len(record))
    return b"".join((length, _checksum(length), record, _checksum(record)))


def _checksum(data: bytes) -> bytes:
    return _TAIL.pack(mask(crc32c(data)))


def records_in(
    file: Readable, method: str, origin: str, *, is_strict: bool
) -> Iterator[tuple[int, bytes]]:
    """Records of a file, and where each begins in what is unpacked.

    Args:
        file: from its beginning.
        method: how it is packed: a key of ``METHODS``, or empty.
        origin: what errors call the file.
        is_strict: whether a file must end with a record.  TensorFlow does not notice if no more
            than the head of one is missing.

    Raises:
        DataLossError: a record is damaged or cut off.
        ResourceExhaustedError: a record does not fit the memory.

    """
    source = UnpackedFile(file, METHODS[method]) if method else file
    try:
        yield from _records(source, origin, is_strict=is_strict)
        if is_strict and isinstance(source, UnpackedFile):
            _check_end(source, origin)
    except zlib.error as cause:
        raise DataLossError(f"{origin}: inflate() failed with {cause}") from cause


def _records(file: Readable, origin: str, *, is_strict: bool) -> Iterator[tuple[int, bytes]]:
    at = 0
    while head := file.read(_HEAD.size):
        if len(head) < _HEAD.size:
            if is_strict:
                raise _truncated(at, origin)
            return
        length, checksum = _HEAD.unpack(head)
        if checksum != mask(crc32c(head[:8])):
            raise DataLossError(
                f"{origin}: corrupted record at {at} (Is this even a TFRecord file?)"
            )
        record, tail = _exactly(file, length, origin), file.read(_TAIL.size)
        if len(record) < length or len(tail) < _TAIL.size:
            raise _truncated(at, origin)
        if tail != _checksum(record):
            raise DataLossError(f"{origin}: corrupted record at {at + _HEAD.size}")
        yield at, record
        at += _HEAD.size + length + _TAIL.size


def _check_end(file: UnpackedFile, origin: str) -> None:
    """Refuse a packed file that ends otherwise than with its stream."""
    if file.is_cut:
        raise DataLossError(f"{origin}: the file is cut off")
    if file.rest():
        raise DataLossError(f"{origin}: behind the packed records stands something else")


def _exactly(file: Readable, size: int, origin: str) -> bytes:
    """So many bytes, or fewer if there are no more."""
    if size <= _PIECE:
        return file.read(size)
    found = bytearray()
    while len(found) < size:
        piece = file.read(min(_PIECE, size - len(found)))
        if not piece:
            break
        found += piece
        if not fits_memory(2 * len(found)):
            raise ResourceExhaustedError(f"{origin}: a record of {size} bytes is too large")
    return bytes(found)


def _truncated(at: int, origin: str) -> DataLossError:
    return DataLossError(f"{origin}: truncated record at {at}: Read less bytes than requested")
