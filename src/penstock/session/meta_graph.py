"""``load_meta_graph``: a ``.meta`` file and its checkpoint, as a session that is ready to run.

In:   a prefix, its ``.meta`` file, or a folder.
Out:  a ``Session`` whose variables are restored and whose tables are filled.
Not:  knows no SavedModel; freezes nothing.

A program of TensorFlow 1 that saves with a Saver leaves a MetaGraphDef beside each checkpoint: the
graph, the names of the nodes that save and restore, and lists of nodes, the collections.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.message import DecodeError

from penstock.checkpoint import load
from penstock.core.files import FileSystem
from penstock.defs.file_kinds import kind_of
from penstock.defs.schema import Message, MetaGraphDef
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.graph.import_graph_def import graph_from_def
from penstock.graph.initializers import VARIABLES, restorer_of
from penstock.session.session import Session

_FILES: Final = FileSystem()
_ENDING: Final = ".meta"
#: The collection of nodes that fill tables.
_TABLES: Final = "table_initializer"


def load_meta_graph(
    path: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    config: Any = None,
) -> Session:
    """Open the graph of a ``.meta`` file, restore its variables, and fill its tables.

    Args:
        path: what the names of the files begin with (``model.ckpt-7``), the ``.meta`` file, or a
            folder, for the latest checkpoint in it.
        checkpoint: another checkpoint than the one beside the graph: a prefix, or a folder.
        config: as ``Session`` takes it; the graph itself restores, so it must allow files.

    Returns:
        A session, to be closed by the caller; ``session.graph`` names what to feed and fetch.

    Raises:
        NotFoundError: there is no such file, or no checkpoint.
        InvalidArgumentError: the file holds no MetaGraphDef.
        FailedPreconditionError: the graph has variables, and nothing that restores them.
        OpError: the graph is not acceptable, or the checkpoint is not the graph's.

    """
    place = _meta_file(os.fsdecode(path))
    meta = _read(place)
    session = Session(graph_from_def(meta.graph_def), config=config)
    try:
        _restore(session, meta, place, checkpoint)
        initializers = _nodes(meta, _TABLES)
        if initializers:
            session.run(initializers)
    except BaseException:
        session.close()
        raise
    return session


def _meta_file(path: str) -> str:
    """The file that is meant."""
    if path.endswith(_ENDING):
        return path
    if not _FILES.exists(path + _ENDING):
        path = load(path).prefix
    return path + _ENDING


def _read(path: str) -> Message:
    content = _FILES.read(path)
    for parse in (_binary, _text):
        meta = parse(content)
        if meta is not None and meta.graph_def.node:
            return meta
    kind = kind_of(content, os.path.basename(path))
    what = f"is {kind.what}, not a MetaGraphDef" if kind else "is not a MetaGraphDef"
    raise InvalidArgumentError(f"{path} {what}", next_step=kind.advice if kind else "")


def _binary(content: bytes) -> Message | None:
    try:
        return MetaGraphDef.FromString(content)
    except (DecodeError, ValueError):  # bad UTF-8 may be either
        return None


def _text(content: bytes) -> Message | None:
    text_format = importlib.import_module("google.protobuf.text_format")  # few need it
    meta = MetaGraphDef()
    try:
        text_format.Parse(content.decode("utf-8"), meta)
    except (UnicodeDecodeError, text_format.ParseError, RecursionError, ValueError):
        return None
    return meta


def _restore(
    session: Session, meta: Message, place: str, checkpoint: str | os.PathLike[str] | None
) -> None:
    """Have the graph restore its variables, if it has some."""
    variable = next((node for node in session.graph if node.op.name in VARIABLES), None)
    if variable is None:
        return
    prefix = load(place.removesuffix(_ENDING) if checkpoint is None else checkpoint).prefix
    node, tensor = meta.saver_def.restore_op_name, meta.saver_def.filename_tensor_name
    if not node:
        found = restorer_of(session.graph, variable.name)
        if found is None:
            raise FailedPreconditionError(
                f"{place}: the graph has variables, such as {variable.name}, and no node that "
                "restores them",
                next_step="ps.checkpoint.load reads their values, which can be fed",
            )
        node, tensor = found
    session.run(node, {tensor: os.fsencode(prefix)})


def _nodes(meta: Message, collection: str) -> list[str]:
    """The nodes that a collection names, if they are there."""
    names: Iterable[str] = meta.collection_def[collection].node_list.value
    return [name.partition(":")[0].removeprefix("^") for name in names]
