"""Checkpoints: tensors by name, in an index file and some data files.

In:   a prefix of file names; or what stands in an index.
Out:  names of files, entries, checksums: what readers and writers of checkpoints share.
Not:  opens no file; ``bundle_reader`` and ``bundle_writer`` do.

``PREFIX.index`` is a sorted table.  Its first value, under the empty key, says how many data
files there are; each other one says of what type and shape a tensor is and where in which
data file it stands.  A tensor that was saved in parts has an entry with the list of parts,
and each part an entry of its own.  Strings stand behind their lengths.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.defs import tensor_slices
from penstock.defs.crc32c import crc32c, mask
from penstock.defs.schema import BundleEntryProto, Message
from penstock.defs.tensor_slices import TensorSlice
from penstock.defs.tensors import shape_from_proto
from penstock.errors import DataLossError, InvalidArgumentError

#: The key of the first entry, which is about all files.
HEADER_KEY: Final = b""
#: The first byte of the keys of parts, with which no tensor's name begins.
PART_MARK: Final = b"\0"


def index_path(prefix: str) -> str:
    """The file that says where everything is."""
    return f"{prefix}.index"


def data_path(prefix: str, shard: int, count: int) -> str:
    """One of the files with the elements."""
    return f"{prefix}.data-{shard:05d}-of-{count:05d}"


def entry_of(dtype: DType, shape: tuple[int, ...]) -> Message:
    """What an index says of a tensor, but for its place."""
    entry = BundleEntryProto(dtype=dtype.number)
    entry.shape.SetInParent()
    for size in shape:
        entry.shape.dim.add(size=size)
    return entry


def shape_in(entry: Message) -> tuple[int, ...]:
    """The sizes of an entry's tensor; raises DataLossError if they are none."""
    try:
        return shape_from_proto(entry.shape).as_tuple()
    except (InvalidArgumentError, ValueError) as cause:
        raise DataLossError(f"an entry has no sizes: {cause}") from None


def dtype_in(entry: Message) -> DType:
    """The type of an entry's elements; raises DataLossError if no tensor has it."""
    try:
        found = dtypes.of_number(entry.dtype)
    except InvalidArgumentError as cause:
        raise DataLossError(f"an entry has no type: {cause.reason}") from None
    if found.is_ref:
        raise DataLossError(f"an entry has no type: {found} is a reference")
    return found


def parts_in(entry: Message) -> list[TensorSlice]:
    """The parts of an entry's tensor; raises DataLossError for one that lies outside of it."""
    shape = shape_in(entry)
    try:
        return [tensor_slices.from_proto(proto, shape) for proto in entry.slices]
    except InvalidArgumentError as cause:
        raise DataLossError(cause.reason) from None


def checked_lengths(lengths: Iterable[int], order: str = "<") -> bytes:
    """Lengths of strings as their checksum sees them, and the checksum."""
    wide = b"".join(struct.pack(order + ("I" if n < 1 << 32 else "Q"), n) for n in lengths)
    return wide + struct.pack(order + "I", mask(crc32c(wide)))


def shown(name: bytes) -> str:
    """A key as text for people."""
    return name.decode("utf-8", "replace")
