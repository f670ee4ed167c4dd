"""The weights of a model of TensorFlow.js.

In:   the manifest: groups of files, and what of which type lies in them, one behind the other.
Out:  ``Weights``: values by name, decoded when they are asked for.
Not:  knows no nodes; opens no file.

Numbers are stored as they are, in other types than those of the graph: 64 bits become 32.  They may
be quantized: as whole numbers of 8 or 16 bits, of which ``value * scale + min`` is meant, or as
float16.  A text lies behind its length, of four bytes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from penstock.core.memory import fits_memory
from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.errors import DataLossError, InvalidArgumentError, ResourceExhaustedError

#: Types in which numbers may be stored, by their names in manifests.
_STORED: Final[Mapping[str, Any]] = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        "float16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32",
        "int64", "uint64", "bool", "complex64", "complex128",
    )
}  # fmt: skip
_STRING: Final = "string"
_LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class _Entry:
    """One weight, as the manifest has it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    #: What stored numbers mean, if they are quantized.
    scale: float | None
    least: float
    data: memoryview

    def value(self) -> Array:
        """The numbers or texts."""
        if self.dtype == _STRING:
            return _texts(self.data, self.shape, self.name)
        stored = np.frombuffer(self.data, _STORED[self.dtype]).reshape(self.shape)
        if self.scale is None:
            return stored
        return (stored * np.float32(self.scale) + np.float32(self.least)).astype(np.float32)


class Weights:
    """All weights of a model, by name; of one name there may be several, in the order of use."""

    def __init__(self, manifest: Any, read: Callable[[str], bytes]) -> None:
        """Find where each weight lies.

        Args:
            manifest: as ``model.json`` has it.
            read: gives the contents of a file by its path there.

        Raises:
            InvalidArgumentError: the manifest is no such thing.
            DataLossError: files are too short for what is to lie in them.

        """
        self._entries: Final[dict[str, deque[_Entry]]] = {}
        for group in _list(manifest, "weightsManifest"):
            paths = [_text(path, "a path") for path in _list(_field(group, "paths"), "paths")]
            data = memoryview(b"".join(map(read, paths)))
            self._add_group(_list(_field(group, "weights"), "weights"), data, paths)

    def _add_group(self, specs: list[Any], data: memoryview, paths: list[str]) -> None:
        at = 0
        for spec in specs:
            entry, size = _entry(spec, data[at:])
            if size > len(data) - at:
                raise DataLossError(
                    f"{', '.join(paths)}: the weight {entry.name} needs {size} bytes, and there "
                    f"are {len(data) - at} left"
                )
            at += size
            self._entries.setdefault(entry.name, deque()).append(entry)

    def take(self, name: str) -> Array | None:
        """The next value of a name; None if there is none."""
        waiting = self._entries.get(name)
        if not waiting:
            return None
        return (waiting.popleft() if len(waiting) > 1 else waiting[0]).value()


def _entry(spec: Any, data: memoryview) -> tuple[_Entry, int]:
    """A weight that begins where ``data`` does, and how many bytes it takes."""
    name = _text(_field(spec, "name"), "a weight's name")
    shape = tuple(_size(size, name) for size in _list(_field(spec, "shape"), f"shape of {name}"))
    dtype = _text(_field(spec, "dtype"), f"dtype of {name}")
    scale, least = None, 0.0
    quantization = spec.get("quantization")
    if quantization is not None:
        dtype = _text(_field(quantization, "dtype"), f"dtype of {name}")
        if dtype in ("uint8", "uint16"):
            scale, least = (_number(_field(quantization, key), name) for key in ("scale", "min"))
    if dtype == _STRING:
        size = _texts_size(data, shape, name)
    elif dtype in _STORED:
        size = math.prod(shape) * _STORED[dtype].itemsize
    else:
        raise InvalidArgumentError(f"The weight {name} is of an unknown type {dtype}")
    if not fits_memory(size * (4 if scale is not None else 1)):
        raise ResourceExhaustedError(f"The weight {name} of shape {shape} is too large")
    return _Entry(name, shape, dtype, scale, least, data[:size]), size


# -- texts -----------------------------------------------------------------------------


def _texts_size(data: memoryview, shape: tuple[int, ...], name: str) -> int:
    at, count = 0, math.prod(shape)
    if count * _LENGTH_BYTES > len(data):
        raise DataLossError(f"The weight {name} of {count} texts does not fit its file")
    for _ in range(count):
        at += _LENGTH_BYTES + int.from_bytes(data[at : at + _LENGTH_BYTES], "little")
    return at


def _texts(data: memoryview, shape: tuple[int, ...], name: str) -> Array:
    items = np.empty(math.prod(shape), object)
    at = 0
    for place in range(items.size):
        length = int.from_bytes(data[at : at + _LENGTH_BYTES], "little")
        items[place] = bytes(data[at + _LENGTH_BYTES : at + _LENGTH_BYTES + length])
        if len(items[place]) < length:
            raise DataLossError(f"A text of the weight {name} is cut off")
        at += _LENGTH_BYTES + length
    return items.reshape(shape)


# -- JSON of strangers -----------------------------------------------------------------


def _field(spec: Any, key: str) -> Any:
    if not isinstance(spec, dict) or key not in spec:
        raise InvalidArgumentError(f"weightsManifest: something has no {key}")
    return spec[key]


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidArgumentError(f"weightsManifest: {what} is no list")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgumentError(f"weightsManifest: {what} is no text")
    return value


def _size(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 40:
        raise InvalidArgumentError(f"weightsManifest: a size of {name} is {str(value)[:20]}")
    return value


def _number(value: Any, name: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or abs(value) > 1e38:
        raise InvalidArgumentError(f"weightsManifest: scale or min of {name} is no number")
    return float(value)
