"""Arithmetic on shapes of which a part is unknown.

In:   shapes and sizes; None is a size that nobody knows.
Out:  what is known of the shapes that follow from them.
Not:  registers no rule; knows no ops.

A contradiction raises InvalidArgumentError, in TensorFlow's words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, TypeAlias

from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.errors import InvalidArgumentError

#: TensorFlow's tensors have no more axes than this.
MAX_RANK: Final = 254
#: One size, or None if it is not known.
Dim: TypeAlias = int | None


def shape(*dims: Dim) -> TensorShape:
    """A shape of known rank."""
    return TensorShape(dims)


def of_rank(rank: int | None) -> TensorShape:
    """A shape of unknown sizes; raises if no tensor has so many."""
    if rank is not None and rank > MAX_RANK:
        raise InvalidArgumentError(f"Shape must be at most rank {MAX_RANK} but is rank {rank}")
    return UNKNOWN if rank is None else TensorShape((None,) * rank)


def with_rank(given: TensorShape, rank: int) -> TensorShape:
    """The shape, known to be of a rank; raises if it is of another one."""
    if given.dims is None:
        return of_rank(rank)
    if len(given.dims) != rank:
        raise InvalidArgumentError(f"Shape must be rank {rank} but is rank {len(given.dims)}")
    return given


def at_least_rank(given: TensorShape, rank: int) -> TensorShape:
    """The shape; raises if its rank is known and lower."""
    if given.dims is not None and len(given.dims) < rank:
        raise InvalidArgumentError(
            f"Shape must be at least rank {rank} but is rank {len(given.dims)}"
        )
    return given


def at_most_rank(given: TensorShape, rank: int) -> TensorShape:
    """The shape; raises if its rank is known and higher."""
    if given.dims is not None and len(given.dims) > rank:
        raise InvalidArgumentError(
            f"Shape must be at most rank {rank} but is rank {len(given.dims)}"
        )
    return given


def dim(given: TensorShape, axis: int) -> Dim:
    """One size, counted from either end; None if it, or the rank, is unknown."""
    if given.dims is None or not -len(given.dims) <= axis < len(given.dims):
        return None
    return given.dims[axis]


def merge_dims(a: Dim, b: Dim) -> Dim:
    """The size that both are; raises if they differ."""
    if a is not None and b is not None and a != b:
        raise InvalidArgumentError(f"Dimensions must be equal, but are {a} and {b}")
    return b if a is None else a


def merge(a: TensorShape, b: TensorShape) -> TensorShape:
    """What is known from both; raises if they contradict each other."""
    if a.dims is None or b.dims is None or a.dims == b.dims:
        return b if a.dims is None else a
    if len(a.dims) != len(b.dims):
        raise InvalidArgumentError(
            f"Shapes must be equal rank, but are {len(a.dims)} and {len(b.dims)}"
        )
    for axis, (one, other) in enumerate(zip(a.dims, b.dims, strict=True)):
        if one is not None and other is not None and one != other:
            raise InvalidArgumentError(
                f"Dimension {axis} in both shapes must be equal, but are {one} and {other}. "
                f"Shapes are {a} and {b}."
            )
    return a.merge_with(b)


def merge_all(shapes: Iterable[TensorShape]) -> TensorShape:
    """What is known from all of them."""
    known = UNKNOWN
    for one in shapes:
        known = merge(known, one)
    return known


def join(a: TensorShape, b: TensorShape) -> TensorShape:
    """What is true of a tensor that has one shape or the other."""
    if a.dims is None or b.dims is None or a.dims == b.dims:
        return a if a.dims == b.dims else UNKNOWN
    if len(a.dims) != len(b.dims):
        return UNKNOWN
    return TensorShape(
        tuple(one if one == other else None for one, other in zip(a.dims, b.dims, strict=True))
    )


def broadcast(*shapes: TensorShape) -> TensorShape:
    """The shape of an element-wise result, as numpy's rules have it."""
    result = SCALAR
    for one in shapes:
        result = _broadcast_two(result, one)
    return result


def _broadcast_two(a: TensorShape, b: TensorShape) -> TensorShape:
    if a.dims is None or b.dims is None:
        return UNKNOWN
    rank = max(len(a.dims), len(b.dims))
    longer = (1,) * (rank - len(a.dims)) + a.dims, (1,) * (rank - len(b.dims)) + b.dims
    return TensorShape(tuple(map(_broadcast_dims, *longer)))


def _broadcast_dims(a: Dim, b: Dim) -> Dim:
    if a == 1 or b == 1:
        return b if a == 1 else a
    # A known size above 1 stays: the other one must be the same, or 1.
    if a is None or b is None:
        return b if a is None else a
    return merge_dims(a, b)


def concat(*parts: TensorShape) -> TensorShape:
    """The sizes of all parts, one after the other."""
    dims: tuple[Dim, ...] = ()
    for part in parts:
        if part.dims is None:
            return UNKNOWN
        dims += part.dims
    return TensorShape(dims)


def part_of(given: TensorShape, start: int | None, stop: int | None = None) -> TensorShape:
    """Some of the sizes, as a slice of the list of them."""
    return given if given.dims is None else TensorShape(given.dims[start:stop])


def replaced(given: TensorShape, axis: int, size: Dim) -> TensorShape:
    """The shape with another size at an axis."""
    if given.dims is None:
        return given
    dims = list(given.dims)
    dims[axis] = size
    return TensorShape(tuple(dims))


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front; raises if there is none of that number."""
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Shape must be at least rank {axis + 1 if axis >= 0 else -axis} but is rank {rank}"
        )
    return axis % rank


def without(given: TensorShape, axis: int) -> TensorShape:
    """The shape without one of its axes."""
    if given.dims is None:
        return given
    place = axis_of(axis, len(given.dims))
    return TensorShape(given.dims[:place] + given.dims[place + 1 :])


def product(sizes: Iterable[Dim]) -> Dim:
    """The product of sizes; it is known also where one of them is zero."""
    known = list(sizes)
    if 0 in known:
        return 0
    return None if None in known else math.prod(size for size in known if size is not None)


def total(sizes: Iterable[Dim]) -> Dim:
    """The sum of sizes."""
    known = list(sizes)
    return None if None in known else sum(size for size in known if size is not None)


def elements(given: TensorShape) -> Dim:
    """How many elements there are, if that is known."""
    return None if given.dims is None else product(given.dims)
