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
import secrets
import struct
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, BinaryIO, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
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
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
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
    """Writes a checkpoint with one data file; it is there when the ``with`` block ends."""

    def __init__(self, prefix: str) -> None:
        self._prefix: Final = prefix
        #: Files get their names only once they are complete.
        self._suffix: Final = f".tempstate{secrets.token_hex(8)}"
        self._data: BinaryIO = open(self._temporary(data_path(prefix, 0, 1)), "wb")  # noqa: SIM115
        self._offset = 0
        #: Entries by key; those of tensors in parts grow while parts are added.
        self._entries: dict[bytes, Message] = {}

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: object, __: TracebackType | None
    ) -> None:
        self._data.close()
        data = data_path(self._prefix, 0, 1)
        if kind is not None:
            os.unlink(self._temporary(data))
            return
        os.replace(self._temporary(data), data)
        _write_index(self._prefix, self._entries, shards=1)

    def _temporary(self, path: str) -> str:
        return path + self._suffix

    def add(self, name: bytes, value: Value, dtype: DType) -> None:
        """Write a whole tensor."""
        if name in self._entries:
            raise InvalidArgumentError(f"Adding duplicate key: {name.decode('utf-8', 'replace')}")
        self._entries[name] = self._write(value, dtype)

    def add_slice(
        self, name: bytes, value: Value, dtype: DType, whole: tuple[int, ...], part: TensorSlice
    ) -> None:
        """Write a part of a tensor whose sizes are ``whole``."""
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = _entry(dtype, whole)
        elif not entry.slices or _shape(entry) != whole or entry.dtype != dtype.number:
            raise InvalidArgumentError(f"Adding duplicate key: {name.decode('utf-8', 'replace')}")
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


def _write_index(prefix: str, entries: Mapping[bytes, Message], shards: int) -> None:
    header = BundleHeaderProto(num_shards=shards)
    header.version.producer = _VERSION
    items = sorted((key, entry.SerializeToString()) for key, entry in entries.items())
    table = write_table([(_HEADER_KEY, header.SerializeToString()), *items])
    path = index_path(prefix)
    temporary = f"{path}.tempstate{secrets.token_hex(8)}"
    with open(temporary, "wb") as file:
        file.write(table)
    os.replace(temporary, path)


# -- reading ---------------------------------------------------------------------------


class BundleReader:
    """Reads a checkpoint; the index at once, tensors when they are asked for."""

    def __init__(self, prefix: str) -> None:
        self._prefix: Final = prefix
        with open(index_path(prefix), "rb") as file:
            #: Entries by key, as bytes.
            self._entries = dict(read_table(file.read()))
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
            shown = name.decode("utf-8", "replace")
            raise NotFoundError(f"Key {shown} not found in checkpoint")
        entry = BundleEntryProto()
        _parse(entry, found)
        return entry

    def dtype(self, name: bytes) -> DType:
        """The element type of a tensor."""
        return dtypes.of_number(self.entry(name).dtype)

    def shape(self, name: bytes) -> tuple[int, ...]:
        """The sizes of a tensor."""
        return _shape(self.entry(name))

    def read(self, name: bytes) -> Value:
        """A whole tensor, read-only."""
        entry = self.entry(name)
        if entry.slices:
            return freeze(self._assemble(name, entry))
        return freeze(as_value(self._read(entry)))

    def _assemble(self, name: bytes, entry: Message) -> Array:
        """A tensor that was saved in parts."""
        shape = _shape(entry)
        whole = np.empty(shape, dtypes.of_number(entry.dtype).numpy)
        parts = [tensor_slices.from_proto(proto, shape) for proto in entry.slices]
        if sum(math.prod(part.lengths) for part in parts) != whole.size:
            raise DataLossError(f"The parts of {name.decode('utf-8', 'replace')} are not complete")
        for part in parts:
            whole[part.places] = self._read(self.entry(part.key(name)))
        return whole

    def _read(self, entry: Message) -> Array:
        """The elements of an entry that has a place in a data file."""
        dtype, shape = dtypes.of_number(entry.dtype), _shape(entry)
        path = data_path(self._prefix, entry.shard_id, self.shard_count)
        with open(path, "rb") as file:
            raw = np.fromfile(file, np.uint8, entry.size, offset=entry.offset)
        if raw.size != entry.size:
            raise OutOfRangeError(f"{path}: Read less bytes than requested")
        if dtype is dtypes.string:
            return self._read_strings(raw.tobytes(), entry).reshape(shape)
        if dtype.is_object:
            raise UnimplementedError(f"Values of type {dtype} cannot be restored")
        if raw.size != math.prod(shape) * dtype.numpy.itemsize:
            raise DataLossError(f"{path}: an entry has {raw.size} bytes for a {dtype} of {shape}")
        self._check(entry, crc32c(raw.data))
        return raw.view(dtype.numpy).reshape(shape)

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


def _parse(message: Any, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except Exception as cause:  # protobuf's error class depends on its implementation
        raise DataLossError("a checkpoint's index holds a damaged message") from cause


def _shape(entry: Message) -> tuple[int, ...]:
    return shape_from_proto(entry.shape).as_tuple()


# -- merging ---------------------------------------------------------------------------


def merge_bundles(prefixes: Iterable[str], destination: str) -> None:
    """Make one checkpoint of several; their data files move, their indices are dropped."""
    readers = {prefix: BundleReader(prefix) for prefix in prefixes}
    total = sum(reader.shard_count for reader in readers.values())
    entries: dict[bytes, Message] = {}
    first = 0
    for reader in readers.values():
        for key in reader.keys():  # noqa: SIM118
            entry = reader.entry(key)
            entry.shard_id += first
            _merge_entry(entries, key, entry)
        first += reader.shard_count
    shard = 0
    for prefix, reader in readers.items():
        for own in range(reader.shard_count):
            os.replace(
                data_path(prefix, own, reader.shard_count), data_path(destination, shard, total)
            )
            shard += 1
    _write_index(destination, entries, total)
    for prefix in readers:
        os.unlink(index_path(prefix))


def _merge_entry(entries: dict[bytes, Message], key: bytes, entry: Message) -> None:
    known = entries.get(key)
    if known is None:
        entries[key] = entry
        return
    same = known.dtype == entry.dtype and _shape(known) == _shape(entry)
    if not same or not known.slices or not entry.slices:
        shown = key.decode("utf-8", "replace")
        raise InvalidArgumentError(f"Merging two different tensors under the key {shown}")
    known.slices.extend(entry.slices)
