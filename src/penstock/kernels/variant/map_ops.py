"""Maps from tensors to tensors, as variants.

In:   a map, keys and values.
Out:  new maps; values, keys and counts.  A key is its type, shape and bytes, so that a NaN
      equals itself, and zero does not equal minus zero.
Not:  changes no map; maps with a change are whole copies, which share all tensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import ClassVar, Final, TypeAlias

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.values import Array, EncodedVariant, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.batches import stack
from penstock.kernels.values.printing import summarize
from penstock.kernels.values.variant_elements import plus
from penstock.kernels.values.variants import Variant, variant_in

#: What makes two keys equal: type, shape and content.
_Key: TypeAlias = tuple[DType, tuple[int, ...], bytes | tuple[bytes, ...]]
#: Key, value, and the value's type.
_Entry: TypeAlias = tuple[Value, Value, DType]
_SHOWN: Final = 10


class TensorMap(Variant):
    """Entries in the order in which their keys were first inserted."""

    __slots__ = ("entries",)
    type_name: ClassVar[str] = "tensorflow::TensorMap"

    def __init__(self, entries: dict[_Key, _Entry]) -> None:
        #: Never changed.
        self.entries: Final = entries

    def zeros_like(self) -> Variant:
        """The empty map, to which any other may be added."""
        return TensorMap({})

    def plus(self, other: Variant) -> Variant:
        """All entries of both; values under the same key are added."""
        assert isinstance(other, TensorMap)
        entries = self.entries | other.entries
        for at in self.entries.keys() & other.entries.keys():
            (key, a, dtype), (_, b, other_dtype) = self.entries[at], other.entries[at]
            if dtype is not other_dtype:
                raise InvalidArgumentError(
                    "Trying to add two tensors with incompatible element types. One is "
                    f"{type_text(dtype)} and the other is {type_text(other_dtype)}"
                )
            entries[at] = (key, plus(a, b, dtype), dtype)
        return TensorMap(entries)

    def encoded(self) -> EncodedVariant:
        """Keys and values in turn."""
        pairs = (((at[0], key), (dtype, value)) for at, (key, value, dtype) in self.entries.items())
        return EncodedVariant(self.type_name, tensors=tuple(itertools.chain.from_iterable(pairs)))

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """The map of these keys and values."""
        if len(encoded.tensors) % 2:
            raise ValueError("a key has no value")
        pairs = zip(encoded.tensors[::2], encoded.tensors[1::2], strict=True)
        return cls(
            {_keys_of(kind)(key): (key, value, dtype) for (kind, key), (dtype, value) in pairs}
        )


def _map_in(handle: Value) -> TensorMap:
    if type(handle) is TensorMap:
        return handle
    if shape_of(handle):
        raise InvalidArgumentError(
            f"Input map must be a scalar. Saw: {shape_text(shape_of(handle))}"
        )
    return variant_in(handle, TensorMap, "Input handle is not a map")


def _keys_of(dtype: DType) -> Callable[[Value], _Key]:
    """What tells apart tensors of one type that are keys."""

    def key_of(key: Value) -> _Key:
        array = as_array(key)
        content = tuple(array.flat) if dtype.is_object else array.tobytes()
        return dtype, array.shape, content

    return key_of


def _missing(what: str, key: Value) -> InvalidArgumentError:
    return InvalidArgumentError(f'Trying to {what}. Could not find key "{summarize(key, _SHOWN)}".')


@kernel("EmptyTensorMap")
def make_empty_tensor_map(_: Attrs) -> Kernel:
    """A map without entries."""
    empty = TensorMap({})
    return lambda: empty


@kernel("TensorMapSize")
def make_tensor_map_size(_: Attrs) -> Kernel:
    """Number of entries."""
    return lambda handle: np.int32(len(_map_in(handle).entries))


@kernel("TensorMapHasKey")
def make_tensor_map_has_key(attrs: Attrs) -> Kernel:
    """Whether a key has an entry."""
    key_of = _keys_of(attrs.dtype("key_dtype"))
    return lambda handle, key: np.bool_(key_of(key) in _map_in(handle).entries)


@kernel("TensorMapInsert")
def make_tensor_map_insert(attrs: Attrs) -> Kernel:
    """The map with another entry, or another value under a key that it has."""
    key_of, value_dtype = _keys_of(attrs.dtype("key_dtype")), attrs.dtype("value_dtype")

    def insert(handle: Value, key: Value, value: Value) -> TensorMap:
        return TensorMap({**_map_in(handle).entries, key_of(key): (key, value, value_dtype)})

    return insert


@kernel("TensorMapLookup")
def make_tensor_map_lookup(attrs: Attrs) -> Kernel:
    """The value under a key."""
    key_of, value_dtype = _keys_of(attrs.dtype("key_dtype")), attrs.dtype("value_dtype")

    def lookup(handle: Value, key: Value) -> Value:
        entry = _map_in(handle).entries.get(key_of(key))
        if entry is None:
            raise _missing("lookup non-existent key", key)
        _, value, dtype = entry
        if dtype is not value_dtype:
            raise InvalidArgumentError(
                f"Type mismatch: actual {type_text(dtype)} vs. expect {type_text(value_dtype)}"
            )
        return value

    return lookup


@kernel("TensorMapErase")
def make_tensor_map_erase(attrs: Attrs) -> Kernel:
    """The map without the entry of a key."""
    key_of = _keys_of(attrs.dtype("key_dtype"))

    def erase(handle: Value, key: Value) -> TensorMap:
        entries = dict(_map_in(handle).entries)
        if entries.pop(key_of(key), None) is None:
            raise _missing("erase non-existent item", key)
        return TensorMap(entries)

    return erase


@kernel("TensorMapStackKeys")
def make_tensor_map_stack_keys(attrs: Attrs) -> Kernel:
    """All keys, which must be of one shape, along a new first axis."""
    dtype = attrs.dtype("key_dtype")

    def stack_keys(handle: Value) -> Array:
        entries = _map_in(handle).entries
        if not entries:
            raise InvalidArgumentError("TensorMapStackKeys cannot be called on empty map.")
        if any(key_dtype is not dtype for key_dtype, _, _ in entries):
            raise InvalidArgumentError("Key does not match requested dtype.")
        if len({shape for _, shape, _ in entries}) > 1:
            raise InvalidArgumentError("Keys must all have the same shape.")
        return stack([key for key, _, _ in entries.values()], dtype)

    return stack_keys
