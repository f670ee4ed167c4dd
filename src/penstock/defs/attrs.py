"""Attribute values: between AttrValue messages and plain Python values.

| kind in OpDef | Python |
| --- | --- |
| int, float, bool | int, float, bool |
| string | bytes |
| type | DType |
| shape | TensorShape |
| tensor | TensorAttr, decoded when first asked for |
| func | FuncAttr |
| list(kind) | a tuple of these |

A placeholder inside a function body is a ``PlaceholderAttr``.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, dtype_of, shape_of
from penstock.dataclass import dataclass
from penstock.defs import tensors
from penstock.defs.schema import AttrValue, Message

#: One of the right-hand column's types.
Attr: TypeAlias = Any


class TensorAttr:
    """A tensor in an attribute; the message is decoded when its value is needed."""

    __slots__ = ("_content", "_proto", "_seen", "_value")

    def __init__(
        self, *, proto: Message = None, value: Value = None, content: memoryview | None = None
    ) -> None:
        #: The message, or None if the attribute was made from a value.
        self._proto = proto
        #: The message's content, if it is not in there; None if it is.
        self._content = content
        #: The decoded value, or None as long as nobody asked.  That of a content beside the message
        #: is not kept, but decoded again, for next to nothing, if somebody asks when it is gone.
        self._value = value
        self._seen: weakref.ref[Any] | None = None

    def with_content(self, content: memoryview) -> TensorAttr:
        """The same with the numbers that were taken out of the message."""
        return TensorAttr(proto=self._proto, content=content)

    @property
    def dtype(self) -> DType:
        """The element type, read without decoding."""
        if self._proto is not None:
            return dtypes.of_number(self._proto.dtype)
        return dtype_of(self._value)

    @property
    def shape(self) -> TensorShape:
        """The sizes, read without decoding."""
        if self._proto is None:
            return TensorShape(shape_of(self._value))
        sizes = self._proto.tensor_shape
        return TensorShape.of(None if sizes.unknown_rank else [dim.size for dim in sizes.dim])

    @property
    def value(self) -> Value:
        """The tensor, read-only."""
        if self._content is not None:
            return self._from_content(self._content)
        if self._value is None:
            self._value = tensors.from_proto(self._proto)
        return self._value

    def _from_content(self, content: memoryview) -> Value:
        value = None if self._seen is None else self._seen()
        if value is None:
            value = tensors.from_proto(self._proto, content)
            self._seen = weakref.ref(value)
        return value

    @property
    def proto(self) -> Message:
        """The tensor as a message."""
        if self._content is not None:
            return tensors.with_content(self._proto, self._content)
        return self._proto if self._proto is not None else tensors.to_proto(self._value)

    @property
    def scalar_bytes(self) -> bytes | None:
        """Something that equal messages share; None for a tensor with sizes, or no message.

        It is cheaper than the value.
        """
        if self._proto is None or self._content is not None or self._proto.tensor_shape.dim:
            return None
        encoded: bytes = self._proto.SerializeToString()
        return encoded

    def __repr__(self) -> str:
        return f"TensorAttr({self.dtype})"


@dataclass(frozen=True, slots=True)
class FuncAttr:
    """A function's name with the attributes it is to be instantiated with."""

    name: str
    attrs: Mapping[str, Attr]


@dataclass(frozen=True, slots=True)
class PlaceholderAttr:
    """Stands for an attribute of the enclosing function."""

    name: str


#: The AttrValue field of each kind.
FIELD_OF_KIND: Final[Mapping[str, str]] = {
    "string": "s", "int": "i", "float": "f", "bool": "b", "type": "type",
    "shape": "shape", "tensor": "tensor", "func": "func",
}  # fmt: skip


def from_proto(proto: Message) -> Attr:
    """Decode an AttrValue; None if it holds nothing."""
    return decoded(proto, proto.WhichOneof("value"))


def decoded(proto: Message, field: str | None) -> Attr:
    """Like ``from_proto``, for who knows already which field is set."""
    if field is None:
        return None
    if field == "type":
        return dtypes.of_number(proto.type)
    if field == "placeholder":
        return PlaceholderAttr(proto.placeholder)
    if field == "list":
        return _list_from_proto(proto.list)
    return _one_from_proto(field, getattr(proto, field))


def _list_from_proto(proto: Message) -> tuple[Attr, ...]:
    for field, items in proto.ListFields():
        return tuple(_one_from_proto(field.name, item) for item in items)
    return ()


def _one_from_proto(field: str, value: Any) -> Attr:
    if field in ("s", "i", "f", "b"):
        return value
    if field == "type":
        return dtypes.of_number(value)
    if field == "shape":
        return tensors.shape_from_proto(value)
    if field == "tensor":
        return TensorAttr(proto=value)
    return FuncAttr(value.name, {k: from_proto(v) for k, v in value.attr.items()})


def to_proto(kind: str, value: Attr) -> Message:
    """Encode ``value`` as the AttrValue of an attribute declared as ``kind``."""
    proto = AttrValue()
    if isinstance(value, PlaceholderAttr):
        proto.placeholder = value.name
    elif kind.startswith("list("):
        field = FIELD_OF_KIND[kind[5:-1]]
        proto.list.SetInParent()
        for item in value:
            _append(getattr(proto.list, field), field, item)
    else:
        _store(proto, FIELD_OF_KIND[kind], value)
    return proto


def _store(proto: Message, field: str, value: Attr) -> None:
    if field == "type":
        proto.type = value.number
    elif field == "shape":
        proto.shape.SetInParent()
        tensors.shape_to_proto(value, proto.shape)
    elif field == "tensor":
        proto.tensor.CopyFrom(value.proto)
    elif field == "func":
        _store_func(proto.func, value)
    else:
        setattr(proto, field, value)


def _append(items: Any, field: str, value: Attr) -> None:
    if field == "type":
        items.append(value.number)
    elif field == "shape":
        tensors.shape_to_proto(value, items.add())
    elif field == "tensor":
        items.add().CopyFrom(value.proto)
    elif field == "func":
        _store_func(items.add(), value)
    else:
        items.append(value)


def _store_func(proto: Message, value: FuncAttr) -> None:
    proto.name = value.name
    for name, attr in value.attrs.items():
        if attr is None:
            proto.attr[name].SetInParent()
        else:
            proto.attr[name].CopyFrom(to_proto(kind_of(attr), attr))


def kind_of(value: Attr) -> str:
    """The kind that fits a value, for attributes that no op declares."""
    if isinstance(value, tuple):
        return f"list({kind_of(value[0])})" if value else "list(int)"
    for cls, kind in _KIND_OF_CLASS:
        if isinstance(value, cls):
            return kind
    raise TypeError(f"{value!r} is not an attribute value")


_KIND_OF_CLASS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "bool"), (int, "int"), (float, "float"), (bytes, "string"), (DType, "type"),
    (TensorShape, "shape"), (TensorAttr, "tensor"), (FuncAttr, "func"),
    (PlaceholderAttr, "int"),
)  # fmt: skip
