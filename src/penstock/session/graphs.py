"""The graph of a session, and how it is seen from outside.

In:   what a session is opened on.
Out:  a graph that can be run; and the same as one that can be built upon.
Not:  runs nothing.

The module that builds graphs is loaded when it is needed: few who run graphs look at them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from penstock.core.forks import importing
from penstock.defs.codec import load_apart
from penstock.graph.graph import Graph
from penstock.graph.import_graph_def import graph_from_def

if TYPE_CHECKING:
    from penstock.builder.graph import Graph as BuiltGraph


#: Stands for the default graph.  None does not: it is what mistakes are made of.
DEFAULT: Final = object()


def graph_of(given: Any) -> Graph:
    """A graph as it is, a new one of a definition in any form, or the default graph."""
    if given is DEFAULT:
        graph: Graph = _builder().default_graph()
        return graph
    return given if isinstance(given, Graph) else graph_from_def(*load_apart(given))


def opened(graph: Graph) -> BuiltGraph:
    """The same graph, as one that can be built upon."""
    built: BuiltGraph = _builder().Graph.opened(graph)
    return built


def _builder() -> Any:
    with importing:
        return importlib.import_module("penstock.builder.graph")
