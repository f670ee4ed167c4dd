"""``read_model``: whatever a model is stored as.

In:   a path, or bytes.
Out:  ``StoredModel``.
Not:  runs nothing, and none of the code that a file may hold.

What something is, ``defs.file_kinds`` tells by its content; here is who reads which kind.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Final, Protocol

from penstock.core.collector import collector_paused
from penstock.core.forks import importing
from penstock.defs import file_kinds
from penstock.defs.file_kinds import FileKind
from penstock.formats.place import Place
from penstock.formats.stored_model import StoredModel


class Reader(Protocol):
    """What each format has: a module with this function."""

    def read(self, place: Place, /) -> StoredModel:
        """The model at a place.

        Raises:
            NotFoundError: a file is missing.
            InvalidArgumentError: what is there is something else.
            UnimplementedError: it is of a form, or has parts, that cannot be read.
            DataLossError: it is damaged.

        """


#: Readers by the kinds of what they read; they are imported when they are needed.
_READERS: Final[Mapping[FileKind | None, str]] = {
    file_kinds.SAVED_MODEL: "penstock.formats.saved_model",
    file_kinds.META_GRAPH: "penstock.formats.meta_graph",
    file_kinds.CHECKPOINT_FOLDER: "penstock.formats.meta_graph",
    file_kinds.CHECKPOINT_PREFIX: "penstock.formats.meta_graph",
    file_kinds.TFJS: "penstock.formats.tfjs",
    file_kinds.KERAS: "penstock.formats.keras.stored",
    file_kinds.HDF5: "penstock.formats.keras.stored",
}
#: The reader of everything else, which says what is no graph.
_GRAPHS: Final = "penstock.formats.graph_def"


@collector_paused
def read_model(source: str | os.PathLike[str] | bytes, title: str = "the content") -> StoredModel:
    """What is stored at a path, or in bytes, whichever of the formats it has.

    Args:
        source: the path of a file or folder, or the prefix of a checkpoint; or a file's content.
        title: what to call bytes in errors.

    Raises:
        NotFoundError: a file is missing.
        InvalidArgumentError: what is there is no model; the error says what it is.
        UnimplementedError: it is a model that cannot be read, or not completely.
        DataLossError: it is damaged.

    """
    return read_place(
        Place.of_bytes(source, title) if isinstance(source, bytes) else Place.at(source)
    )


def read_place(place: Place) -> StoredModel:
    """What is stored at a place; see ``read_model``."""
    with importing:
        reader: Reader = importlib.import_module(_READERS.get(place.kind(), _GRAPHS))
    return reader.read(place)


def is_known(place: Place) -> bool:
    """Whether there is a model at a place; a file may hold a graph even if it is not known."""
    return place.kind() in _READERS
