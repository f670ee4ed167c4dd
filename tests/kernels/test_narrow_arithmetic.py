"""Arithmetic of many numbers of 16 bits is that of each of them, rounded once."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from support.ops import run_op

TYPES = [np.float16, ml_dtypes.bfloat16]
#: What numpy makes of two numbers; and of one, where the other is a bias or a gradient.
OF_TWO = {
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "RealDiv": np.divide,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
}


def any_numbers(kind: Any, seed: int) -> Any:
    """Of any bits: tiny ones, infinite ones, and no numbers among them."""
    bits = np.random.default_rng(seed).integers(0, 1 << 16, (160, 300), np.uint16)
    return bits.view(kind)


def check(found: Any, wanted: Any) -> None:
    """The same bits, but of what is no number."""
    assert found.dtype == wanted.dtype
    bits = [np.where(np.isnan(x), np.uint16(0), x.view(np.uint16)) for x in (found, wanted)]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(*bits)


def check_values(found: Any, wanted: Any) -> None:
    """The same numbers, whatever the sign of zero."""
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


@np.errstate(all="ignore")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("op", OF_TWO)
def test_two_numbers(op: str, kind: Any) -> None:
    """In both orders of sizes; the sign of zero counts, but of the larger of two zeros."""
    x, y = any_numbers(kind, 1), any_numbers(kind, 2)
    for one, other in ((x, y), (x, y[0]), (x[3], y), (x, y[0, 0])):
        found, wanted = run_op(op, one, other), OF_TWO[op](one, other)
        if op in {"Maximum", "Minimum"}:
            check_values(found, wanted)
        else:
            check(found, wanted)


@np.errstate(all="ignore")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_biases(kind: Any, layout: str) -> None:
    """Of each channel."""
    x, bias = any_numbers(kind, 3), any_numbers(kind, 4)[0]
    check(run_op("BiasAdd", x, bias, data_format=layout), np.add(x, bias))


@np.errstate(all="ignore")
@pytest.mark.parametrize("kind", TYPES)
def test_rectifiers(kind: Any) -> None:
    """And their gradients."""
    x, grads, zero, six = any_numbers(kind, 5), any_numbers(kind, 6), kind(0), kind(6)
    check_values(run_op("Relu", x), np.maximum(x, zero))
    check_values(run_op("Relu6", x), np.minimum(np.maximum(x, zero), six))
    check(run_op("ReluGrad", grads, x), np.multiply(grads, (x > zero).astype(kind)))
