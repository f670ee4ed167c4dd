"""HDF5 files of strangers, read here: groups, attributes and arrays as h5py writes them by default.

In:   the bytes of a file.
Out:  ``Node``: what is below a group, what its attributes say, what an array holds.
Not:  reads no links to other places, no arrays in other files, and no form of the format younger
      than HDF5 1.8's large groups (``NewerFormError``), for which there is h5py.

HDF5's own library trusts what it reads: some damaged files keep it busy for ever.  Here every
offset is checked, every structure is visited once, and nothing is larger than the file can hold.
The layout is that of the HDF5 File Format Specification, versions 1 to 3.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import ml_dtypes
import numpy as np

from penstock.core.values import Array

SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
#: Groups in groups deeper than this are no model's.
_DEEPEST: Final = 200
#: The largest array and the largest attribute, in bytes.
_LARGEST: Final = 1 << 31
_LONGEST: Final = 64 << 20
#: What a chunk may unpack to, in multiples of its size: DEFLATE's own limit is about 1030.
_EXPANSION: Final = 1100

# The numbers of the messages of object headers.
_SPACE, _LINK_INFO, _TYPE, _LINK, _LAYOUT = 1, 2, 3, 6, 8
_FILTERS, _ATTRIBUTE, _CONTINUED, _SYMBOLS, _ATTRIBUTE_INFO = 11, 12, 16, 17, 21


class DamagedError(ValueError):
    """The file does not hold what it says."""


class NewerFormError(ValueError):
    """The file is in a form that is not read here."""


@dataclass(frozen=True, slots=True)
class _Type:
    """The type of elements: numpy's, or texts of variable length."""

    dtype: np.dtype[Any]
    is_text: bool = False


@dataclass(slots=True)
class Node:
    """A group or an array of a file."""

    file: _Bytes
    #: What is below it, by name; empty for arrays.  None for what is a link to another place.
    children: dict[str, Node | None] = field(default_factory=dict)
    #: The bodies of its attributes' messages.
    attributes: dict[str, tuple[_Type, tuple[int, ...], bytes]] = field(default_factory=dict)
    type: _Type | None = None
    shape: tuple[int, ...] = ()
    layout: bytes = b""
    filters: bytes = b""

    @property
    def is_array(self) -> bool:
        """Whether it holds numbers rather than others."""
        return self.type is not None

    def attribute(self, name: str) -> Any:
        """An attribute in Python's own types, or None."""
        if name not in self.attributes:
            return None
        type_, shape, data = self.attributes[name]
        return self.file.plain(type_, shape, data)

    def array(self) -> Array:
        """The elements of an array."""
        assert self.type is not None
        if self.type.is_text:
            raise NewerFormError("an array of texts")
        count = math.prod(self.shape)
        size = count * self.type.dtype.itemsize
        if size > _LARGEST:
            raise DamagedError(f"an array of {size} bytes")
        data = self.file.stored(self, size)
        return np.frombuffer(data, self.type.dtype, count).reshape(self.shape)


def open_hdf5(content: bytes) -> Node:
    """The outermost group of a file.

    Raises:
        DamagedError: the file does not hold what it says.
        NewerFormError: it is in a form that is not read here.

    """
    file = _Bytes(content)
    return _Tree(file).node(file.read_superblock(), 0)


class _Bytes:
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

    def plain(self, type_: _Type, shape: tuple[int, ...], data: bytes) -> Any:
        """Elements in Python's own types: one, or a list of them."""
        count = math.prod(shape)
        width = 8 + self.offset_size if type_.is_text else type_.dtype.itemsize
        if count * max(width, 1) > min(len(data), _LONGEST):
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

    # -- elements of arrays ------------------------------------------------------------------

    def stored(self, node: Node, size: int) -> bytes:
        """The bytes of an array's elements."""
        if len(node.layout) < 2:
            raise DamagedError("an array without a place")
        version, kind = node.layout[0], node.layout[1]
        if version not in (3, 4) or kind > 2 or (kind == 2 and version == 4):
            raise NewerFormError(f"arrays of layout {version}.{kind}")
        if kind == 0:
            data = node.layout[4:]
        elif kind == 1:
            place = int.from_bytes(node.layout[2 : 2 + self.offset_size], "little")
            data = bytes(size) if self._is_unwritten(place, size) else self.take(place, size)
        else:
            data = _Chunks(self, node, size).data()
        if len(data) < size:
            raise DamagedError("an array that is longer than its place")
        return data[:size]

    def _is_unwritten(self, place: int, size: int) -> bool:
        """Whether nothing was written to an array, which is then zeros, and not a large one."""
        return self.is_nowhere(place) and size <= _LONGEST


