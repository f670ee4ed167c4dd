"""Numbers in as few bytes as they need, as protobuf and its kin write them.

In:   numbers, or bytes and where to start.
Out:  bytes, or numbers and where they end.
Not:  knows no file formats.
"""

from __future__ import annotations

from penstock.errors import DataLossError


def write_varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the top bit says that more follow."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number that begins at ``at``, and where the next one begins."""
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise DataLossError("a number is cut off")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
