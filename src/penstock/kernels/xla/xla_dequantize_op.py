"""The op XlaDequantize: bytes that are packed into words, as numbers.

In:   words of 32 bits, whose highest byte comes first.
Out:  four times as many numbers, in bfloat16.
Not:  no other way of quantising (quantize_ops).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import as_array

_ROUNDED = ml_dtypes.bfloat16


@kernel("XlaDequantize")
def make_xla_dequantize(attrs: Attrs) -> Kernel:
    """Each byte as a number of a range, computed in bfloat16; dimensions may be turned round."""
    mode, is_turned = attrs.str("mode"), attrs.bool("transpose_output")
    if mode != "MIN_COMBINED":
        raise InvalidArgumentError("Only MIN_COMBINED mode is supported in xla::Dequantize Op.")
    low, high = _ROUNDED(attrs.float("min_range")), _ROUNDED(attrs.float("max_range"))
    with np.errstate(all="ignore"):
        step = (high - low) / _ROUNDED(255)
        numbers = np.arange(256).astype(_ROUNDED) * step + low
    numbers = numbers.astype(dtypes.bfloat16.numpy, copy=False)

    def dequantize(words: Value) -> Value:
        array = as_array(words)
        if not array.ndim:
            raise InvalidArgumentError("input must have at least one dimension, not shape []")
        packed = np.ascontiguousarray(array).astype(">u4")
        found = numbers[packed.view(np.uint8).reshape(*array.shape[:-1], 4 * array.shape[-1])]
        return found.transpose() if is_turned else found

    return dequantize
