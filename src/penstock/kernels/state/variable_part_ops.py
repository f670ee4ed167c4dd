"""Parts of variables: rows and slices that are read, replaced or updated.

In:   references to variables, or handles of them; indices; new values for the parts.
Out:  the parts; or the variable, changed.
Not:  computes no scattering and gathering itself, scatter_ops, gather_ops and slice_ops do.

A changed variable gets a new value, which is a copy with some parts changed, so that whoever
has read the old one keeps what it has read.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Ref, Value, freeze
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, MakeKernel, context_kernel, kernel
from penstock.kernels.api.types import NUMBERS, PLAIN, REALS
from penstock.kernels.array.gather_ops import make_gather, make_gather_nd, make_gather_v2
from penstock.kernels.array.scatter_ops import (
    accumulating,
    make_tensor_scatter_add,
    make_tensor_scatter_max,
    make_tensor_scatter_min,
    make_tensor_scatter_sub,
    make_tensor_scatter_update,
    scatter,
)
from penstock.kernels.array.slice_ops import Masks, index_maker, with_part
from penstock.kernels.state.variables import lookup_typed
from penstock.kernels.values.arrays import as_array, shape_text

#: Makes a changed copy: (old value, indices of dimensions, updates).
_Change: TypeAlias = Callable[[Value, Array, Value], Value]

_INDICES: Final = frozenset({dtypes.int32, dtypes.int64})
_KEPT: Final = PLAIN | {dtypes.string}


# -- reading -------------------------------------------------------------------------------


@context_kernel("ResourceGather", types={"Tindices": _INDICES})
def make_resource_gather(attrs: Attrs) -> Kernel:
    """Slices of the variable's first dimension; of another one for each part of a batch."""
    dtype, batch_dims = attrs.dtype("dtype"), attrs.int("batch_dims")
    like = _like(attrs, "GatherV2", Tparams=dtype)
    if batch_dims == 0:
        take = make_gather(like)
        return _reading(dtype, take)
    take_batched, axis = make_gather_v2(like), np.int32(batch_dims)
    return _reading(dtype, lambda values, indices: take_batched(values, indices, axis))


@context_kernel("ResourceGatherNd", types={"Tindices": _INDICES})
def make_resource_gather_nd(attrs: Attrs) -> Kernel:
    """Slices of the variable at indices of its first few dimensions."""
    dtype = attrs.dtype("dtype")
    return _reading(dtype, make_gather_nd(_like(attrs, "GatherNd", Tparams=dtype)))


def _reading(dtype: DType, take: Kernel) -> Kernel:
    def read(context: OpKernelContext, handle: Value, indices: Value) -> Value:
        return take(lookup_typed(context, handle, dtype).value, indices)

    return read


def _like(attrs: Attrs, op_name: str, **values: Any) -> Attrs:
    """The facts with which a node of another op does the same to plain values."""
    op = get_op(op_name)
    defaults = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    return dataclasses.replace(attrs, op=op, values={**defaults, **attrs.values, **values})


# -- changing slices -------------------------------------------------------------------------


@kernel("StridedSliceAssign", types={"Index": _INDICES})
def make_strided_slice_assign(attrs: Attrs) -> Kernel:
    """Replace the part that the spec means."""
    index_of = index_maker(Masks.of(attrs))

    def assign(ref: Ref, begin: Value, end: Value, strides: Value, new: Value) -> Ref:
        index = index_of(begin, end, strides)
        with ref.lock:
            ref.value = freeze(with_part(ref.value, index, new))
        return ref

    return assign


@context_kernel("ResourceStridedSliceAssign", types={"Index": _INDICES})
def make_resource_strided_slice_assign(attrs: Attrs) -> Kernel:
    """Replace the part that the spec means."""
    assign, dtype = make_strided_slice_assign(attrs), attrs.dtype("T")

    def assign_variable(context: OpKernelContext, handle: Value, *spec: Value) -> None:
        assign(lookup_typed(context, handle, dtype), *spec)

    return assign_variable


# -- changing rows and elements ----------------------------------------------------------------


def _make_multiply(attrs: Attrs) -> _Change:
    """The value with the rows multiplied by the updates."""
    apply = accumulating(np.multiply)
    return lambda values, indices, updates: scatter(
        np.array(values), indices, updates, apply, attrs
    )


def _make_divide(attrs: Attrs) -> _Change:
    """The value with the rows divided by the updates; integers are rounded towards zero."""
    is_integer = attrs.dtype("T").is_integer
    apply = _divide_integers if is_integer else accumulating(np.divide)
    refuses_zero = is_integer or attrs.op.name.startswith("Resource")

    def divide(values: Value, indices: Array, updates: Value) -> Value:
        if refuses_zero and not np.all(updates):
            raise InvalidArgumentError("updates must not contain 0")
        return scatter(np.array(values), indices, updates, apply, attrs)

    return divide


def _divide_integers(rows: Array, places: Array, updates: Array) -> None:
    for place, update in zip(places.tolist(), updates, strict=True):
        rows[place] = (rows[place] - np.fmod(rows[place], update)) // update


