"""A bias for each channel.

In:   values whose channels are the last dimension, or, as "NCHW", the second.
Out:  the values with their channel's bias added, or the gradient for the biases.
Not:  a bias is never broadcast: there is one for each channel.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.c.channels import column_sums
from penstock.kernels.narrow.precision import NARROW, many_in_float32
from penstock.kernels.values.arrays import shape_text

#: From so many values on the library in C adds up; and, of so few channels, more than one bias is
#: added side by side: up to so many, a power of two, as the number of places is likely to be a
#: multiple of one.
_MANY: Final = 1 << 15
_FEW: Final = 32
_TOGETHER: Final = 64


@kernel("BiasAdd", "BiasAddV1", types={"T": NUMBERS})
def make_bias_add(attrs: Attrs) -> Kernel:
    """Add to each value the bias of its channel."""
    dtype = attrs.dtype("T")
    if "data_format" in attrs.values and attrs.str("data_format") == "NCHW":
        return many_in_float32(_bias_add_second, dtype)

    def bias_add(values: Array, bias: Array) -> Array:
        if values.ndim < 2 or bias.shape != values.shape[-1:]:
            raise _mismatch(values, bias, "last")
        return _added(values, bias)

    return many_in_float32(bias_add, dtype)


def _added(values: Array, bias: Array) -> Array:
    """``values + bias``; of few channels as if there were more, which numpy adds side by side."""
    if values.size < _MANY or not 1 < bias.size <= _FEW or not values.flags.c_contiguous:
        return np.asarray(values + bias)
    together = math.gcd(values.size // bias.size, _TOGETHER)
    wide = values.reshape(-1, together * bias.size)
    added: Array = wide + np.tile(bias, together)
    return added.reshape(values.shape)


def _bias_add_second(values: Array, bias: Array) -> Array:
    if values.ndim < 2 or bias.shape != values.shape[1:2]:
        raise _mismatch(values, bias, "second")
    return values + bias.reshape(-1, *(1,) * (values.ndim - 2))


def _mismatch(values: Value, bias: Value, place: str) -> ValueError:
    shapes = f"{shape_text(np.shape(bias))} vs. {shape_text(np.shape(values))}"
    if np.ndim(values) < 2:
        return ValueError(f"Input tensor must be at least 2D: {shape_text(np.shape(values))}")
    if np.ndim(bias) != 1:
        return ValueError(f"Biases must be 1D: {shape_text(np.shape(bias))}")
    return ValueError(
        f"Must provide as many biases as the {place} dimension of the input tensor: {shapes}"
    )


@kernel("BiasAddGrad", types={"T": NUMBERS})
def make_bias_add_grad(attrs: Attrs) -> Kernel:
    """The sum of each channel."""
    channel = 1 if attrs.str("data_format") == "NCHW" else -1
    narrow = attrs.dtype("T").numpy
    wide: Any = np.float32 if attrs.dtype("T") in NARROW else narrow
    asks_c = attrs.accelerate and channel < 0

    def bias_add_grad(gradients: Array) -> Array:
        if gradients.ndim < 2:
            raise ValueError(f"Input tensor must be at least 2D: {shape_text(gradients.shape)}")
        if asks_c and gradients.size >= _MANY:
            made = column_sums(gradients.reshape(-1, gradients.shape[-1]))
            if made is not None:
                return made
        others = tuple(axis for axis in range(gradients.ndim) if axis != channel % gradients.ndim)
        sums: Array = gradients.sum(others, dtype=wide)
        return sums.astype(narrow, copy=False)

    return bias_add_grad
