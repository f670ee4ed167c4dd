"""Sums of products by an equation, and truths along axes, in programs: as numpy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.core import dtypes
from penstock.kernels.c.library import loaded
from penstock.kernels.native import traced_nodes
from penstock.kernels.native.rules import may_be_written
from support.native import ALL, JIT, watched

assert traced_nodes  # its import has made the rules known
if loaded() is None:
    pytest.skip("there is no library of kernels in C", allow_module_level=True)

NATIVE = ps.Config(graph_options=JIT, limits=ALL, check_graphs=True)
RANDOM = np.random.default_rng(5)
SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 1}


def einsum(equation: str, ranks: tuple[int, int]) -> ps.Graph:
    """One node, whose inputs are fed."""
    graph = ps.Graph()
    with graph.as_default():
        x, y = (
            ps.placeholder("float32", [None] * rank, name=name)
            for name, rank in zip("xy", ranks, strict=True)
        )
        ps.ops.einsum([x, y], equation, name="z")
    return graph


@pytest.mark.parametrize(
    "equation",
    [
        "abc,ac->ab",  # attention: places by a question
        "ab,abc->ac",  # and what they answer
        "ab,bc->ac",
        "ba,cb->ca",
        "abc,adc->abd",
        "abcd,acbd->ab",
        "abcd,dc->ba",
        "a,b->ba",
        "a,a->",
        "abe,aeb->abe",
        "ae,ed->da",
    ],
)
def test_products_by_an_equation(equation: str) -> None:
    """Whatever the order of axes is, and how many are summed."""
    x, y = (
        RANDOM.standard_normal([SIZES[label] for label in labels]).astype(np.float32)
        for labels in equation.partition("->")[0].split(",")
    )
    graph = einsum(equation, (x.ndim, y.ndim))
    with watched() as given, ps.Session(graph, config=NATIVE) as session:
        z = session.run("z:0", {"x:0": x, "y:0": y})
    assert [one is not None for one in given] == [True]
    np.testing.assert_allclose(z, np.einsum(equation, x, y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "equation", ["aa,ab->b", "ab,b->aab", "ab,bc->c", "a...,a->...", "ab->ba", "ab,bc,cd->ad", ""]
)
def test_other_equations_are_for_the_nodes(equation: str) -> None:
    """Diagonals, broadcast axes, sums over one array's own axis, and what is no equation."""
    attrs: dict[str, Any] = {"equation": equation.encode()}
    assert not may_be_written("Einsum", attrs, [dtypes.float32] * 2, [dtypes.float32])
    assert may_be_written("Einsum", {"equation": b"ab,b->a"}, [dtypes.float32] * 2, [])


def test_sizes_that_do_not_agree_are_the_nodes_error() -> None:
    """The same label has one size."""
    feeds = {"x:0": np.ones((2, 3), np.float32), "y:0": np.ones((4, 2), np.float32)}
    with (
        ps.Session(einsum("ab,bc->ac", (2, 2)), config=NATIVE) as session,
        pytest.raises(ps.errors.InvalidArgumentError, match="dimension"),
    ):
        session.run("z:0", feeds)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axes", [[0], [1], [0, 2], [-1], [0, 1, 2], []])
def test_truths_along_axes(axes: list[int], keep: bool) -> None:
    """Whether all are true, and whether one is."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("bool", [None, None, None], name="x")
        ps.ops.all(x, np.array(axes, np.int32), keep_dims=keep, name="every")
        ps.ops.any(x, np.array(axes, np.int32), keep_dims=keep, name="one")
    value = RANDOM.random((3, 2, 4)) < 0.6
    with watched() as given, ps.Session(graph, config=NATIVE) as session:
        every, one = session.run(["every:0", "one:0"], {"x:0": value})
    assert given
    assert None not in given
    np.testing.assert_array_equal(every, value.all(tuple(axes), keepdims=keep))
    np.testing.assert_array_equal(one, value.any(tuple(axes), keepdims=keep))
