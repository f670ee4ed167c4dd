"""Tensors of zeros or ones, shaped like another.

In:   a tensor, of which only shape and type matter.
Out:  a new tensor of the same shape and type.
Not:  no zeros of variant tensors, which know their own.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS

_ELEMENTS: Final = NUMBERS | {dtypes.bool_}


@kernel("ZerosLike", types={"T": _ELEMENTS})
def make_zeros_like(attrs: Attrs) -> Kernel:
    """Zeros."""
    numpy = attrs.dtype("T").numpy
    zero: Any = numpy.type(0)
    return lambda x: np.zeros(x.shape, numpy) if x.ndim else zero


@kernel("ZerosLike", types={"T": {dtypes.string}})
def make_empty_strings_like(_: Attrs) -> Kernel:
    """Empty strings."""
    return lambda x: np.full(x.shape, b"", object) if isinstance(x, np.ndarray) else b""


@kernel("OnesLike", types={"T": _ELEMENTS})
def make_ones_like(attrs: Attrs) -> Kernel:
    """Ones."""
    numpy = attrs.dtype("T").numpy
    one: Any = numpy.type(1)

    def ones_like(x: Value) -> Value:
        if not x.ndim:
            return one
        ones = np.empty(x.shape, numpy)
        ones.fill(one)
        return ones

    return ones_like
