"""Every place in a GraphDef where text stands, and how to put other text there.

A *kind* is a place without its indices and numbers, such as ``node.attr[frame_name].s`` or
``node.attr{key}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


class Slot(NamedTuple):
    """One place with its text."""

    kind: str
    text: str
    #: Puts another text there.
    put: Callable[[str], None]


def slots_of(message: Any, path: str = "") -> Iterator[Slot]:
    """All places of a message and of what is in it; changing one spoils those after it."""
    for field, value in message.ListFields():
        kind = f"{path}.{field.name}" if path else field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            yield from _slots_of_map(value, field, kind)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for item in value if _is_repeated(value) else (value,):
                yield from slots_of(item, kind)
        elif field.type in _TEXTS:
            yield from _slots_of_texts(message, field, value, kind)


def _is_repeated(value: Any) -> bool:
    return not isinstance(value, (Message, str, bytes))


def _slots_of_texts(message: Any, field: Any, value: Any, kind: str) -> Iterator[Slot]:
    is_bytes = field.type == FieldDescriptor.TYPE_BYTES
    if not _is_repeated(value):
        yield Slot(
            kind, _read(value), lambda text: setattr(message, field.name, _written(text, is_bytes))
        )
        return
    for index, item in enumerate(value):

        def put(text: str, index: int = index) -> None:
            value[index] = _written(text, is_bytes)

        yield Slot(kind, _read(item), put)


def _slots_of_map(entries: Any, field: Any, kind: str) -> Iterator[Slot]:
    value_type = field.message_type.fields_by_name["value"]
    for key in sorted(entries):
        if isinstance(key, str):
            yield Slot(f"{kind}{{key}}", key, _renaming(entries, key))
        if value_type.type == FieldDescriptor.TYPE_MESSAGE:
            yield from slots_of(entries[key], f"{kind}[{key if isinstance(key, str) else ''}]")
        elif value_type.type == FieldDescriptor.TYPE_STRING:

            def put(text: str, key: str = key) -> None:
                entries[key] = text

            yield Slot(f"{kind}{{value}}", entries[key], put)


def _renaming(entries: Any, key: str) -> Callable[[str], None]:
    def put(text: str) -> None:
        value = entries[key]
        if isinstance(value, Message):
            copy = type(value)()
            copy.CopyFrom(value)
            del entries[key]
            entries[text].CopyFrom(copy)
        else:
            del entries[key]
            entries[text] = value

    return put


def _read(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _written(text: str, is_bytes: bool) -> str | bytes:
    return text.encode() if is_bytes else text
