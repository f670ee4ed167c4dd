"""Ops that put elements or slices at places given by lists of indices.

In:   an array (or its shape), indices of its first few dimensions, and updates.
Out:  a new array; an error for an index outside, negative ones included.
Not:  changes no array in place, not even the ops that are called so; no variables.

Updates are applied one after the other in the order of their indices, so that sums are
rounded as TensorFlow rounds them, and of several updates of one place the last one stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, PLAIN, REALS
from penstock.kernels.values.arrays import as_array, shape_text, zeros

_INDICES: Final = frozenset({dtypes.int32, dtypes.int64})
#: Slices longer than this are updated one by one; shorter ones element by element.
_LONG_SLICE: Final = 512

#: Fewer elements are updated one by one; a turn must be worth as many as these.
_MANY: Final = 1 << 16
_TURN: Final = 4000

#: Changes the rows of a new two-dimensional array: (rows, numbers of rows, updates).
Apply: TypeAlias = Callable[[Array, Array, Array], None]


def _assign(rows: Array, places: Array, updates: Array) -> None:
    rows[places] = updates


def accumulating(ufunc: np.ufunc) -> Apply:
    """Combine each row with its updates by ``ufunc``, one after the other."""

    def accumulate(rows: Array, places: Array, updates: Array) -> None:
        width = rows.shape[1]
        if width == 1:
            ufunc.at(rows[:, 0], places, updates[:, 0])
        elif width > _LONG_SLICE:
            for place, update in zip(places.tolist(), updates, strict=True):
                ufunc(rows[place], update, out=rows[place])
        elif updates.size < _MANY or not _in_turns(ufunc, rows, places, updates):
            # Along one dimension ``at`` has a fast path: five times as fast as on rows.
            elements = places[:, None] * width + np.arange(width)
            ufunc.at(rows.reshape(-1), elements.reshape(-1), updates.reshape(-1))

    return accumulate


def _in_turns(ufunc: np.ufunc, rows: Array, places: Array, updates: Array) -> bool:
    """First each row's first update, then each row's second one; False if that takes too long."""
    bits = len(places).bit_length()
    keys = (places.astype(np.int64) << bits) | np.arange(len(places))
    keys.sort()
    order, ordered = keys & ((1 << bits) - 1), keys >> bits
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    counts = np.diff(starts, append=len(ordered))
    if int(counts.max()) * _TURN > updates.size:
        return False
    falling = np.argsort(-counts, kind="stable")
    starts, counts = starts[falling], counts[falling]
    changed = ordered[starts]
    found = rows.take(changed, 0)
    # How many rows have more updates than 0, 1, 2 ...
    for turn, more in enumerate(len(counts) - np.cumsum(np.bincount(counts))[:-1]):
        part = found[:more]
        ufunc(part, updates.take(order[starts[:more] + turn], 0), out=part)
    rows[changed] = found
    return True


def _accumulate_numbers(ufunc: np.ufunc, neutral: float) -> Apply:
    """Like ``accumulating``, but updates that are NaN change nothing, as in TensorFlow."""
    accumulate = accumulating(ufunc)

    def skip_nan(rows: Array, places: Array, updates: Array) -> None:
        nan = np.isnan(updates)
        if nan.any():
            updates = np.where(nan, updates.dtype.type(neutral), updates)
        accumulate(rows, places, updates)

    return skip_nan


_ADD: Final = accumulating(np.add)
_SUBTRACT: Final = accumulating(np.subtract)


def scatter(whole: Array, indices: Value, updates: Value, apply: Apply, attrs: Attrs) -> Value:
    """Apply updates at indices of the first few dimensions of ``whole``, which is new."""
    depth = indices.shape[-1]
    rows = whole.reshape((math.prod(whole.shape[:depth]), math.prod(whole.shape[depth:])))
    flat = indices.reshape((-1, depth))
    changes = as_array(updates).reshape((len(flat), rows.shape[1]))
    try:
        places = np.ravel_multi_index(tuple(flat.T), whole.shape[:depth])
    except ValueError:
        inside = ((flat >= 0) & (flat < whole.shape[:depth])).all(axis=1)
        if attrs.bytes("bad_indices_policy") != b"IGNORE":
            raise _outside(whole, indices, inside) from None
        places = np.ravel_multi_index(tuple(flat[inside].T), whole.shape[:depth])
        changes = changes[inside]
    apply(rows, places, changes)
    return as_value(whole)


def _outside(whole: Array, indices: Array, inside: Array) -> InvalidArgumentError:
    place = tuple(np.argwhere(~inside.reshape(indices.shape[:-1]))[0].tolist())
    at = shape_text(place) if place else ""
    return InvalidArgumentError(
        f"indices{at} = {indices[place].tolist()} does not index into shape "
        f"{shape_text(whole.shape)}"
    )


def has_updates(shape: tuple[int, ...], indices: Value, updates: Value) -> bool:
    """Whether there is anything to scatter; raises if the three shapes do not fit."""
    _check_ranks(indices, updates)
    if indices.size == 0 and updates.size == 0:
        return False
    if 0 in shape or indices.size == 0 or updates.size == 0:
        raise InvalidArgumentError(
            "Indices and updates specified for empty output shape: "
            f"indices shape: {shape_text(indices.shape)}, updates shape: "
            f"{shape_text(updates.shape)}, output shape: {shape_text(shape)}"
        )
    outer, depth = indices.shape[:-1], indices.shape[-1]
    if updates.shape[: len(outer)] != outer:
        raise _unlike_outer(len(outer), indices, updates)
    if depth > len(shape) or updates.shape[len(outer) :] != shape[depth:]:
        raise InvalidArgumentError(
            f"Dimensions [{depth},{len(shape)}) of input[shape={shape_text(shape)}] must match "
            f"dimensions [{len(outer)},{updates.ndim}) of "
            f"updates[shape={shape_text(updates.shape)}]"
        )
    return True


def _unlike_outer(count: int, indices: Value, updates: Value) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Dimensions [0,{count}) of indices[shape={shape_text(indices.shape)}] must match "
        f"dimensions [0,{count}) of updates[shape={shape_text(updates.shape)}]"
    )


def _check_ranks(indices: Value, updates: Value) -> None:
    for name, value in (("Indices", indices), ("Updates", updates)):
        if value.ndim == 0:
            raise InvalidArgumentError(f"{name} shape must have rank at least one. Found:[]")


@kernel("ScatterNd", types={"T": PLAIN | {dtypes.string}, "Tindices": _INDICES})
def make_scatter_nd(attrs: Attrs) -> Kernel:
    """Zeros of a shape with the updates added; strings are appended to each other."""
    dtype = attrs.dtype("T")

    def scatter_nd(indices: Value, updates: Value, shape: Value) -> Value:
        updates = as_array(updates)
        if shape.ndim != 1:
            raise InvalidArgumentError("Shape must be a vector")
        sizes = tuple(shape.tolist())
        if not has_updates(sizes, indices, updates):
            return as_value(zeros(sizes, dtype))
        return scatter(zeros(sizes, dtype), indices, updates, _ADD, attrs)

    return scatter_nd


def _tensor_scatter(attrs: Attrs, apply: Apply) -> Kernel:
    """The kernel that applies updates to a copy of its first input."""

    def tensor_scatter(values: Value, indices: Value, updates: Value) -> Value:
        updates, values = as_array(updates), as_array(values)
        if indices.ndim == 1 and updates.shape[:1] != indices.shape:
            # Not needed, but so it is in TensorFlow: there a vector is no single index.
            raise _unlike_outer(1, indices, updates)
        if not has_updates(values.shape, indices, updates):
            return as_value(values)
        return scatter(np.array(values), indices, updates, apply, attrs)

    return tensor_scatter


@kernel("ScatterNdNonAliasingAdd", types={"T": PLAIN, "Tindices": _INDICES})
def make_scatter_nd_non_aliasing_add(attrs: Attrs) -> Kernel:
    """The input with the updates added."""
    return _tensor_scatter(attrs, _ADD)


@kernel("TensorScatterAdd", types={"T": NUMBERS, "Tindices": _INDICES})
def make_tensor_scatter_add(attrs: Attrs) -> Kernel:
    """The input with the updates added."""
    return _tensor_scatter(attrs, _ADD)


@kernel("TensorScatterSub", types={"T": NUMBERS, "Tindices": _INDICES})
def make_tensor_scatter_sub(attrs: Attrs) -> Kernel:
    """The input with the updates subtracted."""
    return _tensor_scatter(attrs, _SUBTRACT)


@kernel("TensorScatterMin", types={"T": REALS, "Tindices": _INDICES})
def make_tensor_scatter_min(attrs: Attrs) -> Kernel:
    """The smaller one of the input and the updates."""
    return _tensor_scatter(attrs, _extremum(attrs.dtype("T"), np.minimum, math.inf))


@kernel("TensorScatterMax", types={"T": REALS, "Tindices": _INDICES})
def make_tensor_scatter_max(attrs: Attrs) -> Kernel:
    """The larger one of the input and the updates."""
    return _tensor_scatter(attrs, _extremum(attrs.dtype("T"), np.maximum, -math.inf))


def _extremum(dtype: DType, ufunc: np.ufunc, neutral: float) -> Apply:
    return _accumulate_numbers(ufunc, neutral) if dtype.is_floating else accumulating(ufunc)


@kernel("TensorScatterUpdate", types={"T": PLAIN | {dtypes.string}, "Tindices": _INDICES})
def make_tensor_scatter_update(attrs: Attrs) -> Kernel:
    """The input with the updates in place of what was there."""
    return _tensor_scatter(attrs, _assign)


_IN_PLACE: Final[dict[str, Apply]] = {
    "InplaceAdd": _ADD,
    "InplaceSub": _SUBTRACT,
    "InplaceUpdate": _assign,
}


@kernel(*_IN_PLACE)
def make_inplace(attrs: Attrs) -> Kernel:
    """The input with some rows changed; numbers of rows are taken modulo their count."""
    apply = _IN_PLACE[attrs.op.name]
    is_refused = apply is not _assign and attrs.dtype("T") not in NUMBERS

    def inplace(values: Value, rows: Value, updates: Value) -> Value:
        values, updates = as_array(values), as_array(updates)
        _check_inplace(values, rows, updates)
        if is_refused:
            raise InvalidArgumentError(f"Unsupported data type: {attrs.dtype('T')}")
        changed: Array = np.array(values)
        if values.size == 0:
            return changed
        width = math.prod(values.shape[1:])
        places: Any = rows.astype(np.int64) % len(values)
        apply(changed.reshape((-1, width)), places, updates.reshape((-1, width)))
        return changed

    return inplace


def _check_inplace(values: Array, rows: Value, updates: Array) -> None:
    if rows.ndim != 1:
        raise InvalidArgumentError(f"i must be a vector. {shape_text(rows.shape)}")
    if values.ndim == 0 or values.ndim != updates.ndim:
        raise InvalidArgumentError(
            f"x and v shape doesn't match (ranks differ): {shape_text(values.shape)} vs. "
            f"{shape_text(updates.shape)}"
        )
    for axis in range(1, values.ndim):
        if values.shape[axis] != updates.shape[axis]:
            raise InvalidArgumentError(
                f"x and v shape doesn't match at index {axis} : {shape_text(values.shape)} vs. "
                f"{shape_text(updates.shape)}"
            )
    if rows.shape[0] != updates.shape[0]:
        raise InvalidArgumentError(
            f"i and x shape doesn't match at index 0: {shape_text(rows.shape)} vs. "
            f"{shape_text(updates.shape)}"
        )
