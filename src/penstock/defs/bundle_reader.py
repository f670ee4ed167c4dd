"""Reading checkpoints: the index at once, tensors when they are asked for.

In:   a prefix of file names, names of tensors, parts.
Out:  types, shapes and elements.
Not:  knows no graph and no variables; ``tensor_bundle`` says what stands in the files.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.files import FileSystem
from penstock.core.memory import fits_memory
from penstock.core.values import Array, Value, as_value, freeze
from penstock.defs import tensor_slices
from penstock.defs.crc32c import crc32c, mask
from penstock.defs.schema import BundleEntryProto, BundleHeaderProto, Message
from penstock.defs.sorted_table import read_table
from penstock.defs.tensor_bundle import (
    HEADER_KEY,
    checked_lengths,
    data_path,
    dtype_in,
    index_path,
    parts_in,
    shape_in,
    shown,
)
from penstock.defs.tensor_slices import TensorSlice
from penstock.defs.varint import read_varint
from penstock.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)


class BundleReader:
    """Reads a checkpoint; may be used by several threads at once."""

    def __init__(self, prefix: str, files: FileSystem, *, is_mapped: bool = False) -> None:
        """Read the index.

        Args:
            prefix: what the names of the files begin with.
            files: where they are.
            is_mapped: whether data files are mapped rather than read.  Then arrays are views of
                them, where they lie as the processor likes it, and the files must stay as they
                are.

        Raises:
            NotFoundError: there is no index.
            DataLossError: it is damaged.

        """
        self._prefix: Final = prefix
        self._files: Final = files
        self._is_mapped: Final = is_mapped
        #: Data files by their paths.  Only grows; a file that two threads map at once is mapped
        #: twice, and one of the two is forgotten.
        self._maps: Final[dict[str, Array]] = {}
        #: Where in mapped files something stands whose checksum was right.  Only grows.
        self._checked: Final[set[tuple[int, int]]] = set()
        #: Entries by key, as bytes.
        self._entries: Final[dict[bytes, bytes]] = {}
        path = index_path(prefix)
        header = BundleHeaderProto()
        with _about(f"{path}: "):
            self._entries.update(read_table(files.read(path)))
            _parse(header, self._entries.pop(HEADER_KEY, b""))
        self._order: Final = ">" if header.endianness == header.BIG else "<"
        self.shard_count: Final[int] = header.num_shards

    def keys(self) -> list[bytes]:
        """Everything that has an entry, parts included."""
        return list(self._entries)

    def entry(self, name: bytes) -> Message:
        """What is known of a tensor; raises NotFoundError if it is not there."""
        with self._about_tensor(name):
            return self._entry(name)

    def _entry(self, name: bytes) -> Message:
        found = self._entries.get(name)
        if found is None:
            raise NotFoundError(f"Key {shown(name)} not found in checkpoint")
        entry = BundleEntryProto()
        _parse(entry, found)
        return entry

    def dtype(self, name: bytes) -> DType:
        """The element type of a tensor."""
        with self._about_tensor(name):
            return dtype_in(self._entry(name))

    def shape(self, name: bytes) -> tuple[int, ...]:
        """The sizes of a tensor."""
        with self._about_tensor(name):
            return shape_in(self._entry(name))

    def parts(self, name: bytes) -> list[TensorSlice]:
        """The parts in which a tensor was saved; none if it was saved as a whole."""
        with self._about_tensor(name):
            return parts_in(self._entry(name))

    def read(self, name: bytes, part: TensorSlice | None = None, *, verify: bool = True) -> Value:
        """A tensor, or a part of it, read-only.

        Args:
            name: the tensor's key.
            part: which part is wanted; None for all of it.
            verify: whether checksums are compared, for which all bytes are read.  In a mapped
                file each is compared once.

        Raises:
            InvalidArgumentError: the tensor was saved in parts, and not all that is wanted was.
            InternalError: what is wanted was saved twice.
            DataLossError: what is stored is damaged.
            OutOfRangeError: a data file ends before the tensor does.

        """
        with self._about_tensor(name):
            entry = self._entry(name)
            if entry.slices:
                wanted = part or tensor_slices.all_of(shape_in(entry))
                return freeze(as_value(self._assemble(name, entry, wanted, verify=verify)))
            whole = self._read(entry, verify=verify)
            return freeze(as_value(whole if part is None else whole[part.places]))

    def is_whole(self, name: bytes) -> bool:
        """Whether a tensor was not saved in parts."""
        return not self.entry(name).slices

    def _assemble(self, name: bytes, entry: Message, wanted: TensorSlice, *, verify: bool) -> Array:
        """What is wanted of a tensor that was saved in parts."""
        stored = parts_in(entry)
        pieces = [(box, box.intersection(wanted)) for box in stored]
        dtype = dtype_in(entry).numpy
        if sum(math.prod(piece.lengths) for _, piece in pieces) < math.prod(wanted.lengths):
            raise _not_enough(name, wanted)
        if not fits_memory(math.prod(wanted.lengths) * dtype.itemsize):
            raise ResourceExhaustedError(f"There is no memory for {wanted} of {shown(name)}")
        values, is_there = np.empty(wanted.lengths, dtype), np.zeros(wanted.lengths, np.bool_)
        for number, (box, piece) in enumerate(pieces):
            places = piece.within(wanted)
            if is_there[places].any():
                raise _overlap(stored, number)
            if math.prod(piece.lengths):
                found = self._read_part(name, entry, box, verify=verify)
                values[places] = found[piece.within(box)]
            is_there[places] = True
        if not is_there.all():
            raise _not_enough(name, wanted)
        return values

    def _read_part(self, name: bytes, whole: Message, box: TensorSlice, *, verify: bool) -> Array:
        """The elements of a part, which must be as its tensor's entry says."""
        entry = self._entry(box.key(name))
        if entry.dtype != whole.dtype or shape_in(entry) != box.lengths:
            raise DataLossError(f"{self._prefix}: a part is stored otherwise than its tensor says")
        return self._read(entry, verify=verify)

    def _read(self, entry: Message, *, verify: bool) -> Array:
        """The elements of an entry that has a place in a data file."""
        dtype, shape = dtype_in(entry), shape_in(entry)
        path = data_path(self._prefix, entry.shard_id, self.shard_count)
        raw = self._bytes(path, entry.offset, entry.size)
        if dtype is dtypes.string:
            return _reshaped(self._read_strings(raw.tobytes(), entry), shape, path)
        if dtype.is_object:
            raise UnimplementedError(f"Values of type {dtype} cannot be restored")
        if raw.size != math.prod(shape) * dtype.numpy.itemsize:
            raise DataLossError(f"{path}: an entry has {raw.size} bytes for a {dtype} of {shape}")
        place = (entry.shard_id, entry.offset)
        if verify and place not in self._checked:
            self._check(entry, crc32c(raw.data))
            if self._is_mapped:
                self._checked.add(place)
        if dtype is dtypes.bool_ and raw.size and raw.max() > 1:
            raise DataLossError(f"{path}: a byte that is neither 0 nor 1 is no bool")
        return _reshaped(_elements(raw, dtype, self._order), shape, path)

    def _bytes(self, path: str, offset: int, size: int) -> Array:
        """Some bytes of a data file."""
        if self._is_mapped:
            whole = self._map(path)
            if not 0 <= offset <= offset + size <= whole.size:
                raise OutOfRangeError(f"{path}: Read less bytes than requested")
            return whole[offset : offset + size]
        with self._files.open(path) as file:
            if not 0 <= offset <= offset + size <= os.fstat(file.fileno()).st_size:
                raise OutOfRangeError(f"{path}: Read less bytes than requested")
            if not fits_memory(size):
                raise ResourceExhaustedError(f"{path}: {size} bytes are too many for the memory")
            return np.fromfile(file, np.uint8, size, offset=offset)

    def _about_tensor(self, name: bytes) -> AbstractContextManager[None]:
        return _about("", f" (tensor {shown(name)} of {self._prefix})")

    def _map(self, path: str) -> Array:
        found = self._maps.get(path)
        if found is None:
            found = self._maps[path] = np.frombuffer(self._files.map(path), np.uint8)
        return found

    def _read_strings(self, raw: bytes, entry: Message) -> Array:
        count, at = math.prod(shape_in(entry)), 0
        if count > len(raw):
            raise DataLossError(f"{self._prefix}: {len(raw)} bytes do not hold {count} strings")
        lengths = []
        for _ in range(count):
            length, at = read_varint(raw, at)
            lengths.append(length)
        checked = checked_lengths(lengths, self._order)
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