def _decoded(item: Any) -> Any:
    return item.rstrip(b"\0").decode("utf-8", "replace") if isinstance(item, bytes) else item


# -- chunks ---------------------------------------------------------------------------------------


class _Chunks:
    """An array that lies in pieces, which may be packed."""

    def __init__(self, file: _Bytes, node: Node, size: int) -> None:
        assert node.type is not None
        self.file, self.node, self.size = file, node, size
        rank = node.layout[2] - 1
        begin = 3 + file.offset_size
        sizes = struct.unpack_from(f"<{rank + 1}I", node.layout, begin) if rank >= 0 else ()
        self.root = int.from_bytes(node.layout[3:begin], "little")
        self.piece = tuple(sizes[:-1])
        self.itemsize = node.type.dtype.itemsize
        bytes_ = math.prod(self.piece) * self.itemsize
        is_odd = len(self.piece) != len(node.shape) or not all(self.piece)
        if is_odd or bytes_ > _LARGEST or size > max(_LONGEST, _EXPANSION * len(file.content)):
            raise DamagedError("pieces that do not fit their array")
        self.piece_bytes = bytes_
        self.filters = list(_filters(node.filters))

    def data(self) -> bytes:
        """All elements."""
        assert self.node.type is not None
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


# -- groups ---------------------------------------------------------------------------------------


