"""Checkpoints: tensors by name, in an index file and some data files.

In:   tensors, whole or in parts, to be written under a prefix of file names; or the prefix.
Out:  files, in TensorFlow's format V2; or tensors.
Not:  knows no graph and no variables.

``PREFIX.index`` is a sorted table.  Its first value, under the empty key, says how many data
files there are; each other one says of what type and shape a tensor is and where in which
data file it stands.  A tensor that was saved in parts has an entry with the list of parts,
and each part an entry of its own.  Strings stand behind their lengths.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.files import FileSystem
from penstock.core.memory import fits_memory
from penstock.core.values import Array, Value, as_value, freeze, shape_of
from penstock.defs import tensor_slices
from penstock.defs.crc32c import crc32c, mask
from penstock.defs.schema import BundleEntryProto, BundleHeaderProto, Message
from penstock.defs.sorted_table import read_table, write_table
from penstock.defs.tensor_slices import TensorSlice
from penstock.defs.tensors import shape_from_proto
from penstock.defs.varint import read_varint, write_varint
from penstock.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)

_HEADER_KEY: Final = b""
_VERSION: Final = 1


def index_path(prefix: str) -> str:
    """The file that says where everything is."""
    return f"{prefix}.index"


def data_path(prefix: str, shard: int, count: int) -> str:
    """One of the files with the elements."""
    return f"{prefix}.data-{shard:05d}-of-{count:05d}"


# -- writing ---------------------------------------------------------------------------


class BundleWriter:
    """Writes a checkpoint with one data file; it is there when the ``with`` block ends.

    Files get their names only once all are complete, the index last: if anything fails, what had
    the names before is still there, and nothing else.
    """

    def __init__(self, prefix: str, files: FileSystem) -> None:
        self._prefix: Final = prefix
        self._files: Final = files
        #: Drafts of files, which are gone when this is closed.
        self._drafts = ExitStack()
        self._data = self._drafts.enter_context(files.draft(data_path(prefix, 0, 1)))
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
            index.write(_index(self._entries, shards=1))
            index.flush()
            self._files.publish(data_path(self._prefix, 0, 1), self._data)
            self._files.publish(index_path(self._prefix), index)

    def add(self, name: bytes, value: Value, dtype: DType) -> None:
        """Write a whole tensor."""
        if name in self._entries:
            raise InvalidArgumentError(f"Adding duplicate key: {_shown(name)}")
        self._entries[name] = self._write(value, dtype)

    def add_slice(
        self, name: bytes, value: Value, dtype: DType, whole: tuple[int, ...], part: TensorSlice
    ) -> None:
        """Write a part of a tensor whose sizes are ``whole``."""
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = _entry(dtype, whole)
        elif not entry.slices or _shape(entry) != whole or entry.dtype != dtype.number:
            raise InvalidArgumentError(f"Adding duplicate key: {_shown(name)}")
        entry.slices.append(part.to_proto())
        self.add(part.key(name), value, dtype)

    def _write(self, value: Value, dtype: DType) -> Message:
        entry = _entry(dtype, shape_of(value))
        if dtype is dtypes.string:
            checksum = self._write_strings(value)
        elif dtype.is_object:
            raise UnimplementedError(f"Values of type {dtype} cannot be saved")
        else:
            content = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            self._data.write(content.data)
            checksum = crc32c(content.data)
        entry.offset, entry.size = self._offset, self._data.tell() - self._offset
        entry.crc32c = mask(checksum)
        self._offset = self._data.tell()
        return entry

    def _write_strings(self, value: Value) -> int:
        """Lengths, their checksum, and the texts; returns the checksum of all that."""
        items = [value] if isinstance(value, bytes) else list(value.flat)
        lengths = list(map(len, items))
        checked = _checked_lengths(lengths)
        content = b"".join(items)
        self._data.write(b"".join(map(write_varint, lengths)) + checked[-4:] + content)
        return crc32c(content, crc32c(checked))


def _checked_lengths(lengths: Iterable[int]) -> bytes:
    """Lengths as their checksum sees them, and the checksum."""
    wide = b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths)
    return wide + struct.pack("<I", mask(crc32c(wide)))


def _entry(dtype: DType, shape: tuple[int, ...]) -> Message:
    entry = BundleEntryProto(dtype=dtype.number)
    entry.shape.SetInParent()
    for size in shape:
        entry.shape.dim.add(size=size)
    return entry


def _index(entries: Mapping[bytes, Message], shards: int) -> bytes:
    """What stands in the index file."""
    header = BundleHeaderProto(num_shards=shards)
    header.version.producer = _VERSION
    items = sorted((key, entry.SerializeToString()) for key, entry in entries.items())
    return write_table([(_HEADER_KEY, header.SerializeToString()), *items])


# -- reading ---------------------------------------------------------------------------


class BundleReader:
    """Reads a checkpoint; the index at once, tensors when they are asked for."""

    def __init__(self, prefix: str, files: FileSystem) -> None:
        self._prefix: Final = prefix
        self._files: Final = files
        #: Entries by key, as bytes.
        self._entries = dict(read_table(files.read(index_path(prefix))))
        header = BundleHeaderProto()
        _parse(header, self._entries.pop(_HEADER_KEY, b""))
        if header.endianness != header.LITTLE:
            raise UnimplementedError("Checkpoints of machines with another byte order")
        self.shard_count: Final[int] = header.num_shards

    def keys(self) -> list[bytes]:
        """Everything that has an entry, parts included."""
        return list(self._entries)

    def entry(self, name: bytes) -> Message:
        """What is known of a tensor; raises NotFoundError if it is not there."""
        found = self._entries.get(name)
        if found is None:
            raise NotFoundError(f"Key {_shown(name)} not found in checkpoint")
        entry = BundleEntryProto()
        _parse(entry, found)
        return entry

    def dtype(self, name: bytes) -> DType:
        """The element type of a tensor."""
        return dtypes.of_number(self.entry(name).dtype)

    def shape(self, name: bytes) -> tuple[int, ...]:
        """The sizes of a tensor."""
        return _shape(self.entry(name))

    def read(self, name: bytes, part: TensorSlice | None = None) -> Value:
        """A tensor, or a part of it, read-only.

        Raises:
            InvalidArgumentError: the tensor was saved in parts, and not all that is wanted was.
            InternalError: what is wanted was saved twice.
            DataLossError: what is stored is damaged.

        """
        entry = self.entry(name)
        if entry.slices:
            wanted = part or tensor_slices.all_of(_shape(entry))
            return freeze(as_value(self._assemble(name, entry, wanted)))
        whole = self._read(entry)
        return freeze(as_value(whole if part is None else whole[part.places]))

    def is_whole(self, name: bytes) -> bool:
        """Whether a tensor was not saved in parts."""
        return not self.entry(name).slices

    def _assemble(self, name: bytes, entry: Message, wanted: TensorSlice) -> Array:
        """What is wanted of a tensor that was saved in parts."""
        stored = [tensor_slices.from_proto(proto, _shape(entry)) for proto in entry.slices]
        pieces = [(box, box.intersection(wanted)) for box in stored]
        dtype = dtypes.of_number(entry.dtype).numpy
        if sum(math.prod(piece.lengths) for _, piece in pieces) < math.prod(wanted.lengths):
            raise _not_enough(name, wanted)
        if not fits_memory(math.prod(wanted.lengths) * dtype.itemsize):
            raise ResourceExhaustedError(f"There is no memory for {wanted} of {_shown(name)}")
        values, is_there = np.empty(wanted.lengths, dtype), np.zeros(wanted.lengths, np.bool_)
        for number, (box, piece) in enumerate(pieces):
            places = piece.within(wanted)
            if is_there[places].any():
                raise _overlap(stored, number)
            if math.prod(piece.lengths):
                values[places] = self._read(self.entry(box.key(name)))[piece.within(box)]
            is_there[places] = True
        if not is_there.all():
            raise _not_enough(name, wanted)
        return values

    def _read(self, entry: Message) -> Array:
        """The elements of an entry that has a place in a data file."""
        dtype, shape = dtypes.of_number(entry.dtype), _shape(entry)
        path = data_path(self._prefix, entry.shard_id, self.shard_count)
        raw = self._bytes(path, entry.offset, entry.size)
        if dtype is dtypes.string:
            return self._read_strings(raw.tobytes(), entry).reshape(shape)
        if dtype.is_object:
            raise UnimplementedError(f"Values of type {dtype} cannot be restored")
        if raw.size != math.prod(shape) * dtype.numpy.itemsize:
            raise DataLossError(f"{path}: an entry has {raw.size} bytes for a {dtype} of {shape}")
        self._check(entry, crc32c(raw.data))
        return raw.view(dtype.numpy).reshape(shape)

    def _bytes(self, path: str, offset: int, size: int) -> Array:
        """Some bytes of a data file."""
        with self._files.open(path) as file:
            if not 0 <= offset <= offset + size <= os.fstat(file.fileno()).st_size:
                raise OutOfRangeError(f"{path}: Read less bytes than requested")
            if not fits_memory(size):
                raise ResourceExhaustedError(f"{path}: {size} bytes are too many for the memory")
            return np.fromfile(file, np.uint8, size, offset=offset)

    def _read_strings(self, raw: bytes, entry: Message) -> Array:
        count, at = math.prod(_shape(entry)), 0
        lengths = []
        for _ in range(count):
            length, at = read_varint(raw, at)
            lengths.append(length)
        checked = _checked_lengths(lengths)
        if raw[at : at + 4] != checked[-4:]:
            raise DataLossError(f"{self._prefix}: the lengths of strings have another checksum")
        at += 4
        if sum(lengths) != len(raw) - at:
            raise DataLossError(f"{self._prefix}: strings do not fill their entry")
        self._check(entry, crc32c(memoryview(raw)[at:], crc32c(checked)))
        items = np.empty(count, object)
        for place, length in enumerate(lengths):
            items[place] = raw[at : at + length]
            at += length
        return items

    def _check(self, entry: Message, checksum: int) -> None:
        if mask(checksum) != entry.crc32c:
            raise DataLossError(
                f"TensorBundle at {self._prefix} shard {entry.shard_id} ({entry.size} bytes): "
                f"Checksum does not match: stored {entry.crc32c} vs. calculated on the restored "
                f"bytes {mask(checksum)}"
            )


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _not_enough(name: bytes, wanted: TensorSlice) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Does not have sufficient slices for partitioned tensor {_shown(name)} to restore in "
        f"slice_spec: {wanted}"
    )


def _overlap(stored: Sequence[TensorSlice], number: int) -> InternalError:
    """The error for a part that contains some of what an earlier one contains."""
    new = stored[number]
    old = next(box for box in stored if math.prod(box.intersection(new).lengths))
    return InternalError(f"Overlapping slices: existing slice = {old}, new slice = {new}")


def _parse(message: Any, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except Exception as cause:  # protobuf's error class depends on its implementation
        raise DataLossError("a checkpoint's index holds a damaged message") from cause


def _shape(entry: Message) -> tuple[int, ...]:
    return shape_from_proto(entry.shape).as_tuple()


# -- merging ---------------------------------------------------------------------------


def merge_bundles(prefixes: Iterable[str], destination: str, files: FileSystem) -> None:
    """Make one checkpoint of several; their data files move, their indices are dropped."""
    readers = {prefix: BundleReader(prefix, files) for prefix in prefixes}
    total = sum(reader.shard_count for reader in readers.values())
    entries: dict[bytes, Message] = {}
    first = 0
    for reader in readers.values():
        for key in reader.keys():  # noqa: SIM118
            entry = reader.entry(key)
            entry.shard_id += first
            _merge_entry(entries, key, entry)
        first += reader.shard_count
    moves = [
        data_path(prefix, own, reader.shard_count)
        for prefix, reader in readers.items()
        for own in range(reader.shard_count)
    ]
    with files.draft(index_path(destination)) as index:
        index.write(_index(entries, total))
        index.flush()  # If there is no room for it, nothing has been moved.
        for shard, path in enumerate(moves):
            files.move(path, data_path(destination, shard, total))
        files.publish(index_path(destination), index)
    for prefix in readers:
        files.remove(index_path(prefix))


def _merge_entry(entries: dict[bytes, Message], key: bytes, entry: Message) -> None:
    known = entries.get(key)
    if known is None:
        entries[key] = entry
        return
    same = known.dtype == entry.dtype and _shape(known) == _shape(entry)
    if not same or not known.slices or not entry.slices:
        raise InvalidArgumentError(f"Merging two different tensors under the key {_shown(key)}")
    known.slices.extend(entry.slices)
