"""Sums by column follow products at once, whatever shapes are between, and give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.passes.flatten_products import flatten_products
from support.drafts import after, draft, unchanged
from support.sketch import sketch

MATRICES = """
    x = Placeholder() dtype=float32 shape=(None,8)
    w = Placeholder() dtype=float32 shape=(8,6)
    b = Placeholder() dtype=float32 shape=(6,)
    s = Const() value=[-1,2,6] dtype=int32
    c = Placeholder() dtype=float32
    p = MatMul(x, w, ^c)
    r = Reshape(p, s)
    y = BiasAdd(r, b)
    out = Identity(y)
"""
BATCHES = """
    x = Placeholder() dtype=float32 shape=(None,4,8)
    w = Placeholder() dtype=float32 shape=(8,6)
    b = Placeholder() dtype=float32 shape=(2,3)
    s = Const() value=[-1,4,2,3] dtype=int32
    p = BatchMatMulV2(x, w)
    r = Reshape(p, s)
    y = AddV2(b, r)
    out = Identity(y)
"""
ALONE = """
    x = Placeholder() dtype=float32 shape=(None,4,8)
    w = Placeholder() dtype=float32 shape=(8,6)
    b = Placeholder() dtype=float32 shape=(6,)
    p = BatchMatMulV2(x, w)
    y = BiasAdd(p, b)
    out = Identity(y)
"""


def test_a_sum_comes_before_another_shape() -> None:
    """Under the names that they had; what the product waited for, it waits for."""
    made = after(flatten_products, MATRICES)
    assert "p/MatMul = MatMul(x, w, ^c)" in made
    assert "y/BiasAdd = BiasAdd(p/MatMul, b)" in made
    assert "y = Reshape(y/BiasAdd, s)" in made


def test_batches_are_rows() -> None:
    """And what is added to heads is added to columns."""
    made = after(flatten_products, BATCHES)
    assert "p/Reshape = Reshape(x, p/shape)" in made
    assert "p/MatMul = MatMul(p/Reshape, w)" in made
    assert "y/Reshape = Reshape(b, y/shape)" in made
    assert "y/BiasAdd = BiasAdd(p/MatMul, y/Reshape)" in made
    assert "y = Reshape(y/BiasAdd, s)" in made


def test_batches_get_their_shape_back() -> None:
    """One size may be unknown."""
    rewritten = draft(ALONE)
    assert flatten_products(rewritten) == 1
    assert rewritten.graph.node("y").input(1).src.attrs["value"].value.tolist() == [-1, 4, 6]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (MATRICES, "value=[-1,2,6]", "value=[-1,3,2]"),
        (MATRICES, "shape=(6,)", "shape=(None,)"),
        (MATRICES, "shape=(8,6)", "shape=(8,None)"),
        (MATRICES, "out =", "also = Identity(r)\n    out ="),
        (MATRICES, "out =", "also = Identity(p)\n    out ="),
        (MATRICES, "BiasAdd(r, b)", "BiasAdd(r, b, ^c)"),
        (MATRICES, "BiasAdd(r, b)", "AddV2(r, r)"),
        (MATRICES, "BiasAdd(r, b)", "Mul(r, b)"),
        (MATRICES, "dtype=float32", "dtype=float64"),
        (BATCHES, "shape=(2,3)", "shape=(3,)"),
        (BATCHES, "shape=(2,3)", "shape=(1,2,3)"),
        (BATCHES, "shape=(2,3)", "shape=(5,1,4,2,3)"),
        (BATCHES, "shape=(None,4,8)", "shape=(None,4,None)"),
        (BATCHES, "shape=(8,6)", "shape=(3,8,6)"),
        (ALONE, "shape=(None,4,8)", "shape=(None,None,8)"),
        (ALONE, "shape=(None,4,8)", "shape=(None,0,8)"),
        (ALONE, "(x, w)", "(x, w) adj_y=True"),
    ],
)
def test_others_stay(text: str, old: str, new: str) -> None:
    """What is not by column, not known, or read by others."""
    assert old in text
    assert unchanged(flatten_products, text.replace(old, new))


SEVERAL = """
    x = Placeholder() dtype=float32 shape=(1,8)
    w = Placeholder() dtype=float32 shape=(8,6)
    v = Placeholder() dtype=float32 shape=(6,6)
    s = Const() value=[1,6] dtype=int32
    p = MatMul(x, w)
    r = Reshape(p, s)
    p2 = MatMul(x, w)
    r2 = Reshape(p2, s)
    y = AddV2(r, r2)
    p3 = MatMul(y, v)
    r3 = Reshape(p3, s)
    z = AddV2(y, r3)
    out = Identity(z)
"""


def test_chains_of_chains() -> None:
    """Of two that are added up one goes; what one adds may be what another one gives."""
    rewritten = draft(SEVERAL)
    assert flatten_products(rewritten) == 2
    random = np.random.default_rng(5)
    feeds: dict[str, Any] = {
        f"{name}:0": random.standard_normal(shape, "f")
        for name, shape in (("x", (1, 8)), ("w", (8, 6)), ("v", (6, 6)))
    }
    answers = []
    for options in (ps.GraphOptions.nothing(), ps.GraphOptions()):
        config = ps.Config(graph_options=options, check_graphs=True)
        with ps.Session(sketch(SEVERAL), config=config) as session:
            answers.append(session.run("out:0", feeds))
    np.testing.assert_allclose(*answers, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", [MATRICES, BATCHES, ALONE])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_results_are_those_of_single_nodes(text: str, rows: int) -> None:
    """Also where there are no rows."""
    random = np.random.default_rng(3)
    shapes: dict[str, tuple[int, ...]] = {
        "x": (2 * rows, 8) if text is MATRICES else (rows, 4, 8),
        "w": (8, 6),
    }
    shapes["b"] = (2, 3) if text is BATCHES else (6,)
    feeds: dict[str, Any] = {
        f"{name}:0": random.standard_normal(shape, "f") for name, shape in shapes.items()
    }
    if text is MATRICES:
        feeds["c:0"] = np.float32(0)
    answers = []
    for options in (ps.GraphOptions.nothing(), ps.GraphOptions()):
        with ps.Session(sketch(text), config=ps.Config(graph_options=options)) as session:
            answers.append(session.run("out:0", feeds))
    plain, flat = answers
    assert flat.shape == plain.shape
    np.testing.assert_allclose(flat, plain, rtol=1e-6, atol=1e-6)
