"""How often numbers occur in the rows of a ragged tensor.

In:   splits, numbers, a size, weights.
Out:  one row of counts, or of sums of weights, per row.
Not:  counts in no dense tensors (histogram_ops).
"""

from __future__ import annotations

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import as_array, check_new


@kernel("RaggedBincount")
def make_ragged_bincount(attrs: Attrs) -> Kernel:
    """Counts of the numbers below a size, row by row; or only whether each occurs."""
    dtype, is_binary = attrs.dtype("T").numpy, attrs.bool("binary_output")

    def ragged_bincount(splits: Value, values: Value, size: Value, weights: Value) -> Array:
        numbers, ends, amounts = as_array(values), as_array(splits), as_array(weights).reshape(-1)
        if size < 0:
            raise InvalidArgumentError(f"size ({size}) must be non-negative")
        _check(ends, numbers, amounts)
        shape = (len(ends) - 1, int(size))
        check_new(shape, dtype)
        result = np.zeros(shape, dtype)
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        inside = numbers < size
        places = rows[inside], numbers[inside]
        if is_binary:
            result[places] = 1
        else:
            np.add.at(result, places, amounts[inside] if amounts.size else dtype.type(1))
        return result

    return ragged_bincount


def _check(ends: Array, numbers: Array, amounts: Array) -> None:
    if not len(ends):
        raise InvalidArgumentError("Splits must be non-empty")
    if ends[0] != 0:
        raise InvalidArgumentError(f"Splits must start with 0, not with {ends[0]}")
    if ends[-1] != len(numbers):
        raise InvalidArgumentError(
            f"Splits must end with the number of values, got {ends[-1]} instead of {len(numbers)}"
        )
    if (np.diff(ends) < 0).any():
        raise InvalidArgumentError("Splits must be sorted")
    if amounts.size not in (0, numbers.size):
        raise InvalidArgumentError(
            f"Input indices and weights must have the same size, not {numbers.size} and "
            f"{amounts.size}"
        )
    if numbers.size and numbers.min() < 0:
        raise InvalidArgumentError(f"Input must be non-negative, got {numbers.min()}")
