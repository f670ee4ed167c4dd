"""Where values would be inserted into sorted rows.

In:   rows of sorted numbers, and rows of values, one for each of them.
Out:  positions, before (LowerBound) or behind (UpperBound) equal numbers.
Not:  does not check that rows are sorted; of unsorted ones it answers as the same binary
      search by hand would.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.types import REALS

#: By op: whether the place is behind an element that is compared with a value.
_IS_BEHIND: Final[dict[str, Kernel]] = {
    "LowerBound": lambda element, value: element < value,
    "UpperBound": lambda element, value: ~(value < element),
}


@kernel(*_IS_BEHIND, types={"T": REALS})
def make_bound(attrs: Attrs) -> Kernel:
    """The first position whose element is not less (LowerBound) or greater (UpperBound)."""
    is_behind, out_type = _IS_BEHIND[attrs.op.name], attrs.dtype("out_type").numpy

    def compute(rows: Value, values: Value) -> Array:
        _check(rows, values)
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
        return first.astype(out_type)

    return compute


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
