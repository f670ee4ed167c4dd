"""HDF5 files with models or weights of Keras.

In:   the bytes of a file.
Out:  ``H5File``: attributes, names and arrays by path; what is damaged is an error that says where.
Not:  knows no form of HDF5, and no layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

from penstock.core.values import Array
from penstock.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from penstock.formats.keras.h5py_nodes import open_by_library
from penstock.formats.keras.hdf5 import open_hdf5
from penstock.formats.keras.hdf5_bytes import NewerFormError

_AGAIN: Final = "the file is damaged: get it again, or save the model again with Keras"
#: No list of names lies in more pieces.
_PIECES: Final = 100_000


class Found(Protocol):
    """A group or an array, whoever has read it."""

    @property
    def is_array(self) -> bool:
        """Whether it holds numbers rather than others."""

    @property
    def children(self) -> Mapping[str, Any]:
        """What is below it, by name; None for what is a link to another place."""

    def attribute(self, name: str) -> Any:
        """An attribute in Python's own types, or None."""

    def array(self) -> Array:
        """The elements of an array."""


class H5File:
    """An HDF5 file, or the part below one of its groups."""

    def __init__(self, group: Found, origin: str) -> None:
        self._group = group
        #: What the file is called in errors.
        self.origin = origin

    def __contains__(self, path: str) -> bool:
        return self._find(path) is not None

    def below(self, path: str) -> H5File | None:
        """The group at ``path``, or None."""
        found = self._find(path)
        is_group = found is not None and not found.is_array
        return H5File(found, f"{self.origin}/{path}") if found is not None and is_group else None

    def attribute(self, name: str) -> Any:
        """An attribute of this group, or None: text as str, arrays as lists."""
        with _damage(f"{self.origin}, '{name}'"):
            return self._group.attribute(name)

    def texts(self, name: str) -> list[str] | None:
        """An attribute that is a list of words, or None; a long one lies in numbered pieces."""
        whole = self.attribute(name)
        if whole is not None:
            return self._words(whole, name)
        pieces: list[str] = []
        for number in range(_PIECES):
            piece = self.attribute(f"{name}{number}")
            if piece is None:
                return pieces if number else None
            pieces += self._words(piece, name)
        raise DataLossError(f"{self.origin}: the attribute '{name}' has no end")

    def _words(self, value: Any, name: str) -> list[str]:
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str) for item in items):
            raise DataLossError(f"{self.origin}: '{name}' is no list of names", next_step=_AGAIN)
        return items

    def array(self, path: str) -> Array:
        """The array at ``path``.

        Raises:
            NotFoundError: there is none.
            DataLossError: it is damaged.

        """
        found = self._find(path)
        if found is None or not found.is_array:
            raise NotFoundError(f"{self.origin} has no array '{path}'", next_step=_AGAIN)
        with _damage(f"{self.origin}/{path}"):
            return found.array()

    def _find(self, path: str) -> Found | None:
        """What is at ``path``, each step of which must be a plain member; or None."""
        found: Found = self._group
        with _damage(f"{self.origin}/{path}"):
            for step in path.split("/"):
                members = found.children
                if step not in members:
                    return None
                below = members[step]
                if below is None:
                    raise UnimplementedError(
                        f"{self.origin}: '{path}' is a link to another place",
                        next_step="save the model again with Keras",
                    )
                found = below
        return found


def open_h5(content: bytes, origin: str) -> H5File:
    """The HDF5 file that ``content`` is.

    Raises:
        UnimplementedError: it is in a form that takes h5py, which is not installed.
        DataLossError: it is damaged.

    """
    with _damage(origin):
        try:
            return H5File(open_hdf5(content), origin)
        except NewerFormError as reason:
            return H5File(open_by_library(content, origin, str(reason)), origin)


@contextmanager
def _damage(origin: str) -> Iterator[None]:
    """Turn what a reader says of a damaged file into an error of ours."""
    try:
        yield
    except OpError:
        raise
    except NewerFormError as reason:
        raise UnimplementedError(
            f"{origin} is in a form of HDF5 that is not read: {reason}",
            next_step="save the model again with Keras, or copy the file with h5repack",
        ) from None
    except MemoryError:
        raise ResourceExhaustedError(f"{origin}: there is no memory for what it says") from None
    except RecursionError:
        raise InvalidArgumentError(f"{origin} is nested too deeply") from None
    except Exception as cause:  # noqa: BLE001 - HDF5's library has no class of errors for damage
        raise DataLossError(f"{origin} cannot be read: {cause}", next_step=_AGAIN) from None
