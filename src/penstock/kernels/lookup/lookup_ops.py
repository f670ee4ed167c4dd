"""Tables: making them, filling them, looking values up.

In:   a handle, keys, values.
Out:  values; everything that is in a table.
Not:  keeps nothing itself; tables live as long as their session and are found by container
      and name.

A handle is a resource (V2) or a reference to two strings; the generations differ in nothing
else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Ref, ResourceHandle, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Cost, Kernel, MakeKernel, context_kernel
from penstock.kernels.api.signatures import signature_mismatch, type_text
from penstock.kernels.lookup.dense_table import DenseTable
from penstock.kernels.lookup.lookup_tables import (
    LookupTable,
    MutableTable,
    StaticTable,
    TableSpec,
)
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import string_array
from penstock.state.resources import DEFAULT_CONTAINER

_KIND: Final = "LookupTable"
_BASIC: Final = frozenset({dtypes.float32, dtypes.float64, dtypes.int32})
_WIDE: Final = _BASIC | {dtypes.int64}
#: Value types that TensorFlow has for each key type, by kind of table.
_STATIC_TYPES: Final = {
    dtypes.int32: _BASIC | {dtypes.string},
    dtypes.int64: _WIDE | {dtypes.string},
    dtypes.string: _WIDE | {dtypes.string, dtypes.bool_},
}
_TENSORS_TYPES: Final = {
    dtypes.int32: _BASIC,
    dtypes.int64: _WIDE | {dtypes.string},
    dtypes.string: _WIDE | {dtypes.bool_},
}
_MUTABLE_TYPES: Final = {
    **_TENSORS_TYPES,
    dtypes.int64: _WIDE | {dtypes.string, dtypes.variant},
}
_DENSE_TYPES: Final = {
    dtypes.int32: _BASIC,
    dtypes.int64: _WIDE | {dtypes.bool_, dtypes.variant},
    dtypes.string: _WIDE | {dtypes.bool_, dtypes.resource},
}
_anonymous_ids: Final = itertools.count()


def table_of(context: OpKernelContext, handle: Value) -> LookupTable:
    """The table that a handle of either generation means."""
    resources = context.resources
    if isinstance(handle, ResourceHandle):
        resources = resources.at(handle.device)
    container, name = _place(handle)
    found: LookupTable = resources.lookup(container, name, _KIND)
    return found


def _place(handle: Value) -> tuple[str, str]:
    """Container and name that a handle holds."""
    if isinstance(handle, ResourceHandle):
        return handle.container, handle.name
    text = handle.value if isinstance(handle, Ref) else handle
    if shape_of(text) != (2,):
        raise InvalidArgumentError(
            f"Lookup table handle must be scalar, but had shape: {shape_text(shape_of(text))}"
        )
    return text[0].decode(), text[1].decode()


# -- making ----------------------------------------------------------------------------


def _register(
    *ops: str, types: Mapping[DType, Collection[DType]]
) -> Callable[[MakeKernel], MakeKernel]:
    """Register a maker for all pairs of key and value types."""

    def register(make: MakeKernel) -> MakeKernel:
        for key, values in types.items():
            pair = {"key_dtype": {key}, "value_dtype": values}
            context_kernel(*ops, types=pair, cost=Cost.CHEAP)(make)
        return make

    return register


def _spec(
    attrs: Attrs, key_shape: tuple[int, ...] = (), value_shape: tuple[int, ...] = ()
) -> TableSpec:
    return TableSpec(
        kind=attrs.op.name.removesuffix("V2"),
        key_dtype=attrs.dtype("key_dtype"),
        value_dtype=attrs.dtype("value_dtype"),
        key_shape=key_shape,
        value_shape=value_shape,
    )


def _find_or_make(
    context: OpKernelContext, attrs: Attrs, spec: TableSpec, make: Callable[[str], LookupTable]
) -> Value:
    """The handle of the node's table; an anonymous one is made anew each time."""
    container, name = "", f"_anonymous_{next(_anonymous_ids)}"
    if not attrs.op.name.startswith("Anonymous"):
        is_shared = attrs.bool("use_node_name_sharing")
        name = attrs.str("shared_name") or (attrs.node_name if is_shared else attrs.own_name)
        container = attrs.str("container")
    table: LookupTable = context.resources.lookup_or_create(
        container, name, _KIND, lambda: make(name)
    )
    there = table.spec
    if (there.key_dtype, there.value_dtype) != (spec.key_dtype, spec.value_dtype):
        raise InvalidArgumentError(
            f"Conflicting key/value dtypes {type_text(spec.key_dtype)}->"
            f"{type_text(spec.value_dtype)} with {type_text(there.key_dtype)}-"
            f"{type_text(there.value_dtype)} for table {name}"
        )
    if attrs.output_types[0] is dtypes.resource:
        return ResourceHandle(attrs.device, container or DEFAULT_CONTAINER, name, _KIND)
    texts = (container or DEFAULT_CONTAINER).encode(), name.encode()
    return Ref(name, dtypes.string, string_array(texts, (2,)))


