"""Graphs before and after a pass that rewrites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps
from penstock.config import GraphOptions
from penstock.core.values import Array
from penstock.graph.check import check_graph
from penstock.graph.graph import Graph
from penstock.passes.graph_rewriter import GraphRewriter
from support.graphs import lines
from support.sketch import CPU, sketch


def draft(text: str | Graph) -> GraphRewriter:
    """A graph under rewriting, every node where it asks to be."""
    graph = sketch(text) if isinstance(text, str) else text
    host = CPU.removesuffix("/device:CPU:0")
    device_of = {n.id: f"{host}{n.requested_device}" if n.requested_device else CPU for n in graph}
    return GraphRewriter(graph, device_of)


def after(rewrite: Callable[[GraphRewriter], int], text: str) -> list[str]:
    """What a pass makes of a graph, in alphabetical order and without what lost its use."""
    made = draft(text)
    rewrite(made)
    made.drop_unused()
    check_graph(made.graph)
    assert set(made.device_of) == {node.id for node in made.graph}
    return sorted(lines(made.graph))


def unchanged(rewrite: Callable[[GraphRewriter], int], text: str) -> bool:
    """Whether a pass finds nothing to do."""
    before = sorted(lines(sketch(text)))
    made = draft(text)
    assert rewrite(made) == 0 or sorted(lines(made.graph)) != before
    return sorted(lines(made.graph)) == before


def constant(rewritten: GraphRewriter, name: str) -> Any:
    """The value of a constant."""
    return rewritten.graph.node(name).attrs["value"].value


def both(text: str, fetches: list[str], feeds: dict[str, Any] | None = None) -> list[list[Array]]:
    """What a graph gives as it is, and optimised; an error as its text."""
    answers = []
    for options in (GraphOptions.nothing(), GraphOptions()):
        config = ps.Config(graph_options=options, check_graphs=True, tier=ps.Tier.DATAFLOW)
        with ps.Session(sketch(text), config=config) as session:
            try:
                answers.append([np.asarray(value) for value in session.run(fetches, feeds or {})])
            except ps.errors.OpError as error:
                answers.append([np.asarray(str(error))])
    return answers


def agree(text: str, fetches: list[str], feeds: dict[str, Any] | None = None) -> bool:
    """Whether a graph means the same to the last bit when it is optimised."""
    plain, optimised = both(text, fetches, feeds)
    return [(v.dtype, v.shape, v.tobytes()) for v in plain] == [
        (v.dtype, v.shape, v.tobytes()) for v in optimised
    ]
