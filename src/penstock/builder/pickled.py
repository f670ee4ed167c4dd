"""Graphs that are pickled and copied.

In:   a graph with its variables.
Out:  its definition, from which it is made again, node by node under the same names.
Not:  keeps no ``with`` block: a copy is what a definition says, and so what is inside of a loop
      or a branch is known to be when it runs, not when it is built upon.

Tensors, operations and variables are pickled as names in their graph, so that what is pickled
or copied together stays together.
"""

from __future__ import annotations

import copyreg
from typing import Any, NamedTuple

from penstock.builder.graph import Graph
from penstock.builder.tensor import Tensor
from penstock.builder.variable import Variable
from penstock.defs.codec import load_apart
from penstock.graph.export import graph_to_def
from penstock.graph.import_graph_def import import_graph_def
from penstock.graph.import_options import ImportOptions


class VariableNames(NamedTuple):
    """What a variable is made of, by name."""

    name: str
    handle: str
    initial_value: str
    initializer: str


def _reduced(graph: Graph) -> tuple[Any, ...]:
    with graph.lock:
        content: bytes = graph_to_def(graph).SerializeToString()
        return _restored, (content, tuple(map(_names_of, graph.variables)))


def _restored(content: bytes, variables: tuple[VariableNames, ...]) -> Graph:
    graph = Graph()
    proto, contents = load_apart(content)
    options = ImportOptions(contents=contents, allow_internal_names=True)
    import_graph_def(graph, proto, options)
    for names in variables:
        graph.variables.append(_variable(graph, VariableNames(*names)))
    return graph


def _names_of(variable: Variable) -> VariableNames:
    return VariableNames(
        variable.name,
        variable.handle.name,
        variable.initial_value.name,
        variable.initializer.name,
    )


def _variable(graph: Graph, names: VariableNames) -> Variable:
    initial_value: Tensor = graph.tensor(names.initial_value)
    return Variable.restored(
        names.name, graph.tensor(names.handle), initial_value, graph.operation(names.initializer)
    )


copyreg.pickle(Graph, _reduced)
