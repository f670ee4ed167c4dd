"""Advice that only who has the graph can give.

In:   the error of a step, and the session's graph.
Out:  the same error, whose advice names nodes of the graph where it said only what kind of node.
Not:  changes nothing else about the error.
"""

from __future__ import annotations

from penstock.advice import InitializeIt, RunInitializer
from penstock.errors import OpError
from penstock.graph.graph import Graph
from penstock.graph.initializers import initializer_of, restorer_of


def advise(error: OpError, graph: Graph) -> None:
    """Say which nodes initialize or restore what has no value."""
    wanted = error.advice
    if not isinstance(wanted, InitializeIt):
        return
    with graph.lock:
        initializer = initializer_of(graph, wanted.kind, wanted.name)
        restorer = restorer_of(graph, wanted.name) if wanted.kind == "variable" else None
    if initializer or restorer or wanted.kind == "variable":
        node, prefix = restorer or ("", "")
        error.advice = RunInitializer(initializer or "", node, prefix)
