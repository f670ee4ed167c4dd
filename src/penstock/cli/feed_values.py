"""Values for feeds, as they are written on the command line.

In:   ``NAME=VALUE``, where VALUE is a file or a literal.
Out:  the endpoint's name and an array.
Not:  executes nothing: pickled arrays are refused, literals are numbers, text and lists.

| VALUE | meaning |
| --- | --- |
| ``x.npy`` | the array in the file |
| ``x.npz:key`` | one array of several |
| ``x.png`` | an image: rows, columns and, unless it is grey, channels |
| anything else | a literal such as ``3``, ``[[1, 2]]`` or ``true``; if it is none, text |
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.graph.graph import Graph
from penstock.kernels.extras import require
from penstock.session.feeds import declared_shape, feed_endpoint

_WORDS: Final = {"true": True, "false": False}


def parse_feed(text: str, graph: Graph) -> tuple[str, Any]:
    """The endpoint and value that ``NAME=VALUE`` means for ``graph``.

    Raises:
        InvalidArgumentError: the text has no ``=``, or a file is not what its name says.
        NotFoundError: a file or a key is not there.

    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidArgumentError(
            f"'{text}' is not a feed",
            next_step="write NAME=VALUE, such as images:0=batch.npy or keep_prob:0=1.0",
        )
    endpoint = feed_endpoint(name)
    path, _, key = value.rpartition(":")
    if path.endswith(".npz"):
        return endpoint, _read_npz(Path(path), key)
    if value.endswith(".npz"):
        return endpoint, _read_npz(Path(value), "")
    if value.endswith(".npy"):
        return endpoint, _load(Path(value))
    if value.lower().endswith(".png"):
        return endpoint, _read_png(Path(value), endpoint, graph)
    return endpoint, _literal(value)


def _load(path: Path) -> Any:
    if not path.is_file():
        raise NotFoundError(f"There is no file {path}")
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as cause:
        raise InvalidArgumentError(f"{path} cannot be read as numpy data: {cause}") from cause


def _read_npz(path: Path, key: str) -> Array:
    arrays = _load(path)
    if key not in arrays:
        raise NotFoundError(
            f"{path} has no array '{key}'",
            next_step=f"name one of: {', '.join(arrays)}, as in {path}:{next(iter(arrays), 'key')}",
        )
    array: Array = arrays[key]
    return array


def _read_png(path: Path, endpoint: str, graph: Graph) -> Array:
    """An image, in the range and with the dimensions that the placeholder expects.

    For a floating-point input, 0 to 255 becomes 0 to 1; where the placeholder has a batch
    dimension in front, or one channel at the end, it is added.
    """
    if not path.is_file():
        raise NotFoundError(f"There is no file {path}")
    image_module = require("PIL.Image", "images")
    try:
        with image_module.open(path) as image:
            array = np.asarray(image)
    except (OSError, ValueError, SyntaxError) as cause:
        raise InvalidArgumentError(f"{path} is not an image: {cause}") from cause
    node = graph.find(endpoint.rpartition(":")[0])
    if node is None:
        return array
    if node.output_types[0].base.is_floating:
        array = (array / 255).astype(node.output_types[0].base.numpy)
    shape = declared_shape(graph, node)
    if shape.dims is not None and len(shape.dims) == array.ndim + 2:
        array = array[..., np.newaxis]
    if shape.dims is not None and len(shape.dims) == array.ndim + 1:
        array = array[np.newaxis] if shape.dims[-1] != 1 else array[..., np.newaxis]
    return array


def _literal(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
