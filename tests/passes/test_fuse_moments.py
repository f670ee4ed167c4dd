"""A mean and a variance become one node, and mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.kernels.c.library import library
from penstock.passes.fuse_moments import fuse_moments
from support.drafts import after, unchanged
from support.sketch import sketch

ROWS = """
    x = Placeholder() dtype=float32 shape=(None,4,8)
    w = Placeholder() dtype=float32
    axes = Const() value=[2] dtype=int32
    mean = Mean(x, axes, ^w) keep_dims=True
    far = SquaredDifference(x, mean)
    variance = Mean(far, axes) keep_dims=True
    out = Sub(x, mean)
    also = Neg(variance)
"""


def test_two_means_are_one_node() -> None:
    """Which waits for what the first one waited for."""
    made = after(fuse_moments, ROWS)
    assert "mean/_Moments = _Moments(x, axes, ^w)" in made
    assert "out = Sub(x, mean/_Moments)" in made
    assert "also = Neg(mean/_Moments:1)" in made
    assert not any("far" in line or "variance =" in line for line in made)


def test_distances_have_no_direction() -> None:
    """The mean may come first."""
    text = ROWS.replace("SquaredDifference(x, mean)", "SquaredDifference(mean, x)")
    assert "mean/_Moments = _Moments(x, axes, ^w)" in after(fuse_moments, text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value=[2]", "value=[1,2]"),
        ("mean = Mean(x, axes, ^w) keep_dims=True", "mean = Mean(x, axes, ^w)"),
        ("Mean(far, axes) keep_dims=True", "Mean(far, axes)"),
        ("Mean(far, axes)", "Mean(far, axes, ^w)"),
        ("Mean(far, axes)", "Sum(far, axes)"),
        ("mean = Mean(x, axes", "mean = Mean(w, axes"),
        (
            "variance = Mean(far, axes)",
            "a = Const() value=[1] dtype=int32\nvariance = Mean(far, a)",
        ),
        ("also = Neg(variance)", "also = Sub(variance, far)"),
        ("dtype=float32", "dtype=float64"),
    ],
)
def test_others_stay(old: str, new: str) -> None:
    """Other axes, other inputs, and squares that somebody reads."""
    assert old in ROWS
    assert unchanged(fuse_moments, ROWS.replace(old, new))


@pytest.mark.skipif(library() is None, reason="there was no C compiler")
@pytest.mark.parametrize("axis", [2, -1, 1, 0])
@pytest.mark.parametrize("rows", [0, 3])
def test_results_are_those_of_single_nodes(axis: int, rows: int) -> None:
    """By rows, and along other axes; also where there is nothing."""
    random = np.random.default_rng(3)
    feeds: dict[str, Any] = {"x:0": random.standard_normal((rows, 4, 8), "f"), "w:0": np.float32(0)}
    graph = sketch(ROWS.replace("value=[2]", f"value=[{axis}]"))
    answers, ops = [], []
    for options in (ps.GraphOptions.nothing(), ps.GraphOptions()):
        config, metadata = ps.Config(graph_options=options), ps.RunMetadata()
        with ps.Session(graph, config=config) as session:
            run = ps.RunOptions(output_partition_graphs=True)
            answers.append(session.run(["out:0", "also:0"], feeds, run, metadata))
        ops.append({node.op for part in metadata.partition_graphs for node in part.node})
    assert "_Moments" in ops[1] - ops[0]
    for plain, fused in zip(*answers, strict=True):
        assert fused.shape == plain.shape
        np.testing.assert_allclose(fused, plain, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_that_is_not_there_is_an_error_as_before(axis: int) -> None:
    """In the same words."""
    feeds = {"x:0": np.zeros((2, 4, 8), "f"), "w:0": np.float32(0)}
    text = ROWS.replace("value=[2]", f"value=[{axis}]").replace("shape=(None,4,8)", "")
    said = []
    for options in (ps.GraphOptions.nothing(), ps.GraphOptions()):
        with ps.Session(sketch(text), config=ps.Config(graph_options=options)) as session:
            with pytest.raises(ps.errors.InvalidArgumentError, match="Invalid reduction") as caught:
                session.run("out:0", feeds)
            said.append(str(caught.value).split("\n")[0])
    assert said[0].split("(")[0] == said[1].split("(")[0]
