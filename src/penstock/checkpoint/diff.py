"""``diff``: what two checkpoints do not have in common.

In:   two mappings of names to tensors.
Out:  one ``Difference`` per name, sorted.
Not:  opens nothing, prints nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import numpy as np

from penstock.checkpoint.checkpoint import Checkpoint
from penstock.core import dtypes
from penstock.core.values import Value
from penstock.dataclass import dataclass


class Kind(enum.Enum):
    """In what two tensors of one name differ."""

    ONLY_FIRST = "only in the first"
    ONLY_SECOND = "only in the second"
    DTYPE = "type"
    SHAPE = "shape"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Difference:
    """One name whose tensors differ."""

    name: str
    kind: Kind
    #: How many elements differ; 0 unless ``kind`` is VALUE.
    count: int = 0
    #: The largest absolute difference of two finite elements; None if they are no numbers.
    largest: float | None = None


def diff(first: Checkpoint, second: Checkpoint, tolerance: float = 0.0) -> Iterator[Difference]:
    """What two checkpoints do not have in common, by name; tensors are read one by one.

    Args:
        first: a checkpoint.
        second: another one.
        tolerance: numbers may differ by so much, absolutely.  NaN equals NaN.

    Raises:
        DataLossError: one of them is damaged.

    """
    for name in sorted({*first, *second}):
        if name not in second:
            yield Difference(name, Kind.ONLY_FIRST)
        elif name not in first:
            yield Difference(name, Kind.ONLY_SECOND)
        elif first.dtype(name) is not second.dtype(name):
            yield Difference(name, Kind.DTYPE)
        elif first.shape(name) != second.shape(name):
            yield Difference(name, Kind.SHAPE)
        else:
            yield from _values(name, first, second, tolerance)


def _values(
    name: str, first: Checkpoint, second: Checkpoint, tolerance: float
) -> Iterator[Difference]:
    one, other = first[name], second[name]
    if first.dtype(name) is dtypes.string:
        count = int(np.count_nonzero(np.asarray(one, object) != np.asarray(other, object)))
        if count:
            yield Difference(name, Kind.VALUE, count)
        return
    one, other = _wide(one), _wide(other)
    with np.errstate(all="ignore"):  # infinities differ by NaN, and integers may wrap
        apart = (
            np.where(one > other, one - other, other - one)
            if one.dtype.kind != "c"
            else abs(one - other)
        )
    differs = (one != other) & ~((one != one) & (other != other)) & ~(apart <= tolerance)
    if differs.any():
        finite = apart[differs & np.isfinite(apart)]
        largest = float(finite.max()) if finite.size else None
        yield Difference(name, Kind.VALUE, int(np.count_nonzero(differs)), largest)


def _wide(value: Value) -> np.ndarray:
    """Numbers in a type in which differences can be told."""
    array = np.atleast_1d(np.asarray(value))
    if array.dtype.names:
        array = array.view(array.dtype[0])
    if (array.dtype.kind in "fc" and array.dtype.itemsize >= 4) or array.dtype in (
        np.int64,
        np.uint64,
    ):
        return array
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    return array.astype(np.float64)
