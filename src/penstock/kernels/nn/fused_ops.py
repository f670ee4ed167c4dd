"""Convolutions and products together with bias and activation, in one pass over the result.

In:   what the convolution or the product takes, the bias, and perhaps another result to be added.
Out:  what the separate ops would give.
Not:  no normalisation, no other additions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.part import kernel_of_part
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.c.convolution import NO_LIMITS, Convolver
from penstock.kernels.c.product import Multiplier
from penstock.kernels.nn.conv_ops import window_maker

#: What a fused node does first.
_FIRST: Final = {
    "_FusedConv2D": "Conv2D",
    "_FusedDepthwiseConv2dNative": "DepthwiseConv2dNative",
    "_FusedMatMul": "MatMul",
}


@kernel(*_FIRST, types={"T": {dtypes.float32}})
def make_fused(attrs: Attrs) -> Kernel:
    """By the library in C where it has a way, otherwise by one kernel after the other."""
    by_steps, with_c = _make_by_steps(attrs), _by_c(attrs)
    if with_c is None:
        return by_steps

    def fused(images: Value, filters: Value, *args: Value) -> Value:
        result = with_c(images, filters, *args)
        return by_steps(images, filters, *args) if result is None else result

    return fused


def _by_c(attrs: Attrs) -> Callable[..., Array | None] | None:
    """The library's way to compute a node; None if it has none."""
    activations = [step for step in _steps(attrs)[1:] if step != "Add"]
    limits = {(): NO_LIMITS, ("Relu",): (0.0, math.inf), ("Relu6",): (0.0, 6.0)}.get(
        tuple(activations)
    )
    if limits is None or not attrs.accelerate:
        return None
    if attrs.op.name == "_FusedMatMul":
        is_turned = attrs.bool("transpose_b")
        return None if attrs.bool("transpose_a") else Multiplier(limits, is_turned=is_turned)
    if attrs.str("data_format") != "NHWC":
        return None
    if attrs.op.name == "_FusedConv2D":
        return Convolver(window_maker(attrs), limits)
    by_channel = Convolver(window_maker(attrs), limits, is_by_channel=True)

    def slide(images: Value, filters: Value, bias: Value) -> Array | None:
        if np.ndim(filters) != 4 or filters.shape[3] != 1:
            return None
        return by_channel(images, filters[..., 0], bias)

    return slide


def _make_by_steps(attrs: Attrs) -> Kernel:
    """One kernel after the other."""
    ops = _FIRST[attrs.op.name], *_steps(attrs)
    slope = {"alpha": attrs.float("leakyrelu_alpha")} if "LeakyRelu" in ops else {}
    first, with_bias, *others = (
        kernel_of_part(attrs, op, **(slope if op == "LeakyRelu" else {})) for op in ops
    )
    has_sum = "Add" in _steps(attrs)

    def fused(x: Value, y: Value, bias: Value, *added: Value) -> Value:
        result = with_bias(first(x, y), bias)
        if has_sum:
            return others[1](others[0](result, *added))
        return others[0](result) if others else result

    return fused


def _steps(attrs: Attrs) -> list[str]:
    """The ops that come after the first: a bias, perhaps a sum, perhaps an activation."""
    steps = [name.decode() for name in attrs.list("fused_ops")]
    rest = steps[2:] if steps[1:2] == ["Add"] else steps[1:]
    if steps[:1] != ["BiasAdd"] or len(rest) > 1 or "Add" in rest or steps[1:] == ["Add"]:
        raise ValueError(f"cannot fuse {', '.join(steps)} with {attrs.op.name}")
    return steps
