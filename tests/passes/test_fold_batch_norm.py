"""What scales and moves channels goes into the filter and one bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.passes.fold_batch_norm import fold_batch_norm
from support.drafts import after, both, constant, draft, unchanged

CONV = """
    x = Placeholder() dtype=float32
    f = Const() value=[[[[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]]]
    conv = Conv2D(x, f) strides=[1,1,1,1] padding="SAME"
"""
STATISTICS = """
    scale = Const() value=[1.5, -0.5, 2.0]
    offset = Const() value=[0.1, 0.2, 0.3]
    mean = Const() value=[0.5, -1.5, 0.0]
    var = Const() value=[2.0, 0.25, 1.0]
"""
NORM = "y = FusedBatchNormV3(conv, scale, offset, mean, var) is_training=False epsilon=0.001\n"
IMAGES = np.random.default_rng(7).standard_normal((2, 3, 4, 2)).astype(np.float32)


def expected(images: Any) -> Any:
    """The same by definition, in double precision."""
    f = np.array([[1, -2, 0.5], [0.25, 3, -1]])
    conv = images.astype(np.float64) @ f
    scale, offset = np.array([1.5, -0.5, 2.0]), np.array([0.1, 0.2, 0.3])
    mean, var = np.array([0.5, -1.5, 0.0]), np.array([2.0, 0.25, 1.0])
    return (conv - mean) / np.sqrt(var + 0.001) * scale + offset


def test_normalisation_goes_into_the_filter() -> None:
    """Only the convolution and one bias are left."""
    text = f"{CONV}{STATISTICS}{NORM}out = Identity(y)"
    assert after(fold_batch_norm, text) == [
        "conv = Conv2D(x, conv/scaled_filter)",
        "conv/scaled_filter = Const",
        "out = Identity(y)",
        "x = Placeholder",
        "y = BiasAdd(conv, y/bias)",
        "y/bias = Const",
    ]
    for (value,) in both(text, ["out:0"], {"x": IMAGES}):
        np.testing.assert_allclose(value, expected(IMAGES), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV2"])
def test_older_forms(op: str) -> None:
    """All three forms of the op are the same thing."""
    text = f"{CONV}{STATISTICS}{NORM}out = Identity(y)".replace("FusedBatchNormV3", op)
    assert "y = BiasAdd(conv, y/bias)" in after(fold_batch_norm, text)
    for (value,) in both(text, ["out:0"], {"x": IMAGES}):
        np.testing.assert_allclose(value, expected(IMAGES), rtol=2e-6, atol=2e-6)


def test_a_chain_of_steps_is_one() -> None:
    """Biases, products, sums, differences and quotients follow each other in their order."""
    text = f"""
        {CONV}
        b = Const() value=[1.0, 2.0, 3.0]
        two = Const() value=2.0
        k = Const() value=[[[[3.0, -1.0, 0.5]]]]
        a1 = BiasAdd(conv, b)
        a2 = Mul(two, a1)
        a3 = AddV2(a2, k)
        a4 = Sub(a3, two)
        a5 = RealDiv(a4, two)
        out = Relu(a5)
    """
    made = draft(text)
    assert fold_batch_norm(made) == 5
    assert constant(made, "a5/bias").tolist() == [1.5, 0.5, 2.25]
    assert constant(made, "f").tolist() == [[[[1, -2, 0.5], [0.25, 3, -1]]]]
    plain, optimised = both(text, ["out:0"], {"x": IMAGES})
    np.testing.assert_allclose(optimised[0], plain[0], rtol=2e-6, atol=2e-6)


def test_depthwise() -> None:
    """Channel c of a depthwise convolution comes from filter [:, :, c // m, c % m]."""
    text = """
        x = Placeholder() dtype=float32
        f = Const() value=[[[[1.0, -2.0], [0.25, 3.0]]]]
        conv = DepthwiseConv2dNative(x, f) strides=[1,1,1,1] padding="SAME"
        k = Const() value=[1.0, 2.0, 3.0, 4.0]
        y = Mul(conv, k)
        out = Identity(y)
    """
    made = draft(text)
    fold_batch_norm(made)
    assert constant(made, "conv/scaled_filter").tolist() == [[[[1, -4], [0.75, 12]]]]
    plain, optimised = both(text, ["out:0"], {"x": IMAGES})
    np.testing.assert_allclose(optimised[0], plain[0], rtol=2e-6, atol=2e-6)


def test_channels_second() -> None:
    """With the channels second, so must be the constant's."""
    text = f"""
        {CONV} data_format="NCHW"
        k = Const() value=[[[2.0]], [[3.0]], [[4.0]]]
        y = Mul(conv, k)
        out = Identity(y)
    """.replace('padding="SAME"\n data_format', 'padding="SAME" data_format')
    assert "out = Identity(conv)" in after(fold_batch_norm, text)
    plain, optimised = both(text, ["out:0"], {"x": IMAGES.transpose(0, 3, 1, 2)})
    np.testing.assert_allclose(optimised[0], plain[0], rtol=2e-6, atol=2e-6)
    assert unchanged(
        fold_batch_norm, text.replace("[[[2.0]], [[3.0]], [[4.0]]]", "[2.0, 3.0, 4.0]")
    )


@pytest.mark.parametrize(
    "text",
    [
        CONV + STATISTICS + NORM.replace("is_training=False", "is_training=True"),
        CONV + STATISTICS + NORM + "z = Neg(conv)",
        CONV + STATISTICS + NORM + "z = NoOp(^conv)",
        CONV + STATISTICS + NORM + "z = Neg(y:1)",
        CONV + STATISTICS.replace("Const() value=[2.0, 0.25, 1.0]", "Placeholder()") + NORM,
        CONV + STATISTICS.replace("[2.0, 0.25, 1.0]", "[2.0, 0.25]") + NORM,
        CONV + STATISTICS.replace("[2.0, 0.25, 1.0]", "[-2.0, 0.25, 1.0]") + NORM,
        CONV.replace("Const() value=[[[[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]]]", "Placeholder()")
        + STATISTICS + NORM,
        CONV + "b = Const() value=[1.0, 2.0, 3.0]\ny = BiasAdd(conv, b)",
        CONV + "k = Const() value=[[1.0], [2.0]]\ny = Mul(conv, k)",
        CONV + "k = Const() value=[[[[[1.0]]]]]\ny = Mul(conv, k)",
        CONV + "k = Const() value=0.0\ny = RealDiv(conv, k)",
        CONV + "k = Const() value=2.0\ny = RealDiv(k, conv)",
        CONV + "k = Const() value=2.0\ny = Sub(k, conv)",
        CONV + "k = Const(^x) value=2.0\ny = Mul(k, conv)",
        CONV + 'k = Const() value=2.0\ny = Mul(k, conv) device="/device:CPU:1"',
        CONV + "y = Mul(conv, conv)",
    ],
    ids=[
        "training", "two readers", "awaited", "statistics read", "fed", "wrong length", "no root",
        "filter fed", "only a bias", "not by channel", "more dimensions", "by zero", "inverse",
        "difference from", "waits", "elsewhere", "square",
    ],
)  # fmt: skip
def test_what_cannot_be_folded_stays(text: str) -> None:
    """Training, other readers, what is fed, and what is no number per channel."""
    assert unchanged(fold_batch_norm, text + "\nout = Identity(y)")


def test_waits_stay() -> None:
    """What a step waited for, its bias waits for."""
    text = f"{CONV}w = Placeholder() dtype=float32\nk = Const() value=2.0\ny = Mul(conv, k, ^w)"
    assert "y = BiasAdd(conv, y/bias, ^w)" in after(fold_batch_norm, text + "\nout = Identity(y)")
