"""A convolution and what comes after it are one node, where that has a kernel."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.core import dtypes
from penstock.kernels.c.library import library
from penstock.passes import fuse_convolutions as module
from penstock.passes.fuse_convolutions import fuse_convolutions
from penstock.passes.graph_rewriter import GraphRewriter
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
@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW"])
def test_convolutions_over_three_dimensions_are_fused_too(layout: str) -> None:
    """With a bias that has the depth where they have it."""
    text = f"""
        x = Placeholder() dtype=float32
        f = Placeholder() dtype=float32
        b = Placeholder() dtype=float32
        conv = Conv3D(x, f) strides=[1,1,1,1,1] padding="SAME" data_format="{layout}"
        sum = BiasAdd(conv, b) data_format="DATA_FORMAT"
        out = Relu(sum)
    """
    same, other = ("NHWC", "NCHW") if layout == "NDHWC" else ("NCHW", "NHWC")
    got = after(fuse_convolutions, text.replace("DATA_FORMAT", same))
    assert "out = _FusedConv3D(x, f, b)" in got
    assert unchanged(fuse_convolutions, text.replace("DATA_FORMAT", other))


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


PLAIN = """
    x = Placeholder() dtype=float32
    f = Const() value=[[[[1.0, 2.0]]]]
    b = Placeholder() dtype=float32
    r = Placeholder() dtype=float32
    conv = Conv2D(x, f) strides=[1,1,1,1] padding="SAME"
