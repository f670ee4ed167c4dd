"""Read a GraphDef from wherever it is.

In:   a message, bytes, or the path of a file; binary or text format, gzip or not, told apart
      by content.
Out:  a GraphDef message.
Not:  judges the graph; that is ``graph/import_graph_def.py``.
"""

from __future__ import annotations

import importlib
import os
import zlib
from typing import Any, Final

from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message import Message as ProtobufMessage

from penstock.defs.file_kinds import kind_of, kind_of_folder, kind_of_nothing
from penstock.defs.schema import GraphDef, Message
from penstock.errors import (
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    from_exception,
    shown_cause,
)

_GZIP = b"\x1f\x8b"
_CHECK: Final = "check that the file is complete, and a graph rather than a checkpoint"
#: A compressed graph may not grow beyond this.
_MAX_BYTES = 1 << 32


def load_graph_def(source: Any) -> Message:
    """A GraphDef from a message, bytes, or a path.

    Raises:
        NotFoundError: there is no such file.
        PermissionDeniedError: the file may not be read.
        InvalidArgumentError: the content is no GraphDef.

    """
    if isinstance(source, GraphDef):
        # A copy, since constants are decoded late, and the caller may change its message before.
        copied = GraphDef()
        copied.CopyFrom(source)
        return copied
    if isinstance(source, ProtobufMessage):
        return parse_graph_def(_serialized(source), f"The {type(source).__name__} message")
    if isinstance(source, (bytes, bytearray, memoryview)):
        content = bytes(source)
        return parse_graph_def(content, f"The content ({len(content)} bytes)")
    if isinstance(source, (str, os.PathLike)):
        path = os.fsdecode(source)
        return parse_graph_file(_read(path), path)
    raise InvalidArgumentError(
        f"A graph cannot be made from a {type(source).__name__}",
        next_step="give a path, bytes, a GraphDef message or a penstock Graph",
    )


def parse_graph_file(content: bytes, path: str) -> Message:
    """A GraphDef from the bytes of a file, which are not none; ``path`` names it in errors."""
    if not content:
        raise _no_graph(content, path)
    return parse_graph_def(content, path)


def parse_graph_def(content: bytes, origin: str) -> Message:
    """A GraphDef from bytes; ``origin`` names them in errors."""
    if content.startswith(_GZIP):
        content = _decompressed(content, origin)
        if not content:
            raise _no_graph(content, origin)
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
    try:
        if os.path.isdir(path):
            kind = kind_of_folder(path)
            raise InvalidArgumentError(
                f"{path} is {kind.what}, not a GraphDef", next_step=kind.advice
            )
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        missing = kind_of_nothing(path)
        raise NotFoundError(
            f"There is no file {path}" + (f"; it is {missing.what}" if missing.what else ""),
            next_step=missing.advice,
        ) from None
    except (OSError, ValueError) as cause:  # a name that no file can have is a ValueError
        raise from_exception(cause) from shown_cause(cause)


def _decompressed(content: bytes, origin: str) -> bytes:
    """Unpack gzip, piece by piece, so that a small file cannot fill the memory."""
    plain = b""
    while content.startswith(_GZIP):  # a file may have several members, one behind the other
        unpacker = zlib.decompressobj(wbits=31)
        try:
            plain += unpacker.decompress(content, max(1, _MAX_BYTES - len(plain)))
        except zlib.error as cause:
            raise InvalidArgumentError(f"{origin} is a damaged gzip file: {cause}") from cause
        if not unpacker.eof and unpacker.unconsumed_tail:
            raise ResourceExhaustedError(f"{origin} unpacks to more than {_MAX_BYTES} bytes")
        if not unpacker.eof:
            raise InvalidArgumentError(f"{origin} is a truncated gzip file")
        content = unpacker.unused_data
    return plain


def _parse_text(content: bytes, origin: str, binary_error: Exception) -> Message:
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
