"""A region of a graph as one node, which stands for all of it.

In:   a GraphRewriter, the nodes of a region, what they read, and what others read of them.
Out:  the GraphRewriter, in which one node is in their place; and what such a node is told of them.
Not:  decides nothing, and knows no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from penstock.core.names import Endpoint
from penstock.defs.schema import GraphDef
from penstock.graph.export import node_to_def
from penstock.graph.graph import Node
from penstock.passes.graph_rewriter import GraphRewriter

#: An output of a node.
Output: TypeAlias = tuple[Node, int]


def put_in_place(
    draft: GraphRewriter,
    nodes: Sequence[Node],
    made: Node,
    reads: Iterable[Output],
    gives: Iterable[Output],
) -> None:
    """Let a new node read what the region reads, and give what others read of the region."""
    for slot, (src, src_slot) in enumerate(reads):
        draft.graph.add_edge(src, src_slot, made, slot)
    places = {output: slot for slot, output in enumerate(gives)}
    moves: dict[Node, Any] = {}
    for node in nodes:
        slots = range(len(node.output_types))
        moves[node] = [(made, places.get((node, slot), 0)) for slot in slots]
        if not any((node, slot) in places for slot in slots):
            moves[node] = ()
    draft.replace(moves)


def names_of(outputs: Iterable[Output]) -> tuple[bytes, ...]:
    """Outputs by their names, as attributes have them."""
    return tuple(str(Endpoint(node.name, slot)).encode() for node, slot in outputs)


def types_of(outputs: Iterable[Output]) -> tuple[Any, ...]:
    """The types of outputs."""
    return tuple(node.output_types[slot] for node, slot in outputs)


def listed(nodes: Iterable[Node]) -> bytes:
    """Nodes as a GraphDef; what one of them waits for is of no account there."""
    graph = GraphDef(node=[node_to_def(node, "") for node in nodes])
    for proto in graph.node:
        kept = [name for name in proto.input if not name.startswith("^")]
        del proto.input[:]
        proto.input.extend(kept)
    content: bytes = graph.SerializeToString(deterministic=True)
    return content
