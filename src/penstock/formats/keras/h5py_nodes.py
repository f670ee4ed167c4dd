"""HDF5 files in forms that ``hdf5`` does not read, by h5py.

In:   the bytes of a file.
Out:  ``LibraryNode``, which answers as ``hdf5.Node`` does.
Not:  follows no link to another place or file.

h5py is imported here and nowhere else, when such a file is opened.  What HDF5's own library makes
of a damaged file is not in our hands; that is why it is asked last.
"""

from __future__ import annotations

import importlib
import io
import math
from typing import Any, Final

import ml_dtypes
import numpy as np

from penstock.core.forks import importing
from penstock.core.values import Array
from penstock.errors import UnimplementedError
from penstock.formats.keras.hdf5_bytes import DamagedError

#: Arrays up to this size are read whatever the file stores of them.
_SMALL: Final = 1 << 20
_LARGEST: Final = 1 << 31
#: How many times as large as its stored bytes an array may be.
_EXPANSION: Final = 1100


def open_by_library(content: bytes, origin: str, reason: str) -> LibraryNode:
    """The outermost group of a file.

    Raises:
        UnimplementedError: h5py is not installed.

    """
    try:
        with importing:
            h5py = importlib.import_module("h5py")
    except ImportError:
        raise UnimplementedError(
            f"{origin} is HDF5 in a form that takes the package h5py: {reason}",
            next_step="pip install 'penstock[keras]'",
        ) from None
    return LibraryNode(h5py.File(io.BytesIO(content), "r"), h5py, len(content))


class LibraryNode:
    """A group or an array of a file."""

    def __init__(self, item: Any, h5py: Any, size: int) -> None:
        self._item, self._h5py, self._size = item, h5py, size

    @property
    def is_array(self) -> bool:
        """Whether it holds numbers rather than others."""
        return isinstance(self._item, self._h5py.Dataset)

    @property
    def children(self) -> dict[str, LibraryNode | None]:
        """What is below it, by name; None for what is a link to another place."""
        if self.is_array:
            return {}
        found: dict[str, LibraryNode | None] = {}
        for name in self._item:
            is_own = isinstance(self._item.get(name, getlink=True), self._h5py.HardLink)
            item = self._item[name] if is_own else None
            found[name] = LibraryNode(item, self._h5py, self._size) if is_own else None
        return found

    def attribute(self, name: str) -> Any:
        """An attribute in Python's own types, or None."""
        return _plain(self._item.attrs[name]) if name in self._item.attrs else None

    def array(self) -> Array:
        """The elements of an array."""
        item = self._item
        if item.external or item.is_virtual:
            raise DamagedError("an array that lies in another file")
        size = math.prod(item.shape) * item.dtype.itemsize
        stored = min(item.id.get_storage_size(), self._size)
        if size > _LARGEST or (size > _SMALL and size > _EXPANSION * stored):
            raise DamagedError(f"an array of {size} bytes, stored in {stored}")
        array = np.asarray(item[()])
        is_brain = item.attrs.get("dtype") == "bfloat16"
        return array.view(ml_dtypes.bfloat16) if is_brain and array.itemsize == 2 else array


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.ravel().tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
