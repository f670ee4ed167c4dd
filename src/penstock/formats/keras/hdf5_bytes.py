"""Numbers, texts and types of HDF5 files.

In:   the bytes of a file.
Out:  ``Bytes``, of which nothing is read beyond its ends; what kind of elements a part says.
Not:  knows no groups and no arrays.
"""

from __future__ import annotations

import math
from typing import Any, Final

import ml_dtypes
import numpy as np

from penstock.dataclass import dataclass

SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
#: The longest attribute, in bytes.
LONGEST: Final = 64 << 20


class DamagedError(ValueError):
    """The file does not hold what it says."""


class NewerFormError(ValueError):
    """The file is in a form that is not read here."""


@dataclass(frozen=True, slots=True)
class Type:
    """The type of elements: numpy's, or texts of variable length."""

    dtype: np.dtype[Any]
    is_text: bool = False


class Bytes:
    """The content of a file, of which nothing is read beyond its ends."""

    def __init__(self, content: bytes) -> None:
        self.content = memoryview(content)
        self.offset_size = self.length_size = 8
        #: Collections of texts that were read, by their place.
        self._heaps: dict[int, dict[int, bytes]] = {}

    # -- numbers -----------------------------------------------------------------------------

    def take(self, place: int, size: int) -> bytes:
        """So many bytes."""
        if place < 0 or size < 0 or place + size > len(self.content):
            raise DamagedError("a place outside of the file")
        return bytes(self.content[place : place + size])

    def number(self, place: int, size: int) -> int:
        """An unsigned number, the least byte first."""
        return int.from_bytes(self.take(place, size), "little")

    def offset(self, place: int) -> int:
        """A place in the file."""
        return self.number(place, self.offset_size)

    def is_nowhere(self, place: int) -> bool:
        """Whether a place is the one that means none."""
        return place == (1 << (8 * self.offset_size)) - 1

    def read_superblock(self) -> int:
        """Read the beginning of the file; returns the place of the outermost group."""
        if self.take(0, 8) != SIGNATURE:
            raise DamagedError("no HDF5 file")
        version = self.number(8, 1)
        if version > 3:
            raise NewerFormError(f"superblock version {version}")
        sizes = 13 if version < 2 else 9
        self.offset_size, self.length_size = self.number(sizes, 1), self.number(sizes + 1, 1)
        if self.offset_size not in (4, 8) or self.length_size not in (4, 8):
            raise DamagedError("sizes of numbers")
        if version >= 2:
            begin, root = 12, 12 + 3 * self.offset_size
        else:
            begin = 24 if version == 0 else 28
            root = begin + 5 * self.offset_size
        if self.offset(begin) != 0:
            raise NewerFormError("a file behind other bytes")
        return self.offset(root)

    # -- types and texts ---------------------------------------------------------------------

    def plain(self, type_: Type, shape: tuple[int, ...], data: bytes) -> Any:
        """Elements in Python's own types: one, or a list of them."""
        count = math.prod(shape)
        width = 8 + self.offset_size if type_.is_text else type_.dtype.itemsize
        if count * max(width, 1) > min(len(data), LONGEST):
            raise DamagedError("an attribute that is longer than its place")
        if type_.is_text:
            values: list[Any] = [
                self._text(data[i * width : (i + 1) * width]) for i in range(count)
            ]
        else:
            array = np.frombuffer(data, type_.dtype, count)
            values = [_decoded(item) for item in array.tolist()]
        return values if shape else values[0]

    def _text(self, reference: bytes) -> str:
        length = int.from_bytes(reference[:4], "little")
        place = int.from_bytes(reference[4 : 4 + self.offset_size], "little")
        index = int.from_bytes(reference[4 + self.offset_size :], "little")
        if not length:
            return ""
        if place not in self._heaps:
            self._heaps[place] = self._collection(place)
        found = self._heaps[place].get(index)
        if found is None or length > len(found):
            raise DamagedError("a text that is not there")
        return found[:length].decode("utf-8", "replace")

    def _collection(self, place: int) -> dict[int, bytes]:
        """The texts of a collection, by number."""
        if self.take(place, 4) != b"GCOL":
            raise DamagedError("no collection of texts")
        end = place + self.number(place + 8, self.length_size)
        place += 8 + self.length_size
        found: dict[int, bytes] = {}
        while place + 8 + self.length_size <= end:
            index = self.number(place, 2)
            size = self.number(place + 8, self.length_size)
            place += 8 + self.length_size
            if not index:
                break
            found[index] = self.take(place, size)
            place += -(-size // 8) * 8
        return found


def _decoded(item: Any) -> Any:
    return item.rstrip(b"\0").decode("utf-8", "replace") if isinstance(item, bytes) else item


# -- types and shapes -----------------------------------------------------------------------------


def shape_of(body: bytes, length_size: int) -> tuple[int, ...]:
    """The sizes that a dataspace says."""
    version, rank = body[0], body[1]
    if version not in (1, 2) or rank > 32:
        raise DamagedError("a shape of unknown form")
    if version == 2 and body[3] == 2:
        return (0,)
    place = 8 if version == 1 else 4
    sizes = [body[place + n * length_size :][:length_size] for n in range(rank)]
    if sizes and len(sizes[-1]) < length_size:
        raise DamagedError("a shape that is too short")
    return tuple(int.from_bytes(size, "little") for size in sizes)


def type_of(body: bytes) -> Type:
    """The type that a datatype message says."""
    kind, bits, size = body[0] & 15, body[1], int.from_bytes(body[4:8], "little")
    order = ">" if bits & 1 else "<"
    if kind == 0 and size in (1, 2, 4, 8):
        return Type(np.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}"))
    if kind == 1:
        return _real(size, order, exponent=body[13])
    if kind == 3 and 0 < size <= LONGEST:
        return Type(np.dtype(f"S{size}"))
    if kind == 8:  # numbers with names, such as h5py's truth values
        return type_of(body[8:])
    if kind == 9 and bits & 15 == 1:
        return Type(np.dtype(object), is_text=True)
    if kind == 9:
        return Type(np.dtype("V1"))
    raise NewerFormError(f"elements of class {kind}")


def _real(size: int, order: str, exponent: int) -> Type:
    if size == 2 and exponent == 8:
        return Type(np.dtype(ml_dtypes.bfloat16))
    if size not in (2, 4, 8):
        raise NewerFormError(f"numbers of {size} bytes")
    return Type(np.dtype(f"{order}f{size}"))
