"""Definitions put into graphs: TensorFlow's ``import_graph_def``, and the runtime's own.

In:   a definition, for the default graph; or a graph, a definition and options.
Out:  the tensors and operations that were asked for; or ``ImportResults``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from penstock.builder.graph import default_graph
from penstock.builder.tensor import Operation, Tensor
from penstock.graph import import_graph_def as merging
from penstock.graph.graph import Graph as BaseGraph
from penstock.graph.import_options import ImportOptions, ImportResults


@overload
def import_graph_def(
    graph_def: BaseGraph, input_map: Any, return_elements: ImportOptions | None = None
) -> ImportResults: ...


@overload
def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Tensor] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str = "import",
) -> list[Tensor | Operation]: ...


def import_graph_def(
    graph_def: Any,
    input_map: Any = None,
    return_elements: Any = None,
    name: str = "import",
) -> Any:
    """Add the nodes of a definition to the default graph, as ``Graph.import_graph_def`` does.

    With a graph in front, ``import_graph_def(graph, graph_def, options)``, the definition is
    merged into that graph as ``ImportOptions`` say, and the result is ``ImportResults``.

    Args:
        graph_def: a GraphDef message, its bytes, or the path of a file.
        input_map: tensors of the graph in the place of tensors of the definition, by name.
        return_elements: names of tensors (``x:0``) and operations (``x``) to return.
        name: the name scope for the nodes; "" adds them as they are called.

    Raises:
        OpError: the definition is not acceptable; the graph is as it was.

    """
    if isinstance(graph_def, BaseGraph):
        return merging.import_graph_def(graph_def, input_map, return_elements)
    return default_graph().import_graph_def(
        graph_def, input_map=input_map, return_elements=return_elements or (), name=name
    )
