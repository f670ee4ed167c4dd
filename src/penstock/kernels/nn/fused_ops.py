"""Convolutions and products together with bias and activation, in one pass over the result.

In:   what the convolution or the product takes, the bias, and perhaps another result to be added; a
      convolution may do without a bias.
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
from penstock.kernels.api.constants import remembering
from penstock.kernels.api.part import kernel_of_part
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.c.convolution import BY_CHANNEL, NO_LIMITS, Convolver, Limits
from penstock.kernels.c.product import Multiplier
from penstock.kernels.nn.conv_ops import convolve_volumes, window_maker
from penstock.kernels.values.windows import centred

#: What a fused node does first.
_FIRST: Final = {
    "_FusedConv2D": "Conv2D",
    "_FusedConv3D": "Conv3D",
    "_FusedDepthwiseConv2dNative": "DepthwiseConv2dNative",
    "_FusedMatMul": "MatMul",
}
#: Activations that are limits of a result.
_LIMITS: Final[dict[str, Limits]] = {"Relu": (0.0, math.inf), "Relu6": (0.0, 6.0)}
#: Steps that have an input of their own.
_READ_MORE: Final = frozenset({"BiasAdd", "Add"})


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
    activations = [step for step in _steps(attrs) if step not in _READ_MORE]
    if not attrs.accelerate:
        return None
    if not activations or activations[0] in _LIMITS:
        return _within(attrs, _LIMITS[activations[0]] if activations else NO_LIMITS)
    compute, activate = _within(attrs, NO_LIMITS), _maker_of_parts(attrs)(activations[0])
    if compute is None:
        return None

    def activated(*args: Value) -> Array | None:
        result = compute(*args)
        return activate(result) if result is not None else None

    return activated


def _within(attrs: Attrs, limits: Limits) -> Callable[..., Array | None] | None:
    """The library's way for all but an activation that is no limit; None if it has none."""
    if attrs.op.name == "_FusedMatMul":
        is_turned = attrs.bool("transpose_b")
        return None if attrs.bool("transpose_a") else Multiplier(limits, is_turned=is_turned)
    if attrs.op.name == "_FusedConv3D":
        return _over_three_dimensions(attrs, limits)
    if attrs.str("data_format") != "NHWC":
        return None
    if attrs.op.name == "_FusedConv2D":
        convolve = Convolver(window_maker(attrs), limits)
        if "BiasAdd" in _steps(attrs):
            return convolve
        return lambda images, filters, added=None: convolve(images, filters, None, added)
    by_channel = Convolver(window_maker(attrs), limits, rank=BY_CHANNEL)
    of_channels = remembering(_of_channels)

    def slide(images: Value, filters: Value, bias: Array | None = None) -> Array | None:
        weights = of_channels(filters)
        return None if weights is None else by_channel(images, weights, bias)

    return slide


def _of_channels(filters: Value) -> Array | None:
    """The weights of each channel; None if there are several filters for one."""
    has_one_each = np.ndim(filters) == 4 and filters.shape[3] == 1
    return filters[..., 0] if has_one_each else None


def _over_three_dimensions(attrs: Attrs, limits: Limits) -> Callable[..., Array | None] | None:
    if attrs.str("data_format") != "NDHWC":
        return None
    make_windows = window_maker(attrs)

    def convolve(images: Value, filters: Value, bias: Array | None = None) -> Array | None:
        if np.ndim(images) != 5 or np.ndim(filters) != 5 or not math.prod(filters.shape):
            return None
        windows = make_windows(filters.shape[:3])
        return convolve_volumes(centred(images, windows), filters, windows, bias, limits)

    return convolve


def _make_by_steps(attrs: Attrs) -> Kernel:
    """One kernel after the other."""
    ops = _FIRST[attrs.op.name], *_steps(attrs)
    first, *others = map(_maker_of_parts(attrs), ops)
    reads_more = [op in _READ_MORE for op in ops[1:]]

    def fused(x: Value, y: Value, *args: Value) -> Value:
        result, rest = first(x, y), iter(args)
        for step, takes_arg in zip(others, reads_more, strict=True):
            result = step(result, next(rest)) if takes_arg else step(result)
        return result

    return fused


def _maker_of_parts(attrs: Attrs) -> Callable[[str], Kernel]:
    """What makes the kernels of a fused node's parts, by their ops."""

    def make(op: str) -> Kernel:
        if op == "LeakyRelu":
            return kernel_of_part(attrs, op, alpha=attrs.float("leakyrelu_alpha"))
        if op != "BiasAdd":
            return kernel_of_part(attrs, op)
        # It knows two layouts, whatever the number of dimensions.
        is_last = not attrs.has("data_format") or attrs.str("data_format").endswith("C")
        return kernel_of_part(attrs, op, data_format=b"NHWC" if is_last else b"NCHW")

    return make


def _steps(attrs: Attrs) -> list[str]:
    """The ops that come after the first: a bias, perhaps a sum, perhaps an activation."""
    steps = [name.decode() for name in attrs.list("fused_ops")]
    if not _can_follow(attrs.op.name, steps):
        raise ValueError(f"cannot fuse {', '.join(steps)} with {attrs.op.name}")
    return steps


def _can_follow(op: str, steps: list[str]) -> bool:
    match steps:
        case ["BiasAdd"]:
            return True
        case ["BiasAdd", last] | ["BiasAdd", "Add", last]:
            return last not in _READ_MORE
        case [last]:
            return op != "_FusedMatMul" and last not in _READ_MORE
        case ["Add", last]:
            return op == "_FusedConv2D" and last not in _READ_MORE
    return False
