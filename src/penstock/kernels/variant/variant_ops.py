"""Zeros and sums of variants.

In:   variants of rank 0.
Out:  one that its objects' class made.
Not:  knows no class of objects.
"""

from __future__ import annotations

import functools

from penstock.core import dtypes
from penstock.core.values import Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.variants import Variant, add_variants, variant_in


@kernel("ZerosLike", types={"T": {dtypes.variant}})
def make_variant_zeros_like(_: Attrs) -> Kernel:
    """Zeros of the same structure."""

    def zeros_like(x: Value) -> Variant:
        if shape_of(x):
            raise InvalidArgumentError(
                "ZerosLike non-scalar Tensor with dtype=DT_VARIANT is not supported."
            )
        return _object(x).zeros_like()

    return zeros_like


@kernel("AddN", types={"T": {dtypes.variant}})
def make_variant_add_n(_: Attrs) -> Kernel:
    """The sum of all inputs, first to last."""

    def add_n(*inputs: Value) -> Value:
        for number, value in enumerate(inputs):
            if shape_of(value):
                raise InvalidArgumentError(
                    "AddN of non-scalar Tensor with dtype=DT_VARIANT is not supported; "
                    f"inputs[{number}] has shape: {shape_text(shape_of(value))}."
                )
        if len(inputs) == 1:
            return as_value(inputs[0])
        return functools.reduce(add_variants, map(_object, inputs))

    return add_n


def _object(value: Value) -> Variant:
    return variant_in(value, Variant, "Input is not a variant that knows zeros and sums")
