"""Sparse tensors as three arrays: places, values, sizes.

In:   the three parts of a sparse tensor, as kernels get them.
Out:  the same, checked; linear positions; orders.
Not:  registers no kernel.

Places are the rows of a matrix of int64; many ops want them in the order in which the
elements would stand in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.core.values import Array, Value, shape_of
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.values.arrays import as_array, shape_text

_TOO_MANY = 2**63


@dataclass(frozen=True, slots=True)
class Sparse:
    """One sparse tensor; ``indices`` is a matrix, ``values`` and ``shape`` are vectors."""

    indices: Array
    values: Array
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """What a kernel hands out."""
        return self.indices, self.values, np.array(self.shape, np.int64)


def sparse(indices: Value, values: Value, shape: Value) -> Sparse:
    """The three parts as one; raises InvalidArgumentError unless they fit together."""
    places, sizes = as_array(indices), as_array(shape)
    if places.ndim != 2:
        raise InvalidArgumentError(f"Sparse indices must be rank 2 but is rank {places.ndim}")
    if len(shape_of(values)) != 1:
        raise InvalidArgumentError(
            f"Sparse values must be rank 1 but is rank {len(shape_of(values))}"
        )
    if sizes.ndim != 1:
        raise InvalidArgumentError(f"Sparse shape must be rank 1 but is rank {sizes.ndim}")
    if len(places) != len(values):
        raise InvalidArgumentError(
            f"Number of elements in indices ({len(places)}) and values ({len(values)}) do not match"
        )
    if places.shape[1] != len(sizes):
        raise InvalidArgumentError(
            f"Index rank ({places.shape[1]}) and shape rank ({len(sizes)}) do not match"
        )
    return Sparse(places, values, checked_shape(sizes.tolist()))


def checked_shape(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes; raises InvalidArgumentError if one is negative or their product is too large."""
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"Dimension {min(sizes)} must be >= 0")
    if math.prod(sizes) >= _TOO_MANY:
        raise InvalidArgumentError(
            f"Shape {shape_text(sizes)} would have more than 2**63 - 1 elements"
        )
    return tuple(sizes)


def memory_order(indices: Array) -> Array | slice:
    """What puts places in the order of memory; those that are equal keep theirs."""
    if is_ordered(indices):
        return slice(None)
    order: Array = np.lexsort(indices.T[::-1])
    return order


def is_ordered(indices: Array) -> bool:
    """Whether no place comes before the one in front of it."""
    return bool((_steps(indices) >= 0).all())


def _steps(indices: Array) -> Array:
    """For each place but the first, the sign of the first coordinate that differs."""
    if indices.shape[1] == 0:
        return np.zeros(max(len(indices) - 1, 0), np.int64)
    # Not a difference: it could wrap around.
    later, earlier = indices[1:], indices[:-1]
    signs = (later > earlier).astype(np.int64) - (later < earlier)
    first = (signs != 0).argmax(axis=1)
    return np.take_along_axis(signs, first[:, None], axis=1)[:, 0]


def check_indices(indices: Array, shape: Sequence[int]) -> None:
    """Raise unless all places are inside of the shape, in order, and different."""
    is_bad = _outside(indices, shape)
    steps = _steps(indices)
    is_bad[1:] = is_bad[1:] | (steps <= 0)
    if not is_bad.any():
        return
    at = int(is_bad.argmax())
    place = f"indices[{at}] = {shape_text(indices[at].tolist())}"
    if _outside(indices[at : at + 1], shape)[0]:
        raise InvalidArgumentError(
            f"{place} is out of bounds: need 0 <= index < {shape_text(shape)}"
        )
    if steps[at - 1] == 0:
        raise InvalidArgumentError(f"{place} is repeated")
    raise InvalidArgumentError(
        f"{place} is out of order. Many sparse ops require sorted indices.",
        next_step="use `tf.sparse.reorder` to create a correctly ordered copy",
    )


def _outside(indices: Array, shape: Sequence[int]) -> Array:
    limits = np.array(shape, np.int64)
    is_bad: Array = (indices < 0) | (indices >= limits)
    outside: Array = np.any(is_bad, axis=1)
    return outside


def first_outside(indices: Array, shape: Sequence[int]) -> int | None:
    """The number of the first place that is not inside of the shape; None if all are."""
    is_bad = _outside(indices, shape)
    return int(is_bad.argmax()) if is_bad.any() else None


def positions(indices: Array, shape: Sequence[int]) -> Array:
    """Where in memory each place is, from the start; nothing is checked."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    linear: Array = indices.astype(np.int64) @ np.array(strides, np.int64)
    return linear.astype(np.int64)


def places(linear: Array, shape: Sequence[int]) -> Array:
    """Coordinates of positions in memory, a row for each."""
    indices = np.empty((len(linear), len(shape)), np.int64)
    for axis in reversed(range(len(shape))):
        size = shape[axis]
        indices[:, axis] = linear % size if axis else linear
        linear = linear // size if size else linear
    return indices
