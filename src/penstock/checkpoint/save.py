"""``save``: tensors into a checkpoint, by their names or by the objects that have them.

In:   a prefix, and values by names or paths.
Out:  an index and a data file, which TensorFlow reads.
Not:  writes no ``checkpoint`` file, ``write_state`` does; knows no graph.

Tensors begin at multiples of 64 bytes, so that whoever maps the file need not copy them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from penstock.checkpoint.object_graph import OBJECT_GRAPH_KEY, ObjectGraph, key_of
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.files import FileSystem, folder_of
from penstock.core.given import as_array
from penstock.core.values import Array
from penstock.defs.bundle_writer import BundleWriter
from penstock.errors import InvalidArgumentError

_FILES: Final = FileSystem()
#: A line of the processor's cache, and what its widest instructions like.
_ALIGNMENT: Final = 64


def save(
    prefix: str | os.PathLike[str], tensors: Mapping[str, Any], *, files: FileSystem = _FILES
) -> str:
    """Write a checkpoint whose keys are names, as ``tf.compat.v1.train.Saver`` restores them.

    What has the prefix stays whole until the new checkpoint is complete, also if the process is
    killed; then it is gone.

    Args:
        prefix: what the names of the files begin with; folders are made.
        tensors: arrays, numbers, texts or nested lists, by names.  Of type and shape as numpy
            makes them, strings as UTF-8; what ``load`` gives is written as it was, but that
            parts are put together.
        files: where they go; ``DurableFiles`` also outlive a loss of power.

    Returns:
        The prefix.

    Raises:
        InvalidArgumentError: a value is no tensor, or has no name.
        OpError: the file system refuses.

    """
    path = os.fsdecode(prefix)
    found = {_key(name): _tensor(name, value) for name, value in tensors.items()}
    files.make_folders(folder_of(path))
    with BundleWriter(path, files, alignment=_ALIGNMENT) as writer:
        for key in sorted(found):
            value, dtype = found[key]
            writer.add(key, value, dtype)
    return path


def save_objects(prefix: str | os.PathLike[str], tensors: Mapping[str, Any]) -> str:
    """Write a checkpoint of objects, as ``tf.train.Checkpoint.read`` finds them again.

    Args:
        prefix: what the names of the files begin with; folders are made.
        tensors: values as ``save`` takes them, by paths from the root, with slashes between
            attributes; elements of lists are called by their numbers: ``net/layers/0/kernel``.

    Returns:
        The prefix.

    Raises:
        InvalidArgumentError: a value is no tensor, or a path has an empty edge.
        OpError: the file system refuses.

    """
    graph = ObjectGraph.of_paths(tensors)
    keyed = {key_of(path.split("/")): value for path, value in tensors.items()}
    return save(prefix, {**keyed, OBJECT_GRAPH_KEY: graph.serialized()})


def _key(name: Any) -> bytes:
    key = name.encode("utf-8", "surrogateescape") if isinstance(name, str) else b""
    if not key or key.startswith(b"\0"):
        raise InvalidArgumentError(f"{name!r} is no name of a tensor")
    return key


def _tensor(name: str, value: Any) -> tuple[Array, DType]:
    """A value as an array, and its type."""
    try:
        array = as_array(value)
        if array.dtype.kind in "SUO":
            return _strings(array), dtypes.string
        return array, dtypes.of_numpy(array.dtype)
    except (ValueError, TypeError, InvalidArgumentError) as cause:
        reason = getattr(cause, "reason", cause)
        raise InvalidArgumentError(f"{name}: cannot be saved: {reason}") from None


def _strings(array: Array) -> Array:
    """Texts as bytes."""
    out = np.empty(array.shape, object)
    for place, item in enumerate(array.flat):
        if not isinstance(item, (str, bytes)):
            raise InvalidArgumentError(f"a {type(item).__name__} is neither number nor text")
        out.flat[place] = item.encode() if isinstance(item, str) else bytes(item)
    return out
