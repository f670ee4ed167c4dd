"""Sparse tensors as strings, and kept between steps.

In:   sparse tensors, single ones or batches whose rows are tensors.
Out:  three strings for each: places, values and sizes as serialized tensors; or a handle.
Not:  does not pack them as variants.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from threading import Lock
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, keep
from penstock.defs.schema import TensorProto
from penstock.defs.tensors import from_proto, to_proto
from penstock.errors import InvalidArgumentError, OpError
from penstock.kernels.arrays import as_array, shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.context import OpKernelContext
from penstock.kernels.registry import Kernel, context_kernel, kernel
from penstock.kernels.signatures import type_text
from penstock.kernels.sparse.sparse_tensor import (
    Sparse,
    check_indices,
    checked_shape,
    memory_order,
    sparse,
)
from penstock.kernels.strings import string_array
from penstock.kernels.types import ALL

_MAP: Final = "SparseTensorsMap"
_STRING: Final = {"out_type": {dtypes.string}}


def _text(array: Array, dtype: DType) -> bytes:
    proto = to_proto(array, dtype)
    proto.tensor_shape.SetInParent()
    text: bytes = proto.SerializeToString()
    return text


def _texts(tensor: Sparse, dtype: DType) -> list[bytes]:
    """The three strings of one tensor."""
    indices, values, shape = tensor.parts
    return [_text(indices, dtypes.int64), _text(values, dtype), _text(shape, dtypes.int64)]


def _rows(tensor: Sparse) -> list[Sparse]:
    """The tensors that a batch is made of."""
    if tensor.rank < 2:
        raise InvalidArgumentError(
            f"Rank of input SparseTensor should be > 1, but saw rank: {tensor.rank}"
        )
    check_indices(tensor.indices, tensor.shape)
    edges = np.searchsorted(tensor.indices[:, 0], np.arange(tensor.shape[0] + 1)).tolist()
    return [
        Sparse(tensor.indices[a:b, 1:], tensor.values[a:b], tensor.shape[1:])
        for a, b in itertools.pairwise(edges)
    ]


def _batch(tensors: Sequence[Sparse], outer: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Tensors as the elements of a batch of that shape; sizes are the largest."""
    first = tensors[0]
    for at, tensor in enumerate(tensors):
        if tensor.rank != first.rank:
            raise InvalidArgumentError(
                f"Inconsistent rank across SparseTensors: rank prior to SparseTensor[{at}] was: "
                f"{first.rank} but rank of SparseTensor[{at}] is: {tensor.rank}"
            )
    counts = [len(tensor.values) for tensor in tensors]
    number = np.repeat(np.arange(len(tensors)), counts)
    head = np.stack(np.unravel_index(number, outer), axis=1) if outer else number[:, None][:, :0]
    tail = np.concatenate([tensor.indices for tensor in tensors])
    values = np.concatenate([tensor.values for tensor in tensors])
    sizes = tuple(map(max, zip(*(tensor.shape for tensor in tensors), strict=True)))
    indices = np.concatenate([head.astype(np.int64), tail], axis=1)
    order = memory_order(indices) if outer else slice(None)
    return Sparse(indices[order], values[order], checked_shape((*outer, *sizes))).parts


# -- strings ---------------------------------------------------------------------------


@kernel("SerializeSparse", types=_STRING)
def make_serialize_sparse(attrs: Attrs) -> Kernel:
    """The three strings of a tensor."""
    dtype = attrs.dtype("T")
    return lambda *parts: string_array(_texts(sparse(*parts), dtype), (3,))


@kernel("SerializeManySparse", types=_STRING)
def make_serialize_many_sparse(attrs: Attrs) -> Kernel:
    """Three strings for each tensor in a batch."""
    dtype = attrs.dtype("T")

    def serialize(*parts: Value) -> Array:
        rows = [_texts(row, dtype) for row in _rows(sparse(*parts))]
        return string_array(itertools.chain.from_iterable(rows), (len(rows), 3))

    return serialize


@kernel("DeserializeSparse", types={"Tserialized": {dtypes.string}})
def make_deserialize_sparse(attrs: Attrs) -> Kernel:
    """The tensors in triples of strings, as one batch."""
    dtype = attrs.dtype("dtype")

    def deserialize(serialized: Value) -> tuple[Array, Array, Array]:
        array = as_array(serialized)
        if array.ndim == 0 or array.shape[-1] != 3:
            raise InvalidArgumentError(
                f"Serialized sparse should have 3 as the last dimension {shape_text(array.shape)}"
            )
        return _parsed(array, dtype)

    return deserialize


@kernel("DeserializeManySparse")
def make_deserialize_many_sparse(attrs: Attrs) -> Kernel:
    """The tensors in the rows of a matrix, as one batch."""
    dtype = attrs.dtype("dtype")

    def deserialize(serialized: Value) -> tuple[Array, Array, Array]:
        array = as_array(serialized)
        if array.ndim == 0 or array.shape[-1] != 3:
            raise InvalidArgumentError(
                f"Serialized sparse should have 3 as the last dimension {shape_text(array.shape)}"
            )
        return _parsed(array, dtype)

    return deserialize


