"""Sparse tensors as strings or variants, and kept between steps.

In:   sparse tensors, single ones or batches whose rows are tensors.
Out:  for each its three parts, places, values and sizes, as serialized tensors or as variants
      that hold tensors; or a handle.
Not:  does no sums of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from threading import Lock
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core import dtypes, trees
from penstock.core.dtypes import DType
from penstock.core.trees import Tree
from penstock.core.values import Array, Value, keep, shape_of
from penstock.defs.schema import TensorProto
from penstock.defs.tensors import from_proto, to_content_proto
from penstock.errors import InvalidArgumentError, OpError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, context_kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.types import ALL
from penstock.kernels.sparse.sparse_tensor import (
    Sparse,
    check_indices,
    checked_shape,
    memory_order,
    sparse,
)
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.variant_elements import Tensor

_MAP: Final = "SparseTensorsMap"
_PACKED: Final = {dtypes.string, dtypes.variant}
#: The ranks of places, values and sizes, and what to say of others.
_EXPECTED: Final = (
    (2, "represent an index matrix but received shape"),
    (1, "represent a values vector but received shape"),
    (1, "be a shape vector but its shape is"),
)


def _text(array: Array, dtype: DType) -> bytes:
    text: bytes = to_content_proto(array, dtype).SerializeToString()
    return text


def _packed(tensors: Sequence[Sparse], shape: tuple[int, ...], attrs: Attrs) -> Array:
    """The three parts of each tensor, as the strings or variants that the node declares."""
    pack = _text if attrs.dtype("out_type") is dtypes.string else Tensor
    types = (dtypes.int64, attrs.dtype("T"), dtypes.int64)
    items = np.empty(3 * len(tensors), object)
    items[:] = [pack(*pair) for t in tensors for pair in zip(t.parts, types, strict=True)]
    return items.reshape(shape)


def _checked_batch(indices: Value, values: Value, shape: Value) -> Sparse:
    """A batch of tensors, refused in other words than single tensors are."""
    for name, part, rank in (("indices", indices, 2), ("values", values, 1), ("shape", shape, 1)):
        if len(shape_of(part)) != rank:
            raise InvalidArgumentError(
                f"Input {name} should be a {'matrix' if rank == 2 else 'vector'} but received "
                f"shape {shape_text(shape_of(part))}"
            )
    if len(indices) != len(values):
        raise InvalidArgumentError(
            "indices and values rows (indexing dimension) must match. "
            f"(indices = {len(indices)}, values = {len(values)})"
        )
    if len(shape) and shape.min() < 0:
        raise InvalidArgumentError(
            f"Expected shape dimensions to be non-negative, got {shape[shape < 0][0]}"
        )
    if indices.shape[1] != len(shape) >= 2:
        raise InvalidArgumentError("Order length must be SparseTensor rank.")
    return sparse(indices, values, shape)


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
                f"Inconsistent shape across SparseTensors: rank prior to SparseTensor[{at}] was: "
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


# -- strings and variants --------------------------------------------------------------------


@kernel("SerializeSparse", types={"out_type": _PACKED})
def make_serialize_sparse(attrs: Attrs) -> Kernel:
    """The three parts of a tensor."""
    return lambda *parts: _packed([sparse(*parts)], (3,), attrs)


@kernel("SerializeManySparse", types={"out_type": _PACKED})
def make_serialize_many_sparse(attrs: Attrs) -> Kernel:
    """The three parts of each tensor in a batch."""

    def serialize(*parts: Value) -> Array:
        rows = _rows(_checked_batch(*parts))
        return _packed(rows, (len(rows), 3), attrs)

    return serialize


@kernel("DeserializeSparse", types={"Tserialized": _PACKED})
def make_deserialize_sparse(attrs: Attrs) -> Kernel:
    """The tensors in triples of strings or variants, as one batch."""
    dtype = attrs.dtype("dtype")

    def deserialize(serialized: Value) -> tuple[Array, Array, Array]:
        array = as_array(serialized)
        if array.ndim == 0:
            raise InvalidArgumentError("Serialized sparse should have non-zero rank []")
        if array.shape[-1] != 3:
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


def _tensor(at: int, packed: Sequence[bytes | Tensor], dtype: DType) -> Sparse:
    """One tensor from its three strings or variants."""
    (indices, *_), (values, found), (sizes, _) = parts = [_unpacked(item) for item in packed]
    for place, what in ((0, "a matrix"), (2, "a vector")):
        kind = parts[place][1]
        if kind is not dtypes.int64:
            raise InvalidArgumentError(
                f"Expected serialized_sparse[{at}, {place}] to be {what} of DT_INT64 but "
                f"received dtype {type_text(kind)}"
            )
    for place, (rank, what) in enumerate(_EXPECTED):
        array = parts[place][0]
        if array.ndim != rank:
            raise InvalidArgumentError(
                f"Expected serialized_sparse[{at}, {place}] to {what} {shape_text(array.shape)}"
            )
    if found is not dtype:
        raise InvalidArgumentError(
            f"Requested SparseTensor of type {type_text(dtype)} but "
            f"SparseTensor[{at}].values.dtype() == {type_text(found)}"
        )
    if len(indices) != len(values):
        raise InvalidArgumentError(
            f"Expected row counts of SparseTensor[{at}].indices and SparseTensor[{at}].values to "
            f"match but they do not: {len(indices)} vs. {len(values)}"
        )
    if indices.shape[1] != len(sizes):
        raise InvalidArgumentError(
            f"Expected column counts of SparseTensor[{at}].indices to match size of "
            f"SparseTensor[{at}].shape but they do not: {indices.shape[1]} vs. {len(sizes)}"
        )
    return sparse(indices, values, sizes)


def _unpacked(item: Value) -> tuple[Array, DType]:
    if isinstance(item, Tensor):
        return as_array(item.value), item.dtype
    if not isinstance(item, bytes):
        raise InvalidArgumentError(f"Could not get a tensor from the variant {item}")
    proto = TensorProto()
    try:
        proto.ParseFromString(item)
        array = as_array(from_proto(proto))
    except (DecodeError, OpError) as cause:
        raise InvalidArgumentError("Could not parse serialized proto") from cause
    return array, dtypes.of_number(proto.dtype)


# -- maps ------------------------------------------------------------------------------


class SparseTensorsMap:
    """Tensors that wait for a later step; each is taken once."""

    def __init__(self) -> None:
        #: Guards the other two.  Innermost.
        self._lock = Lock()
        self._tensors: dict[int, tuple[Sparse, DType]] = {}
        self._next = 0

    def state(self) -> Tree:
        """The tensors by handle, and the next handle."""
        with self._lock:
            rows = tuple(
                (handle, dtype.name, one.indices, one.values, tuple(map(int, one.shape)))
                for handle, (one, dtype) in self._tensors.items()
            )
            return rows, self._next

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> SparseTensorsMap:  # noqa: ARG003
        """The map that had a state."""
        rows, following = trees.parts(state, 2)
        made = cls()
        for row in trees.listed(rows):
            handle, kind, indices, values, sizes = trees.parts(row, 5)
            dtype, listed = trees.dtype_named(kind), trees.listed(sizes)
            made._tensors[trees.number(handle)] = (
                Sparse(
                    trees.value(indices, dtypes.int64),
                    trees.value(values, dtype),
                    tuple(map(trees.number, listed)),
                ),
                dtype,
            )
        made._next = trees.number(following)
        return made

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


def _map(context: OpKernelContext, attrs: Attrs) -> SparseTensorsMap:
    name = attrs.str("shared_name") or attrs.node_name
    found: SparseTensorsMap = context.resources.lookup_or_create(
        attrs.str("container"), name, _MAP, SparseTensorsMap
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
