"""The nearest rows that never rise.

In:   an array whose last axis is a row.
Out:  of the same shape: for each row the falling one (equal neighbours allowed) with the
      least squared distance, and which run of equal numbers each element belongs to.
Not:  no regression of any other kind.

Runs are pooled as soon as one is larger than the one before it ("pool adjacent
violators"): Best and Chakravarti, Mathematical Programming 47 (1990).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value, as_value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS

#: The output type that each element type has.
_OUTPUTS: Final[dict[DType, DType]] = {
    **{dtype: dtype for dtype in FLOATS},
    dtypes.int8: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.int32: dtypes.float64,
    dtypes.int64: dtypes.float64,
}


def make_isotonic_regression(attrs: Attrs) -> Kernel:
    """The means of pooled runs, and the number of each element's run."""
    dtype = attrs.dtype("output_dtype").numpy

    def compute(x: Value) -> tuple[Value, Value]:
        size = x.shape[-1] if x.ndim else 1
        smooth = np.empty((x.size // max(size, 1), size), dtype)
        runs = np.empty(smooth.shape, np.int32)
        for row, numbers in enumerate(x.reshape(smooth.shape).tolist()):
            sums, sizes = _pooled(numbers)
            counts = np.array(sizes, np.intp)
            smooth[row] = np.repeat(np.array(sums, np.float64) / counts, counts)
            runs[row] = np.repeat(np.arange(len(sizes)), counts)
        return as_value(smooth.reshape(x.shape)), as_value(runs.reshape(x.shape))

    return compute


def _pooled(row: list[float]) -> tuple[list[float], list[int]]:
    """The sum and the length of each run."""
    sums: list[float] = []
    sizes: list[int] = []
    for number in row:
        total, size = number, 1
        while sums and total * sizes[-1] > sums[-1] * size:
            total += sums.pop()
            size += sizes.pop()
        sums.append(total)
        sizes.append(size)
    return sums, sizes


for _input, _output in _OUTPUTS.items():
    kernel("IsotonicRegression", types={"T": {_input}, "output_dtype": {_output}})(
        make_isotonic_regression
    )
