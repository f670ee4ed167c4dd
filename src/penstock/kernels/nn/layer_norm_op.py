"""Rows with mean 0 and variance 1, perhaps with a scale and an offset, as one op.

In:   one array of float32, or two to be added up first; the axis; and what the op says may follow.
Out:  an array of their shape.
Not:  no gradient; no running statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import remembering
from penstock.kernels.api.part import kernel_of_part
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.c.moments import normalized
from penstock.kernels.math.reduction_ops import axes_in

#: What may come after the normalisation.
_FOLLOWING: Final = frozenset({(), ("Mul",), ("Add",), ("Mul", "Add")})
#: From what is normalised, the axis, a scale and an offset.
_Normalize: TypeAlias = Callable[[Value, Value, "Value | None", "Value | None"], Value]


@kernel("_LayerNorm", types={"T": {dtypes.float32}})
def make_layer_norm(attrs: Attrs) -> Kernel:
    """Rows with mean 0 and variance 1, times a scale and plus an offset."""
    following = tuple(name.decode() for name in attrs.list("fused_ops"))
    if following not in _FOLLOWING or attrs.int("N") > 2:
        raise ValueError(f"cannot normalise {attrs.int('N')} terms, then {', '.join(following)}")
    has_two, has_scale, has_offset = attrs.int("N") == 2, "Mul" in following, "Add" in following
    add, by_steps = kernel_of_part(attrs, "AddV2"), _make_by_steps(attrs)
    by_rows = _make_by_rows(attrs)

    def layer_norm(*inputs: Value) -> Value:
        rest = iter(inputs)
        x, other, axes = next(rest), next(rest) if has_two else None, next(rest)
        scale, offset = next(rest) if has_scale else None, next(rest) if has_offset else None
        found = by_rows(x, other, axes, scale, offset)
        if found is not None:
            return found
        return by_steps(x if other is None else add(x, other), axes, scale, offset)

    return layer_norm


def _make_by_rows(attrs: Attrs) -> Callable[..., Array | None]:
    """In C; None if that is for the single kernels to do, or to complain about."""
    if not attrs.accelerate:
        return lambda *_: None
    axes_of = remembering(lambda axes: axes_in(axes, -1))
    epsilon, is_centered = attrs.float("epsilon"), attrs.bool("is_centered")

    def by_rows(
        x: Value, other: Value | None, axes: Value, scale: Value | None, offset: Value | None
    ) -> Array | None:
        if axes_of(axes) not in ((-1,), (x.ndim - 1,)):
            return None
        return normalized(x, other, scale, offset, epsilon, is_centered=is_centered)

    return by_rows


def _make_by_steps(attrs: Attrs) -> _Normalize:
    """One kernel after the other."""
    moments, rsqrt, negative = (kernel_of_part(attrs, op) for op in ("_Moments", "Rsqrt", "Neg"))
    add, subtract, multiply = (kernel_of_part(attrs, op) for op in ("AddV2", "Sub", "Mul"))
    epsilon, is_centered = np.float32(attrs.float("epsilon")), attrs.bool("is_centered")

    def by_steps(x: Value, axes: Value, scale: Value | None, offset: Value | None) -> Value:
        mean, variance = moments(x, axes)
        factor = rsqrt(add(variance, epsilon))
        if is_centered:
            result = multiply(subtract(x, mean), factor)
            result = result if scale is None else multiply(result, scale)
            return result if offset is None else add(result, offset)
        factor = factor if scale is None else multiply(factor, scale)
        term = multiply(negative(mean), factor)
        return add(multiply(x, factor), term if offset is None else add(term, offset))

    return by_steps
