"""Values for feeds, as they are written on the command line.

In:   ``NAME=VALUE``, where VALUE is a file or a literal.
Out:  the endpoint's name and an array.
Not:  executes nothing: pickled arrays are refused, literals are numbers, text and lists.

| VALUE | meaning |
| --- | --- |
| ``x.npy`` | the array in the file |
| ``x.npz:key`` | one array of several; the key of a single one may be left out |
| ``x.png`` | an image: rows, columns and, unless it is grey, channels |
| anything else | a literal such as ``3``, ``[[1, 2]]`` or ``true``; if it is none, text |
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError, NotFoundError, shown_cause
from penstock.graph.graph import Graph
from penstock.kernels.extras import require
from penstock.session.feeds import declared_shape, feed_endpoint

_WORDS: Final = {"true": True, "false": False}
#: Kinds of image that hold no samples, and what they are turned into.
_PLAIN_MODE_OF: Final = {"1": "L", "P": "RGB", "PA": "RGBA", "CMYK": "RGB"}


def parse_feeds(texts: Sequence[str], graph: Graph) -> dict[str, Any]:
    """Values by endpoint; raises what ``parse_feed`` does, and for an endpoint fed twice."""
    values: dict[str, Any] = {}
    for text in texts:
        endpoint, value = parse_feed(text, graph)
        if endpoint in values:
            raise InvalidArgumentError(f"{endpoint} is fed twice")
        values[endpoint] = value
    return values


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
    stem, is_archive, key = f"{value}:".partition(".npz:")
    if is_archive:
        return endpoint, _read_npz(Path(f"{stem}.npz"), key.removesuffix(":"))
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
        raise InvalidArgumentError(
            f"{path} cannot be read as numpy data: {cause}"
        ) from shown_cause(cause)


def _read_npz(path: Path, key: str) -> Array:
    with _load(path) as arrays:
        if not key and len(arrays.files) == 1:
            key = arrays.files[0]
        if key not in arrays.files:
            listed, first = ", ".join(arrays), next(iter(arrays), "key")
            raise NotFoundError(
                f"{path} has no array '{key}'" if key else f"{path} has several arrays",
                next_step=f"name one of: {listed}, as in {path}:{first}",
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
            plain = _PLAIN_MODE_OF.get(image.mode)
            array = np.asarray(image.convert(plain) if plain else image)
    except (OSError, ValueError, SyntaxError) as cause:
        raise InvalidArgumentError(f"{path} is not an image: {cause}") from shown_cause(cause)
    node = graph.find(endpoint.rpartition(":")[0])
    if node is None:
        return array
    if node.output_types[0].base.is_floating:
        array = (array / np.iinfo(array.dtype).max).astype(node.output_types[0].base.numpy)
    dims = declared_shape(graph, node).dims or ()
    if array.ndim == 2 and (len(dims) == 4 or (len(dims) == 3 and dims[-1] == 1)):
        array = array[..., np.newaxis]
    return array[np.newaxis] if len(dims) == array.ndim + 1 else array


def _literal(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
