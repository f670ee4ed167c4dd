"""Trees in files: an archive of JSON, of the values that it names, and of whatever else there is.

In:   a tree, and parts as bytes; or the bytes of such a file, of a stranger perhaps.
Out:  the bytes; or the tree and the parts.
Not:  knows not what a tree means.

The archive has ``content.json`` (what kind of file it is, of which version, and the tree),
``values/N``, a TensorProto each, and the parts under their names.  Python objects of other kinds
are not in it: nothing of a file is ever called, or decides what is imported.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core import dtypes
from penstock.core.trees import Tree, is_value
from penstock.core.values import Value, as_value, dtype_of
from penstock.defs.schema import TensorProto
from penstock.defs.tensors import from_proto, to_content_proto, to_proto
from penstock.errors import (
    DataLossError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from penstock.formats.strict_json import MAX_BYTES as MAX_TEXT
from penstock.formats.strict_json import parse_object
from penstock.kernels.values.variants import decoded

_CONTENT: Final = "content.json"
_VALUES: Final = "values/"
#: As much as all of a file may hold, unpacked, and as many members as it may have.
MAX_BYTES: Final = 4 << 30
_MAX_MEMBERS: Final = 1 << 20
_AGAIN: Final = "get the file again, or make it again"
#: The date of all members: equal contents are equal files.
_DATE: Final = (1980, 1, 1, 0, 0, 0)


class Kind(NamedTuple):
    """What a file is."""

    name: str
    #: Files of later versions are refused.
    version: int


class Contents(NamedTuple):
    """What is in a file."""

    tree: Tree
    #: By name.
    parts: Mapping[str, bytes]


def packed(kind: Kind, contents: Contents) -> bytes:
    """The bytes of a file.

    Raises:
        UnimplementedError: an object in the tree cannot be written.
        ResourceExhaustedError: nobody could read the file again.

    """
    values: list[bytes] = []
    tree = _plain(contents.tree, values)
    head = {"kind": kind.name, "version": kind.version, "tree": tree}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        _add(archive, _CONTENT, _text(head))
        for at, value in enumerate(values):
            _add(archive, f"{_VALUES}{at}", value)
        for name, part in contents.parts.items():
            _add(archive, name, part)
    return file.getvalue()


def _text(head: Mapping[str, Any]) -> bytes:
    text = json.dumps(head, separators=(",", ":")).encode()
    if len(text) > MAX_TEXT:
        raise ResourceExhaustedError(
            f"The file would have {len(text)} bytes of text, and one that can be read has at most "
            f"{MAX_TEXT}",
            next_step="record a shorter step",
        )
    return text


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content, compresslevel=1)


def _plain(tree: Tree, values: list[bytes]) -> Any:
    """A tree as JSON has it; its values come to ``values``."""
    if type(tree) is tuple:
        return [_plain(part, values) for part in tree]
    if type(tree) is float:
        return {"float": tree.hex()}
    if not is_value(tree):
        return tree
    values.append(_written(_outside(tree)))
    return {"value": len(values) - 1}


def _outside(value: Value) -> Value:
    """A value, with what stands outside of the process for what cannot leave it."""
    outside = getattr(value, "outside", None)
    return value if outside is None else outside()


def _written(value: Value) -> bytes:
    dtype = dtype_of(value)
    array = value if isinstance(value, np.ndarray) else _array_of(value, dtype.numpy)
    is_plain = dtype in (dtypes.string, dtypes.resource)
    proto = to_proto(array, dtype) if is_plain else to_content_proto(array, dtype)
    content = bytes(proto.SerializeToString(deterministic=True))
    if dtype is dtypes.variant:
        try:
            _read(content)  # what is written and cannot be read would be lost
        except (OpError, ValueError) as cause:
            raise UnimplementedError(f"{value!r} cannot be written into a file: {cause}") from None
    return content


def _array_of(value: Value, dtype: np.dtype[Any]) -> Any:
    array = np.empty((), dtype)
    array[()] = value
    return array


def unpacked(kind: Kind, content: bytes, origin: str) -> Contents:
    """What is in a file; ``origin`` says in errors which one it is.

    Raises:
        InvalidArgumentError: it is another kind of file, or of a later version.
        DataLossError: it is damaged.
        ResourceExhaustedError: it is larger, unpacked, than any such file.

    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = _members(archive, origin)
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, KeyError),
        *(NotImplementedError, RuntimeError, MemoryError),
    ) as cause:
        raise _damaged(origin, f"no archive that can be read ({cause})") from None
    if _CONTENT not in members:
        raise _other(kind, origin, "an archive of something else")
    head = parse_object(members.pop(_CONTENT), f"{origin}/{_CONTENT}")
    if head.get("kind") != kind.name:
        raise _other(kind, origin, f"a {str(head.get('kind'))[:40]}")
    version = head.get("version")
    if type(version) is not int or not 0 < version <= kind.version:
        raise InvalidArgumentError(
            f"{origin} is of version {str(version)[:40]} of its format, and this Penstock knows "
            f"those up to {kind.version}",
            next_step="read it with the Penstock that wrote it, or with a later one",
        )
    values = {name: members.pop(name) for name in [*members] if name.startswith(_VALUES)}
    try:
        return Contents(_tree(head.get("tree"), values), members)
    except (OpError, ValueError, DecodeError, KeyError, TypeError) as cause:
        raise _damaged(origin, str(cause)) from None


def _members(archive: zipfile.ZipFile, origin: str) -> dict[str, bytes]:
    infos = archive.infolist()
    if len(infos) > _MAX_MEMBERS or sum(info.file_size for info in infos) > MAX_BYTES:
        raise ResourceExhaustedError(
            f"{origin} holds {len(infos)} parts of {sum(info.file_size for info in infos)} bytes"
        )
    found = {}
    for info in infos:
        with archive.open(info) as member:
            found[info.filename] = member.read(info.file_size)
            if len(found[info.filename]) != info.file_size or member.read(1):
                raise _damaged(origin, f"a member that is not as long as it says: {info.filename}")
    return found


def _tree(plain: Any, values: Mapping[str, bytes]) -> Tree:
    if isinstance(plain, list):
        return tuple(_tree(part, values) for part in plain)
    if plain is None or type(plain) in (bool, int, str):
        return plain
    if isinstance(plain, dict) and [*plain] == ["float"]:
        return float.fromhex(plain["float"])
    if isinstance(plain, dict) and [*plain] == ["value"] and type(plain["value"]) is int:
        return _read(values[f"{_VALUES}{plain['value']}"])
    raise ValueError("there is something that is no part of a tree")


def _read(content: bytes) -> Value:
    proto = TensorProto.FromString(content)
    value = from_proto(proto)
    return as_value(decoded(value) if proto.dtype == dtypes.variant.number else value)


def _damaged(origin: str, why: str) -> DataLossError:
    return DataLossError(f"{origin} is damaged: there is {why}"[:400], next_step=_AGAIN)


def _other(kind: Kind, origin: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{origin} is {what}, and no {kind.name}")
