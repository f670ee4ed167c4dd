"""Where the tensors of a checkpoint lie: in a bundle, or in files of the first version.

In:   a prefix of file names.
Out:  a ``Store``: keys, what is known of each tensor, elements.
Not:  knows no styles of keys; looks for no other prefix than it is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

from penstock.core.dtypes import DType
from penstock.core.files import FileSystem
from penstock.core.values import Value
from penstock.defs.bundle_reader import BundleReader
from penstock.defs.saved_slices import read_slices
from penstock.defs.tensor_bundle import PART_MARK, dtype_in, index_path, parts_in, shape_in, shown
from penstock.defs.tensor_slices import TensorSlice
from penstock.errors import DataLossError, OutOfRangeError


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What a checkpoint says of a tensor, known without its elements."""

    dtype: DType
    shape: tuple[int, ...]
    #: Bytes that it takes in the data files, strings with their lengths; None if nobody says.
    stored_bytes: int | None
    #: The parts in which it was saved, such as ``0,2:-``; none if it was saved as a whole.
    parts: tuple[str, ...] = ()


class Store(Protocol):
    """The tensors of one checkpoint."""

    @property
    def version(self) -> int:
        """Of the format: 1 or 2."""

    def keys(self) -> list[bytes]:
        """The names of all tensors, sorted."""

    def spec(self, key: bytes) -> TensorSpec:
        """What is known of a tensor that is there."""

    def read(self, key: bytes, part: TensorSlice | None, *, verify: bool) -> Value:
        """The elements of a tensor that is there, or of a part of it; read-only."""


def open_store(prefix: str, files: FileSystem) -> Store | None:
    """The checkpoint of a prefix, of whichever version; None if there is none."""
    if files.exists(index_path(prefix)):
        return _Bundle(prefix, files)
    paths = [path for path in files.matching(prefix) if not files.is_folder(path)]
    return _Slices(prefix, paths, files) if paths else None


class _Bundle:
    """An index and data files, which are mapped."""

    version: Final = 2

    def __init__(self, prefix: str, files: FileSystem) -> None:
        self._prefix: Final = prefix
        self._reader: Final = BundleReader(prefix, files, is_mapped=True)
        keys = self._reader.keys()
        self._keys: Final = sorted(key for key in keys if not key.startswith(PART_MARK))

    def keys(self) -> list[bytes]:
        return self._keys

    def spec(self, key: bytes) -> TensorSpec:
        entry = self._reader.entry(key)
        try:
            boxes = parts_in(entry)
            size = sum(self._reader.entry(box.key(key)).size for box in boxes) or entry.size
            return TensorSpec(dtype_in(entry), shape_in(entry), size, tuple(map(str, boxes)))
        except DataLossError as error:
            raise DataLossError(f"{index_path(self._prefix)}: {error.reason}") from None

    def read(self, key: bytes, part: TensorSlice | None, *, verify: bool) -> Value:
        try:
            return self._reader.read(key, part, verify=verify)
        except OutOfRangeError as error:
            raise DataLossError(error.reason) from None


class _Slices:
    """Files of the first version, which are read as a whole."""

    version: Final = 1

    def __init__(self, prefix: str, paths: list[str], files: FileSystem) -> None:
        self._prefix: Final = prefix
        try:
            self._found: Final = read_slices(map(files.read, paths))
        except DataLossError as error:
            raise DataLossError(f"{prefix}: {error.reason}") from error.__cause__

    def keys(self) -> list[bytes]:
        return sorted(self._found)

    def spec(self, key: bytes) -> TensorSpec:
        stored = self._found[key]
        is_whole = len(stored.parts) == 1 and stored.parts[0][0].lengths == stored.shape
        boxes = () if is_whole else tuple(str(box) for box, _ in stored.parts)
        size = (
            None
            if stored.dtype.is_object
            else math.prod(stored.shape) * stored.dtype.numpy.itemsize
        )
        return TensorSpec(stored.dtype, stored.shape, size, boxes)

    def read(self, key: bytes, part: TensorSlice | None, *, verify: bool) -> Value:
        # Checksums are those of the table's blocks, and were compared when it was opened.
        del verify
        try:
            return self._found[key].read(part)
        except DataLossError as error:
            raise DataLossError(f"{error.reason} (tensor {shown(key)} of {self._prefix})") from None
