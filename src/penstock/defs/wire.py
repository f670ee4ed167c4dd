"""The fields of a protobuf message whose kind is not known.

In:   bytes.
Out:  ``Field``: number, type, and where it stands; as far as the bytes make sense.
Not:  knows no message; decodes no value.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.defs.varint import read_varint
from penstock.errors import DataLossError

VARINT: Final = 0
BYTES: Final = 2
#: Types of a fixed size, by their number.
_SIZES: Final = {1: 8, 5: 4}
#: More are not looked at; what follows counts as cut off.
_MAX_FIELDS: Final = 1_000_000


class Field(NamedTuple):
    """One field: its number, its type, its value's place, and the size of all of it."""

    number: int
    type: int
    start: int
    end: int
    size: int

    def value(self, content: bytes | memoryview) -> bytes:
        """The bytes of the value."""
        return bytes(content[self.start : self.end])


def fields_of(content: bytes | memoryview, limit: int = _MAX_FIELDS) -> list[Field]:
    """The first fields of a message, up to one that makes no sense or is cut off."""
    fields: list[Field] = []
    at = 0
    while at < len(content) and len(fields) < limit:
        try:
            tag, start = read_varint(content, at)
            number, kind = tag >> 3, tag & 7
            if kind == VARINT:
                end = read_varint(content, start)[1]
            elif kind == BYTES:
                size, start = read_varint(content, start)
                end = start + size
            else:
                end = start + _SIZES[kind]
        except (DataLossError, KeyError):
            break
        if number == 0 or end > len(content):
            break
        fields.append(Field(number, kind, start, end, end - at))
        at = end
    return fields