#: By the last part of the op's name: the types it takes, and how the change is made.
_BY_ROW: Final[Mapping[str, tuple[frozenset[DType], MakeKernel]]] = {
    "Add": (NUMBERS, make_tensor_scatter_add),
    "Div": (NUMBERS, _make_divide),
    "Max": (REALS, make_tensor_scatter_max),
    "Min": (REALS, make_tensor_scatter_min),
    "Mul": (NUMBERS, _make_multiply),
    "Sub": (NUMBERS, make_tensor_scatter_sub),
    "Update": (_KEPT | {dtypes.variant}, make_tensor_scatter_update),
}
_BY_INDEX: Final[Mapping[str, tuple[frozenset[DType], MakeKernel]]] = {
    "Add": (NUMBERS | {dtypes.bool_}, make_tensor_scatter_add),
    "Max": (REALS, make_tensor_scatter_max),
    "Min": (REALS, make_tensor_scatter_min),
    "Sub": (NUMBERS, make_tensor_scatter_sub),
    "Update": (_KEPT, make_tensor_scatter_update),
}


def _register(verb: str, types: frozenset[DType], make: MakeKernel) -> None:
    """Register the ops that change rows, for references and for resources."""

    @kernel(f"Scatter{verb}", types={"T": types, "Tindices": _INDICES})
    def make_scatter(attrs: Attrs) -> Kernel:
        """Change rows of the variable, which numbers of rows name; a scalar goes to all."""
        return _changing(_by_row(make(_with_policy(attrs, attrs.dtype("T")))))

    @context_kernel(f"ResourceScatter{verb}", types={"dtype": types, "Tindices": _INDICES})
    def make_resource_scatter(attrs: Attrs) -> Kernel:
        """Change rows of the variable, which numbers of rows name; a scalar goes to all."""
        dtype = attrs.dtype("dtype")
        change = _changing(_by_row(make(_with_policy(attrs, dtype))))

        def change_some(ref: Ref, indices: Value, updates: Value) -> None:
            if indices.size:  # else not even the shapes are compared, as in TensorFlow
                change(ref, indices, updates)

        return _on_resource(dtype, change_some)


def _register_nd(verb: str, types: frozenset[DType], make: MakeKernel) -> None:
    """Register the ops that change elements or slices, for references and for resources."""

    @kernel(f"ScatterNd{verb}", types={"T": types, "Tindices": _INDICES})
    def make_scatter_nd(attrs: Attrs) -> Kernel:
        """Change what is at indices of the variable's first few dimensions."""
        return _changing(_by_index(make(attrs)))

    @context_kernel(f"ResourceScatterNd{verb}", types={"T": types, "Tindices": _INDICES})
    def make_resource_scatter_nd(attrs: Attrs) -> Kernel:
        """Change what is at indices of the variable's first few dimensions."""
        return _on_resource(attrs.dtype("T"), _changing(_by_index(make(attrs))))


for _verb, (_types, _make) in _BY_ROW.items():
    _register(_verb, _types, _make)
for _verb, (_types, _make) in _BY_INDEX.items():
    _register_nd(_verb, _types, _make)


def _with_policy(attrs: Attrs, dtype: DType) -> Attrs:
    """The facts of a node of ScatterNd's kind; bad indices were refused before."""
    values = {**attrs.values, "T": dtype, "bad_indices_policy": b""}
    return dataclasses.replace(attrs, values=values)


def _changing(change: _Change) -> Kernel:
    def update(ref: Ref, indices: Value, updates: Value) -> Ref:
        with ref.lock:
            ref.value = freeze(change(ref.value, indices, updates))
        return ref

    return update


def _on_resource(dtype: DType, update: Kernel) -> Kernel:
    def update_variable(
        context: OpKernelContext, handle: Value, indices: Value, updates: Value
    ) -> None:
        update(lookup_typed(context, handle, dtype), indices, updates)

    return update_variable


def _by_row(change: _Change) -> _Change:
    """``change``, but told which rows."""

    def change_rows(values: Value, rows: Value, updates: Value) -> Value:
        updates = as_array(updates)
        shape = _updated_shape(as_array(values), rows, updates)
        if 0 in shape:
            return values
        filled = np.broadcast_to(updates, shape)
        count = math.prod(rows.shape)
        return change(values, rows.reshape((count, 1)), filled.reshape((count, *values.shape[1:])))

    return change_rows


def _updated_shape(values: Array, rows: Value, updates: Array) -> tuple[int, ...]:
    """The shape of all rows that change together; raises if something does not fit."""
    if values.ndim == 0:
        raise InvalidArgumentError("params must be at least 1-D, got shape []")
    shape: tuple[int, ...] = (*rows.shape, *values.shape[1:])
    if updates.shape not in {(), shape}:
        raise InvalidArgumentError(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], "
            f"got updates.shape {shape_text(updates.shape)}, "
            f"indices.shape {shape_text(rows.shape)}, params.shape {shape_text(values.shape)}"
        )
    if rows.size and not 0 <= rows.min() <= rows.max() < len(values):
        place = tuple(np.argwhere((rows < 0) | (rows >= len(values)))[0].tolist())
        at = shape_text(place) if place else ""
        raise InvalidArgumentError(f"indices{at} = {rows[place]} is not in [0, {len(values)})")
    return shape


def _by_index(change: _Change) -> _Change:
    """``change``, but a vector of indices is a list of numbers of rows."""

    def change_parts(values: Value, indices: Value, updates: Value) -> Value:
        if as_array(values).ndim == 0:
            raise InvalidArgumentError("Output must be at least 1-D, got shape: []")
        return change(values, indices[:, None] if indices.ndim == 1 else indices, updates)

    return change_parts