def _parsed(array: Array, dtype: DType) -> tuple[Array, Array, Array]:
    if array.size == 0:
        raise InvalidArgumentError(
            "Serialized sparse should have at least 1 serialized tensor, but has a zero "
            f"dimension {shape_text(array.shape)}"
        )
    rows = array.reshape(-1, 3).tolist()
    return _batch([_tensor(at, row, dtype) for at, row in enumerate(rows)], array.shape[:-1])


def _tensor(at: int, texts: Sequence[bytes], dtype: DType) -> Sparse:
    """One tensor from its three strings."""
    parts: list[Array] = []
    wanted = ((dtypes.int64, 2, "indices"), (dtype, 1, "values"), (dtypes.int64, 1, "shape"))
    for text, (expected, rank, name) in zip(texts, wanted, strict=True):
        array, found = _array(text)
        if found is not expected:
            if name == "values":
                raise InvalidArgumentError(
                    f"Requested SparseTensor of type {type_text(dtype)} but "
                    f"SparseTensor[{at}].values.dtype() == {type_text(found)}"
                )
            raise InvalidArgumentError(
                f"Expected SparseTensor[{at}].{name} to be int64, got {type_text(found)}"
            )
        if array.ndim != rank:
            raise InvalidArgumentError(
                f"Expected serialized_sparse[{at}, {len(parts)}] to represent {name} of rank "
                f"{rank} but received shape {shape_text(array.shape)}"
            )
        parts.append(array)
    return sparse(*parts)


def _array(text: bytes) -> tuple[Array, DType]:
    proto = TensorProto()
    try:
        proto.ParseFromString(text)
        array = as_array(from_proto(proto))
    except (DecodeError, OpError) as cause:
        raise InvalidArgumentError("Could not parse serialized proto") from cause
    return array, dtypes.of_number(proto.dtype)


# -- maps ------------------------------------------------------------------------------


class _SparseTensorsMap:
    """Tensors that wait for a later step; each is taken once."""

    def __init__(self) -> None:
        #: Guards the other two.  Innermost.
        self._lock = Lock()
        self._tensors: dict[int, tuple[Sparse, DType]] = {}
        self._next = 0

    def add(self, tensors: Sequence[Sparse], dtype: DType) -> list[int]:
        """Keep the tensors; their handles, in order."""
        kept = [Sparse(keep(t.indices), keep(t.values), t.shape) for t in tensors]
        with self._lock:
            first, self._next = self._next, self._next + len(kept)
            handles = list(range(first, self._next))
            self._tensors.update((at, (t, dtype)) for at, t in zip(handles, kept, strict=True))
        return handles

    def take(self, handles: Sequence[int]) -> list[tuple[Sparse, DType]]:
        """The tensors of these handles, which then mean nothing any more."""
        with self._lock:
            for handle in handles:
                if handle not in self._tensors:
                    raise InvalidArgumentError(
                        f"Unable to find SparseTensor: {handle} in map: SparseTensorsMap"
                    )
            return [self._tensors.pop(handle) for handle in dict.fromkeys(handles)]


def _map(context: OpKernelContext, attrs: Attrs) -> _SparseTensorsMap:
    name = attrs.str("shared_name") or attrs.node_name
    found: _SparseTensorsMap = context.resources.lookup_or_create(
        attrs.str("container"), name, _MAP, _SparseTensorsMap
    )
    return found


@context_kernel("AddSparseToTensorsMap", types={"T": ALL})
def make_add_sparse_to_tensors_map(attrs: Attrs) -> Kernel:
    """A handle for the tensor."""
    dtype = attrs.dtype("T")

    def add(context: OpKernelContext, *parts: Value) -> Value:
        return np.int64(_map(context, attrs).add([sparse(*parts)], dtype)[0])

    return add


@context_kernel("AddManySparseToTensorsMap", types={"T": ALL})
def make_add_many_sparse_to_tensors_map(attrs: Attrs) -> Kernel:
    """A handle for each tensor in a batch."""
    dtype = attrs.dtype("T")

    def add(context: OpKernelContext, *parts: Value) -> Array:
        return np.array(_map(context, attrs).add(_rows(sparse(*parts)), dtype), np.int64)

    return add


@context_kernel("TakeManySparseFromTensorsMap")
def make_take_many_sparse_from_tensors_map(attrs: Attrs) -> Kernel:
    """The tensors of some handles, as one batch."""
    dtype = attrs.dtype("dtype")

    def take(context: OpKernelContext, handles: Value) -> tuple[Array, Array, Array]:
        numbers = as_array(handles)
        if numbers.ndim != 1 or not numbers.size:
            raise InvalidArgumentError(
                "sparse_handles should be a vector of at least one handle, got shape "
                f"{shape_text(numbers.shape)}"
            )
        taken = _map(context, attrs).take(numbers.tolist())
        for at, (_, found) in enumerate(taken):
            if found is not dtype:
                raise InvalidArgumentError(
                    f"dtype mismatch for SparseTensor[{at}]: requested {type_text(dtype)} "
                    f"but the map has {type_text(found)}"
                )
        return _batch([tensor for tensor, _ in taken], (len(taken),))

    return take
