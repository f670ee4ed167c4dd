"""A softmax and the scale before it become one node, and mean the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.kernels.c.library import library
from penstock.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from penstock.passes.fuse_scaled_softmax import fuse_scaled_softmax
from penstock.passes.graph_rewriter import GraphRewriter
from support.drafts import after, unchanged
from support.sketch import sketch

SCORES = """
    x = Placeholder() dtype=float32
    w = Placeholder() dtype=float32
    c = Const() value=0.125 dtype=float32
    scaled = Mul(x, c)
    out = Softmax(scaled, ^w)
"""


@pytest.mark.parametrize(
    ("product", "number"),
    [("Mul(x, c)", "0.125"), ("Mul(c, x)", "0.3"), ("RealDiv(x, c)", "8.0")],
)
def test_a_scale_and_a_softmax_are_one_node(product: str, number: str) -> None:
    """Whichever side the number is on; what waits still waits."""
    text = SCORES.replace("Mul(x, c)", product).replace("0.125", number)
    made = after(fuse_scaled_softmax, text)
    assert "out = _ScaledSoftmax(x, ^w)" in made
    assert not any(line.startswith("scaled =") for line in made)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value=0.125", "value=-0.125"),
        ("value=0.125", "value=0.0"),
        ("value=0.125", "value=[0.125]"),
        ("Mul(x, c)", "Mul(x, w)"),
        ("Mul(x, c)", "Add(x, c)"),
        ("Mul(x, c)", "Mul(x, c, ^w)"),
        ("Mul(x, c)", "RealDiv(c, x)"),
        ("Mul(x, c)\n", "Mul(x, c)\n    also = Neg(scaled)\n"),
        ("Mul(x, c)\n", "Mul(x, c)\n    also = NoOp(^scaled)\n"),
    ],
)
def test_others_stay(old: str, new: str) -> None:
    """Numbers that turn the order, or are none; products that somebody else reads."""
    assert old in SCORES
    assert unchanged(fuse_scaled_softmax, SCORES.replace(old, new))


def test_a_product_that_is_asked_for_stays() -> None:
    """Though nobody else in the graph reads it."""

    def merged(draft: GraphRewriter) -> int:
        return eliminate_common_subexpressions(draft) + fuse_scaled_softmax(draft)

    made = after(merged, SCORES + "also = Mul(x, c)")
    assert "scaled = Mul(x, c)" in made
    assert "out = Softmax(scaled, ^w)" in made


def test_a_variable_that_is_read_by_the_product_stays() -> None:
    """It might be another one later."""
    variable = "x = VariableV2() dtype=float32 shape=(2,3)"
    assert unchanged(
        fuse_scaled_softmax, SCORES.replace("x = Placeholder() dtype=float32", variable)
    )


def test_a_quotient_by_what_is_no_power_of_two_stays() -> None:
    """Its reciprocal would be rounded."""
    text = SCORES.replace("Mul(x, c)", "RealDiv(x, c)").replace("0.125", "3.0")
    assert unchanged(fuse_scaled_softmax, text)


@pytest.mark.skipif(library() is None, reason="there was no C compiler")
@pytest.mark.parametrize("shape", [(3, 50), (2, 4, 7), (0, 3), (3, 0), (1,)])
@pytest.mark.parametrize("number", ["0.125", "0.3", "1e-40"])
def test_results_are_the_same(shape: tuple[int, ...], number: str) -> None:
    """Also with infinities among the scores, as masks put there."""
    x = np.random.default_rng(3).standard_normal(shape).astype("f") * 30
    if x.size > 40:
        x[0, :20] = -np.inf
    graph, answers = sketch(SCORES.replace(", ^w", "").replace("0.125", number)), []
    for remapping in (ps.RewriterConfig.OFF, ps.RewriterConfig.ON):
        rewrite = ps.RewriterConfig(remapping=remapping)
        config = ps.Config(graph_options=ps.GraphOptions(rewrite_options=rewrite))
        with ps.Session(graph, config=config) as session:
            answers.append(session.run("out:0", {"x:0": x}))
    np.testing.assert_array_equal(*answers)


def test_a_score_alone_is_an_error_as_before() -> None:
    """In the same words."""
    with (
        ps.Session(sketch(SCORES.replace(", ^w", ""))) as session,
        pytest.raises(ps.errors.InvalidArgumentError, match="logits must have >= 1 dim"),
    ):
        session.run("out:0", {"x:0": np.float32(1)})
