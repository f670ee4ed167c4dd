"""What zlib or gzip packed, unpacked in linear time and within a bound.

In:   packed bytes, and how many bytes may come out; or a file, to be unpacked while it is read.
Out:  the bytes, what is left behind them, and whether they end properly.
Not:  opens no file; decides nothing about what is damaged or left.

A few bytes may unpack to a thousand times as many, and a file of gzip may be a row of any number of
small ones, its members.
"""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple, Protocol

from penstock.errors import ResourceExhaustedError

#: How zlib is told which header to expect.
ZLIB: Final = zlib.MAX_WBITS
GZIP: Final = zlib.MAX_WBITS | 16
#: What every member of a gzip file begins with.
GZIP_MAGIC: Final = b"\x1f\x8b"
#: So many bytes are unpacked at once: few at first, since all that is given behind a member's end
#: is copied; then twice as many each time.  No more than _MOST come out at once.
_FIRST: Final = 1 << 10
_MOST: Final = 1 << 18


class Unpacked(NamedTuple):
    """What was packed."""

    data: bytearray
    #: What comes behind it.
    rest: memoryview
    #: Whether the packed bytes go on to their end.
    is_complete: bool


def unpack(content: bytes, method: int, most: int, origin: str) -> Unpacked:
    """Unpack one stream of ZLIB, or all members of GZIP.

    Args:
        content: packed bytes.
        method: ZLIB or GZIP.
        most: how many bytes may come out.
        origin: what the bytes are called in errors.

    Raises:
        ResourceExhaustedError: more than ``most`` bytes come out.
        zlib.error: the bytes are damaged.

    """
    data, view, at = bytearray(), memoryview(content), 0
    is_complete = True
    while is_complete and at < len(view):
        at, is_complete = _member(view, at, method, most, data, origin)
        if method != GZIP or not content.startswith(GZIP_MAGIC, at):
            break
    return Unpacked(data, view[at:], is_complete)


def _member(
    view: memoryview, at: int, method: int, most: int, data: bytearray, origin: str
) -> tuple[int, bool]:
    """Unpack one member into ``data``; returns where it ends, and whether that is its end."""
    unpacker, size = zlib.decompressobj(method), _FIRST
    while not unpacker.eof:
        given = unpacker.unconsumed_tail
        if not given:
            given = bytes(view[at : at + size])
            at, size = at + len(given), min(2 * size, _MOST)
        piece = unpacker.decompress(given, _MOST)
        if not given and not piece:
            return at, False
        data += piece
        if len(data) > most:
            raise ResourceExhaustedError(f"{origin} unpacks to more than {most} bytes")
    return at - len(unpacker.unused_data), True


class Readable(Protocol):
    """What bytes come from, as from a file."""

    def read(self, size: int, /) -> bytes:
        """So many bytes; fewer only at the end."""


class UnpackedFile:
    """One stream of ZLIB, or all members of GZIP, unpacked while they are read.

    Used by one thread at a time.
    """

    def __init__(self, file: Readable, method: int) -> None:
        self._file: Final = file
        self._method: Final = method
        self._unpacker = zlib.decompressobj(method)
        #: Packed bytes that were read and not looked at.
        self._given = b""
        #: Unpacked bytes that nobody asked for yet.
        self._ready = bytearray()
        #: Whether nothing more will come.
        self._is_over = False
        #: Whether the file ended in the middle; known when nothing more comes.
        self.is_cut = False

    def read(self, size: int, /) -> bytes:
        """So many unpacked bytes; fewer only at the end.

        Raises:
            zlib.error: the bytes are damaged, or behind a member of GZIP is something else.

        """
        while len(self._ready) < size and not self._is_over:
            self._more()
        found = bytes(self._ready[:size])
        del self._ready[:size]
        return found

    def rest(self) -> bytes:
        """Some of what stands behind the end; empty if nothing does."""
        return self._given or self._file.read(_MOST)

    def _more(self) -> None:
        """Unpack a little."""
        given = self._given or self._file.read(_MOST)
        if not given:
            self._is_over, self.is_cut = True, True
            return
        self._ready += self._unpacker.decompress(given, _MOST)
        self._given = self._unpacker.unconsumed_tail
        if self._unpacker.eof:
            self._given = self._unpacker.unused_data
            self._next_member()

    def _next_member(self) -> None:
        """Begin anew if another member of GZIP follows; nothing but zeros is none."""
        if self._method == GZIP:
            given = self._given or self._file.read(_MOST)
            while given and not given.strip(b"\0"):
                given = self._file.read(_MOST)
            self._given = given
        self._is_over = self._method != GZIP or not self._given
        self._unpacker = zlib.decompressobj(self._method)
