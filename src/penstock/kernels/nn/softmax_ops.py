"""Softmax and its logarithm along the last axis.

In:   logits of rank 1 or more.
Out:  an array of the same shape; along the last axis it (or its exponential) sums to 1.
Not:  no loss (a family of its own).

The largest logit is subtracted first, so that nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.part import kernel_of_part
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.c.softmax import log_softmax as log_softmax_in_c
from penstock.kernels.c.softmax import softmax as softmax_in_c
from penstock.kernels.narrow.precision import NARROW, in_float32


def softmax(logits: Array) -> Array:
    """exp(x) / sum(exp(x)) along the last axis, of float32 or float64."""
    powers = _below_largest(logits)
    np.exp(powers, out=powers)
    powers /= np.add.reduce(powers, -1, keepdims=True)
    return powers


def log_softmax(logits: Array) -> Array:
    """The logarithm of the softmax, exact also where the softmax is 0."""
    logs = _below_largest(logits)
    logs -= np.log(np.add.reduce(np.exp(logs), -1, keepdims=True))
    return logs


def _below_largest(logits: Array) -> Array:
    """A new array: how far each logit is above the largest of its row (never, so <= 0)."""
    if logits.ndim == 0:
        raise InvalidArgumentError("logits must have >= 1 dimension, got []")
    if logits.size == 0:
        return logits.copy()
    largest: Array = np.maximum.reduce(logits, -1, keepdims=True)
    return logits - largest


#: By the name of the op: in numpy, and in C where that has a way.
_SOFTMAXES: Final[dict[str, tuple[Kernel, Callable[[Array], Array | None]]]] = {
    "Softmax": (softmax, softmax_in_c),
    "LogSoftmax": (log_softmax, log_softmax_in_c),
}


@kernel(*_SOFTMAXES, types={"T": FLOATS})
def make_softmax(attrs: Attrs) -> Kernel:
    """The softmax of each row, or its logarithm."""
    (plain, in_c), dtype = _SOFTMAXES[attrs.op.name], attrs.dtype("T")

    def either(logits: Array) -> Array:
        result = in_c(logits)
        return plain(logits) if result is None else result

    function: Kernel = either if attrs.accelerate else plain
    return in_float32(function, dtype) if dtype in NARROW else function


@kernel("_ScaledSoftmax", types={"T": {dtypes.float32}})
def make_scaled_softmax(attrs: Attrs) -> Kernel:
    """The softmax of each row times a number, which is greater than 0."""
    factor, scale = attrs.float("scale"), np.float32(attrs.float("scale"))
    multiply, plain = kernel_of_part(attrs, "Mul"), kernel_of_part(attrs, "Softmax")

    def scaled_softmax(logits: Value) -> Value:
        found = softmax_in_c(logits, factor) if attrs.accelerate else None
        return plain(multiply(logits, scale)) if found is None else found

    return scaled_softmax
