"""Tensors between tasks: the answer to RecvTensor, as bytes.

In:   a value, or the bytes of an answer.
Out:  the same; large tensors without a copy that is not needed.
Not:  knows neither keys nor steps.

Fields are written in the order in which TensorFlow's quick reader wants them: element type, shape,
content.  Ours takes the content out of the message where it lies.  So that it lies where numpy's
quick ways can read it, a number with leading zeros (which the encoding allows) fills the space
before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import DEAD, Value, dtype_of
from penstock.defs.cluster_schema import message_class
from penstock.defs.schema import TensorProto
from penstock.defs.tensors import from_proto, to_content_proto, to_proto
from penstock.defs.varint import read_varint, write_varint
from penstock.defs.wire import BYTES, VARINT, fields_of
from penstock.errors import InvalidArgumentError, ResourceExhaustedError

RecvTensorResponse: Final = message_class("RecvTensorResponse")
#: From so many bytes on, a copy takes longer than to do without.
_LARGE: Final = 1 << 14
#: So many bytes, or so many strings at most, and the copies of a message in a message do not count.
_SMALL, _FEW = 1 << 16, 1 << 8
#: Where content begins, counted from that of the message, which Python aligns to 16 bytes.
_ALIGNMENT: Final = 16
_TENSOR, _IS_DEAD, _SENT, _CONTENT = 1, 2, 3, 4
_DTYPE, _SHAPE = 1, 2
_EMPTY: Final = np.zeros(0, np.float32)
#: From so many bytes on, content goes in pieces of so many: what is copied from one buffer into the
#: next should fit into the cache, and the sender should still be at work when the receiver begins.
_FOR_PIECES, PIECE = 1 << 22, 1 << 19


def encode_answer(value: Value, *, is_dead: bool) -> bytes:
    """The answer to RecvTensor."""
    if is_dead or value is DEAD:
        content = to_content_proto(_EMPTY, dtypes.float32)
        return bytes(RecvTensorResponse(tensor=content, is_dead=True).SerializeToString())
    dtype = dtype_of(value)
    array = np.asarray(value)
    if dtype.is_object or array.nbytes < _LARGE:
        return bytes(RecvTensorResponse(tensor=tensor_proto(value, dtype)).SerializeToString())
    return _encode_large(array, dtype)


def is_small(value: Value) -> bool:
    """Whether a value may go along with something else; a large one has an answer of its own."""
    array = np.asarray(value)
    if not array.dtype.hasobject:
        return array.nbytes <= _SMALL
    return array.size <= _FEW and sum(map(_length, array.flat)) <= _SMALL


def _length(item: Any) -> int:
    return len(item) if isinstance(item, bytes) else 0


def content_for_pieces(value: Value) -> memoryview | None:
    """The content of a value that is sent in pieces; None if it is sent as a whole."""
    dtype = dtype_of(value)
    array = np.asarray(value)
    if array.nbytes < _FOR_PIECES or dtype.is_object or dtype is dtypes.bool_:
        return None
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return little.reshape(-1).view(np.uint8).data


def announce_pieces(value: Value) -> bytes:
    """The answer to RecvTensor that says what a value is whose content comes in pieces."""
    answer = RecvTensorResponse(comes_in_pieces=True)
    answer.tensor.dtype = dtype_of(value).number
    for size in np.shape(value):
        answer.tensor.tensor_shape.dim.add(size=size)
    return bytes(answer.SerializeToString())


def join_pieces(announced: Any, pieces: Iterable[bytes]) -> Value:
    """The value of which the pieces are.

    Args:
        announced: the TensorProto without content that came before.
        pieces: the content, in order.

    Raises:
        InvalidArgumentError: these are not the pieces of such a tensor.
        ResourceExhaustedError: there is no memory for it.

    """
    dtype = dtypes.of_number(announced.dtype)
    shape = [dim.size for dim in announced.tensor_shape.dim]
    if dtype.is_object or dtype.is_ref or dtype is dtypes.bool_ or min(shape, default=0) < 0:
        raise InvalidArgumentError(f"No {dtype} of shape {shape} comes in pieces")
    array = _room_for(shape, dtype)
    content, at = memoryview(array.reshape(-1).view(np.uint8)), 0
    for piece in pieces:
        if at + len(piece) > len(content):
            break
        content[at : at + len(piece)] = piece
        at += len(piece)
    else:
        if at == len(content):
            array.flags.writeable = False
            return array.astype(dtype.numpy, copy=False).view(dtype.numpy)
    raise InvalidArgumentError(f"The pieces of a {dtype} of shape {shape} do not fit it")


def _room_for(shape: Sequence[int], dtype: DType) -> Any:
    try:
        return np.empty(shape, dtype.numpy.newbyteorder("<"))
    except (MemoryError, ValueError) as cause:
        raise ResourceExhaustedError(f"No memory for a {dtype} of shape {shape}") from cause


def tensor_proto(value: Value, dtype: DType) -> Any:
    """A TensorProto as tasks send each other: elements as content, strings included."""
    if dtype is dtypes.resource:
        return to_proto(value, dtype)
    return to_content_proto(np.asarray(value, object if dtype.is_object else None), dtype)


def _encode_large(array: Any, dtype: DType) -> bytes:
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    shape = TensorProto(dtype=dtype.number)
    for size in array.shape:
        shape.tensor_shape.dim.add(size=size)
    head = shape.SerializeToString() + _tag(_CONTENT, BYTES) + write_varint(little.nbytes)
    tensor = _tag(_TENSOR, BYTES) + write_varint(len(head) + little.nbytes) + head
    missing = -(len(tensor) + 2) % _ALIGNMENT
    return b"".join([_filler(2 + missing), tensor, little.reshape(-1).view(np.uint8).data])


def _filler(size: int) -> bytes:
    """``send_start_micros`` = 0 in as many bytes, at least two and at most eleven."""
    if size > 11:  # twice, then: the last of a field counts
        return _filler(size - 6) + _filler(6)
    return _tag(_SENT, VARINT) + b"\x80" * (size - 2) + b"\x00"


def _tag(number: int, kind: int) -> bytes:
    return bytes([number << 3 | kind])


class Arrived(NamedTuple):
    """What an answer to RecvTensor says."""

    value: Value
    is_dead: bool = False
    #: Whether the sender wants to hear that it has come.
    wants_ack: bool = False
    #: A TensorProto without content, which comes in pieces; None for all other answers.
    announced: Any = None


def decode_answer(content: bytes) -> Arrived:
    """What an answer says.

    Raises:
        InvalidArgumentError: the bytes are no such answer.

    """
    try:
        value = _large_tensor(content) if len(content) >= _LARGE else None
        if value is not None:
            return Arrived(value)
        answer = RecvTensorResponse.FromString(content)
    except DecodeError as cause:
        raise InvalidArgumentError(f"The answer to RecvTensor cannot be read: {cause}") from None
    if answer.comes_in_pieces:
        return Arrived(None, announced=answer.tensor)
    if answer.is_dead:
        return Arrived(DEAD, is_dead=True, wants_ack=answer.require_ack)
    return Arrived(from_proto(answer.tensor), wants_ack=answer.require_ack)


def _large_tensor(content: bytes) -> Value | None:
    """The tensor of an answer that has nothing else in it than plain numbers; None otherwise."""
    tensor = None
    for field in fields_of(content, 8):
        if field.number == _TENSOR and tensor is None and field.end <= len(content):
            tensor = field
        elif field.number != _SENT:
            return None
    if tensor is None:
        return None
    view = memoryview(content)[tensor.start : tensor.end]
    fields = {field.number: field for field in fields_of(view, 4)}
    if set(fields) != {_DTYPE, _SHAPE, _CONTENT} or fields[_CONTENT].type != BYTES:
        return None
    dtype = dtypes.of_number(read_varint(content, tensor.start + fields[_DTYPE].start)[0])
    if dtype.is_object or dtype.is_ref or dtype is dtypes.bool_:
        return None
    head = bytes(view[: fields[_CONTENT].start - _size_before(fields[_CONTENT])])
    return _array(content, tensor.start + fields[_CONTENT].start, fields[_CONTENT], dtype, head)


def _size_before(field: Any) -> int:
    """How many bytes of a field stand before its value."""
    return int(field.size - (field.end - field.start))


def _array(content: bytes, at: int, field: Any, dtype: DType, head: bytes) -> Value | None:
    shape = tuple(dim.size for dim in TensorProto.FromString(head).tensor_shape.dim)
    size = field.end - field.start
    if any(dim < 0 for dim in shape) or size != dtype.numpy.itemsize * int(
        np.prod(shape, dtype=object)
    ):
        return None  # the ordinary reader says what is wrong
    array = np.frombuffer(content, dtype.numpy.newbyteorder("<"), size // dtype.numpy.itemsize, at)
    if not array.flags.aligned:
        array = array.copy()
        array.flags.writeable = False
    return array.astype(dtype.numpy, copy=False).view(dtype.numpy).reshape(shape)
