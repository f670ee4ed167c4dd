"""HDF5 files of strangers, by h5py.

In:   the bytes of a file, or its path.
Out:  ``H5File``: attributes, names and arrays by path.
Not:  follows no link to another place or file, and reads no array that the file cannot hold.

h5py is imported here and nowhere else, when the first such file is opened.
"""

from __future__ import annotations

import importlib
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import ml_dtypes
import numpy as np

from penstock.core.values import Array
from penstock.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)

#: Arrays up to this size are read whatever the file stores of them.
_SMALL: Final = 1 << 20
#: How many times as large as its stored bytes an array may be: gzip's best is about 1000.
_EXPANSION: Final = 1100
#: The largest array, in bytes: what numpy and protobuf can hold in one constant.
_LARGEST: Final = 1 << 31
_AGAIN: Final = "the file is damaged: get it again, or save the model again with Keras"


class H5File:
    """An open HDF5 file, or the part below one of its groups."""

    def __init__(self, group: Any, origin: str, size: int) -> None:
        self._group = group
        #: What the file is called in errors.
        self.origin = origin
        #: How many bytes it has.
        self.size = size

    def __contains__(self, path: str) -> bool:
        return self._find(path) is not None

    def names(self) -> list[str]:
        """What is directly below this group."""
        with _damage(self.origin):
            return [name for name in self._group if isinstance(name, str)]

    def below(self, path: str) -> H5File | None:
        """The group at ``path``, or None."""
        found = self._find(path)
        is_group = found is not None and not hasattr(found, "dtype")
        return H5File(found, f"{self.origin}/{path}", self.size) if is_group else None

    def attribute(self, name: str) -> Any:
        """An attribute of this group, or None: text as str, arrays of text as lists."""
        with _damage(self.origin):
            if name not in self._group.attrs:
                return None
            declared = self._group.attrs.get_id(name)
            if math.prod(declared.shape) * max(declared.dtype.itemsize, 1) > _SMALL << 6:
                raise DataLossError(f"{self.origin}: the attribute '{name}' is absurdly long")
            return _plain(self._group.attrs[name])

    def texts(self, name: str) -> list[str] | None:
        """An attribute that is a list of words, or None; a long one lies in numbered pieces."""
        whole = self.attribute(name)
        if whole is not None:
            return self._words(whole, name)
        pieces: list[str] = []
        for number in range(100_000):
            piece = self.attribute(f"{name}{number}")
            if piece is None:
                return pieces if number else None
            pieces += self._words(piece, name)
        raise DataLossError(f"{self.origin}: the attribute '{name}' has no end")

    def _words(self, value: Any, name: str) -> list[str]:
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str) for item in items):
            if items and not any(isinstance(item, str) for item in items):
                raise DataLossError(f"{self.origin}: the attribute '{name}' is no list of names")
            raise DataLossError(f"{self.origin}: the attribute '{name}' is damaged")
        return items

    def array(self, path: str) -> Array:
        """The array at ``path``.

        Raises:
            NotFoundError: there is none.
            DataLossError: it is damaged.
            ResourceExhaustedError: it is larger than its stored bytes can be.

        """
        found = self._find(path)
        if found is None or not hasattr(found, "dtype"):
            raise NotFoundError(f"{self.origin} has no array '{path}'", next_step=_AGAIN)
        with _damage(f"{self.origin}/{path}"):
            self._check(found, path)
            array = np.asarray(found[()])
            if found.attrs.get("dtype") == "bfloat16":
                array = array.view(ml_dtypes.bfloat16)
        return array

    def _check(self, dataset: Any, path: str) -> None:
        if dataset.external or dataset.is_virtual:
            raise UnimplementedError(
                f"{self.origin}: the array '{path}' lies in another file",
                next_step="save the model again with Keras",
            )
        bytes_ = math.prod(dataset.shape) * dataset.dtype.itemsize
        stored = min(dataset.id.get_storage_size(), self.size)
        if bytes_ > _LARGEST or (bytes_ > _SMALL and bytes_ > _EXPANSION * stored):
            raise ResourceExhaustedError(
                f"{self.origin}: the array '{path}' of {bytes_} bytes is stored in {stored}"
            )

    def _find(self, path: str) -> Any:
        """What is at ``path``, each step of which must be a plain link; or None."""
        h5py = _h5py(self.origin)
        found = self._group
        with _damage(f"{self.origin}/{path}"):
            for step in path.split("/"):
                if not step or step in (".", ".."):
                    return None
                if not isinstance(found, h5py.Group) or step not in found:
                    return None
                if not isinstance(found.get(step, getlink=True), h5py.HardLink):
                    raise UnimplementedError(
                        f"{self.origin}: '{path}' is a link to another place",
                        next_step="save the model again with Keras",
                    )
                found = found[step]
        return found


@contextmanager
def opened(source: bytes, origin: str) -> Iterator[H5File]:
    """The HDF5 file that ``source`` is, until the block ends.

    Raises:
        UnimplementedError: h5py is not installed.
        DataLossError: it is damaged.

    """
    h5py = _h5py(origin)
    with _damage(origin):
        file = h5py.File(io.BytesIO(source), "r")
    try:
        yield H5File(file, origin, len(source))
    finally:
        file.close()


def _h5py(origin: str) -> Any:
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise UnimplementedError(
            f"{origin} holds HDF5, which takes the package h5py",
            next_step="pip install 'penstock[keras]'",
        ) from None


@contextmanager
def _damage(origin: str) -> Iterator[None]:
    """Turn what h5py says of a damaged file into an error of ours."""
    try:
        yield
    except OpError:
        raise
    except MemoryError:
        raise ResourceExhaustedError(f"{origin}: there is no memory for what it says") from None
    except RecursionError:
        raise InvalidArgumentError(f"{origin} is nested too deeply") from None
    except Exception as cause:  # noqa: BLE001 - h5py has no class of errors for damage
        raise DataLossError(f"{origin} cannot be read: {cause}", next_step=_AGAIN) from None


def _plain(value: Any) -> Any:
    """An attribute in Python's own types."""
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.ravel().tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
