"""Where a model is, and what lies there.

In:   a path, or bytes.
Out:  ``Place``: an absolute path, and a file's content; the kind of what is there.
Not:  reads no model.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from penstock.core.files import FileSystem
from penstock.defs.file_kinds import (
    SAVED_MODEL,
    FileKind,
    begins_with_node,
    kind_of,
    kind_of_folder,
    kind_of_nothing,
)
from penstock.errors import OpError

_FILES: Final = FileSystem()
BINARY: Final = "saved_model.pb"
TEXT: Final = "saved_model.pbtxt"
CHUNKED: Final = "saved_model.cpb"
#: A file of such a name is that of a SavedModel, however damaged it is.
SAVED_MODELS: Final = (BINARY, TEXT, CHUNKED)


@dataclass(frozen=True, slots=True)
class Place:
    """A file, a folder, or what the names of several files begin with."""

    #: Absolute; of bytes without a file, what to call them.
    path: str
    #: What the file holds; None if it is no file.
    content: bytes | None = None
    #: Whether there is a file, in a folder that may hold others which belong to it.
    has_folder: bool = True

    @classmethod
    def of_bytes(cls, content: bytes, title: str) -> Place:
        """Bytes that come from no file."""
        return cls(title, content, has_folder=False)

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Place:
        """A path; the file there, if there is one, is read.

        Raises:
            OpError: there is a file that cannot be read.

        """
        found = _FILES.absolute(os.fsdecode(path))
        if _FILES.is_folder(found) or not _FILES.exists(found):
            return cls(found)
        return cls(found, _FILES.read(found))

    def kind(self) -> FileKind | None:
        """What is there; None for a graph, and for what nobody knows."""
        folder, name = os.path.split(self.path)
        if self.content is None:
            if _FILES.is_folder(self.path):
                return kind_of_folder(_FILES.names(self.path))
            return kind_of_nothing(self.path, _names_in(folder))
        if self.has_folder and name in SAVED_MODELS:
            return SAVED_MODEL
        # Most files are graphs, which may be large, and are known by how they begin.
        return None if begins_with_node(self.content) else kind_of(self.content, name)


def _names_in(folder: str) -> list[str]:
    try:
        return _FILES.names(folder)
    except OpError:
        return []
