"""Read a GraphDef from wherever it is.

In:   a message, bytes, or the path of a file; binary or text format, gzip or not, told apart
      by content.
Out:  a GraphDef message, perhaps with the contents of large constants beside it.
Not:  judges the graph; that is ``graph/import_graph_def.py``.
"""

from __future__ import annotations

import importlib
import os
import zlib
from typing import Any, Final

from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message import Message as ProtobufMessage

from penstock.core.files import FileSystem
from penstock.core.forks import importing
from penstock.core.unpacking import GZIP, GZIP_MAGIC, unpack
from penstock.defs.file_kinds import kind_of, kind_of_folder, kind_of_nothing
from penstock.defs.large_contents import NO_CONTENTS, LargeContents, take_out
from penstock.defs.schema import GraphDef, Message
from penstock.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
)

_CHECK: Final = "check that the file is complete, and a graph rather than a checkpoint"
#: As much as protobuf takes.
MAX_BYTES: Final = 2 << 30


def load_graph_def(source: Any, *, max_bytes: int = MAX_BYTES) -> Message:
    """A GraphDef from a message, bytes, or a path.

    Args:
        source: a message; bytes in binary or text format, gzip or not; or the path of a file
            that holds them.
        max_bytes: how large the graph may be, unpacked: a small file of gzip may hold very much.

    Raises:
        NotFoundError: there is no such file.
        PermissionDeniedError: the file may not be read.
        FailedPreconditionError: the path is that of a FIFO or a device.
        ResourceExhaustedError: the graph is larger than ``max_bytes``.
        InvalidArgumentError: the content is no GraphDef.

    """
    if isinstance(source, GraphDef):
        return _copied(source)
    return parse_graph_def(*_content(source), max_bytes)


def load_apart(source: Any) -> tuple[Message, LargeContents]:
    """Like ``load_graph_def``, but the contents of large constants stand beside the message."""
    if isinstance(source, GraphDef):
        return _copied(source), NO_CONTENTS
    content, origin = _content(source)
    content = _ungzipped(content, origin, MAX_BYTES)
    rest, contents = take_out(content)
    try:
        return _parsed(rest, origin), contents
    except InvalidArgumentError:  # said of all of it, not of a part that nobody knows
        return _parsed(content, origin), NO_CONTENTS


def _copied(graph_def: Message) -> Message:
    """A copy: constants are decoded late, and the caller may change its message before."""
    copied = GraphDef()
    copied.CopyFrom(graph_def)
    return copied


def _content(source: Any) -> tuple[bytes, str]:
    """The bytes of a definition that is not a GraphDef message, and what errors call them."""
    if isinstance(source, ProtobufMessage):
        return _serialized(source), f"The {type(source).__name__} message"
    if isinstance(source, (bytes, bytearray, memoryview)):
        content = bytes(source)
        return content, f"The content ({len(content)} bytes)"
    if isinstance(source, (str, os.PathLike)):
        path = os.fsdecode(source)
        return _not_empty(_read(path), path), path
    raise InvalidArgumentError(
        f"A graph cannot be made from a {type(source).__name__}",
        next_step="give a path, bytes, a GraphDef message or a penstock Graph",
    )


def parse_graph_file(content: bytes, path: str, max_bytes: int = MAX_BYTES) -> Message:
    """A GraphDef from the bytes of a file, which are not none; ``path`` names it in errors."""
    return parse_graph_def(_not_empty(content, path), path, max_bytes)


def parse_graph_def(content: bytes, origin: str, max_bytes: int = MAX_BYTES) -> Message:
    """A GraphDef from bytes; ``origin`` names them in errors."""
    return _parsed(_ungzipped(content, origin, max_bytes), origin)


def _not_empty(content: bytes, origin: str) -> bytes:
    if not content:
        raise _no_graph(content, origin)
    return content


def _ungzipped(content: bytes, origin: str, max_bytes: int) -> bytes:
    """What is to be parsed, and not larger than it may be."""
    if content.startswith(GZIP_MAGIC):
        return _not_empty(_unpacked(content, origin, max_bytes), origin)
    if len(content) > max_bytes:
        raise ResourceExhaustedError(f"{origin} has more than {max_bytes} bytes")
    return content


def _parsed(content: bytes, origin: str) -> Message:
    graph_def = GraphDef()
    try:
        graph_def.ParseFromString(content)
    except (DecodeError, ValueError) as binary_error:  # bad UTF-8 may be either
        return _parse_text(content, origin, binary_error)
    if content and not _has_something(graph_def):
        raise _no_graph(content, origin)
    return graph_def


def _has_something(graph_def: Message) -> bool:
    """Whether it is a graph at all, if only an empty one; other messages may look like one.

    Every graph since TensorFlow's first years says of which version it is.
    """
    return bool(graph_def.node or graph_def.library.function or graph_def.HasField("versions"))


def _no_graph(content: bytes, origin: str, details: str = "") -> InvalidArgumentError:
    """The error for content that is something else: what it is, if that is known."""
    kind = kind_of(content, os.path.basename(origin))
    if kind is not None:
        return InvalidArgumentError(
            f"{origin} is {kind.what}, not a GraphDef", next_step=kind.advice
        )
    return InvalidArgumentError(f"{origin} is not a GraphDef{details}", next_step=_CHECK)


def _serialized(message: Any) -> bytes:
    try:
        content: bytes = message.SerializeToString()
    except EncodeError as cause:
        raise InvalidArgumentError(f"The message cannot be serialized: {cause}") from cause
    return content


def _read(path: str) -> bytes:
    files = FileSystem()
    if files.is_folder(path):
        kind = kind_of_folder(files.names(path))
        raise InvalidArgumentError(f"{path} is {kind.what}, not a GraphDef", next_step=kind.advice)
    try:
        return files.read(path)
    except NotFoundError:
        missing = kind_of_nothing(path, _names_beside(files, path))
        raise NotFoundError(
            f"There is no file {path}" + (f"; it is {missing.what}" if missing.what else ""),
            next_step=missing.advice,
        ) from None


def _names_beside(files: FileSystem, path: str) -> list[str]:
    """What is in the folder that a file is missing from."""
    try:
        return files.names(os.path.dirname(path) or ".")
    except OpError:
        return []


def _unpacked(content: bytes, origin: str, max_bytes: int) -> bytes:
    try:
        found = unpack(content, GZIP, max_bytes, origin)
    except zlib.error as cause:
        raise InvalidArgumentError(f"{origin} is a damaged gzip file: {cause}") from cause
    if not found.is_complete:
        raise InvalidArgumentError(f"{origin} is a truncated gzip file")
    return bytes(found.data)


def _parse_text(content: bytes, origin: str, binary_error: Exception) -> Message:
    with importing:
        text_format = importlib.import_module("google.protobuf.text_format")  # few need it
    graph_def = GraphDef()
    try:
        text_format.Parse(content.decode("utf-8"), graph_def)
    except (UnicodeDecodeError, text_format.ParseError, RecursionError, ValueError) as text_error:
        is_text = not isinstance(text_error, UnicodeDecodeError)
        details = f", nor in text format ({text_error})" if is_text else ""
        raise _no_graph(
            content, origin, f": not in binary format ({binary_error}){details}"
        ) from None
    return graph_def
