"""Ops that pick elements or slices by lists of indices.

In:   an array, and indices of one dimension of it, or of several at once.
Out:  what stands there; an error for an index outside, negative ones included.
Not:  writes nowhere, scatter_ops does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOAT8, OBJECTS, PLAIN, QUANTIZED
from penstock.kernels.values.arrays import boxing, shape_text, zeros

_INDICES: Final = frozenset({dtypes.int16, dtypes.int32, dtypes.int64})
_GATHERABLE: Final = PLAIN | FLOAT8 | OBJECTS | QUANTIZED

#: So many indices are looked at in Python.
_FEW: Final = 64
#: Gives the array and the axis the slices at the indices.
_Take: TypeAlias = Callable[[Array, Value, int], Value]


@kernel("Gather", types={"Tparams": _GATHERABLE, "Tindices": _INDICES})
def make_gather(attrs: Attrs) -> Kernel:
    """Slices of the first dimension."""
    take = _take_by(attrs.dtype("Tindices").numpy)
    return boxing(attrs, "Tparams", lambda params, indices: take(params, indices, 0))


@kernel("GatherV2", types={"Tparams": _GATHERABLE, "Tindices": _INDICES})
def make_gather_v2(attrs: Attrs) -> Kernel:
    """Slices of any dimension; with ``batch_dims``, other ones for each part of a batch."""
    batch_dims = attrs.int("batch_dims")
    take = _take_by(attrs.dtype("Tindices").numpy)
    unsigned = np.dtype(f"u{attrs.dtype('Tindices').numpy.itemsize}")

    def gather(params: Array, indices: Value, axis: Value) -> Value:
        try:
            return take(params, indices, index(axis))
        except TypeError:
            raise InvalidArgumentError("axis must be scalar") from None

    def gather_narrow(params: Array, indices: Value, axis: Value) -> Value:
        # What ``gather`` comes to for arrays of narrow indices, without its calls.
        try:
            if params.ndim and indices.ndim:
                return params.take(indices.view(unsigned), index(axis))
        except (IndexError, TypeError):
            pass
        return gather(params, indices, axis)

    def gather_batched(params: Array, indices: Value, axis: Value) -> Value:
        if axis.ndim:
            raise InvalidArgumentError("axis must be scalar")
        return _take_batched(params, indices, int(axis), batch_dims)

    if batch_dims:
        return boxing(attrs, "Tparams", gather_batched)
    return boxing(attrs, "Tparams", gather_narrow if unsigned.itemsize < 8 else gather)


def _unsigned(dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    """Turns indices of one type into such that numpy refuses if they are negative.

    Read without a sign, a negative index is a very large one.  That is half the price of
    looking for one; but of int64, numpy's own type of indices, it takes only the sign.
    """
    if dtype.itemsize < 8:
        unsigned = np.dtype(f"u{dtype.itemsize}")
        return lambda indices: indices.view(unsigned)

    def checked(indices: Array) -> Array:
        size = indices.size
        if size <= _FEW:  # the list of a few takes a fifth of numpy's time
            if size and min(indices.ravel().tolist()) < 0:
                raise IndexError
        elif np.minimum.reduce(indices, None) < 0:
            raise IndexError
        return indices

    return checked


def _take_by(dtype: np.dtype[Any]) -> _Take:
    """Takes by indices of one type."""
    as_unsigned = _unsigned(dtype)

    def take(params: Array, indices: Value, axis: int) -> Value:
        try:
            if not params.ndim:
                raise _no_axis(0, axis)
            if indices.ndim:
                return params.take(as_unsigned(indices), axis)
            return _take_one(params, index(indices), axis)
        except IndexError:
            rank = params.ndim
            if not -rank <= axis < rank:
                raise _no_axis(rank, axis) from None
            return _take_nothing(params, indices, axis)

    return take


def _take_one(params: Array, place: int, axis: int) -> Value:
    if place < 0 or not -params.ndim <= axis < params.ndim:
        raise IndexError
    return params[place] if axis == 0 else params[(slice(None),) * (axis % params.ndim) + (place,)]


def _no_axis(rank: int, axis: int) -> InvalidArgumentError:
    if rank == 0:
        return InvalidArgumentError("params must be at least 1 dimensional")
    needed = axis + 1 if axis >= 0 else -axis
    return InvalidArgumentError(
        f"Shape must be at least rank {needed} but is rank {rank}: axis {axis} is not in "
        f"[{-rank}, {rank})"
    )


def _take_nothing(params: Array, indices: Value, axis: int) -> Array:
    """An empty result, for which TensorFlow looks at no index; or the error."""
    axis %= params.ndim
    shape = (*params.shape[:axis], *indices.shape, *params.shape[axis + 1 :])
    if 0 not in shape:
        raise _outside(params, indices, axis)
    return np.empty(shape, params.dtype)


def _outside(params: Array, indices: Value, axis: int) -> InvalidArgumentError:
    size = params.shape[axis]
    bad = (indices < 0) | (indices >= size)
    if indices.ndim == 0:
        return InvalidArgumentError(f"indices = {indices} is not in [0, {size})")
    place = tuple(np.argwhere(bad)[0].tolist())
    return InvalidArgumentError(
        f"indices{shape_text(place)} = {indices[place]} is not in [0, {size})"
    )


def _take_batched(params: Array, indices: Value, axis: int, batch_dims: int) -> Value:
    """Take from each part of a batch by the same part's indices."""
    axis, batch_dims = _batch(params, indices, axis, batch_dims)
    batch, outer = params.shape[:batch_dims], params.shape[batch_dims:axis]
    size, inner = params.shape[axis], params.shape[axis + 1 :]
    kept = indices.shape[batch_dims:]
    if indices.size and not 0 <= indices.min() <= indices.max() < size:
        raise _outside(params, indices, axis)
    parts = math.prod(batch)
    flat = params.reshape((parts, math.prod(outer), size, math.prod(inner)))
    chosen = indices.reshape((parts, math.prod(kept)))
    # Two lists of indices with a slice between them: what they pick comes first.
    taken = flat[np.arange(parts)[:, None], :, chosen].swapaxes(1, 2)
    return as_value(taken.reshape((*batch, *outer, *kept, *inner)))


