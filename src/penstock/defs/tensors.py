"""Tensors as messages: every encoding of TensorProto, both ways.

In:   a TensorProto, or a value.
Out:  a read-only value, or a TensorProto.
Not:  does not trust the message: sizes are checked before memory is asked for.

Elements stand either in ``tensor_content`` as little-endian bytes, or in the ``*_val``
list of their type.  A list that is shorter than the shape says repeats its last element;
an empty one means zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.memory import PHYSICAL_MEMORY
from penstock.core.shapes import TensorShape
from penstock.core.values import Array, ResourceHandle, Value, as_value, dtype_of, freeze
from penstock.defs.schema import Message, TensorProto
from penstock.errors import InvalidArgumentError, ResourceExhaustedError

#: No tensor may have more bytes than this, whatever a few bytes of a message claim.
MAX_BYTES: Final = PHYSICAL_MEMORY // 4


def shape_from_proto(proto: Message) -> TensorShape:
    """A TensorShapeProto as a shape; raises InvalidArgumentError for sizes below -1."""
    if proto.unknown_rank:
        return TensorShape(None)
    sizes = [dim.size for dim in proto.dim]
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


def from_proto(proto: Message) -> Value:
    """The value of a TensorProto, read-only.

    Raises:
        InvalidArgumentError: the shape is not fully known or does not fit the elements.
        ResourceExhaustedError: the shape asks for more than ``MAX_BYTES``.

    """
    dtype = dtypes.of_number(proto.dtype).base
    shape = _full_shape(shape_from_proto(proto.tensor_shape), dtype)
    size = math.prod(shape)
    if proto.tensor_content and not dtype.is_object:
        flat = _from_content(proto.tensor_content, dtype, size)
    else:
        flat = _repeat_last(_READERS[dtype.name](proto), dtype, size)
    return freeze(as_value(flat.reshape(shape)))


def _full_shape(shape: TensorShape, dtype: DType) -> tuple[int, ...]:
    try:
        sizes = shape.as_tuple()
    except ValueError:
        raise InvalidArgumentError(f"A tensor's shape must be fully known, not {shape}") from None
    if math.prod(sizes) * dtype.numpy.itemsize > MAX_BYTES:
        raise ResourceExhaustedError(f"A {dtype} tensor of shape {shape} is too large")
    return sizes


def _from_content(content: bytes, dtype: DType, size: int) -> Array:
    if len(content) != size * dtype.numpy.itemsize:
        raise InvalidArgumentError(
            f"Tensor content of {len(content)} bytes does not hold {size} elements of {dtype}"
        )
    array = np.frombuffer(content, dtype.numpy.newbyteorder("<"))
    # As the very type that numpy knows: it takes some short ways for no equal one.
    return array.astype(dtype.numpy, copy=False).view(dtype.numpy)


def _repeat_last(values: Array, dtype: DType, size: int) -> Array:
    """Stretch a list of elements to ``size``; an empty list means zeros."""
    if len(values) == size:
        return values
    if len(values) > size:
        raise InvalidArgumentError(f"{len(values)} elements do not fit a tensor of {size}")
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
        if dtype.kind == "V" or dtype.name.startswith(("int", "uint")):
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
    """Read complex numbers, stored as real and imaginary parts in turn."""

    def read(proto: Message) -> Array:
        dtype = dtypes.of_number(proto.dtype).base.numpy
        parts = np.asarray(getattr(proto, field), np.float32 if dtype.itemsize == 8 else np.float64)
        if len(parts) % 2:
            raise InvalidArgumentError("A complex tensor has half an element")
        return parts.view(dtype)

    return read


def _objects(items: list[Any]) -> Array:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def _strings(proto: Message) -> Array:
    return _objects(list(proto.string_val))


def _handles(proto: Message) -> Array:
    return _objects([handle_from_proto(handle) for handle in proto.resource_handle_val])


def _variants(proto: Message) -> Array:
    if len(proto.variant_val):
        raise InvalidArgumentError("Variant tensors cannot be read from a message")
    return _objects([])


_READERS: Final[dict[str, Callable[[Message], Array]]] = {
    "float32": _numbers("float_val"), "float64": _numbers("double_val"),
    "float16": _bits, "bfloat16": _bits,
    "int64": _numbers("int64_val"), "bool": _numbers("bool_val"),
    "uint32": _numbers("uint32_val"), "uint64": _numbers("uint64_val"),
    "complex64": _complex("scomplex_val"), "complex128": _complex("dcomplex_val"),
    "string": _strings, "resource": _handles, "variant": _variants,
    **{name: _numbers("int_val") for name in (
        "int32", "int16", "int8", "uint16", "uint8", "int4", "uint4", "int2", "uint2",
        "qint8", "quint8", "qint16", "quint16", "qint32")},
    **{dtype.name: _small_floats for dtype in dtypes.ALL
       if dtype.name.startswith(("float8", "float4"))},
}  # fmt: skip


def to_proto(value: Value, dtype: DType | None = None) -> Message:
    """A TensorProto of ``value``: numbers as content bytes, strings as a list."""
    dtype = dtype or dtype_of(value)
    array = np.asarray(value, dtype.numpy) if not isinstance(value, np.ndarray) else value
    proto = TensorProto(dtype=dtype.number)
    shape_to_proto(TensorShape(array.shape), proto.tensor_shape)
    if dtype is dtypes.string:
        proto.string_val.extend(_as_bytes(item) for item in array.flat)
    elif dtype is dtypes.resource:
        proto.resource_handle_val.extend(handle_to_proto(item) for item in array.flat)
    elif dtype is dtypes.variant:
        raise InvalidArgumentError("Variant tensors cannot be written to a message")
    else:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        proto.tensor_content = np.ascontiguousarray(little).tobytes()
    return proto


def _as_bytes(item: object) -> bytes:
    return item.encode() if isinstance(item, str) else bytes(item)  # type: ignore[call-overload]


def handle_from_proto(proto: Message) -> ResourceHandle:
    """A ResourceHandleProto as a handle."""
    return ResourceHandle(
        proto.device, proto.container, proto.name, proto.maybe_type_name, proto.hash_code
    )


def handle_to_proto(handle: ResourceHandle) -> Message:
    """A handle as a ResourceHandleProto."""
    proto = TensorProto().resource_handle_val.add()
    proto.device, proto.container = handle.device, handle.container
    proto.name, proto.maybe_type_name = handle.name, handle.type_name
    proto.hash_code = handle.unique
    return proto
