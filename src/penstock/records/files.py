"""Reading and writing files of records.

In:   a path; records as ``bytes``.
Out:  records one by one, or a file.
Not:  does not look into records; the format stands in ``defs.record_file``.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, BinaryIO, Final

from penstock.core.files import FileSystem, file_errors
from penstock.core.unpacking import GZIP_MAGIC
from penstock.core.values import Array
from penstock.defs.crc32c import crc32c, mask
from penstock.defs.record_file import METHODS, framed, records_in
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.records.examples import decode_example

_FILES: Final = FileSystem()


def read(path: str | os.PathLike[str], compression: str | None = None) -> Iterator[bytes]:
    """The records of a file, one by one; the file is open until the last is taken.

    Args:
        path: the file.
        compression: ``GZIP``, ``ZLIB``, or empty; None to be told by the file's beginning.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: a record is damaged or cut off, by its checksums; those before it were given.
        ResourceExhaustedError: a record does not fit the memory.
        InvalidArgumentError: there is no such compression.

    """
    name = os.fsdecode(path)
    with _FILES.open(name) as file, file_errors(name):
        method = _told(file) if compression is None else _checked(compression)
        for _, record in records_in(file, method, name, is_strict=True):
            yield record


def read_examples(
    path: str | os.PathLike[str], compression: str | None = None
) -> Iterator[dict[str, Array]]:
    """The examples of a file, each as ``decode_example`` gives it; else like ``read``."""
    return map(decode_example, read(path, compression))


def write(path: str | os.PathLike[str], records: Iterable[bytes], compression: str = "") -> int:
    """Write a file of records, in place of one that is there, which stays whole until then.

    Args:
        path: the file.
        records: ``bytes`` each.
        compression: ``GZIP``, ``ZLIB``, or empty.

    Returns:
        How many there were.

    Raises:
        InvalidArgumentError: a record is no ``bytes``, or there is no such compression.
        OpError: the file system refuses.

    """
    with Writer(path, compression) as writer:
        for record in records:
            writer.write(record)
    return writer.count


class Writer:
    """Writes a file of records one by one; it is there when the ``with`` block ends.

    If an exception ends the block, what had the name before is still there, and nothing else.
    Used by one thread at a time.
    """

    def __init__(self, path: str | os.PathLike[str], compression: str = "") -> None:
        """Begin a file; ``compression`` is ``GZIP``, ``ZLIB``, or empty."""
        self._path: Final = os.fsdecode(path)
        self._packer: Final = _packer(_checked(compression))
        #: The draft of the file, which is gone when this is closed.
        self._draft = ExitStack()
        self._file: BinaryIO | None = None
        #: How many records were written.
        self.count = 0

    def __enter__(self) -> Writer:
        self._file = self._draft.enter_context(_FILES.draft(self._path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._draft:
            if kind is None and self._file is not None:
                with file_errors(self._path):
                    self._file.write(self._packer.flush())
                    self._file.flush()
                _FILES.publish(self._path, self._file)
        self._file = None

    def write(self, record: bytes) -> None:
        """Add a record.

        Raises:
            InvalidArgumentError: it is no ``bytes``.
            FailedPreconditionError: the file is not open.

        """
        if self._file is None:
            raise FailedPreconditionError(f"{self._path} is not open: write within a with block")
        if not isinstance(record, (bytes, bytearray, memoryview)):
            raise InvalidArgumentError(
                f"A record is bytes, not a {type(record).__name__}",
                next_step="penstock.records.encode_example makes some of a dict of arrays",
            )
        with file_errors(self._path):
            self._file.write(self._packer.compress(framed(bytes(record))))
        self.count += 1


class _Unpacked:
    """Packs nothing."""

    @staticmethod
    def compress(data: bytes) -> bytes:
        return data

    @staticmethod
    def flush() -> bytes:
        return b""


def _packer(method: str) -> Any:
    return zlib.compressobj(wbits=METHODS[method]) if method else _Unpacked()


def _checked(method: str) -> str:
    if method and method not in METHODS:
        raise InvalidArgumentError(
            f"There is no compression {method!r}: {', '.join(METHODS)}, or empty for none"
        )
    return method


def _told(file: BinaryIO) -> str:
    """How a file is packed: whoever begins with a length and its checksum is not."""
    head = file.read(12)
    file.seek(0)
    is_plain = head[8:] == mask(crc32c(head[:8])).to_bytes(4, "little")
    if is_plain or len(head) < 2:
        return ""
    if head.startswith(GZIP_MAGIC):
        return "GZIP"
    # zlib's first two bytes are a multiple of 31; the first says the method and a window.
    is_zlib = head[0] & 0x8F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
    return "ZLIB" if is_zlib else ""
