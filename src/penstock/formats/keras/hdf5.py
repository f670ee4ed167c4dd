"""HDF5 files of strangers, read here: groups, attributes, arrays, as h5py writes them by default.

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
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.formats.keras.hdf5_bytes import (
    Bytes,
    DamagedError,
    NewerFormError,
    Type,
    shape_of,
    type_of,
)
from penstock.formats.keras.hdf5_chunks import LARGEST, Extent, stored

#: Groups in groups deeper than this are no model's.
_DEEPEST: Final = 200

# The numbers of the messages of object headers.
_SPACE, _LINK_INFO, _TYPE, _LINK, _LAYOUT = 1, 2, 3, 6, 8
_FILTERS, _ATTRIBUTE, _CONTINUED, _SYMBOLS, _ATTRIBUTE_INFO = 11, 12, 16, 17, 21


@dataclass(slots=True)
class Node:
    """A group or an array of a file."""

    file: Bytes
    #: What is below it, by name; empty for arrays.  None for what is a link to another place.
    children: dict[str, Node | None] = field(default_factory=dict)
    #: The bodies of its attributes' messages.
    attributes: dict[str, tuple[Type, tuple[int, ...], bytes]] = field(default_factory=dict)
    type: Type | None = None
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
        if size > LARGEST:
            raise DamagedError(f"an array of {size} bytes")
        extent = Extent(self.type, self.shape, self.layout, self.filters)
        data = stored(self.file, extent, size)
        return np.frombuffer(data, self.type.dtype, count).reshape(self.shape)


def open_hdf5(content: bytes) -> Node:
    """The outermost group of a file.

    Raises:
        DamagedError: the file does not hold what it says.
        NewerFormError: it is in a form that is not read here.

    """
    file = Bytes(content)
    return _Tree(file).node(file.read_superblock(), 0)


class _Tree:
    """What is below what."""

    def __init__(self, file: Bytes) -> None:
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
            node.shape = shape_of(body, self.file.length_size)
        elif kind == _TYPE:
            node.type = type_of(body)
        elif kind == _LAYOUT:
            node.layout = body
        elif kind == _FILTERS:
            node.filters = body
        elif kind == _ATTRIBUTE:
            name, attribute = self._attribute(body)
            node.attributes[name] = attribute
        else:
            self._add_members(node, kind, body, depth)

    def _add_members(self, node: Node, kind: int, body: bytes, depth: int) -> None:
        if kind == _SYMBOLS:
            tree, heap = (self._place(body, n) for n in (0, self.file.offset_size))
            self._add_symbols(node, tree, heap, depth)
        elif kind == _LINK:
            self._add_link(node, body, depth)
        elif kind in (_LINK_INFO, _ATTRIBUTE_INFO):
            index = (8 if kind == _LINK_INFO else 2) if body[1] & 1 else 0
            if not self.file.is_nowhere(self._place(body, 2 + index)):
                raise NewerFormError("a group with many members")

    def _place(self, body: bytes, begin: int) -> int:
        """A place in the file, from a part of a header."""
        return int.from_bytes(body[begin : begin + self.file.offset_size], "little")

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

    def _attribute(self, body: bytes) -> tuple[str, tuple[Type, tuple[int, ...], bytes]]:
        version, flags, name_size, type_size, space_size = struct.unpack_from("<BBHHH", body)
        if version not in (1, 2, 3) or (version > 1 and flags & 3):
            raise NewerFormError("a shared part of an attribute")
        place = 9 if version == 3 else 8
        parts = []
        for size in (name_size, type_size, space_size):
            parts.append(body[place : place + size])
            place += -(-size // 8) * 8 if version == 1 else size
        name = parts[0].rstrip(b"\0").decode("utf-8", "replace")
        space = shape_of(parts[2], self.file.length_size)
        return name, (type_of(parts[1]), space, body[place:])

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
