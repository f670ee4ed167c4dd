"""A normalisation by rows becomes one node, and means the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.graph.graph import Graph
from penstock.kernels.c.library import library
from penstock.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from penstock.passes.fuse_layer_norms import fuse_layer_norms
from penstock.passes.fuse_moments import fuse_moments
from penstock.passes.graph_rewriter import GraphRewriter
from support.drafts import after, unchanged
from support.sketch import sketch

BEGINNING = """
    x = Placeholder() dtype=float32 shape=(None,3)
    y = Placeholder() dtype=float32
    w = Placeholder() dtype=float32
    axes = Const() value=[-1] dtype=int32
    scale = Const() value=[1.5,2.0,-1.0] dtype=float32
    offset = Const() value=[0.5,0.0,4.0] dtype=float32
    e = Const() value=0.001 dtype=float32
    total = AddV2(x, y)
    m = _Moments(total, axes, ^w)
    variance = AddV2(m:1, e)
    root = Rsqrt(variance)
"""
VARIABLE = "x = VariableV2() dtype=float32 shape=(2,3)"
#: As Keras writes it, and TensorFlow's ``batch_normalization``, and as one would by hand.
TURNED = """
    factor = Mul(root, scale)
    negative = Neg(m)
    moved = Mul(negative, factor)
    term = AddV2(moved, offset)
    scaled = Mul(total, factor)
    out = AddV2(scaled, term)
"""
SUBTRACTED = """
    factor = Mul(root, scale)
    moved = Mul(m, factor)
    term = Sub(offset, moved)
    scaled = Mul(total, factor)
    out = AddV2(scaled, term)
"""
CENTERED = """
    distance = Sub(total, m)
    product = Mul(distance, root)
    bigger = Mul(scale, product)
    out = AddV2(bigger, offset)
"""
BARE = """
    negative = Neg(m)
    moved = Mul(negative, root)
    scaled = Mul(total, root)
    out = AddV2(moved, scaled)
"""
BARE_SUBTRACTED = """
    moved = Mul(m, root)
    scaled = Mul(total, root)
    out = Sub(scaled, moved)
"""
BARE_CENTERED = """
    distance = Sub(total, m)
    out = Mul(root, distance)
