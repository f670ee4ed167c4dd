"""A convolution and what comes after it are one node, where that has a kernel."""

from __future__ import annotations

import pytest

from penstock.passes import fuse_convolutions as module
from penstock.passes.fuse_convolutions import fuse_convolutions
from support.drafts import after, draft, unchanged

CONV = """
    x = Placeholder() dtype=float32
    f = Placeholder() dtype=float32
    b = Placeholder() dtype=float32
    conv = Conv2D(x, f, ^b) strides=[1,1,1,1] padding="SAME"
    sum = BiasAdd(conv, b)
"""


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that every fused op has a kernel."""
    monkeypatch.setattr(module, "find_kernel", lambda *_args: object())


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("op", ["Relu", "Relu6", "Elu", "LeakyRelu"])
def test_bias_and_activation_are_fused(op: str) -> None:
    """The node has the name of the last step, and waits for what the first one waited for."""
    text = f"{CONV}act = {op}(sum)\nout = Identity(act)"
    assert after(fuse_convolutions, text) == [
        "act = _FusedConv2D(x, f, b, ^b)",
        "b = Placeholder",
        "f = Placeholder",
        "out = Identity(act)",
        "x = Placeholder",
    ]
    made = draft(text)
    assert fuse_convolutions(made) == 2
    attrs = made.graph.node("act").attrs
    assert attrs["fused_ops"] == (b"BiasAdd", op.encode())
    assert attrs["strides"] == [1, 1, 1, 1]
    assert attrs["padding"] == b"SAME"


@pytest.mark.usefixtures("kernels")
def test_a_bias_alone_is_fused() -> None:
    """What has no kernel of its own stays behind."""
    got = after(fuse_convolutions, f"{CONV}act = Tanh(sum)\nout = Identity(act)")
    assert "sum = _FusedConv2D(x, f, b, ^b)" in got
    assert "act = Tanh(sum)" in got


@pytest.mark.usefixtures("kernels")
def test_products_of_matrices_are_fused_too() -> None:
    """A dense layer is one node."""
    text = """
        x = Placeholder() dtype=float32
        w = Placeholder() dtype=float32
        b = Placeholder() dtype=float32
        product = MatMul(x, w) transpose_b=True
        sum = BiasAdd(product, b)
        out = Relu(sum)
    """
    assert "out = _FusedMatMul(x, w, b)" in after(fuse_convolutions, text)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    "rows",
    [
        CONV + "z = Neg(conv)",
        CONV + "z = NoOp(^conv)",
        CONV.replace("b = Placeholder()", "b = VariableV2() shape=[3]"),
        CONV.replace("BiasAdd(conv, b)", "BiasAdd(b, conv)"),
        CONV.replace("BiasAdd(conv, b)", "AddV2(conv, b)"),
        CONV.replace("BiasAdd(conv, b)", "BiasAdd(conv, b, ^x)"),
        CONV.replace("BiasAdd(conv, b)", 'BiasAdd(conv, b) data_format="NCHW"'),
        CONV.replace("BiasAdd(conv, b)", 'BiasAdd(conv, b) device="/device:CPU:1"'),
    ],
)
def test_other_neighbours_stay(rows: str) -> None:
    """Other readers, waits, layouts and devices."""
    assert unchanged(fuse_convolutions, rows + "\nout = Identity(sum)")


def test_without_a_kernel_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what can run is made."""
    monkeypatch.setattr(module, "find_kernel", lambda *_args: None)
    assert unchanged(fuse_convolutions, CONV + "\nout = Identity(sum)")
