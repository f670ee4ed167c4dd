"""How often numbers occur in the rows of a ragged tensor.

In:   splits, numbers, a size, weights.
Out:  one row of counts, or of sums of weights, per row.
Not:  counts in no dense tensors (histogram_ops).
"""

from __future__ import annotations

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import as_array, check_new
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel


@kernel("RaggedBincount")
def make_ragged_bincount(attrs: Attrs) -> Kernel:
    """Counts of the numbers below a size, row by row; or only whether each occurs."""
    dtype, is_binary = attrs.dtype("T").numpy, attrs.bool("binary_output")

    def ragged_bincount(splits: Value, values: Value, size: Value, weights: Value) -> Array:
        numbers, ends = as_array(values), as_array(splits)
        _check(ends, numbers, int(size))
        result = np.zeros((len(ends) - 1, int(size)), dtype)
        check_new(result.shape, dtype)
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        inside = numbers < size
        amounts = as_array(weights) if np.size(weights) else np.ones(len(numbers), dtype)
        if is_binary:
            result[rows[inside], numbers[inside]] = 1
        else:
            np.add.at(result, (rows[inside], numbers[inside]), amounts[inside])
        return result

    return ragged_bincount


def _check(ends: Array, numbers: Array, size: int) -> None:
    if size < 0:
        raise InvalidArgumentError(f"size ({size}) must be non-negative")
    if not len(ends) or ends[0] != 0:
        raise InvalidArgumentError("Splits must start with 0, not with what is given")
    if ends[-1] != len(numbers):
        raise InvalidArgumentError(
            f"Splits must end with the number of values, got {ends[-1]} instead of {len(numbers)}"
        )
    if (np.diff(ends) < 0).any():
        raise InvalidArgumentError("Splits must be sorted")
    if numbers.size and numbers.min() < 0:
        raise InvalidArgumentError(f"Input values must all be non-negative, got {numbers.min()}")
