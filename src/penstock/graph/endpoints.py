"""What of a graph is meant to be fed, and what to be fetched.

In:   a graph.
Out:  nodes; for outputs a guess, since a GraphDef does not say.
Not:  prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.core import dtypes
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role

#: Ends of a graph that give nothing to look at.
_CHORES: Final = (
    "Assert",
    "Assign",
    "Const",
    "MergeV2",
    "ReadVariable",
    "Restore",
    "Save",
    "Shard",
)
#: The scope of what only training needs.
_GRADIENTS: Final = "gradients/"


def inputs_of(graph: Graph) -> list[Node]:
    """Placeholders: what is meant to be fed."""
    return [n for n in graph if n.role is Role.PLACEHOLDER or n.op.name == "PlaceholderWithDefault"]


def outputs_of(graph: Graph) -> list[Node]:
    """Nodes with results that nobody in the graph uses."""
    return [n for n in graph if n.output_types and all(e.is_control for e in n.out_edges)]


def likely_outputs(graph: Graph) -> list[Node]:
    """Of the outputs, those that are probably meant to be fetched; none only if there are none.

    They depend on what is fed, and are neither part of saving nor of training.
    """
    outputs = outputs_of(graph)
    results = [node for node in outputs if not _is_chore(node)]
    behind = _behind([node for node in graph if node.role is Role.PLACEHOLDER])
    dependent = [node for node in results if node in behind]
    values = [node for node in dependent if not node.op.name.endswith("Summary")]
    return values or dependent or results or outputs


def _is_chore(node: Node) -> bool:
    """Whether a node saves, trains or checks, or its results are places rather than values."""
    if node.op.name.startswith(_CHORES) or node.name.startswith(_GRADIENTS):
        return True
    return all(dtype.is_ref or dtype is dtypes.resource for dtype in node.output_types)


def _behind(nodes: Iterable[Node]) -> set[Node]:
    """Some nodes, and all that depend on them."""
    found = set(nodes)
    waiting = list(found)
    while waiting:
        new = {edge.dst for edge in waiting.pop().out_edges} - found
        found |= new
        waiting += new
    return found


def ancestors_of(node: Node) -> set[Node]:
    """The node, and all that it depends on."""
    found = {node}
    waiting = [node]
    while waiting:
        new = {edge.src for edge in waiting.pop().in_edges()} - found
        found |= new
        waiting += new
    return found
