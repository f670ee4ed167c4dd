"""Convolutions and products together with bias and activation, in one pass over the result.

In:   what the convolution or the product takes, the bias, and perhaps another result to be added.
Out:  what the separate ops would give; but with PyTorch NaN may become what the activation has for
      zero.
Not:  no normalisation, no other additions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock.catalogue.registry import get_op
from penstock.core.values import Array, Value
from penstock.kernels.accelerated import library
from penstock.kernels.accelerated.choice import Offer, accelerated
from penstock.kernels.accelerated.convolution import Convolution, has_many_products
from penstock.kernels.accelerated.library import Torch, tensor
from penstock.kernels.accelerated.products import product_of_matrices
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, get_kernel
from penstock.kernels.c.convolution import NO_LIMITS, Convolver
from penstock.kernels.c.product import Multiplier
from penstock.kernels.nn.conv_ops import window_maker
from penstock.kernels.parallel.blas import ALONE

#: What a fused node does first.
_FIRST: Final = {
    "_FusedConv2D": "Conv2D",
    "_FusedDepthwiseConv2dNative": "DepthwiseConv2dNative",
    "_FusedMatMul": "MatMul",
}
#: Activations as PyTorch calls them, with their numbers.
_ACTIVATIONS: Final[dict[str, tuple[str, Sequence[float]]]] = {
    "Relu": ("relu", ()),
    "Relu6": ("hardtanh", (0.0, 6.0)),
}


def make_plain(attrs: Attrs) -> Kernel:
    """What computes without PyTorch: the library in C, or one numpy kernel after the other."""
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
    """One numpy kernel after the other."""
    first, with_bias, *others = (
        _kernel_of(attrs, op) for op in (_FIRST[attrs.op.name], *_steps(attrs))
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


def _kernel_of(attrs: Attrs, op_name: str) -> Kernel:
    """The kernel of an op that does a part of the work."""
    op = get_op(op_name)
    values = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    values |= {name: value for name, value in attrs.values.items() if name in op.attrs}
    if op_name == "LeakyRelu":
        values["alpha"] = attrs.float("leakyrelu_alpha")
    # The library in C may do it; PyTorch has ways of its own for nodes that are fused, or none.
    accelerate = attrs.accelerate and not library.is_installed()
    facts = dataclasses.replace(attrs, op=op, values=values, accelerate=accelerate)
    return get_kernel(op_name, "CPU", values).make(facts)


@accelerated("_FusedConv2D", "_FusedDepthwiseConv2dNative", otherwise=make_plain)
def offer_fused_convolution(attrs: Attrs) -> Offer | None:
    """A convolution, plus a number for each output channel, in the activation's range."""
    layout, steps = attrs.str("data_format"), _steps(attrs)
    filters = attrs.str("filter_format") if "filter_format" in attrs.values else "HWIO"
    if layout not in ("NHWC", "NCHW") or filters != "HWIO":
        return None
    how = _activation(attrs, steps)
    if how is None:
        return None
    return Offer(has_many_products(attrs, layout), lambda torch: Convolution(torch, attrs, *how))


def _activation(attrs: Attrs, steps: Sequence[str]) -> tuple[str, Sequence[float]] | None:
    if len(steps) == 1:
        return "none", ()
    if "Add" in steps:
        return None
    if steps[1] == "LeakyRelu":
        return "leaky_relu", (attrs.float("leakyrelu_alpha"),)
    return _ACTIVATIONS.get(steps[1])


@accelerated("_FusedMatMul", otherwise=make_plain)
def offer_fused_matmul(attrs: Attrs) -> Offer | None:
    """A product of matrices, plus a number for each column, in the activation's range."""
    is_a_turned, is_b_turned = attrs.bool("transpose_a"), attrs.bool("transpose_b")
    columns, steps = 0 if is_b_turned else 1, _steps(attrs)
    if steps[1:] not in ([], ["Relu"], ["Relu6"]):
        return None
    limits = {"Relu": (0.0, None), "Relu6": (0.0, 6.0)}.get(steps[-1])

    def pays(a: Value, b: Value, _bias: Value) -> bool:
        return bool(a.ndim == 2 == b.ndim and a.size * b.shape[columns] > ALONE)

    def build(torch: Torch) -> Kernel:
        multiply = product_of_matrices(torch)

        def fused(a: Array, b: Array, bias: Array) -> Any:
            x, y = tensor(torch, a), tensor(torch, b)
            result = multiply(x.t() if is_a_turned else x, y.t() if is_b_turned else y)
            if bias.shape != result.shape[1:]:
                return NotImplemented
            np.add(result, bias, out=result)
            if limits is not None:
                torch.clamp_(tensor(torch, result), *limits)
            return result

        return fused

    return Offer(pays, build)
