"""Values for feeds, as they are written on the command line.

In:   ``NAME=VALUE``, where VALUE is a file or a literal.
Out:  the endpoint's name and an array.
Not:  executes nothing: pickled arrays are refused, literals are numbers, text and lists.

| VALUE | meaning |
| --- | --- |
| ``x.npy`` | the array in the file |
| ``x.npz:key`` | one array of several; the key of a single one may be left out |
| ``x.png``, or .jpg, .bmp, .gif | an image: rows, columns and, unless it is grey, channels |
| ``-`` | the array of a .npy file on stdin |
| anything else | a literal such as ``3``, ``[[1, 2]]``, ``true`` or ``nan`` |

For a string, an image is the file's bytes, since such graphs decode it themselves, and what is
no literal of text is text as it stands.
"""

from __future__ import annotations

import ast
import io
import math
import sys
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from penstock.cli.images import SUFFIXES, is_image, read_image
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.names import parse_endpoint
from penstock.core.shapes import TensorShape
from penstock.core.values import Array
from penstock.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError
from penstock.exceptions import shown_cause
from penstock.graph.graph import Graph
from penstock.printable import printable
from penstock.session.feeds import signature_of

_WORDS: Final = {"true": True, "false": False, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}
#: What numpy raises for files that are damaged, or none of its own.
_DAMAGE: Final = (
    ValueError, OSError, EOFError, TypeError, LookupError, OverflowError, SyntaxError,
    NotImplementedError, zipfile.BadZipFile, zlib.error, tokenize.TokenError, RecursionError,
)  # fmt: skip
#: What stands for an array on stdin.
STDIN: Final = "-"
_KINDS: Final = (
    f"a VALUE is FILE.npy, FILE.npz:KEY, an image ({' '.join(SUFFIXES)}), {STDIN} for a .npy file "
    "on stdin, or a literal such as 3, [[1, 2]] or true"
)


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
        InvalidArgumentError: the text has no ``=``, a file is not what its name says, or a
            value is none that the tensor can hold.
        NotFoundError: a file or a key is not there.

    """
    name, value = split_feed(text)
    endpoint = _find(name, graph)
    return endpoint, read_value(value, endpoint, *signature_of(graph, endpoint))


def split_feed(text: str) -> tuple[str, str]:
    """The two sides of ``NAME=VALUE``; raises InvalidArgumentError if there are not two."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidArgumentError(
            f"'{text}' is not a feed",
            next_step="write NAME=VALUE, such as images:0=batch.npy or keep_prob:0=1.0",
        )
    return name, value


def read_value(value: str, name: str, dtype: DType, shape: TensorShape) -> Any:
    """What VALUE means for a tensor of a type and shape; ``name`` is what errors call it.

    Raises:
        InvalidArgumentError: a file is not what its name says, or the tensor cannot hold it.
        NotFoundError: a file or a key is not there.

    """
    stem, is_archive, key = f"{value}:".partition(".npz:")
    if is_archive:
        return _read_npz(Path(f"{stem}.npz"), key.removesuffix(":"))
    if value.lower().endswith(".npy"):
        return _read_npy(Path(value))
    if value == STDIN:
        return _read_stdin()
    if is_image(value):
        return read_image(Path(value), dtype, shape)
    if dtype is dtypes.string:
        return _text(value, name)
    return _literal(value, name, dtype)


def _find(name: str, graph: Graph) -> str:
    """The full name of the tensor that is meant."""
    wanted, slot = parse_endpoint(name)
    node = graph.find(wanted)
    if node is None or not 0 <= slot < len(node.output_types):
        raise InvalidArgumentError(
            f"--feed {name}: the graph has no tensor '{wanted}:{max(slot, 0)}'",
            next_step=graph.hint(wanted),
        )
    return f"{wanted}:{slot}"


def _read_npy(path: Path) -> Any:
    with _opened(path) as file, _reading(str(path)):
        return np.load(file, allow_pickle=False)


def _opened(path: Path) -> BinaryIO:
    if not path.is_file():
        raise NotFoundError(f"There is no file {path}")
    with _reading(str(path)):
        return path.open("rb")


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Whatever numpy finds wrong with a file, or cannot make of it, is an OpError."""
    try:
        yield
    except MemoryError as cause:
        raise ResourceExhaustedError(f"{name} is too large: {cause}") from shown_cause(cause)
    except _DAMAGE as cause:
        raise InvalidArgumentError(
            f"{name} cannot be read as numpy data: {cause}"
        ) from shown_cause(cause)


def _read_npz(path: Path, key: str) -> Array:
    with _opened(path) as file, _archive(file, path) as arrays:
        if not key and len(arrays.files) == 1:
            key = arrays.files[0]
        if key not in arrays.files:
            listed, first = ", ".join(arrays), next(iter(arrays), "key")
            raise NotFoundError(
                f"{path} has no array '{key}'" if key else f"{path} has several arrays",
                next_step=f"name one of: {listed}, as in {path}:{first}",
            )
        with _reading(f"{path}:{key}"):
            array = arrays[key]
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(f"{path}:{key} cannot be read as numpy data: it is no array")
    return array


def _archive(file: BinaryIO, path: Path) -> np.lib.npyio.NpzFile:
    with _reading(str(path)):
        arrays = np.load(file, allow_pickle=False)
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise InvalidArgumentError(f"{path} cannot be read as numpy data: it is no archive")
    return arrays


def _read_stdin() -> Any:
    with _reading("stdin"):
        return np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)


def _literal(text: str, endpoint: str, dtype: DType) -> Any:
    """A number, a truth value, or lists of them."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise _no_value(text, endpoint, dtype) from None


def _text(text: str, endpoint: str) -> Any:
    """Text in quotes, lists of it, or the text as it is."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if isinstance(value, (str, bytes, list, tuple)):
        return value
    if _is_file(text):
        warnings.warn(
            f"{endpoint} is fed the text {printable(text)!r}, not what is in the file of that "
            "name; put the text in quotes if it is meant",
            stacklevel=2,
        )
    return text


def _no_value(text: str, endpoint: str, dtype: DType) -> InvalidArgumentError:
    """The error for text where numbers are wanted."""
    kind = "a file of another kind" if _is_file(text) else "neither a literal nor a file"
    return InvalidArgumentError(
        f"Type of feed value {text[:60]} is not compatible with Tensor {endpoint}, which has type "
        f"{dtype}: it is {kind}",
        next_step=_KINDS,
    )


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long, or with a null: no file can be called so
        return False