class _Tree:
    """What is below what."""

    def __init__(self, file: _Bytes) -> None:
        self.file = file
        #: Headers on the way from the outermost group, none of which may come again.
        self.path: set[int] = set()
        #: How many nodes may still be made: each takes some bytes of the file.
        self.left = len(file.content) // 8

    def node(self, place: int, depth: int) -> Node:
        """The group or array whose header is at ``place``, with all that is below it."""
        self.left -= 1
        if place in self.path or depth > _DEEPEST or self.left < 0:
            raise DamagedError("groups in a circle")
        self.path.add(place)
        made = Node(self.file)
        for kind, flags, body in self._messages(place):
            try:
                self._add(made, kind, flags, body, depth)
            except (struct.error, IndexError):
                raise DamagedError("a part of a header that is too short") from None
        self.path.discard(place)
        return made

    def _add(self, node: Node, kind: int, flags: int, body: bytes, depth: int) -> None:
        if flags & 2 and kind in (_TYPE, _SPACE, _ATTRIBUTE):
            raise NewerFormError("a shared part of a header")
        if kind == _SPACE:
            node.shape = _shape(body, self.file.length_size)
        elif kind == _TYPE:
            node.type = _type(body)
        elif kind == _LAYOUT:
            node.layout = body
        elif kind == _FILTERS:
            node.filters = body
        elif kind == _ATTRIBUTE:
            name, attribute = self._attribute(body)
            node.attributes[name] = attribute
        elif kind == _SYMBOLS:
            tree, heap = (
                int.from_bytes(body[n : n + self.file.offset_size], "little")
                for n in (0, self.file.offset_size)
            )
            self._add_symbols(node, tree, heap, depth)
        elif kind == _LINK:
            self._add_link(node, body, depth)
        elif kind in (_LINK_INFO, _ATTRIBUTE_INFO):
            index = (8 if kind == _LINK_INFO else 2) if body[1] & 1 else 0
            heap = int.from_bytes(body[2 + index : 2 + index + self.file.offset_size], "little")
            if not self.file.is_nowhere(heap):
                raise NewerFormError("a group with many members")

    # -- headers -----------------------------------------------------------------------------

    def _messages(self, place: int) -> Iterator[tuple[int, int, bytes]]:
        """The parts of a header: kind, flags, content."""
        file = self.file
        is_new = file.take(place, 4) == b"OHDR"
        if is_new:
            flags = file.number(place + 5, 1)
            begin = place + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
            width = 1 << (flags & 3)
            blocks = [(begin + width, file.number(begin, width))]
            extra = 2 if flags & 4 else 0
        else:
            if file.number(place, 1) != 1:
                raise DamagedError("a header of unknown form")
            blocks = [(place + 16, file.number(place + 8, 4))]
            extra = 0
        seen: set[int] = set()
        for begin, size in blocks:
            if begin in seen:
                raise DamagedError("a header in a circle")
            seen.add(begin)
            for kind, flags, body in self._block(begin, size, extra, is_new=is_new):
                if kind == _CONTINUED:
                    more = int.from_bytes(body[: file.offset_size], "little")
                    length = int.from_bytes(body[file.offset_size :][: file.length_size], "little")
                    blocks.append((more + 4, length - 8) if is_new else (more, length))
                else:
                    yield kind, flags, body

    def _block(
        self, place: int, size: int, extra: int, *, is_new: bool
    ) -> Iterator[tuple[int, int, bytes]]:
        file, end = self.file, place + size
        head = 4 + extra if is_new else 8
        file.take(place, size)
        while place + head <= end:
            if is_new:
                kind, length, flags = struct.unpack("<BHB", file.take(place, 4))
            else:
                kind, length, flags = struct.unpack("<HHB", file.take(place, 5))
            yield kind, flags, file.take(place + head, length)
            place += head + length

    def _attribute(self, body: bytes) -> tuple[str, tuple[_Type, tuple[int, ...], bytes]]:
        version, flags, name_size, type_size, space_size = struct.unpack_from("<BBHHH", body)
        if version not in (1, 2, 3) or (version > 1 and flags & 3):
            raise NewerFormError("a shared part of an attribute")
        place = 9 if version == 3 else 8
        parts = []
        for size in (name_size, type_size, space_size):
            parts.append(body[place : place + size])
            place += -(-size // 8) * 8 if version == 1 else size
        name = parts[0].rstrip(b"\0").decode("utf-8", "replace")
        space = _shape(parts[2], self.file.length_size)
        return name, (_type(parts[1]), space, body[place:])

    # -- members of groups -------------------------------------------------------------------

    def _add_link(self, node: Node, body: bytes, depth: int) -> None:
        flags = body[1]
        place = 2 + (1 if flags & 8 else 0)
        kind = body[2] if flags & 8 else 0
        place += (8 if flags & 4 else 0) + (1 if flags & 16 else 0)
        width = 1 << (flags & 3)
        length = int.from_bytes(body[place : place + width], "little")
        place += width
        name = body[place : place + length].decode("utf-8", "replace")
        place += length
        if kind:
            node.children[name] = None
            return
        header = int.from_bytes(body[place : place + self.file.offset_size], "little")
        node.children[name] = self.node(header, depth + 1)

    def _add_symbols(self, node: Node, tree: int, heap: int, depth: int) -> None:
        file = self.file
        if file.take(heap, 4) != b"HEAP":
            raise DamagedError("a group without names")
        size = file.number(heap + 8, file.length_size)
        names = file.take(file.offset(heap + 8 + 2 * file.length_size), size)
        for entry in self._symbols(tree, set()):
            begin = file.offset(entry)
            end = names.find(b"\0", begin)
            if begin >= len(names) or end < 0:
                raise DamagedError("a name outside of its group")
            name = names[begin:end].decode("utf-8", "replace")
            is_link = file.number(entry + 2 * file.offset_size, 4) == 2
            header = file.offset(entry + file.offset_size)
            node.children[name] = None if is_link else self.node(header, depth + 1)

    def _symbols(self, place: int, seen: set[int]) -> Iterator[int]:
        """The places of a group's entries."""
        if place in seen:
            raise DamagedError("a group in a circle")
        seen.add(place)
        file = self.file
        kind = file.take(place, 4)
        if kind == b"SNOD":
            width = 2 * file.offset_size + 24
            for number in range(file.number(place + 6, 2)):
                yield place + 8 + number * width
        elif kind == b"TREE" and file.number(place + 4, 1) == 0:
            step = file.length_size + file.offset_size
            first = place + 8 + 2 * file.offset_size + file.length_size
            for number in range(file.number(place + 6, 2)):
                yield from self._symbols(file.offset(first + number * step), seen)
        else:
            raise DamagedError("a group without members")


# -- types and shapes -----------------------------------------------------------------------------


def _shape(body: bytes, length_size: int) -> tuple[int, ...]:
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


def _type(body: bytes) -> _Type:
    """The type that a datatype message says."""
    kind, bits, size = body[0] & 15, body[1], int.from_bytes(body[4:8], "little")
    order = ">" if bits & 1 else "<"
    if kind == 0 and size in (1, 2, 4, 8):
        return _Type(np.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}"))
    if kind == 1:
        return _real(size, order, exponent=body[13])
    if kind == 3 and 0 < size <= _LONGEST:
        return _Type(np.dtype(f"S{size}"))
    if kind == 8:  # numbers with names, such as h5py's truth values
        return _type(body[8:])
    if kind == 9 and bits & 15 == 1:
        return _Type(np.dtype(object), is_text=True)
    if kind == 9:
        return _Type(np.dtype("V1"))
    raise NewerFormError(f"elements of class {kind}")


def _real(size: int, order: str, exponent: int) -> _Type:
    if size == 2 and exponent == 8:
        return _Type(np.dtype(ml_dtypes.bfloat16))
    if size not in (2, 4, 8):
        raise NewerFormError(f"numbers of {size} bytes")
    return _Type(np.dtype(f"{order}f{size}"))
