"""Writing checkpoints, and merging them.

In:   tensors, whole or in parts, to be written under a prefix of file names; or prefixes.
Out:  files, in TensorFlow's format V2.
Not:  knows no graph and no variables; ``tensor_bundle`` says what stands in the files.

Files get their names only once all are complete, the index last: if anything fails, what had the
names before is still there, and nothing else.  A process that is killed leaves the old checkpoint
or the new one, whole, at every moment: the index names the data files by their count, and the new
ones get a count that no file of the old ones has.  So where there was nothing before they are
called as TensorFlow calls them, and a checkpoint that is written over alternates between two
counts, one of which says that a file is empty.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.files import FileSystem
from penstock.core.values import Value, shape_of
from penstock.defs.bundle_reader import BundleReader
from penstock.defs.crc32c import crc32c, mask
from penstock.defs.schema import BundleHeaderProto, Message
from penstock.defs.sorted_table import write_table
from penstock.defs.tensor_bundle import (
    HEADER_KEY,
    checked_lengths,
    data_path,
    entry_of,
    index_path,
    shape_in,
    shown,
)
from penstock.defs.tensor_slices import TensorSlice
from penstock.defs.varint import write_varint
from penstock.errors import InvalidArgumentError, OpError, UnimplementedError

_VERSION: Final = 1
#: What the names of data files have behind the prefix.
_SHARD: Final = re.compile(r"\.data-\d{5}-of-(\d{5})")
#: So many shards are looked for at the most; the format has five digits for them.
_MOST_SHARDS: Final = 99_999


class BundleWriter:
    """Writes a checkpoint with one data file; it is there when the ``with`` block ends."""

    def __init__(self, prefix: str, files: FileSystem, *, alignment: int = 1) -> None:
        """Begin.

        Args:
            prefix: what the names of the files begin with; their folder is there.
            files: where they go.
            alignment: tensors begin at multiples of so many bytes, so that arrays may be views
                of the mapped file; strings, which are never that, begin anywhere.

        """
        self._prefix: Final = prefix
        self._files: Final = files
        self._alignment: Final = alignment
        self._names: Final = _Names(prefix, files, needed=1)
        #: Drafts of files, which are gone when this is closed.
        self._drafts = ExitStack()
        self._data = self._drafts.enter_context(files.draft(self._names.path(0)))
        self._offset = 0
        #: Entries by key; those of tensors in parts grow while parts are added.
        self._entries: dict[bytes, Message] = {}

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._drafts.__exit__(kind, error, traceback)  # may say more about the error
            return
        with self._drafts, self._files.draft(index_path(self._prefix)) as index:
            index.write(_index(self._entries, self._names.count))
            index.flush()
            self._files.publish(self._names.path(0), self._data)
            self._names.fill()
            self._files.publish(index_path(self._prefix), index)
        self._names.remove_others()

    def add(self, name: bytes, value: Value, dtype: DType) -> None:
        """Write a whole tensor."""
        if name in self._entries:
            raise InvalidArgumentError(f"Adding duplicate key: {shown(name)}")
        self._entries[name] = self._write(value, dtype)

    def add_slice(
        self, name: bytes, value: Value, dtype: DType, whole: tuple[int, ...], part: TensorSlice
    ) -> None:
        """Write a part of a tensor whose sizes are ``whole``."""
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = entry_of(dtype, whole)
        elif not entry.slices or shape_in(entry) != whole or entry.dtype != dtype.number:
            raise InvalidArgumentError(f"Adding duplicate key: {shown(name)}")
        entry.slices.append(part.to_proto())
        self.add(part.key(name), value, dtype)

    def _write(self, value: Value, dtype: DType) -> Message:
        entry = entry_of(dtype, shape_of(value))
        if dtype is dtypes.string:
            checksum = self._write_strings(value)
        elif dtype.is_object:
            raise UnimplementedError(f"Values of type {dtype} cannot be saved")
        else:
            self._align()
            content = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            self._data.write(content.data)
            checksum = crc32c(content.data)
        entry.offset, entry.size = self._offset, self._data.tell() - self._offset
        entry.crc32c = mask(checksum)
        self._offset = self._data.tell()
        return entry

    def _align(self) -> None:
        gap = -self._offset % self._alignment
        self._data.write(bytes(gap))
        self._offset += gap

    def _write_strings(self, value: Value) -> int:
        """Lengths, their checksum, and the texts; returns the checksum of all that."""
        items = [value] if isinstance(value, bytes) else list(value.flat)
        lengths = list(map(len, items))
        checked = checked_lengths(lengths)
        content = b"".join(items)
        self._data.write(b"".join(map(write_varint, lengths)) + checked[-4:] + content)
        return crc32c(content, crc32c(checked))


def _index(entries: Mapping[bytes, Message], shards: int) -> bytes:
    """What stands in the index file."""
    header = BundleHeaderProto(num_shards=shards)
    header.version.producer = _VERSION
    items = sorted((key, entry.SerializeToString()) for key, entry in entries.items())
    return write_table([(HEADER_KEY, header.SerializeToString()), *items])


# -- names -----------------------------------------------------------------------------


class _Names:
    """What the data files of a new checkpoint are called, in place of those that are there."""

    def __init__(self, prefix: str, files: FileSystem, needed: int) -> None:
        self._prefix: Final = prefix
        self._files: Final = files
        self._needed: Final = needed
        self._folder, self._base = os.path.split(prefix)
        taken = {count for _, count in self._there()}
        free = (n for n in range(needed, _MOST_SHARDS + 1) if n not in taken)
        #: How many there are to be, by the index.
        self.count: Final = next(free, needed)

    def path(self, shard: int) -> str:
        """One of the files."""
        return data_path(self._prefix, shard, self.count)

    def fill(self) -> None:
        """Make those that nobody needs, for who looks for all of them."""
        for shard in range(self._needed, self.count):
            self._files.write(self.path(shard), b"")

    def remove_others(self) -> None:
        """Remove data files that no index names any more."""
        for name, count in self._there():
            if count != self.count:
                with suppress(OpError):  # someone may have it open, or have removed it
                    self._files.remove(os.path.join(self._folder, name))

    def _there(self) -> Iterator[tuple[str, int]]:
        """The names of all data files under the prefix, and the counts that they say."""
        with suppress(OpError):  # whoever may not list the folder has its names as they are
            for name in self._files.names(self._folder or "."):
                found = _SHARD.fullmatch(name.removeprefix(self._base))
                if found is not None and name.startswith(self._base):
                    yield name, int(found[1])


# -- merging ---------------------------------------------------------------------------


def merge_bundles(prefixes: Iterable[str], destination: str, files: FileSystem) -> None:
    """Make one checkpoint of several; their data files move, their indices are dropped."""
    readers = {prefix: BundleReader(prefix, files) for prefix in prefixes}
    entries: dict[bytes, Message] = {}
    first = 0
    for reader in readers.values():
        for key in reader.keys():  # noqa: SIM118
            entry = reader.entry(key)
            entry.shard_id += first
            _merge_entry(entries, key, entry)
        first += reader.shard_count
    names = _Names(destination, files, needed=first)
    moves = [
        data_path(prefix, own, reader.shard_count)
        for prefix, reader in readers.items()
        for own in range(reader.shard_count)
    ]
    with files.draft(index_path(destination)) as index:
        index.write(_index(entries, names.count))
        index.flush()  # If there is no room for it, nothing has been moved.
        for shard, path in enumerate(moves):
            files.move(path, names.path(shard))
        names.fill()
        files.publish(index_path(destination), index)
    names.remove_others()
    for prefix in readers:
        files.remove(index_path(prefix))


def _merge_entry(entries: dict[bytes, Message], key: bytes, entry: Message) -> None:
    known = entries.get(key)
    if known is None:
        entries[key] = entry
        return
    same = known.dtype == entry.dtype and shape_in(known) == shape_in(entry)
    if not same or not known.slices or not entry.slices:
        raise InvalidArgumentError(f"Merging two different tensors under the key {shown(key)}")
    known.slices.extend(entry.slices)
