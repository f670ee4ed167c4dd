"""The contents of large constants, taken out of a GraphDef before it is parsed.

In:   the bytes of a GraphDef, which may be anything.
Out:  the same without these contents, and the contents by the positions of their nodes: views,
      which take no memory of their own.
Not:  parses no message, decodes no tensor; what looks unusual stays where it is.

Protobuf copies all that it parses, and once more what is read of a message.  The weights of a
model are nearly all of its bytes, and there is one good copy of them already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from penstock.core import dtypes
from penstock.defs.varint import read_varint, write_varint
from penstock.defs.wire import BYTES, VARINT, Field, fields_of

#: Contents by the positions of their nodes in the definition.
LargeContents: TypeAlias = Mapping[int, memoryview]
NO_CONTENTS: Final[LargeContents] = {}

#: Contents of fewer bytes stay, and so do those of definitions of fewer: to find them takes longer
#: than to copy them.
LARGE: Final = 1 << 16
WORTHWHILE: Final = 1 << 22
#: Fields of GraphDef, NodeDef, an entry of its attributes, AttrValue and TensorProto.
_NODE, _OP, _ATTR, _KEY, _VALUE, _TENSOR, _DTYPE, _CONTENT = 1, 2, 5, 1, 2, 8, 1, 4
#: A constant has few fields, and so has what is in it.
_MOST_FIELDS: Final = 100
#: Types whose contents are their elements, one after the other.
_PLAIN: Final = frozenset(
    dtype.number
    for dtype in dtypes.ALL
    if dtype not in (dtypes.string, dtypes.resource, dtypes.variant)
)


def take_out(
    content: bytes, *, worthwhile: int = WORTHWHILE, large: int = LARGE
) -> tuple[bytes, LargeContents]:
    """A definition without its large contents, and these.

    Args:
        content: the definition.
        worthwhile: one of fewer bytes is left as it is.
        large: a content of fewer bytes is left where it is.

    """
    if len(content) < worthwhile:
        return content, NO_CONTENTS
    whole, found = memoryview(content), dict[int, memoryview]()
    parts: list[bytes | memoryview] = []
    done = position = 0
    for field in fields_of(whole):
        if field.number == _NODE:
            cut = _cut(_inner(whole, field), large) if field.size >= large else None
            if cut is not None:
                rest, found[position] = cut
                parts += [whole[done : field.end - field.size], _encoded(_NODE, rest)]
                done = field.end
            position += 1
    return (b"".join([*parts, whole[done:]]), found) if found else (content, found)


def _cut(node: memoryview, large: int) -> tuple[bytes, memoryview] | None:
    """A node without its content, and that; None if it has no large one where it belongs."""
    message, way = node, list[tuple[memoryview, Field]]()
    for find in _WAY:
        field = find(message)
        if field is None or field.type != BYTES:
            return None
        way.append((message, field))
        message = _inner(message, field)
    if len(message) < large:
        return None
    rest = b""
    for outer, field in reversed(way):
        changed = _encoded(field.number, rest) if rest else b""
        rest = b"".join([outer[: field.end - field.size], changed, outer[field.end :]])
    return rest, message


def _fields(message: memoryview) -> list[Field]:
    """The fields of a message, or none if it makes no sense, or has many."""
    fields = fields_of(message, _MOST_FIELDS)
    return fields if sum(field.size for field in fields) == len(message) else []


def _only(number: int, message: memoryview) -> Field | None:
    """The field with a number, if there is one such."""
    found = [field for field in _fields(message) if field.number == number]
    return found[0] if len(found) == 1 else None


def _value_of_constant(node: memoryview) -> Field | None:
    """The entry of a constant's value among the attributes of a node, if it is one."""
    op = _only(_OP, node)
    if op is None or op.value(node) != b"Const":
        return None
    entries = [field for field in _fields(node) if field.number == _ATTR]
    found = [entry for entry in entries if _key_of(_inner(node, entry)) == b"value"]
    return found[0] if len(found) == 1 else None


def _key_of(entry: memoryview) -> bytes:
    key = _only(_KEY, entry)
    return b"" if key is None else key.value(entry)


def _tensor_alone(value: memoryview) -> Field | None:
    """The tensor of a value that is nothing else besides."""
    return _only(_TENSOR, value) if len(_fields(value)) == 1 else None


def _plain_content(tensor: memoryview) -> Field | None:
    """The content of a tensor, if it is one number after the other."""
    dtype = _only(_DTYPE, tensor)
    if dtype is None or dtype.type != VARINT or read_varint(tensor, dtype.start)[0] not in _PLAIN:
        return None
    return _only(_CONTENT, tensor)


#: How a content is found: from each message to the one that is in it.
_WAY: Final[tuple[Callable[[memoryview], Field | None], ...]] = (
    _value_of_constant, partial(_only, _VALUE), _tensor_alone, _plain_content,
)  # fmt: skip


def _inner(message: memoryview, field: Field) -> memoryview:
    return message[field.start : field.end]


def _encoded(number: int, value: bytes) -> bytes:
    """A field of bytes."""
    return b"".join([write_varint(number << 3 | BYTES), write_varint(len(value)), value])