@_register("HashTable", "HashTableV2", "AnonymousHashTable", types=_STATIC_TYPES)
def make_hash_table(attrs: Attrs) -> Kernel:
    """A table that is filled once."""
    spec = _spec(attrs)
    return lambda context: _find_or_make(context, attrs, spec, lambda name: StaticTable(name, spec))


@_register(
    "MutableHashTable", "MutableHashTableV2", "AnonymousMutableHashTable", types=_MUTABLE_TYPES
)
def make_mutable_hash_table(attrs: Attrs) -> Kernel:
    """A table that can be changed, with one element for each key."""
    spec = _spec(attrs)
    return lambda context: _find_or_make(
        context, attrs, spec, lambda name: MutableTable(name, spec)
    )


@_register(
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "AnonymousMutableHashTableOfTensors",
    types=_TENSORS_TYPES,
)
def make_mutable_hash_table_of_tensors(attrs: Attrs) -> Kernel:
    """A table that can be changed, with a vector for each key."""
    shape = attrs.shape("value_shape")
    if not shape.is_fully_defined or shape.rank != 1:
        shown = shape if shape.is_fully_defined else "[]"
        raise InvalidArgumentError(f"Default value must be a vector, got shape {shown}")
    spec = _spec(attrs, value_shape=shape.as_tuple())
    return lambda context: _find_or_make(
        context, attrs, spec, lambda name: MutableTable(name, spec)
    )


@_register(
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "AnonymousMutableDenseHashTable",
    types=_DENSE_TYPES,
)
def make_mutable_dense_hash_table(attrs: Attrs) -> Kernel:
    """A table that can be changed, of tensors for each key; two keys mark empty buckets."""
    value_shape = attrs.shape("value_shape").as_tuple()
    buckets, load = attrs.int("initial_num_buckets"), attrs.float("max_load_factor")
    if not 0 < load < 1:
        raise InvalidArgumentError(f"max_load_factor must be between 0 and 1, got: {load:g}")

    def dense(context: OpKernelContext, empty: Value, deleted: Value | None = None) -> Value:
        marks = _marks(empty, deleted)
        spec = _spec(attrs, shape_of(empty), value_shape)
        return _find_or_make(
            context, attrs, spec, lambda name: DenseTable(name, spec, marks, buckets, load)
        )

    return dense


def _marks(empty: Value, deleted: Value | None) -> tuple[Array, Array | None]:
    """The keys that stand for an empty bucket, and for one that was emptied."""
    if deleted is None:
        return as_array(empty), None
    if shape_of(empty) != shape_of(deleted):
        raise InvalidArgumentError(
            "Empty and deleted keys must have same shape, got shapes: "
            f"{shape_text(shape_of(empty))} and {shape_text(shape_of(deleted))}"
        )
    if np.array_equal(empty, deleted):
        raise InvalidArgumentError("Empty and deleted keys cannot be equal")
    return as_array(empty), as_array(deleted)


# -- using -----------------------------------------------------------------------------