@contextmanager
def _about(before: str, behind: str = "") -> Iterator[None]:
    """Have errors about stored bytes say in which file, or in which tensor."""
    try:
        yield
    except (DataLossError, OutOfRangeError, UnimplementedError) as error:
        raise type(error)(before + error.reason + behind) from error.__cause__


def _elements(raw: Array, dtype: DType, order: str) -> Array:
    """Bytes as elements, in memory as the processor likes it."""
    kind = dtype.numpy
    if sys.byteorder != ("little" if order == "<" else "big"):
        # Complex numbers are two numbers, each in the files' order.
        single = kind.itemsize // 2 if dtype.is_complex else kind.itemsize
        raw = raw.reshape(-1, single)[:, ::-1].reshape(-1)
    if raw.ctypes.data % kind.alignment:
        raw = raw.copy()
    return raw.view(kind)


def _reshaped(flat: Array, shape: tuple[int, ...], path: str) -> Array:
    try:
        return flat.reshape(shape)
    except ValueError as cause:  # numpy counts the other sizes of a tensor without elements, too
        raise DataLossError(f"{path}: no array can have the shape {shape}") from cause


def _not_enough(name: bytes, wanted: TensorSlice) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Does not have sufficient slices for partitioned tensor {shown(name)} to restore in "
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
