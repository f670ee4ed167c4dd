"""Sums of whole tensors.

In:   tensors of one shape and type.
Out:  their sum, or half the sum of one tensor's squares.
Not:  no sums along an axis.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.core.values import Value, shape_of
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.precision import formula
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.types import FLOATS, NUMBERS


@kernel("AddN", "AccumulateNV2", types={"T": NUMBERS})
def make_add_n(attrs: Attrs) -> Kernel:
    """The sum of all inputs, first to last."""
    op = attrs.op.name

    def add_n(first: Value, *others: Value) -> Value:
        for number, other in enumerate(others, 1):
            if other.shape != first.shape:
                raise ValueError(
                    f"Inputs to operation {op} must have the same size and shape.  Input 0: "
                    f"{shape_text(shape_of(first))} != input {number}: "
                    f"{shape_text(shape_of(other))}"
                )
        return functools.reduce(operator.add, others, first)

    return add_n


@kernel("L2Loss", types={"T": FLOATS})
def make_l2_loss(attrs: Attrs) -> Kernel:
    """Half the sum of the squares."""
    return formula(_l2_loss, attrs.dtype("T"))


def _l2_loss(kind: Callable[..., Any]) -> Kernel:
    half = kind(0.5)

    def l2_loss(t: Value) -> Value:
        flat = t.ravel()
        return half * np.dot(flat, flat)

    return l2_loss