def _check_types(
    attrs: Attrs, table: LookupTable, inputs: tuple[DType, ...], outputs: tuple[DType, ...] = ()
) -> None:
    """Raise unless the node's keys, values and results have the table's types."""
    spec, handle = table.spec, attrs.input_types[0]
    wanted = (spec.key_dtype, spec.value_dtype)[: len(inputs)]
    wanted_outputs = (spec.value_dtype,)[: len(outputs)]
    if inputs != wanted or outputs != wanted_outputs:
        raise signature_mismatch(((handle, *inputs), outputs), ((handle, *wanted), wanted_outputs))


@context_kernel("LookupTableFind", "LookupTableFindV2")
def make_lookup_table_find(attrs: Attrs) -> Kernel:
    """Values of keys; the default for keys that are not there."""
    key_dtype, value_dtype = attrs.dtype("Tin"), attrs.dtype("Tout")

    def find(context: OpKernelContext, handle: Value, keys: Value, default: Value) -> Value:
        table = table_of(context, handle)
        _check_types(attrs, table, (key_dtype, value_dtype), (value_dtype,))
        return table.find(keys, default)

    return find


def _writer(
    attrs: Attrs,
    types: tuple[DType, DType],
    write: Callable[[LookupTable, str, Value, Value], None],
) -> Kernel:
    """A kernel that hands keys and values to a table."""

    def compute(context: OpKernelContext, handle: Value, keys: Value, values: Value) -> None:
        table = table_of(context, handle)
        _check_types(attrs, table, types)
        write(table, _place(handle)[0] or "localhost", keys, values)

    return compute


@context_kernel("LookupTableInsert", "LookupTableInsertV2")
def make_lookup_table_insert(attrs: Attrs) -> Kernel:
    """Nothing; the table has new values for the keys."""
    types = attrs.dtype("Tin"), attrs.dtype("Tout")
    return _writer(attrs, types, lambda table, _, keys, values: table.insert(keys, values))


@context_kernel("LookupTableImport", "LookupTableImportV2")
def make_lookup_table_import(attrs: Attrs) -> Kernel:
    """Nothing; the table holds these keys and values, and no others."""
    types = attrs.dtype("Tin"), attrs.dtype("Tout")
    return _writer(attrs, types, lambda table, _, keys, values: table.replace(keys, values))


@context_kernel("InitializeTable", "InitializeTableV2")
def make_initialize_table(attrs: Attrs) -> Kernel:
    """Nothing; the table holds these keys and values, unless it was filled before."""
    types = attrs.dtype("Tkey"), attrs.dtype("Tval")

    def initialize(table: LookupTable, container: str, keys: Value, values: Value) -> None:
        if len(shape_of(keys)) != 1:
            raise InvalidArgumentError(
                f"Keys must be a vector, but received shape{shape_text(shape_of(keys))}"
            )
        if np.size(values) != len(keys):
            raise InvalidArgumentError(
                f"Keys and values must have the same size {len(keys)} vs {np.size(values)}"
            )
        table.initialize(container, keys, values)

    return _writer(attrs, types, initialize)


@context_kernel("LookupTableRemoveV2")
def make_lookup_table_remove(attrs: Attrs) -> Kernel:
    """Nothing; the keys are gone."""
    key_dtype = attrs.dtype("Tin")

    def remove(context: OpKernelContext, handle: Value, keys: Value) -> None:
        table = table_of(context, handle)
        _check_types(attrs, table, (key_dtype,))
        table.remove(keys)

    return remove


@context_kernel("LookupTableSize", "LookupTableSizeV2", cost=Cost.CHEAP)
def make_lookup_table_size(_attrs: Attrs) -> Kernel:
    """Number of keys."""
    return lambda context, handle: np.int64(table_of(context, handle).size)


@context_kernel("LookupTableExport", "LookupTableExportV2")
def make_lookup_table_export(attrs: Attrs) -> Kernel:
    """All keys, and their values in the same order."""
    types = attrs.dtype("Tkeys"), attrs.dtype("Tvalues")

    def export(context: OpKernelContext, handle: Value) -> tuple[Array, Array]:
        table = table_of(context, handle)
        wanted = table.spec.key_dtype, table.spec.value_dtype
        if types != wanted:
            [handle_type] = attrs.input_types
            raise signature_mismatch(([handle_type], types), ([handle_type], wanted))
        return table.export()

    return export