"""


def fuse_sums(rewriter: GraphRewriter) -> int:
    """As where kernels in C compute convolutions."""
    return fuse_convolutions(rewriter, lambda: True)


@pytest.mark.parametrize("total", ["AddV2(sum, r)", "Add(r, sum)"])
def test_the_sum_with_another_result_is_fused(total: str) -> None:
    """With the bias before it and the activation after it; whichever it stands first."""
    text = f"{PLAIN}sum = BiasAdd(conv, b)\nall = {total}\nact = Relu(all)\nout = Identity(act)"
    assert "act = _FusedConv2D(x, f, b, r)" in after(fuse_sums, text)
    assert "all = " in "".join(after(fuse_convolutions, text))
    made = draft(text)
    assert fuse_sums(made) == 3
    assert made.graph.node("act").attrs["fused_ops"] == (b"BiasAdd", b"Add", b"Relu")
    assert made.graph.node("act").attrs["TArgs"] == (dtypes.float32,) * 2


@pytest.mark.parametrize(
    "filters", ["Const() value=[[[[1.0, 2.0]]]]", "Placeholder() dtype=float32"]
)
@pytest.mark.parametrize(
    ("rest", "fused", "steps"),
    [
        ("act = Relu6(conv)", "act = _FusedConv2D(x, f)", (b"Relu6",)),
        (
            "all = AddV2(conv, r)\nact = Relu(all)",
            "act = _FusedConv2D(x, f, r)",
            (b"Add", b"Relu"),
        ),
    ],
)
def test_a_convolution_may_do_without_a_bias(
    rest: str, fused: str, steps: tuple[bytes, ...], filters: str
) -> None:
    """Whether its filter is a constant or comes from elsewhere."""
    text = f"{PLAIN}{rest}\nout = Identity(act)"
    text = text.replace("Const() value=[[[[1.0, 2.0]]]]", filters)
    assert fused in after(fuse_sums, text)
    assert unchanged(fuse_convolutions, text)
    made = draft(text)
    fuse_sums(made)
    assert made.graph.node("act").attrs["fused_ops"] == steps


@pytest.mark.skipif(library() is None, reason="there was no C compiler")
@pytest.mark.parametrize("op", ["conv_2d", "depthwise_conv_2d_native"])
@pytest.mark.parametrize("activation", ["relu", "relu6", "elu"])
@pytest.mark.parametrize("is_constant", [True, False])
def test_what_is_fused_without_a_bias_is_the_same(
    op: str, activation: str, is_constant: bool
) -> None:
    """For each convolution that may have no bias, and each activation."""
    filters = np.float32(np.linspace(-1, 1, 3 * 3 * 3 * 2).reshape(3, 3, 3, 2))
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [2, 5, 4, 3])
        f = ps.constant(filters) if is_constant else ps.placeholder("float32", filters.shape)
        convolve = getattr(ps.ops, op)
        y = getattr(ps.ops, activation)(
            convolve(x, f, strides=[1, 1, 1, 1], padding="SAME"), name="y"
        )
    feeds = {x: np.linspace(-2, 9, 120).reshape(2, 5, 4, 3)} | ({} if is_constant else {f: filters})
    found = []
    for accelerate in (False, True):
        with ps.Session(graph, config=ps.Config(accelerate=accelerate)) as session:
            found.append(session.run(y, feeds))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_without_a_bias_only_float32_is_fused(dtype: str) -> None:
    """Others have no kernel in C."""
    text = PLAIN.replace("Const() value=[[[[1.0, 2.0]]]]", "Placeholder() dtype=float32")
    text = text.replace("float32", dtype)
    assert unchanged(fuse_sums, f"{text}act = Relu(conv)\nout = Identity(act)")


def test_a_filter_may_be_a_reference() -> None:
    """It is read when the convolution runs, as before; a bias would be read earlier than before."""
    text = """
        x = Placeholder() dtype=float32
        v = VariableV2() shape=[1,1,1,2] dtype=float32
        b = VariableV2() shape=[2] dtype=float32
        conv = Conv2D(x, v) strides=[1,1,1,1] padding="SAME"
    """
    assert "act = _FusedConv2D(x, v)" in after(fuse_sums, f"{text}act = Relu(conv)")
    assert unchanged(fuse_sums, f"{text}sum = BiasAdd(conv, b)\nact = Relu(sum)")


@pytest.mark.parametrize(
    "rest",
    [
        "all = AddV2(conv, conv)\nact = Relu(all)",
        "all = AddV2(conv, r)\nact = Tanh(all)",
        "all = AddV2(conv, r)\nact = Relu(all)\nmore = Neg(all)",
        "all = AddV2(conv, r, ^b)\nact = Relu(all)",
        "act = Tanh(conv)",
    ],
)
def test_other_sums_stay(rest: str) -> None:
    """With itself, without an activation, read elsewhere, with waits of its own."""
    assert unchanged(fuse_sums, f"{PLAIN}{rest}\nout = Identity(act)")


@pytest.mark.skipif(library() is None, reason="there was no C compiler")
@pytest.mark.parametrize("shape", [(1, 5, 4, 2), (1, 1, 1, 2), (2,), (3, 1, 4, 2)])
def test_a_fused_sum_is_the_sum(shape: tuple[int, ...]) -> None:
    """Of results that are as large, and of those that are repeated, or repeat the others."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [1, 5, 4, 3])
        r = ps.placeholder(ps.dtypes.float32, None)
        filters = np.float32(np.linspace(-1, 1, 3 * 3 * 3 * 2).reshape(3, 3, 3, 2))
        conv = ps.ops.conv_2d(x, ps.constant(filters), strides=[1, 1, 1, 1], padding="SAME")
        y = ps.ops.relu(ps.ops.bias_add(conv, ps.constant(np.float32([1, -1]))) + r)
    feeds = {
        x: np.linspace(-2, 3, 60).reshape(1, 5, 4, 3),
        r: np.linspace(-1, 1, np.prod(shape)).reshape(shape),
    }
    found = []
    for accelerate in (False, True):
        with ps.Session(graph, config=ps.Config(accelerate=accelerate)) as session:
            found.append(session.run(y, feeds))
            prepared = session.prepared(y, feeds)
        ops = {node.op.name for part in prepared.partitions for node in part.graph}
        assert ("_FusedConv2D" in ops and "AddV2" not in ops) == accelerate
    assert (found[0] > 0).any()
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)
