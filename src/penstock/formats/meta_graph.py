"""A ``.meta`` file, which a Saver of TensorFlow 1 leaves beside each checkpoint.

In:   the place of the file, of its checkpoint, or of their folder.
Out:  the MetaGraphDef, and the checkpoint, if it is there.
Not:  restores nothing.

It holds the graph, the names of the nodes that save and restore, and lists of nodes, the
collections.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Final

from google.protobuf.message import DecodeError

from penstock.checkpoint import load as open_checkpoint
from penstock.core.files import FileSystem
from penstock.core.forks import importing
from penstock.defs.file_kinds import META_GRAPH, kind_of
from penstock.defs.schema import MetaGraphDef
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.formats.place import Place
from penstock.formats.stored_model import Companions, StoredModel

_ENDING: Final = ".meta"
_FILES: Final = FileSystem()


def read(place: Place) -> StoredModel:
    """The graph, with the checkpoint beside it.

    Raises:
        NotFoundError: there is a checkpoint, and no graph.
        InvalidArgumentError: the file holds no MetaGraphDef.

    """
    path = _file(place)
    content = _FILES.read(path) if place.content is None else place.content
    prefix = path.removesuffix(_ENDING)
    checkpoint = _checkpoint(prefix) if place.has_folder and prefix != path else ""
    return StoredModel(
        what="a MetaGraphDef",
        path=path,
        meta_graphs=[_parsed(content, path)],
        companions=Companions(files=(path, f"{checkpoint}.index"), checkpoint=checkpoint),
        fills_by_collection=True,
    )


def _file(place: Place) -> str:
    """The file that is meant."""
    if place.content is not None:
        return place.path
    path = place.path + _ENDING
    if not _FILES.exists(path):
        path = open_checkpoint(place.path).prefix + _ENDING
    if not _FILES.exists(path):
        raise NotFoundError(
            f"{place.path} is a checkpoint without its graph: there is no {path}",
            next_step="open the graph, and name the checkpoint: "
            f"penstock.load_model(GRAPH, checkpoint={place.path!r})",
        )
    return path


def _checkpoint(prefix: str) -> str:
    """The prefix, if there is a checkpoint of that name."""
    try:
        return open_checkpoint(prefix).prefix
    except NotFoundError:
        return ""


def _parsed(content: bytes, path: str) -> Any:
    for parse in (_binary, _text):
        meta = parse(content)
        if meta is not None and meta.graph_def.node:
            return meta
    kind = kind_of(content, os.path.basename(path))
    if kind is META_GRAPH:
        raise InvalidArgumentError(f"{path} is {kind.what} without nodes")
    what = f"is {kind.what}, not a MetaGraphDef" if kind else "is not a MetaGraphDef"
    raise InvalidArgumentError(f"{path} {what}", next_step=kind.advice if kind else "")


def _binary(content: bytes) -> Any:
    try:
        return MetaGraphDef.FromString(content)
    except (DecodeError, ValueError):  # bad UTF-8 may be either
        return None


def _text(content: bytes) -> Any:
    with importing:
        text_format = importlib.import_module("google.protobuf.text_format")  # few need it
    meta = MetaGraphDef()
    try:
        text_format.Parse(content.decode("utf-8"), meta)
    except (UnicodeDecodeError, text_format.ParseError, RecursionError, ValueError):
        return None
    return meta
