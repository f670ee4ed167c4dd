"""A graph, as a notebook shows it.

In:   a graph.
Out:  HTML: what is to be fed, what can be fetched, which ops there are.
Not:  draws no nodes; the report does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from penstock.core.html import block, folded, table
from penstock.graph.endpoints import inputs_of, likely_outputs
from penstock.graph.static_shapes import declared_shape

if TYPE_CHECKING:
    from penstock.graph.graph import Graph, Node


def graph_html(graph: Graph) -> str:
    """What a notebook shows of a graph."""
    with graph.lock:
        counts = Counter(node.op.name for node in graph).most_common()
        inputs = [
            (f"{node.name}:0", node.output_types[0].name, declared_shape(graph, node))
            for node in inputs_of(graph)
        ]
        outputs = [row for node in likely_outputs(graph) for row in _outputs(node)]
        functions = sorted(graph.library)
        title = repr(graph).strip("<>")
    return block(
        title,
        table("to be fed", ("tensor", "type", "shape"), inputs),
        table("likely to be fetched", ("tensor", "op", "type"), outputs),
        folded(f"{len(counts)} ops", table("", ("op", "nodes"), counts)),
        folded(f"{len(functions)} functions", table("", ("function",), [[f] for f in functions])),
    )


def _outputs(node: Node) -> Iterator[Sequence[Any]]:
    for slot, dtype in enumerate(node.output_types):
        yield f"{node.name}:{slot}", node.op.name, dtype.name
