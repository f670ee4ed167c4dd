"""A convolution pads by itself what a Pad did for it, and gives the same."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.passes.fold_paddings import fold_paddings
from support.drafts import after, draft, unchanged
from support.sketch import sketch

X = """
    x = Placeholder() dtype=float32
    f = Placeholder() dtype=float32
    w = Placeholder() dtype=float32
    k = Const() value=[[0,0],[1,2],[0,3],[0,0]] dtype=int32
"""
PADDED = "pad = Pad(x, k, ^w)\n"
CONV = 'conv = Conv2D(pad, f) strides=[1,2,2,1] padding="VALID"\n'


def test_a_padding_is_the_convolutions() -> None:
    """With its name, and what either waited for."""
    text = f"{X}{PADDED}{CONV}out = Identity(conv)"
    assert "conv = Conv2D(x, f, ^w)" in after(fold_paddings, text)
    made = draft(text)
    assert fold_paddings(made) == 1
    attrs = made.graph.node("conv").attrs
    assert attrs["padding"] == b"EXPLICIT"
    assert attrs["explicit_paddings"] == (0, 0, 1, 2, 0, 3, 0, 0)
    assert attrs["strides"] == [1, 2, 2, 1]


@pytest.mark.parametrize(
    "change",
    [
        ("[0,0],[1,2]", "[1,0],[1,2]"),
        ("[0,3],[0,0]", "[0,3],[0,1]"),
        ("[1,2]", "[-1,2]"),
        ("dtype=int32", "dtype=int32\n    also = Identity(pad)"),
        ("pad = Pad(x, k, ^w)", "k2 = Identity(k)\npad = Pad(x, k2, ^w)"),
        ("pad = Pad(x, k, ^w)", 'pad = MirrorPad(x, k, ^w) mode="REFLECT"'),
        ('"VALID"', '"SAME"'),
    ],
)
def test_others_stay(change: tuple[str, str]) -> None:
    """Paddings of the batch or the depth, unknown ones, mirrors, and what others read."""
    text = f"{X}{PADDED}{CONV}out = Identity(conv)".replace(*change)
    assert unchanged(fold_paddings, text)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("conv", "f"),
    [("Conv2D", (3, 2, 4, 5)), ("DepthwiseConv2dNative", (3, 2, 4, 1))],
)
def test_results_are_those_of_single_nodes(layout: str, conv: str, f: tuple[int, ...]) -> None:
    """In both layouts, by channel or over all of the depth."""
    margins, strides = [[0, 0], [1, 2], [0, 3], [0, 0]], [1, 2, 2, 1]
    x = np.random.default_rng(0).normal(size=(2, 7, 8, 4)).astype(np.float32)
    if layout == "NCHW":
        margins, strides = [[0, 0], [0, 0], [1, 2], [0, 3]], [1, 1, 2, 2]
        x = x.transpose(0, 3, 1, 2).copy()
    text = (
        f"""
        x = Placeholder() dtype=float32
        f = Placeholder() dtype=float32
        k = Const() value={margins} dtype=int32
        pad = Pad(x, k)
        conv = {conv}(pad, f) strides={strides} padding="VALID" data_format="{layout}"
    """.replace(", ", ",")
        .replace("(pad,f)", "(pad, f)")
        .replace("(x,k)", "(x, k)")
    )
    filters = np.random.default_rng(1).normal(size=f).astype(np.float32)
    results = []
    for options in (ps.GraphOptions.nothing(), ps.GraphOptions()):
        config = ps.Config(graph_options=options)
        with ps.Session(sketch(text), config=config) as session:
            results.append(session.run("conv:0", {"x": x, "f": filters}))
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)