"""
WHOLE = "out = _LayerNorm(x, y, axes, scale, offset, ^w)"
ALONE = "out = _LayerNorm(x, y, axes, ^w)"
FORMS = {
    "turned": (TURNED, WHOLE),
    "subtracted": (SUBTRACTED, WHOLE),
    "centered": (CENTERED, WHOLE),
    "bare": (BARE, ALONE),
    "bare, subtracted": (BARE_SUBTRACTED, ALONE),
    "bare, centered": (BARE_CENTERED, ALONE),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_one_node(form: str) -> None:
    """Which waits for what the moments waited for; nothing else is left."""
    text, wanted = FORMS[form]
    made = after(fuse_layer_norms, BEGINNING + text)
    assert wanted in made
    left = {line.split(" = ")[0] for line in made} - {"scale", "offset"}
    assert left == {"x", "y", "w", "axes", "out"}


def test_a_sum_that_others_read_stays() -> None:
    """Then it is the only thing that is normalised."""
    made = after(fuse_layer_norms, BEGINNING + TURNED + "also = Neg(total)")
    assert "out = _LayerNorm(total, axes, scale, offset, ^w)" in made
    assert "total = AddV2(x, y)" in made


def merged(draft: GraphRewriter) -> int:
    """What the pass finds where equal nodes are one, which stands for all that were asked for."""
    return eliminate_common_subexpressions(draft) + fuse_layer_norms(draft)


def test_a_sum_that_is_asked_for_stays() -> None:
    """Though nobody else in the graph reads it."""
    made = after(merged, BEGINNING + TURNED + "also = AddV2(x, y)")
    assert "out = _LayerNorm(total, axes, scale, offset, ^w)" in made


@pytest.mark.parametrize(
    "part",
    [
        "root = Rsqrt(variance)",
        "factor = Mul(root, scale)",
        "negative = Neg(m)",
        "scaled = Mul(total, factor)",
    ],
)
def test_parts_that_are_asked_for_stay(part: str) -> None:
    """And so do all others."""
    made = after(merged, f"{BEGINNING}{TURNED}also = {part.partition(' = ')[2]}")
    assert not any("_LayerNorm" in line for line in made)
    assert part in made


def test_moments_that_are_asked_for_stay() -> None:
    """Though everybody else in the graph is one node."""
    made = after(merged, f"{BEGINNING}{TURNED}also = _Moments(total, axes, ^w)")
    assert "m = _Moments(total, axes, ^w)" in made


def test_a_sum_that_is_waited_for_stays() -> None:
    """Whoever waits for it, even the moments."""
    made = after(fuse_layer_norms, BEGINNING.replace("^w", "^total") + TURNED)
    assert "out = _LayerNorm(total, axes, scale, offset, ^total)" in made


def test_a_sum_that_reads_a_variable_as_it_runs_stays() -> None:
    """It might read something else later."""
    text = BEGINNING.replace("x = Placeholder() dtype=float32 shape=(None,3)", VARIABLE)
    made = after(fuse_layer_norms, text + TURNED)
    assert "out = _LayerNorm(total, axes, scale, offset, ^w)" in made


def test_what_is_no_row_is_not_taken_along() -> None:
    """A sum with another result comes after it."""
    made = after(fuse_layer_norms, BEGINNING + CENTERED.replace("bigger, offset", "bigger, w"))
    assert "bigger = _LayerNorm(x, y, axes, scale, ^w)" in made
    assert "out = AddV2(bigger, w)" in made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("factor = Mul(root, scale)", "factor = Mul(root, w)"),
        ("term = AddV2(moved, offset)", "term = AddV2(moved, w)"),
        ("variance = AddV2(m:1, e)", "variance = AddV2(m:1, w)"),
        ("variance = AddV2(m:1, e)", "variance = AddV2(m, e)"),
        ("root = Rsqrt(variance)", "root = Sqrt(variance)"),
        ("scaled = Mul(total, factor)", "scaled = Mul(x, factor)"),
        ("scaled = Mul(total, factor)", "scaled = Mul(total, factor, ^w)"),
        ("negative = Neg(m)", "negative = Neg(m:1)"),
        ("out = AddV2(scaled, term)", "out = AddV2(scaled, term)\nalso = Neg(factor)"),
        ("out = AddV2(scaled, term)", "out = AddV2(scaled, term)\nalso = NoOp(^moved)"),
        ("out = AddV2(scaled, term)", "out = Sub(scaled, term)"),
        ("out = AddV2(scaled, term)", "out = AddV2(scaled, term)\nalso = Neg(m:1)"),
    ],
)
def test_others_stay(old: str, new: str) -> None:
    """Other numbers, other inputs, and parts that somebody else reads."""
    assert old in BEGINNING + TURNED
    assert unchanged(fuse_layer_norms, (BEGINNING + TURNED).replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("term = Sub(offset, moved)", "term = Sub(moved, offset)"),
        ("moved = Mul(m, factor)", "moved = Mul(y, factor)"),
    ],
)
def test_a_difference_has_a_direction(old: str, new: str) -> None:
    """The mean is what is subtracted."""
    assert old in SUBTRACTED
    assert unchanged(fuse_layer_norms, BEGINNING + SUBTRACTED.replace(old, new))


def test_the_distance_has_a_direction() -> None:
    """The mean is what is subtracted."""
    text = BARE_CENTERED.replace("Sub(total, m)", "Sub(m, total)")
    assert unchanged(fuse_layer_norms, BEGINNING + text)


def of_single_nodes(text: str, axis: int, shape: str = "shape=(None,3)") -> Graph:
    """The same, with a mean and a variance of nodes that a GraphDef may have."""
    means = """
        mean = Mean(total, axes) keep_dims=True
        far = SquaredDifference(total, mean)
        m1 = Mean(far, axes) keep_dims=True
    """
    whole = (BEGINNING.replace("shape=(None,3)", shape) + text).replace(
        "    m = _Moments(total, axes, ^w)\n", means
    )
    whole = whole.replace("m:1", "m1").replace("(m,", "(mean,").replace(", m)", ", mean)")
    return sketch(whole.replace("Neg(m)", "Neg(mean)").replace("value=[-1]", f"value=[{axis}]"))


@pytest.mark.skipif(library() is None, reason="there was no C compiler")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("shapes", [((5, 3), (5, 3)), ((4, 3), (3,)), ((1, 3), ()), ((0, 3), (3,))])
def test_results_are_those_of_single_nodes(form: str, axis: int, shapes: Any) -> None:
    """By rows and by columns; of sums of equal shapes and of others; also of nothing."""
    random = np.random.default_rng(5)
    x, y = (np.asarray(random.standard_normal(shape), "f") for shape in shapes)
    graph, answers, ops = of_single_nodes(FORMS[form][0], axis), [], []
    for options in (ps.GraphOptions.nothing(), ps.GraphOptions()):
        config, metadata = ps.Config(graph_options=options), ps.RunMetadata()
        with ps.Session(graph, config=config) as session:
            run = ps.RunOptions(output_partition_graphs=True)
            answers.append(session.run("out:0", {"x:0": x, "y:0": y}, run, metadata))
        ops.append({node.op for part in metadata.partition_graphs for node in part.node})
    assert "_LayerNorm" in ops[1] - ops[0]
    assert answers[0].shape == answers[1].shape
    np.testing.assert_allclose(answers[1], answers[0], rtol=3e-6, atol=3e-6)


def test_errors_are_those_of_single_nodes() -> None:
    """An axis that is not there, and terms that do not fit."""
    for x, y, message in (
        (np.ones((2, 3), "f"), np.ones((4, 3), "f"), "Incompatible shapes"),
        (np.float32(1), np.float32(1), "Invalid reduction dimension"),
    ):
        graph = of_single_nodes(TURNED, -1, shape="")
        for options in (ps.GraphOptions.nothing(), ps.GraphOptions()):
            with (
                ps.Session(graph, config=ps.Config(graph_options=options)) as session,
                pytest.raises(ps.errors.InvalidArgumentError, match=message),
            ):
                session.run("out:0", {"x:0": x, "y:0": y})


def test_nothing_is_fused_where_it_is_not_wanted() -> None:
    """Without kernels in C a whole has no advantage."""

    def unwanted(draft: GraphRewriter) -> int:
        return fuse_layer_norms(draft, lambda: False)

    assert unchanged(unwanted, BEGINNING + TURNED)
    assert unchanged(partial(fuse_moments, is_wanted=lambda: False), BEGINNING + TURNED)
