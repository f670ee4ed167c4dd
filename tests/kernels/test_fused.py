"""Fused convolutions and products: like one op after the other, by kernels in C or by numpy."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.kernels.api.registry import get_kernel
from support.ops import node_of, run_op

ACTIVATIONS = [None, "Relu", "Relu6", "LeakyRelu", "Elu"]
SAME: dict[str, Any] = {"strides": (1, 2, 2, 1), "padding": "SAME"}


def f32(*shape: int) -> Any:
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32) * np.float32(2)


def fused_facts(activation: str | None) -> dict[str, Any]:
    names = ("BiasAdd", activation) if activation else ("BiasAdd",)
    return {"fused_ops": [*names], "leakyrelu_alpha": 0.3}


def by_steps(op: str, x: Any, y: Any, bias: Any, activation: str | None, **facts: Any) -> Any:
    result = run_op("BiasAdd", run_op(op, x, y, **facts), bias)
    if activation is None:
        return result
    alpha = {"alpha": 0.3} if activation == "LeakyRelu" else {}
    return run_op(activation, result, **alpha)


def fused(op: str, *inputs: Any, accelerate: bool = False, **facts: Any) -> Any:
    attrs, flat = node_of(op, inputs, facts)
    attrs = dataclasses.replace(attrs, accelerate=accelerate)
    with np.errstate(all="ignore"):  # as in a step
        return get_kernel(op, "CPU", attrs.values).make(attrs)(*flat)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("accelerate", [False, True])
def test_fused_convolutions_are_their_steps(*, accelerate: bool, activation: str | None) -> None:
    """Dense ones, and those by channel."""
    images, filters, bias = f32(2, 9, 8, 3), f32(3, 3, 3, 4), f32(4)
    facts = SAME | fused_facts(activation) | {"accelerate": accelerate}
    found = fused("_FusedConv2D", images, filters, [bias], [], **facts, TArgs=(dtypes.float32,))
    expected = by_steps("Conv2D", images, filters, bias, activation, **SAME)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    filters = f32(3, 3, 3, 2)
    bias = f32(6)
    found = fused("_FusedDepthwiseConv2dNative", images, filters, [bias], **facts)
    expected = by_steps("DepthwiseConv2dNative", images, filters, bias, activation, **SAME)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW"])
def test_fused_convolutions_over_three_dimensions(
    *, layout: str, accelerate: bool, activation: str | None
) -> None:
    """With a bias, without one, and with one that does not fit."""
    where = {"strides": (1, 1, 1, 1, 1), "padding": "SAME", "data_format": layout}
    images, filters, bias = f32(2, 5, 6, 7, 3), f32(3, 2, 3, 3, 20), f32(20)
    if layout == "NCDHW":
        images = np.ascontiguousarray(np.moveaxis(images, -1, 1))
    for given in ([bias], [])[: 2 if activation else 1]:
        names = [*(["BiasAdd"] if given else []), *([activation] if activation else [])]
        facts = where | {"fused_ops": names, "leakyrelu_alpha": 0.3, "accelerate": accelerate}
        found = fused("_FusedConv3D", images, filters, given, **facts)
        expected = run_op("Conv3D", images, filters, **where)
        if given:
            expected = run_op("BiasAdd", expected, bias, data_format=layout.replace("D", ""))
        if activation:
            alpha = {"alpha": 0.3} if activation == "LeakyRelu" else {}
            expected = run_op(activation, expected, **alpha)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="bias"):
        fused("_FusedConv3D", images, filters, [bias[1:]], **where, fused_ops=["BiasAdd"])


@pytest.mark.parametrize("activation", ACTIVATIONS[:3])
@pytest.mark.parametrize("accelerate", [False, True])
def test_fused_products_are_their_steps(*, accelerate: bool, activation: str | None) -> None:
    """Of a matrix with a transposed one."""
    a, b, bias = f32(20, 30), f32(25, 30), f32(25)
    facts = fused_facts(activation) | {"accelerate": accelerate}
    found = fused("_FusedMatMul", a, b, [bias], transpose_b=True, **facts)
    expected = by_steps("MatMul", a, b, bias, activation, transpose_b=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_what_cannot_be_fused_is_refused() -> None:
    """Normalisation, say."""
    with pytest.raises(ValueError, match="cannot fuse FusedBatchNorm"):
        fused("_FusedMatMul", f32(2, 3), f32(3, 4), [f32(4)], fused_ops=["FusedBatchNorm"])
