"""Tensors as messages: every encoding of TensorProto, both ways.

In:   a TensorProto, or a value.
Out:  a read-only value, or a TensorProto.
Not:  does not trust the message: sizes are checked before memory is asked for.

Elements stand either in ``tensor_content`` as little-endian bytes, or in the ``*_val``
list of their type.  A list that is shorter than the shape says repeats its last element;
an empty one means zeros; what it has too much is not looked at.

The content of strings and variants is the lengths of all elements, as varints, and then the
elements.  A variant's list is not stretched: what it lacks is empty.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.memory import PHYSICAL_MEMORY
from penstock.core.resource_kinds import our_name, their_name
from penstock.core.shapes import SCALAR, TensorShape
from penstock.core.values import (
    Array,
    EncodedVariant,
    ResourceHandle,
    Value,
    as_value,
    dtype_of,
    freeze,
)
from penstock.defs.schema import (
    Message,
    ResourceHandleProto,
    TensorProto,
    VariantTensorDataProto,
)
from penstock.defs.varint import read_varint, write_varint
from penstock.errors import DataLossError, InvalidArgumentError, ResourceExhaustedError

#: No tensor may have more bytes than this, whatever a few bytes of a message claim.
MAX_BYTES: Final = PHYSICAL_MEMORY // 4
#: Content bytes are little-endian, as nearly all machines are.
_IS_LITTLE: Final = sys.byteorder == "little"
#: How many variants may stand in each other; a message of some bytes may hold thousands.
_MAX_DEPTH: Final = 100
#: Numbers that are a list sooner than numpy has found out how to read them where they are.
_FEW: Final = 8


def shape_from_proto(proto: Message) -> TensorShape:
    """A TensorShapeProto as a shape; raises InvalidArgumentError for sizes below -1."""
    if proto.unknown_rank:
        return TensorShape(None)
    sizes = [dim.size for dim in proto.dim]
    if not sizes:
        return SCALAR
    if any(size < -1 for size in sizes):
        raise InvalidArgumentError(
            f"Shape {sizes} has dimensions with values below -1 (where -1 means unknown)"
        )
    return TensorShape.of(sizes)


def shape_to_proto(shape: TensorShape, proto: Message) -> None:
    """Write a shape into a TensorShapeProto."""
    if shape.dims is None:
        proto.unknown_rank = True
        return
    for size in shape.dims:
        proto.dim.add(size=-1 if size is None else size)


def from_proto(proto: Message, content: memoryview | None = None) -> Value:
    """The value of a TensorProto, read-only; variants as ``EncodedVariant``.

    Args:
        proto: the message.
        content: numbers that are its content, if that is not in it.

    Raises:
        InvalidArgumentError: the shape is not fully known, or the elements do not fit it.
        ResourceExhaustedError: the shape asks for more than ``MAX_BYTES``, or no array can have
            it, though it is empty.

    """
    return _value(proto, 0, content)


def with_content(proto: Message, content: memoryview) -> Message:
    """A TensorProto with a content that was not in it."""
    whole = TensorProto()
    whole.CopyFrom(proto)
    whole.tensor_content = bytes(content)
    return whole


def _value(proto: Message, depth: int, content: memoryview | None = None) -> Value:
    """The value of a TensorProto that stands in as many others."""
    dtype = dtypes.of_number(proto.dtype)
    if dtype.is_ref:
        raise _unparsable(f"{dtype} is a reference type")
    shape = _full_shape(shape_from_proto(proto.tensor_shape), dtype)
    size = math.prod(shape)
    if size == 0:
        flat = np.empty(0, dtype.numpy)
    elif dtype is dtypes.variant:
        flat = _variants(proto, size, depth)
    elif content is not None:
        flat = _from_content(content, dtype, size)
    elif proto.tensor_content and dtype is not dtypes.resource:
        flat = _from_content(proto.tensor_content, dtype, size)
    else:
        flat = _repeat_last(_READERS[dtype.name](proto), dtype, size)
    return freeze(as_value(flat.reshape(shape)))


def _unparsable(why: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Cannot parse tensor from proto: {why}")


def _full_shape(shape: TensorShape, dtype: DType) -> tuple[int, ...]:
    try:
        sizes = shape.as_tuple() if shape.dims is not None else ()  # as TensorFlow reads it
    except ValueError:
        raise _unparsable(f"Shape {shape} is not fully defined") from None
    # Of a tensor without elements numpy counts the other sizes, and has a limit for them, too.
    counted = math.prod(filter(None, sizes)) * dtype.numpy.itemsize
    if counted > (MAX_BYTES if all(sizes) else sys.maxsize):
        raise ResourceExhaustedError(f"A {dtype} tensor of shape {shape} is too large")
    return sizes


def _from_content(content: bytes | memoryview, dtype: DType, size: int) -> Array:
    if dtype is dtypes.string:
        return _objects(_cut(bytes(content), size))
    if len(content) != size * dtype.numpy.itemsize:
        raise _unparsable(f"{len(content)} bytes do not hold {size} elements of {dtype}")
    array = np.frombuffer(content, dtype.numpy if _IS_LITTLE else dtype.numpy.newbyteorder("<"))
    if dtype is dtypes.bool_ and array.view(np.uint8).max() > 1:
        raise _unparsable("a byte that is neither 0 nor 1 is no bool")
    # What is in the middle of a file may stand anywhere.
    return array.astype(dtype.numpy, copy=not (_IS_LITTLE and array.flags.aligned))


def _cut(content: bytes, count: int) -> list[bytes]:
    """As many texts out of one: their lengths come first."""
    lengths, at = [], 0
    try:
        for _ in range(count):
            length, at = read_varint(content, at)
            lengths.append(length)
    except DataLossError as cause:
        raise _unparsable(f"of {count} lengths, {cause.reason}") from None
    if at + sum(lengths) != len(content):
        raise _unparsable(f"{len(content)} bytes, but lengths that add up to {at + sum(lengths)}")
    ends = itertools.accumulate(lengths, initial=at)
    return [content[start:end] for start, end in itertools.pairwise(ends)]


def _repeat_last(values: Array, dtype: DType, size: int) -> Array:
    """Stretch a list of elements to ``size``; an empty list means zeros."""
    if len(values) >= size:
        return values[:size]
    try:
        if len(values) == 0:
            return _zeros(dtype, size)
        out = np.empty(size, values.dtype)
    except MemoryError:
        raise ResourceExhaustedError(f"no memory for {size} elements of {dtype}") from None
    out[: len(values)] = values
    out[len(values) :] = values[-1]
    return out


def _zeros(dtype: DType, size: int) -> Array:
    if dtype is dtypes.string:
        return np.full(size, b"", object)
    return np.zeros(size, dtype.numpy)


def _numbers(field: str) -> Callable[[Message], Array]:
    """Read a list of numbers that are stored as themselves."""

    def read(proto: Message) -> Array:
        dtype = dtypes.of_number(proto.dtype).base.numpy
        values = getattr(proto, field)
        if dtype.names:
            return np.asarray(values, dtype[0]).view(dtype)
        if len(values) <= _FEW:
            values = values[:]
        if dtype.kind in "Viu":
            # Narrow integers are stored as 32-bit ones; their low bits count.
            return np.asarray(values, np.int64 if "u" not in dtype.name else None).astype(dtype)
        return np.asarray(values, dtype)

    return read


def _bits(proto: Message) -> Array:
    """Read 16-bit floats, stored as the integers of their bits."""
    dtype = dtypes.of_number(proto.dtype).base.numpy
    return np.asarray(proto.half_val, np.uint16).view(dtype)


def _small_floats(proto: Message) -> Array:
    """Read 8-bit and narrower floats, one byte each."""
    return np.frombuffer(proto.float8_val, dtypes.of_number(proto.dtype).base.numpy)


def _complex(field: str) -> Callable[[Message], Array]:
    """Read complex numbers, stored as real and imaginary parts in turn; half a one is none."""

    def read(proto: Message) -> Array:
        dtype = dtypes.of_number(proto.dtype).base.numpy
        parts = np.asarray(getattr(proto, field), np.float32 if dtype.itemsize == 8 else np.float64)
        return parts[: len(parts) // 2 * 2].view(dtype)

    return read


def _objects(items: list[Any]) -> Array:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def _strings(proto: Message) -> Array:
    return _objects(list(proto.string_val))


def _handles(proto: Message) -> Array:
    return _objects([handle_from_proto(handle) for handle in proto.resource_handle_val])


def _variants(proto: Message, size: int, depth: int) -> Array:
    """The objects of variants, undecoded; those that are missing are empty."""
    if depth > _MAX_DEPTH:
        raise _unparsable(f"variants in variants, more than {_MAX_DEPTH} deep")
    if proto.tensor_content:
        messages = map(_parsed_variant, _cut(proto.tensor_content, size))
    else:
        messages = iter(proto.variant_val[:size])
    variants = np.full(size, EncodedVariant(), object)
    for at, message in enumerate(messages):
        variants[at] = EncodedVariant(
            message.type_name,
            message.metadata,
            tuple((dtypes.of_number(t.dtype), _value(t, depth + 1)) for t in message.tensors),
        )
    return variants


def _parsed_variant(content: bytes) -> Message:
    try:
        return VariantTensorDataProto.FromString(content)
    except (DecodeError, ValueError) as cause:  # bad UTF-8 may be either
        raise _unparsable(f"a variant is damaged: {cause}") from None


_READERS: Final[dict[str, Callable[[Message], Array]]] = {
    "float32": _numbers("float_val"), "float64": _numbers("double_val"),
    "float16": _bits, "bfloat16": _bits,
    "int64": _numbers("int64_val"), "bool": _numbers("bool_val"),
    "uint32": _numbers("uint32_val"), "uint64": _numbers("uint64_val"),
    "complex64": _complex("scomplex_val"), "complex128": _complex("dcomplex_val"),
    "string": _strings, "resource": _handles,
    **{name: _numbers("int_val") for name in (
        "int32", "int16", "int8", "uint16", "uint8", "int4", "uint4", "int2", "uint2",
        "qint8", "quint8", "qint16", "quint16", "qint32")},
    **{dtype.name: _small_floats for dtype in dtypes.ALL
       if dtype.name.startswith(("float8", "float4"))},
}  # fmt: skip


#: The field for elements of each type, and the numbers as which they stand there.
_LISTS: Final[dict[str, tuple[str, str | None]]] = {
    "float32": ("float_val", None), "float64": ("double_val", None),
    "float16": ("half_val", "u2"), "bfloat16": ("half_val", "u2"),
    "int64": ("int64_val", None), "bool": ("bool_val", None),
    "uint32": ("uint32_val", None), "uint64": ("uint64_val", None),
    "complex64": ("scomplex_val", "f4"), "complex128": ("dcomplex_val", "f8"),
    "variant": ("variant_val", None),
    **dict.fromkeys(("int32", "int16", "int8", "uint16", "uint8"), ("int_val", None)),
    **{name: ("int_val", kind) for name, kind in (
        ("qint8", "i1"), ("quint8", "u1"), ("qint16", "i2"), ("quint16", "u2"), ("qint32", "i4"),
        ("int4", "i1"), ("uint4", "u1"), ("int2", "i1"), ("uint2", "u1"))},
    **{dtype.name: ("float8_val", None) for dtype in dtypes.ALL
       if dtype.name.startswith(("float8", "float4"))},
}  # fmt: skip


def to_proto(value: Value, dtype: DType | None = None) -> Message:
    """A TensorProto of ``value``: numbers and variants as content bytes, strings as a list."""
    dtype = dtype or dtype_of(value)
    array = np.asarray(value, dtype.numpy) if not isinstance(value, np.ndarray) else value
    proto = _empty_proto(array, dtype)
    if dtype is dtypes.string:
        proto.string_val.extend(_as_bytes(item) for item in array.flat)
    elif dtype is dtypes.resource:
        proto.resource_handle_val.extend(handle_to_proto(item) for item in array.flat)
    else:
        proto.tensor_content = _content(array, dtype)
    return proto


def to_content_proto(value: Array, dtype: DType) -> Message:
    """A TensorProto whose elements are content bytes, strings included; not for resources."""
    proto = _empty_proto(value, dtype)
    proto.tensor_content = _content(value, dtype)
    return proto


def _content(array: Array, dtype: DType) -> bytes:
    if dtype is dtypes.string:
        return _joined([_as_bytes(item) for item in array.flat])
    if dtype is dtypes.variant:
        return _joined([variant_to_proto(item).SerializeToString() for item in array.flat])
    if not _IS_LITTLE:
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return array.tobytes()


def _joined(texts: list[bytes]) -> bytes:
    """All texts behind their lengths, as ``_cut`` takes them apart again."""
    return b"".join([*(write_varint(len(text)) for text in texts), *texts])


def to_list_proto(value: Value, dtype: DType) -> Message:
    """A TensorProto with every element in the list of its type, as variants hold tensors."""
    array = np.asarray(value, dtype.numpy) if not isinstance(value, np.ndarray) else value
    if dtype in (dtypes.string, dtypes.resource):
        return to_proto(array, dtype)
    proto = _empty_proto(array, dtype)
    field, kind = _LISTS[dtype.name]
    if dtype is dtypes.variant:
        proto.variant_val.extend(variant_to_proto(item) for item in array.flat)
    elif field == "float8_val":
        proto.float8_val = np.ascontiguousarray(array).tobytes()
    else:
        flat = np.ascontiguousarray(array).reshape(-1)
        # Elements that are no plain numbers of Python are stored as the numbers of their bits.
        getattr(proto, field).extend((flat if kind is None else flat.view(kind)).tolist())
    return proto


def _empty_proto(array: Array, dtype: DType) -> Message:
    proto = TensorProto(dtype=dtype.number)
    proto.tensor_shape.SetInParent()  # A scalar's shape has nothing in it, but is there.
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    return proto


class Encodes(Protocol):
    """An object on a variant edge that can be written into a message."""

    def encoded(self) -> EncodedVariant:
        """What the message is to hold."""


def variant_to_proto(item: EncodedVariant | Encodes) -> Message:
    """A VariantTensorDataProto of one object."""
    held = item if isinstance(item, EncodedVariant) else item.encoded()
    tensors = [to_list_proto(value, dtype) for dtype, value in held.tensors]
    return VariantTensorDataProto(type_name=held.type_name, metadata=held.metadata, tensors=tensors)


def _as_bytes(item: object) -> bytes:
    return item.encode() if isinstance(item, str) else bytes(item)  # type: ignore[call-overload]


def handle_from_proto(proto: Message) -> ResourceHandle:
    """A ResourceHandleProto as a handle."""
    kind = our_name(proto.maybe_type_name)
    return ResourceHandle(proto.device, proto.container, proto.name, kind, proto.hash_code)


def handle_to_proto(handle: ResourceHandle) -> Message:
    """A handle as a ResourceHandleProto."""
    return ResourceHandleProto(
        device=handle.device,
        container=handle.container,
        name=handle.name,
        maybe_type_name=their_name(handle.type_name),
        hash_code=handle.unique,
    )
