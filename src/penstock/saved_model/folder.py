"""The folder of a SavedModel: where its files are, and what tells it from others.

In:   the path of a folder.
Out:  the SavedModel message; paths of the checkpoint and of assets; a fingerprint.
Not:  follows no path of the model's own that leaves the folder; opens no checkpoint.

``saved_model.pb`` (or ``.pbtxt``) holds graphs, ``variables/variables`` is the prefix of the
checkpoint with the values, ``assets/`` has files that the graphs read.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any, Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from penstock.core.files import FileSystem
from penstock.defs.file_kinds import kind_of, kind_of_folder
from penstock.defs.schema import Message, SavedModel
from penstock.defs.tensor_bundle import index_path
from penstock.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)

BINARY: Final = "saved_model.pb"
TEXT: Final = "saved_model.pbtxt"
_CHUNKED: Final = "saved_model.cpb"
#: What tells a module of TensorFlow 1 Hub from other models.
HUB_MODULE: Final = "tfhub_module.pb"
VARIABLES_FOLDER: Final = "variables"
ASSETS: Final = "assets"
#: In a path of the model's own: the folder around, the root of a file system, a drive, and what
#: no file can be called.
_OUTSIDE: Final = re.compile(r"(^|[/\\])\.\.([/\\]|$)|^[/\\]|^[A-Za-z]:|\0")


class ModelFolder:
    """The folder that one SavedModel is in; its path is absolute."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Look at a folder, or at the ``saved_model.pb`` in one.

        Raises:
            NotFoundError: there is nothing at the path.
            InvalidArgumentError: what is there is no SavedModel.

        """
        self.files: Final = FileSystem()
        found = self.files.absolute(os.fsdecode(path))
        if os.path.basename(found) in (BINARY, TEXT, _CHUNKED) and not self.files.is_folder(found):
            found = os.path.dirname(found)
        if not self.files.is_folder(found):
            raise NotFoundError(
                f"{os.fsdecode(path)}: there is no such folder",
                next_step=f"give the folder that has {BINARY} in it",
            )
        self.path: Final = found

    def read(self) -> Message:
        """The SavedModel message.

        Raises:
            NotFoundError: the folder has none.
            UnimplementedError: it is in the form of chunks, which TensorFlow itself cannot read.
            InvalidArgumentError: it is damaged.

        """
        names = self.files.names(self.path)
        if BINARY in names:
            return _parsed(self.files.read(self._within(BINARY)), self._within(BINARY))
        if TEXT in names:
            return _parsed_text(self.files.read(self._within(TEXT)), self._within(TEXT))
        if _CHUNKED in names:
            raise UnimplementedError(
                f"{self._within(_CHUNKED)}: the SavedModel is in chunks, a form for files over "
                "2 GB that released versions of TensorFlow neither write nor load",
                next_step=f"save the model again as {BINARY}, with large constants as variables",
            )
        kind = kind_of_folder(names)
        raise NotFoundError(
            f"{self.path} has no {BINARY} and no {TEXT}: it is {kind.what}",
            next_step=kind.advice,
        )

    @property
    def checkpoint_prefix(self) -> str:
        """The prefix of the checkpoint, whether it is there or not."""
        return os.path.join(self.path, VARIABLES_FOLDER, VARIABLES_FOLDER)

    @property
    def has_checkpoint(self) -> bool:
        """Whether there are values of variables."""
        return self.files.exists(index_path(self.checkpoint_prefix))

    @property
    def is_hub_module(self) -> bool:
        """Whether it is a module of TensorFlow 1 Hub."""
        return self.files.exists(self._within(HUB_MODULE))

    def asset(self, filename: str) -> str:
        """The absolute path of an asset.

        A link that lies there may lead elsewhere: whoever put the model there has put it, too.

        Raises:
            InvalidArgumentError: the name, which is the model's text, leads out of ``assets``.

        """
        if _OUTSIDE.search(filename) or not filename:
            raise InvalidArgumentError(
                f"the asset {filename!r} is not in the model's folder {self._within(ASSETS)}",
                next_step="such a path may lead to any file of the machine: do not trust the model",
            )
        return os.path.join(self._within(ASSETS), filename)

    def fingerprint(self) -> str:
        """What changes when the model does: a hash of its graphs, and of all values' checksums."""
        digest = hashlib.sha256()
        for path in (self._within(BINARY), self._within(TEXT), index_path(self.checkpoint_prefix)):
            if self.files.exists(path):
                digest.update(self.files.read(path))
        return digest.hexdigest()

    def check(self, fingerprint: str) -> None:
        """Raise FailedPreconditionError unless the model still has a fingerprint."""
        if self.fingerprint() != fingerprint:
            raise FailedPreconditionError(
                f"{self.path} holds another model than it did when it was pickled",
                next_step="load it anew: penstock.saved_model.load",
            )

    def _within(self, name: str) -> str:
        return os.path.join(self.path, name)


def _parsed(content: bytes, path: str) -> Message:
    saved_model = SavedModel()
    try:
        saved_model.ParseFromString(content)
    except (DecodeError, ValueError) as cause:  # bad UTF-8 may be either
        raise _damaged(content, path, cause) from None
    return _checked(saved_model, content, path)


def _parsed_text(content: bytes, path: str) -> Message:
    try:
        text = content.decode("utf-8")
        saved_model: Any = text_format.Parse(text, SavedModel())
    except (text_format.ParseError, ValueError, RecursionError) as cause:
        raise _damaged(content, path, cause) from None
    return _checked(saved_model, content, path)


def _checked(saved_model: Message, content: bytes, path: str) -> Message:
    if not saved_model.meta_graphs:
        raise _damaged(content, path, "there is no graph in it")
    return saved_model


def _damaged(content: bytes, path: str, why: object) -> DataLossError | InvalidArgumentError:
    kind = kind_of(content, os.path.basename(path)) if content else None
    if kind is not None and "SavedModel" not in kind.what:
        return InvalidArgumentError(
            f"{path}: no SavedModel, but {kind.what}", next_step=kind.advice
        )
    return DataLossError(f"{path}: the SavedModel is damaged: {why}", next_step="get it again")