def _batch(params: Array, indices: Value, axis: int, batch_dims: int) -> tuple[int, int]:
    """Axis and number of batch dimensions, counted from the front."""
    rank, limit = params.ndim, indices.ndim
    if not -limit <= batch_dims <= limit:
        raise InvalidArgumentError(
            f"Expected batch_dims in the range [{-limit}, {limit}], but got {batch_dims}"
        )
    if not -rank <= axis < rank:
        raise _no_axis(rank, axis)
    axis, batch_dims = axis % rank, batch_dims if batch_dims >= 0 else batch_dims + limit
    if batch_dims > axis:
        raise InvalidArgumentError(
            f"batch_dims ({batch_dims}) must be less than or equal to axis ({axis})."
        )
    for dim in range(batch_dims):
        if params.shape[dim] != indices.shape[dim]:
            raise InvalidArgumentError(
                f"params.shape[{dim}]: {params.shape[dim]} should be equal to "
                f"indices.shape[{dim}]: {indices.shape[dim]}"
            )
    return axis, batch_dims


@kernel(
    "GatherNd",
    types={"Tparams": _GATHERABLE - {dtypes.qint16, dtypes.quint16}, "Tindices": _INDICES},
)
def make_gather_nd(attrs: Attrs) -> Kernel:
    """Slices at indices of the first few dimensions, which the last dimension holds."""
    is_lenient = attrs.bytes("bad_indices_policy") == b"IGNORE"
    blank = zeros((), attrs.dtype("Tparams"))[()]
    as_unsigned = _unsigned(attrs.dtype("Tindices").numpy)

    def gather_nd(params: Array, indices: Value) -> Value:
        _check_gather_nd(params, indices)
        if indices.shape[-1] == 0:  # without coordinates each index means all of the array
            return np.broadcast_to(params, (*indices.shape[:-1], *params.shape))
        try:
            return as_value(params[_coordinates(as_unsigned(indices))])
        except IndexError:
            inside = _inside(indices, params.shape)
            if not is_lenient:
                raise _outside_nd(params, indices, inside) from None
        taken = np.array(params[_coordinates(np.where(inside[..., None], indices, 0))])
        taken[~inside] = blank
        return as_value(taken)

    return boxing(attrs, "Tparams", gather_nd)


def _coordinates(indices: Array) -> tuple[Array, ...]:
    """The indices as numpy wants them: an array for each dimension."""
    return tuple(indices[..., axis] for axis in range(indices.shape[-1]))


def _check_gather_nd(params: Array, indices: Value) -> None:
    if params.ndim == 0:
        raise InvalidArgumentError("params must be at least a vector")
    if indices.ndim == 0:
        raise InvalidArgumentError("indices must be at least a vector")
    if indices.shape[-1] > params.ndim:
        raise InvalidArgumentError(
            "index innermost dimension length must be <= params rank; "
            f"saw: {indices.shape[-1]} vs. {params.ndim}"
        )
    if params.size == 0 and math.prod(indices.shape[:-1]):
        raise InvalidArgumentError(
            "Requested more than 0 entries, but params is empty.  "
            f"Params shape: {shape_text(params.shape)}"
        )


def _inside(indices: Array, shape: tuple[int, ...]) -> Array:
    """Which of the indices, along the last dimension, are inside an array of that shape."""
    inside: Array = (indices >= 0) & (indices < shape[: indices.shape[-1]])
    return np.asarray(inside.all(axis=-1))


def _outside_nd(params: Array, indices: Array, inside: Array) -> InvalidArgumentError:
    place = tuple(np.argwhere(~inside)[0].tolist())
    at = shape_text(place) if place else ""
    return InvalidArgumentError(
        f"indices{at} = {indices[place].tolist()} does not index into param shape "
        f"{shape_text(shape_of(params))}"
    )
