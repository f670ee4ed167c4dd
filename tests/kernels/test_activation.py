"""Activation functions and gradients, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from support.ops import both, run_op

NAN, INF = np.nan, np.inf
FEATURES = np.array([NAN, INF, -INF, -1.5, 0.5, 7], np.float32)
GRADIENTS = np.array([1, NAN, INF, 3, 4, 8], np.float32)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Relu", [NAN, INF, 0, 0, 0.5, 7]),
        ("Relu6", [NAN, 6, 0, 0, 0.5, 6]),
        ("Elu", [NAN, INF, -1, -0.77686983, 0.5, 7]),
        ("Selu", [NAN, INF, -1.7580993, -1.3658143, 0.5253505, 7.354907]),
        ("LeakyRelu", [NAN, INF, -INF, -0.3, 0.5, 7]),
        ("Softplus", [NAN, INF, 0, 0.20141326, 0.9740769, 7.0009117]),
        ("Softsign", [NAN, NAN, NAN, -0.6, 0.33333334, 0.875]),
    ],
)
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_activations(op: str, expected: list[float], kind: Any) -> None:
    """NaN, infinities and both signs give what TensorFlow gives, in every floating type."""
    result = run_op(op, FEATURES.astype(kind))

    assert result.dtype == kind
    rtol = 1e-5 if np.dtype(kind).itemsize > 2 else 1e-2
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=rtol)
    assert type(run_op(op, kind(-1.5))) is kind


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("ReluGrad", [0, NAN, NAN, 0, 4, 8]),
        ("Relu6Grad", [0, NAN, NAN, 0, 4, 0]),
        ("LeakyReluGrad", [0.2, NAN, INF, 0.6, 4, 8]),
        ("EluGrad", [1, NAN, -INF, -1.5, 4, 8]),
        ("SeluGrad", [1.050701, NAN, -INF, 0.774298, 4.202804, 8.405608]),
        ("SoftplusGrad", [NAN, NAN, NAN, 0.54727656, 2.4898374, 7.992712]),
        ("SoftsignGrad", [NAN, NAN, NAN, 0.48, 1.7777778, 0.125]),
    ],
)
def test_gradients_by_features(op: str, expected: list[float]) -> None:
    """A gradient comes back only where the function has a slope."""
    np.testing.assert_allclose(run_op(op, GRADIENTS, FEATURES), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("SigmoidGrad", [-11.25, 1, -336]),
        ("TanhGrad", [-3.75, 3, -384]),
        ("SqrtGrad", [-1, 4, 0.5714286]),
        ("RsqrtGrad", [5.0625, -0.25, -1372]),
        ("ReciprocalGrad", [-6.75, -1, -392]),
        ("InvGrad", [-6.75, -1, -392]),
    ],
)
def test_gradients_by_outputs(op: str, expected: list[float]) -> None:
    """The derivative is written in terms of the function's value."""
    y, dy = np.float32([-1.5, 0.5, 7]), np.float32([3, 4, 8])

    np.testing.assert_allclose(run_op(op, y, dy), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("SigmoidGrad", -1 + 1j),
        ("TanhGrad", -1 + 2j),
        ("SqrtGrad", -0.25 - 0.25j),
        ("RsqrtGrad", -1 - 1j),
        ("ReciprocalGrad", -2j),
    ],
)
def test_complex_gradients(op: str, expected: complex) -> None:
    """Some gradients take the conjugate of the function's value, others do not."""
    result = run_op(op, np.complex64([1 + 1j]), np.complex64([-1]))

    np.testing.assert_allclose(result, [expected], atol=1e-6)


@pytest.mark.parametrize(("op", "y"), [("SqrtGrad", 0), ("RsqrtGrad", INF), ("InvGrad", INF)])
def test_no_gradient_comes_back_from_nothing(op: str, y: float) -> None:
    """Where the incoming gradient is zero, so is the outgoing one, even at a pole."""
    np.testing.assert_array_equal(run_op(op, np.float32([y]), np.float32([0])), [0])
    assert run_op(op, np.float32(y), np.float32(0)) == 0


@pytest.mark.parametrize("op", ["ReluGrad", "EluGrad", "SigmoidGrad", "LeakyReluGrad"])
def test_gradients_do_not_broadcast(op: str) -> None:
    """A scalar gradient for a vector is refused."""
    with pytest.raises(ValueError, match=r"must have the same size and shape.*\[2\] != input 1: "):
        run_op(op, np.float32([1, 2]), np.float32(1))


def test_rectified_integers() -> None:
    """Integers are rectified without a detour through floats."""
    np.testing.assert_array_equal(run_op("Relu6", np.uint8([0, 6, 200])), np.uint8([0, 6, 6]))
    np.testing.assert_array_equal(run_op("Relu", np.int64([-(2**63), 2**62])), [0, 2**62])


@pytest.mark.parametrize(("alpha", "expected"), [(1.5, [-3, 2]), (-0.5, [1, 2]), (0, [0, 2])])
def test_leak_may_be_anything(alpha: float, expected: list[float]) -> None:
    """A leak above one or below zero is only a factor."""
    for result in both("LeakyRelu", np.float32([-2, 2]), alpha=alpha):
        np.testing.assert_array_equal(result, np.float32(expected))
