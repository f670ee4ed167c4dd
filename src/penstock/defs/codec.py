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

from penstock.core.files import FileSystem
from penstock.core.unpacking import GZIP, GZIP_MAGIC, unpack
from penstock.defs.schema import GraphDef, Message
from penstock.errors import (
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)

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
        # A copy, since constants are decoded late, and the caller may change its message before.
        copied = GraphDef()
        copied.CopyFrom(source)
        return copied
    if isinstance(source, ProtobufMessage):
        return parse_graph_def(_serialized(source), f"a {type(source).__name__} message", max_bytes)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return parse_graph_def(bytes(source), f"{len(source)} bytes", max_bytes)
    if isinstance(source, (str, os.PathLike)):
        path = os.fsdecode(source)
        return parse_graph_def(_read(path), path, max_bytes)
    raise InvalidArgumentError(
        f"A graph cannot be made from a {type(source).__name__}",
        next_step="give a path, bytes, a GraphDef message or a penstock Graph",
    )


def parse_graph_def(content: bytes, origin: str, max_bytes: int = MAX_BYTES) -> Message:
    """A GraphDef from bytes; ``origin`` names them in errors."""
    if content.startswith(GZIP_MAGIC):
        content = _unpacked(content, origin, max_bytes)
    elif len(content) > max_bytes:
        raise ResourceExhaustedError(f"{origin} has more than {max_bytes} bytes")
    graph_def = GraphDef()
    try:
        graph_def.ParseFromString(content)
    except (DecodeError, ValueError) as binary_error:  # bad UTF-8 may be either
        return _parse_text(content, origin, binary_error)
    return graph_def


def _serialized(message: Any) -> bytes:
    try:
        content: bytes = message.SerializeToString()
    except EncodeError as cause:
        raise InvalidArgumentError(f"The message cannot be serialized: {cause}") from cause
    return content


def _read(path: str) -> bytes:
    files = FileSystem()
    if files.is_folder(path):
        raise InvalidArgumentError(
            f"{path} is a folder, not a GraphDef",
            next_step="give the file that holds the graph, such as frozen_graph.pb",
        )
    try:
        return files.read(path)
    except NotFoundError:
        raise NotFoundError(f"There is no file {path}") from None


def _unpacked(content: bytes, origin: str, max_bytes: int) -> bytes:
    try:
        found = unpack(content, GZIP, max_bytes, origin)
    except zlib.error as cause:
        raise InvalidArgumentError(f"{origin} is a damaged gzip file: {cause}") from cause
    if not found.is_complete:
        raise InvalidArgumentError(f"{origin} is a truncated gzip file")
    return bytes(found.data)


def _parse_text(content: bytes, origin: str, binary_error: Exception) -> Message:
    text_format = importlib.import_module("google.protobuf.text_format")  # few need it
    graph_def = GraphDef()
    try:
        text_format.Parse(content.decode("utf-8"), graph_def)
    except UnicodeDecodeError:
        raise InvalidArgumentError(
            f"{origin} is not a GraphDef: {binary_error}",
            next_step="check that the file is complete, and a graph rather than a checkpoint",
        ) from None
    except (text_format.ParseError, RecursionError, ValueError) as text_error:
        raise InvalidArgumentError(
            f"{origin} is not a GraphDef: not in binary format ({binary_error}), "
            f"nor in text format ({text_error})"
        ) from None
    return graph_def
