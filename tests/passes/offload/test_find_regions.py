"""Regions can run one after the other, whatever leads from one to the next."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.graph.graph import Graph, Node
from penstock.graph.import_graph_def import import_graph_def
from penstock.passes.graph_rewriter import GraphRewriter
from penstock.passes.offload.find_regions import find_regions


def rewriter(graph: ps.Graph, devices: dict[str, str]) -> GraphRewriter:
    """A graph under rewriting, some of whose nodes are on devices."""
    whole = Graph()
    import_graph_def(whole, graph.as_graph_def())
    places = {node.id: devices.get(node.name, "") for node in whole}
    return GraphRewriter(whole, places)


def names(regions: list[list[Node]]) -> list[set[str]]:
    """The names of the nodes of each."""
    return [{node.name for node in region} for region in regions]


def needs(regions: list[list[Node]], one: int, other: int) -> bool:
    """Whether a region reads what another one gives."""
    inside = set(regions[other])
    return any(edge.src in inside for node in regions[one] for edge in node.in_edges())


@pytest.mark.parametrize("late", [False, True])
def test_regions_of_two_devices_do_not_wait_for_each_other(late: bool) -> None:
    """What one device has of a constant and the other reads is no part of what that waits for."""
    graph = ps.Graph()
    with graph.as_default():
        a, b = (ps.ops.neg(ps.constant([1.0, 2.0], name=f"c{name}"), name=name) for name in "ab")
        at_b, at_a = ps.ops.exp(a, name="at_b"), ps.ops.exp(b, name="at_a")
        ends = ps.ops.add_v2(a, at_a, name="end_a"), ps.ops.add_v2(b, at_b, name="end_b")
        for end in ends:
            ps.identity(end)
    places = {"a": "A", "at_a": "A", "end_a": "A", "b": "B", "at_b": "B", "end_b": "B"}
    draft = rewriter(graph, places)
    regions = find_regions(draft, lambda node: node.name in places, late=late)
    assert {len({draft.device(node) for node in region}) for region in regions} == {1}
    for one in range(len(regions)):
        for other in range(one):
            assert not (needs(regions, one, other) and needs(regions, other, one))


@pytest.mark.parametrize("late", [False, True])
def test_what_is_read_late_may_run_late(late: bool) -> None:
    """Behind something that may not go, next to its only reader."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [2], name="x")
        early, first = ps.ops.exp(x, name="early"), ps.ops.tanh(x, name="first")
        between = ps.ops.neg(first, name="between")
        ps.identity(ps.ops.add_v2(early, between, name="last"))
    draft = rewriter(graph, {})
    found = names(find_regions(draft, lambda node: node.name != "between", late=late))
    assert {"early"} in found or {"early", "last"} in found
    assert ({"early", "last"} in found) == late
    assert {"first"} in found
