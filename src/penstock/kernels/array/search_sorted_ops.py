"""Where values would be inserted into sorted rows.

In:   rows of sorted numbers, and rows of values, one for each of them.
Out:  positions, before (LowerBound) or behind (UpperBound) equal numbers.
Not:  does not check that rows are sorted; of unsorted ones it answers as the same binary
      search by hand would.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS

#: By op: whether the place is behind an element that is compared with a value.
_IS_BEHIND: Final[dict[str, Kernel]] = {
    "LowerBound": lambda element, value: element < value,
    "UpperBound": lambda element, value: ~(value < element),
}


#: So many values are looked for at once: what they need is in the cache.
_PORTION: Final = 1 << 14


@kernel(*_IS_BEHIND, types={"T": REALS})
def make_bound(attrs: Attrs) -> Kernel:
    """The first position whose element is not less (LowerBound) or greater (UpperBound)."""
    is_behind, out_type = _IS_BEHIND[attrs.op.name], attrs.dtype("out_type").numpy

    def compute(rows: Value, values: Value) -> Array:
        _check(rows, values)
        is_sorted = (rows[:, 1:] >= rows[:, :-1]).all()
        find = _find_in_sorted if is_sorted and values.size else _find_by_hand
        return find(rows, values, is_behind).astype(out_type)

    return compute


def _find_in_sorted(rows: Array, values: Array, is_behind: Kernel) -> Array:
    """Steps of falling powers of two, over rows as long as all of these together."""
    count, length = rows.shape
    bits = length.bit_length()
    width = (1 << bits) - 1
    is_float = dtypes.of_numpy(rows.dtype).is_floating
    largest = np.inf if is_float else np.iinfo(rows.dtype).max
    longer = np.full((count, width), largest, rows.dtype)
    longer[:, :length] = rows
    elements = longer.reshape(-1)
    starts = np.repeat(np.arange(count) * width, values.shape[1])
    found, flat = starts.copy(), values.reshape(-1)
    for begin in range(0, flat.size, _PORTION):
        places, some = found[begin : begin + _PORTION], flat[begin : begin + _PORTION]
        for bit in range(bits - 1, -1, -1):
            # It is in range; only "raise" would make sure once more.
            middle = elements[(1 << bit) - 1 :].take(places, mode="wrap")
            step = is_behind(middle, some).view(np.int8).astype(np.intp)
            step <<= bit
            places += step
    found -= starts
    np.minimum(found, length, out=found)
    return found.reshape(values.shape)


def _find_by_hand(rows: Array, values: Array, is_behind: Kernel) -> Array:
    """A binary search in rows that may not be sorted."""
    first = np.zeros(values.shape, np.intp)
    left = np.full(values.shape, rows.shape[1])
    row = np.arange(len(rows))[:, None]
    while left.any():
        half = left >> 1
        middle = first + half
        # Where nothing is left, the middle may be behind the row.
        element = rows[row, np.minimum(middle, rows.shape[1] - 1)]
        behind = is_behind(element, values) & (left > 0)
        first = np.where(behind, middle + 1, first)
        left = np.where(behind, left - half - 1, half)
    return first


def _check(rows: Value, values: Value) -> None:
    for name, value in (("sorted_inputs", rows), ("values", values)):
        if value.ndim != 2:
            raise InvalidArgumentError(
                f"Shape must be rank 2 but is rank {value.ndim} for `{name}` argument"
            )
    if len(rows) != len(values):
        raise InvalidArgumentError(
            "Leading dim_size of both tensors must match, not "
            f"{len(rows)} for sorted_inputs and {len(values)} for values"
        )
