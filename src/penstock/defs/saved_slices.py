"""Checkpoints of the first version: all tensors in one file, as messages in a sorted table.

In:   names, shapes, parts and elements; or the bytes of files.
Out:  the bytes of a file; or tensors, put together from parts that may be in several files.
Not:  opens no file; knows neither nodes nor variables.

The first entry has no key and says which parts of which tensors follow; each of these has a key
made of the tensor's name and the part.  Elements stand in the typed lists of TensorProto.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.memory import fits_memory
from penstock.core.shapes import TensorShape
from penstock.core.values import Array, Value, as_value, freeze
from penstock.dataclass import dataclass
from penstock.defs.schema import Message, SavedTensorSlices
from penstock.defs.sorted_table import read_table, write_table
from penstock.defs.tensor_slices import TensorSlice, all_of, from_proto
from penstock.defs.tensors import from_proto as tensor_from_proto
from penstock.defs.tensors import shape_from_proto, shape_to_proto
from penstock.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)

#: The field of a TensorProto that keeps the elements of a type.
_FIELDS: Final = {
    dtypes.float32: "float_val", dtypes.float64: "double_val", dtypes.int64: "int64_val",
    dtypes.bool_: "bool_val", dtypes.string: "string_val", dtypes.float16: "half_val",
    dtypes.complex64: "scomplex_val", dtypes.complex128: "dcomplex_val",
    **dict.fromkeys((
        dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint16, dtypes.uint8,
        dtypes.qint8, dtypes.quint8, dtypes.qint32,
    ), "int_val"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Saved:
    """A tensor, or a part of one, on its way into a file."""

    name: bytes
    #: The sizes of the whole tensor.
    shape: tuple[int, ...]
    part: TensorSlice
    dtype: DType
    value: Array


# -- writing ---------------------------------------------------------------------------


def write_slices(items: Sequence[Saved]) -> bytes:
    """The file; of items with one name and part, the last stays."""
    head = SavedTensorSlices()
    head.meta.versions.producer = 1
    facts: dict[bytes, Message] = {}
    entries: dict[bytes, bytes] = {}
    for item in items:
        fact = facts.get(item.name)
        if fact is None:
            fact = facts[item.name] = _fact(head, item)
        elif (fact.type, shape_from_proto(fact.shape).dims) != (item.dtype.number, item.shape):
            raise InternalError(
                f"Mismatching shapes or types: {_shown(item.name)} is saved twice, and differs"
            )
        fact.slice.append(item.part.to_proto())
        entries[item.part.key(item.name)] = _entry(item).SerializeToString()
    return write_table([(b"", head.SerializeToString()), *sorted(entries.items())])


def _fact(head: Any, item: Saved) -> Message:
    fact: Message = head.meta.tensor.add(name=item.name.decode(), type=item.dtype.number)
    fact.shape.SetInParent()
    shape_to_proto(TensorShape(item.shape), fact.shape)
    return fact


def _entry(item: Saved) -> Any:
    field_name = _FIELDS.get(item.dtype)
    if field_name is None:
        raise UnimplementedError(f"Saving data type {item.dtype} not yet supported")
    entry = SavedTensorSlices()
    entry.data.name = item.name.decode()
    entry.data.slice.CopyFrom(item.part.to_proto())
    entry.data.data.SetInParent()
    getattr(entry.data.data, field_name).extend(_elements(item.value, item.dtype))
    return entry


def _elements(value: Array, dtype: DType) -> list[Any]:
    """Elements as the lists of TensorProto have them."""
    flat = np.ascontiguousarray(value).reshape(-1)
    if dtype is dtypes.float16:
        flat = flat.view(np.uint16)
    elif flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    elif flat.dtype.names:
        flat = flat.view(flat.dtype[0])
    elements: list[Any] = flat.tolist()
    return elements


# -- reading ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """What is known of a tensor, and the messages of its parts."""

    dtype: DType
    shape: tuple[int, ...]
    parts: list[tuple[TensorSlice, bytes]] = field(default_factory=list)

    def read(self, part: TensorSlice | None) -> Value:
        """A tensor or a part of it, read-only; raises if not all of it was saved."""
        size = math.prod(self.shape) * self.dtype.numpy.itemsize
        if not fits_memory(size):
            raise ResourceExhaustedError(f"There is no memory for the {size} bytes of a tensor")
        whole = np.zeros(self.shape, self.dtype.numpy)
        there = np.zeros(self.shape, np.bool_)
        for saved, message in self.parts:
            proto = _parsed(message).data.data
            proto.dtype = self.dtype.number
            proto.ClearField("tensor_shape")
            shape_to_proto(TensorShape(saved.lengths), proto.tensor_shape)
            whole[saved.places] = tensor_from_proto(proto)
            there[saved.places] = True
        places = part.places if part is not None else ...
        if not np.all(there[places]):
            raise InvalidArgumentError("Error copying slice data")
        return freeze(as_value(np.asarray(whole[places], self.dtype.numpy)))


def read_slices(files: Iterable[bytes]) -> dict[bytes, Stored]:
    """The tensors of all files by name; raises if files contradict each other."""
    found: dict[bytes, Stored] = {}
    for file in files:
        entries = dict(read_table(file))
        for fact in _parsed(entries.get(b"", b"")).meta.tensor:
            _add(found, fact, entries)
    return found


def _add(found: dict[bytes, Stored], fact: Any, entries: dict[bytes, bytes]) -> None:
    name, dtype = fact.name.encode(), dtypes.of_number(fact.type)
    shape = shape_from_proto(fact.shape).as_tuple()
    stored = found.setdefault(name, Stored(dtype, shape))
    if stored.shape != shape:
        known, new = (f"[{','.join(map(str, sizes))}]" for sizes in (stored.shape, shape))
        raise InternalError(
            f"Incompatible tensor shapes detected for tensor {fact.name}: "
            f"existing = {known}, new = {new}"
        )
    if stored.dtype is not dtype:
        raise InternalError(f"Incompatible tensor types detected for tensor {fact.name}")
    for proto in fact.slice:
        part = from_proto(proto, shape) if shape else all_of(())
        entry = entries.get(part.key(name))
        if entry is None:
            raise DataLossError(f"A part of {fact.name} is not in its file")
        stored.parts.append((part, entry))


def _parsed(data: bytes) -> Any:
    message = SavedTensorSlices()
    try:
        message.ParseFromString(data)
    except Exception as cause:  # protobuf's error class depends on its implementation
        raise DataLossError("a checkpoint holds a damaged message") from cause
    return message


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "replace")
