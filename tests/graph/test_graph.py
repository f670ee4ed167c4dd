"""Edges move and nodes go in bulk, and the laws of graphs hold afterwards."""

from __future__ import annotations

import pytest

from penstock.graph.check import check_graph
from support.graphs import lines
from support.sketch import sketch

TEXT = """
    x = Placeholder() dtype=float32
    a = Neg(x)
    b = Neg(a)
    c = Neg(b, ^a)
    d = Add(b, c, ^b, ^a)
    e = NoOp(^b)
"""


def test_redirect_follows_chains() -> None:
    """An endpoint that moves to one that moves as well ends where that one ends."""
    graph = sketch(TEXT)
    x, a, b, c = map(graph.node, "xabc")
    graph.redirect({b: [(a, 0)], a: [(x, 0)], c: [(b, 0)]})
    graph.remove_nodes([a, b, c])

    check_graph(graph)
    assert lines(graph) == ["x = Placeholder", "d = Add(x, x, ^x)", "e = NoOp(^x)"]


def test_long_chains_are_followed_once() -> None:
    """Ten thousand nodes with a reader each, all in one chain, move in no time."""
    rows = ["n0 = Placeholder() dtype=float32"]
    rows += [f"n{i} = Neg(n{i - 1})\nr{i} = Abs(n{i})" for i in range(1, 10_000)]
    graph = sketch("\n".join(rows))
    moved = {graph.node(f"n{i}"): [(graph.node(f"n{i - 1}"), 0)] for i in range(1, 10_000)}
    graph.redirect(moved)
    graph.remove_nodes(moved)

    assert {node.input(0).src.name for node in graph if node.name != "n0"} == {"n0"}
    assert len(graph.node("n0").out_edges) == len(graph) - 1 == 9_999


@pytest.mark.parametrize("names", ["e", "de", "cde", "bcde", "abcde", "xabcde"])
def test_removing_nodes_takes_their_edges(names: str) -> None:
    """What is left has no edges to what is gone."""
    graph = sketch(TEXT)
    graph.remove_nodes([graph.node(name) for name in names])

    check_graph(graph)
    assert {node.name for node in graph} == set("xabcde") - set(names)


def test_removing_sources_leaves_empty_inputs() -> None:
    """An input whose source goes has no edge, as after ``remove_edge``."""
    graph = sketch(TEXT)
    graph.remove_nodes([graph.node("b")])

    check_graph(graph)
    assert "c = Neg(?, ^a)" in lines(graph)
    assert graph.node("d").inputs[0] is None


def test_a_node_takes_anothers_name() -> None:
    """The new node is found by the name; the old one only hands over its edges."""
    graph = sketch(TEXT)
    old = graph.node("c")
    new = graph.take_name(old, graph.op_def("Placeholder"), graph.node("x").attrs)
    assert graph.node("c") is new
    graph.redirect({old: [(new, 0)]})
    graph.remove_nodes([old])

    check_graph(graph)
    assert lines(graph)[-1] == "c = Placeholder"
    assert graph.node("d").input(1).src is new
