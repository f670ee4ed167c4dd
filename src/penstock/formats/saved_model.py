"""The folder of a SavedModel.

In:   the place of a folder, or of the file in it, by whatever name.
Out:  its graphs, and where its checkpoint and its assets are.
Not:  follows no path of the model's own; opens no checkpoint.

``saved_model.pb`` (or ``.pbtxt``) holds graphs, ``variables/variables`` is the prefix of the
checkpoint with the values, ``assets/`` has files that the graphs read.
"""

from __future__ import annotations

import importlib
import os
from typing import Final

from google.protobuf.message import DecodeError

from penstock.core.files import FileSystem
from penstock.core.forks import importing
from penstock.defs.file_kinds import kind_of, kind_of_folder
from penstock.defs.schema import Message, SavedModel
from penstock.defs.tensor_bundle import index_path
from penstock.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from penstock.formats.place import BINARY, CHUNKED, SAVED_MODELS, TEXT, Place
from penstock.formats.stored_model import Companions, StoredModel

#: What tells a module of TensorFlow 1 Hub from other models.
HUB_MODULE: Final = "tfhub_module.pb"
VARIABLES_FOLDER: Final = "variables"
ASSETS: Final = "assets"
_FILES: Final = FileSystem()


def read(place: Place) -> StoredModel:
    """The SavedModel of a folder.

    Raises:
        NotFoundError: the folder has none.
        UnimplementedError: it is in the form of chunks, which TensorFlow itself cannot read.
        InvalidArgumentError: a file of that name is something else.
        DataLossError: it is damaged.

    """
    if place.content is None:
        folder, path = place.path, _file_in(place.path)
        message = _parsed(_FILES.read(path), path)
    else:
        folder, path = os.path.dirname(place.path), place.path
        message = _parsed(place.content, path)
    prefix = os.path.join(folder, VARIABLES_FOLDER, VARIABLES_FOLDER)
    index = index_path(prefix)
    is_module = _FILES.exists(os.path.join(folder, HUB_MODULE))
    return StoredModel(
        what="a module of TensorFlow 1 Hub" if is_module else "a SavedModel",
        path=folder if os.path.basename(path) in SAVED_MODELS else path,
        meta_graphs=message.meta_graphs,
        companions=Companions(
            files=(path, index) if place.has_folder else (),
            checkpoint=prefix if place.has_folder and _FILES.exists(index) else "",
            assets=os.path.join(folder, ASSETS) if place.has_folder else "",
        ),
        fills_by_collection=is_module,
    )


def _file_in(folder: str) -> str:
    """The file of a folder that has the graphs."""
    names = _FILES.names(folder)
    for name in SAVED_MODELS:
        if name in names:
            return os.path.join(folder, name)
    kind = kind_of_folder(names)
    raise NotFoundError(
        f"{folder} has no {BINARY} and no {TEXT}: it is {kind.what}", next_step=kind.advice
    )


def _parsed(content: bytes, path: str) -> Message:
    if os.path.basename(path) == CHUNKED:
        raise UnimplementedError(
            f"{path}: the SavedModel is in chunks, a form for files over 2 GB that released "
            "versions of TensorFlow neither write nor load",
            next_step=f"save the model again as {BINARY}, with large constants as variables",
        )
    try:
        is_text = path.endswith(os.path.splitext(TEXT)[1])
        read = _from_text if is_text else SavedModel.FromString
        return _checked(read(content), content, path)
    except (DecodeError, ValueError, RecursionError) as cause:
        raise _damaged(content, path, cause) from None


def _from_text(content: bytes) -> Message:
    with importing:
        text_format = importlib.import_module("google.protobuf.text_format")  # few need it
    try:
        return text_format.Parse(content.decode("utf-8"), SavedModel())
    except text_format.ParseError as cause:
        raise DecodeError(cause) from None


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
