"""Quantised tensors in another shape, with their range.

In:   a quantised tensor, a shape, the range that its integers stand for.
Out:  the tensor in the shape, and the range.
Not:  changes no integers.
"""

from __future__ import annotations

import numpy as np

from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.array.shape_ops import make_reshape


@kernel("QuantizedReshape", cost=Cost.CHEAP)
def make_quantized_reshape(attrs: Attrs) -> Kernel:
    """The tensor in another shape."""
    reshape = make_reshape(attrs)

    def quantized_reshape(
        tensor: Value, shape: Value, low: Value, high: Value
    ) -> tuple[Value, Value, Value]:
        return reshape(tensor, shape), np.float32(low), np.float32(high)

    return quantized_reshape
