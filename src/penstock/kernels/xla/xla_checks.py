"""What the numbers of XLA's ops may be, apart from whether they fit into memory.

In:   dimensions, sizes, strides and gaps, as a node or its inputs have them.
Out:  the same as plain numbers, or InvalidArgumentError.
Not:  computes nothing with them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.values.arrays import as_array, shape_text


def positive(name: str, numbers: Value, rank: int) -> list[int]:
    """One number for each of ``rank`` dimensions, all of them at least 1.

    Args:
        name: what the numbers are, for the error.
        numbers: a vector.
        rank: how many there must be.

    """
    found = as_array(numbers)
    if found.shape != (rank,):
        raise InvalidArgumentError(
            f"{name} must be a vector of {rank} numbers, got shape {shape_text(found.shape)}"
        )
    if (found < 1).any():
        raise InvalidArgumentError(f"Window has a non-positive {name}: {found.tolist()}")
    return [int(number) for number in found]


def margins(padding: Value, rank: int) -> tuple[list[int], list[int]]:
    """What is added before and after each of ``rank`` dimensions; less than zero takes away."""
    pairs = as_array(padding)
    if pairs.shape != (rank, 2):
        raise InvalidArgumentError(
            f"padding must have shape [{rank},2], got {shape_text(pairs.shape)}"
        )
    return pairs[:, 0].tolist(), pairs[:, 1].tolist()


def dimensions(numbers: Sequence[int], rank: int) -> list[int]:
    """Dimensions of an array of ``rank``, each at most once."""
    for number in numbers:
        if not 0 <= number < rank:
            raise InvalidArgumentError(f"Dimension {number} is out of bounds for rank {rank}")
    if len(set(numbers)) < len(numbers):
        raise InvalidArgumentError(f"A dimension is named twice: {list(numbers)}")
    return list(numbers)


def slice_sizes(numbers: Value, shape: Sequence[int]) -> Array:
    """The sizes of parts of an array."""
    sizes = as_array(numbers)
    if sizes.shape != (len(shape),):
        raise InvalidArgumentError(
            f"There must be {len(shape)} slice sizes, got shape {shape_text(sizes.shape)}"
        )
    wrong = np.flatnonzero((sizes < 0) | (sizes > np.array(shape, np.int64)))
    if len(wrong):
        at = int(wrong[0])
        raise InvalidArgumentError(
            f"Slice size at index {at} in gather op is out of range, must be within "
            f"[0, {shape[at] + 1}), got {sizes[at]}."
        )
    return sizes
