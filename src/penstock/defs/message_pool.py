"""Protobuf messages of others, wire-compatible by field number.

In:   a table: one block per message or enum, one line per field.
Out:  message classes, in a descriptor pool of their own, so that whoever brings the same messages
      can live in the same process.
Not:  knows no message.

A field's line reads ``number [repeated [unpacked]] type name [? | in ONEOF]``; maps read
``number map KEY VALUE name``; ``?`` marks explicit presence.
"""

from __future__ import annotations

import pkgutil
from typing import Any, Final, TypeAlias

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2

#: A message of a generated class; protobuf types its fields at run time only.
Message: TypeAlias = Any

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[dict[str, Any]] = {
    "double": _Field.TYPE_DOUBLE, "float": _Field.TYPE_FLOAT, "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64, "int32": _Field.TYPE_INT32, "uint32": _Field.TYPE_UINT32,
    "fixed64": _Field.TYPE_FIXED64, "fixed32": _Field.TYPE_FIXED32, "bool": _Field.TYPE_BOOL,
    "string": _Field.TYPE_STRING, "bytes": _Field.TYPE_BYTES,
    "sint32": _Field.TYPE_SINT32, "sint64": _Field.TYPE_SINT64,
}  # fmt: skip


class MessagePool:
    """The messages of one table."""

    def __init__(self, table: str, package: str) -> None:
        """Read a table.

        Args:
            table: its file, beside this module.
            package: what its messages have before their names.

        """
        self._pool: Final = descriptor_pool.DescriptorPool()
        self._package: Final = package
        #: All classes: what nobody else keeps, protobuf would make anew, and if one thread asks for
        #: a class that another one is about to collect, the process dies.
        self._classes: Final[dict[str, Message]] = {}
        self._files = [any_pb2.DESCRIPTOR.name, wrappers_pb2.DESCRIPTOR.name]
        for known in (any_pb2, wrappers_pb2):
            self._pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
        self.add(table)

    def add(self, table: str) -> None:
        """Read one more table, whose messages may have those that are there in them."""
        file = descriptor_pb2.FileDescriptorProto(
            name=f"penstock/{table}",
            package=self._package,
            syntax="proto3",
            dependency=self._files,
        )
        content = pkgutil.get_data(__package__, table)
        assert content is not None  # every loader of ours can read data
        _read_blocks(content.decode("utf-8"), file)
        self._pool.AddSerializedFile(file.SerializeToString())
        self._files.append(file.name)
        for message in self._pool.FindFileByName(file.name).message_types_by_name.values():
            self._keep(message)

    def message_class(self, name: str) -> Message:
        """The class of a message."""
        return self._classes[f"{self._package}.{name}"]

    def _keep(self, message: Any) -> None:
        """Make the class of a message, and of those within it."""
        self._classes[message.full_name] = message_factory.GetMessageClass(message)
        for nested in message.nested_types:
            self._keep(nested)


def _read_blocks(text: str, file: Any) -> None:
    """Fill ``file`` from the table; indentation says what is nested in what."""
    #: The message or enum being read at each indentation, outermost first.
    open_blocks: list[Any] = [file]
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        words = line.split()
        depth = (len(line) - len(line.lstrip())) // 2
        del open_blocks[depth + 1 :]
        parent = open_blocks[-1]
        if words[0] in ("message", "enum"):
            open_blocks.append(_open_block(parent, words))
        elif isinstance(parent, descriptor_pb2.EnumDescriptorProto):
            parent.value.add(name=words[1], number=int(words[0]))
            if len({v.number for v in parent.value}) < len(parent.value):
                parent.options.allow_alias = True
        else:
            _add_field(parent, words)


def _open_block(parent: Any, words: list[str]) -> Any:
    name = words[1].rpartition(".")[2]
    if words[0] == "enum":
        return parent.enum_type.add(name=name)
    is_file = isinstance(parent, descriptor_pb2.FileDescriptorProto)
    return (parent.message_type if is_file else parent.nested_type).add(name=name)


def _add_field(message: Any, words: list[str]) -> None:
    number = int(words.pop(0))
    if words[0] == "map":
        _add_map(message, number, words[1:])
        return
    field = message.field.add(number=number, label=_Field.LABEL_OPTIONAL)
    if words[0] == "repeated":
        field.label = _Field.LABEL_REPEATED
        words.pop(0)
        if words[0] == "unpacked":
            field.options.packed = False
            words.pop(0)
    _set_type(field, words)
    field.name = words.pop(0)
    if words == ["?"]:
        field.proto3_optional = True
        words = ["in", f"_{field.name}"]
    if words:
        names = [oneof.name for oneof in message.oneof_decl]
        if words[1] not in names:
            message.oneof_decl.add(name=words[1])
            names.append(words[1])
        field.oneof_index = names.index(words[1])


def _set_type(field: Any, words: list[str]) -> None:
    """Take the type off the front of ``words``."""
    word = words.pop(0)
    if word in _SCALARS:
        field.type = _SCALARS[word]
    elif word == "enum":
        field.type, field.type_name = _Field.TYPE_ENUM, "." + words.pop(0)
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, "." + word


def _add_map(message: Any, number: int, words: list[str]) -> None:
    """Add a map field and the entry message that stands for it on the wire."""
    name = words[-1]
    entry = message.nested_type.add(name="".join(p.capitalize() for p in name.split("_")) + "Entry")
    entry.options.map_entry = True
    types = words[:-1]
    for position, part in enumerate(("key", "value"), start=1):
        field = entry.field.add(name=part, number=position, label=_Field.LABEL_OPTIONAL)
        _set_type(field, types)
    outer = message.field.add(
        name=name, number=number, label=_Field.LABEL_REPEATED, type=_Field.TYPE_MESSAGE
    )
    # A relative name: protobuf looks for it from the inside of this message outwards.
    outer.type_name = entry.name
