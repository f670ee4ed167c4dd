"""Sums of whole tensors.

In:   tensors of one shape and type.
Out:  their sum, or half the sum of one tensor's squares.
Not:  no sums along an axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS, NUMBERS
from penstock.kernels.c.functions import MOST_INPUTS, sum_of
from penstock.kernels.narrow.precision import NARROW, in_float32
from penstock.kernels.parallel.products import sum_of_squares
from penstock.kernels.values.arrays import shape_text


@kernel("AddN", "AccumulateNV2", types={"T": NUMBERS})
def make_add_n(attrs: Attrs) -> Kernel:
    """The sum of all inputs, first to last."""
    op, kind, count = attrs.op.name, attrs.dtype("T").numpy.type, attrs.int("N")
    in_c = sum_of(count) if _is_for_c(attrs) and 2 < count <= MOST_INPUTS else None

    def add_two(first: Value, second: Value) -> Value:
        if first.shape != second.shape:
            raise _unequal(op, first, 1, second)
        return first + second

    def add_n(first: Value, *others: Value) -> Value:
        if type(first) is kind and set(map(type, others)) == {kind}:
            return sum(others, first)
        shape = first.shape
        for number, other in enumerate(others, 1):
            if other.shape != shape:
                raise _unequal(op, first, number, other)
        return _total(first, others) if in_c is None else in_c.function(first, *others)

    return add_two if count == 2 else add_n


def _is_for_c(attrs: Attrs) -> bool:
    return attrs.accelerate and attrs.dtype("T") is dtypes.float32


def _total(first: Value, others: tuple[Value, ...]) -> Value:
    if not others:
        return first
    total = first + others[0]
    for other in others[1:]:
        total += other
    return total


def _unequal(op: str, first: Value, number: int, other: Value) -> ValueError:
    return ValueError(
        f"Inputs to operation {op} must have the same size and shape.  Input 0: "
        f"{shape_text(shape_of(first))} != input {number}: {shape_text(shape_of(other))}"
    )


@kernel("L2Loss", types={"T": FLOATS})
def make_l2_loss(attrs: Attrs) -> Kernel:
    """Half the sum of the squares."""
    dtype = attrs.dtype("T")
    if dtype in NARROW:
        return in_float32(_l2_loss(np.float32), dtype)
    return _l2_loss(dtype.numpy.type)


def _l2_loss(kind: Callable[..., Any]) -> Kernel:
    half = kind(0.5)

    def l2_loss(t: Value) -> Value:
        flat = t.ravel()
        return half * sum_of_squares(flat)

    return l2_loss
