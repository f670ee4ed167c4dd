"""Put one node into a graph, with the edges that its surroundings ask for.

In:   an op with finished attributes, inputs that are at home where the node goes, a scope.
Out:  the node: wired, placed in its context, waiting for what it has to wait for.
Not:  infers nothing and captures nothing; ``call.py`` and ``contexts.py`` do.

Law: inside a branch or a loop, a node none of whose inputs says that the branch was taken,
or that there is another iteration, gets a control edge that says so, from the context's
pivot.  Such are nodes without inputs, and nodes that take loop invariants only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from penstock.builder.tensor import Tensor
from penstock.graph.graph import Node
from penstock.graph.roles import Role

if TYPE_CHECKING:
    from penstock.builder.graph import Graph
    from penstock.builder.scope import Context, Dependencies, Scope
    from penstock.defs.attrs import Attr

#: The attribute that lists what a node must share a device with.
COLOCATION: Final = "_class"


def make_node(
    scope: Scope,
    op: str,
    attrs: Mapping[str, Attr],
    inputs: Sequence[Tensor | None],
    name: str,
) -> Node:
    """Add a node to the scope's graph; ``name`` is final, None an input to come later."""
    graph = scope.graph
    op_def = graph.op_def(op)
    facts = {a.name: a.default for a in op_def.attrs.values()} | dict(attrs)
    if scope.colocation:
        facts[COLOCATION] = scope.colocation
    node = graph.add_node(name, op_def, facts, device=scope.device)
    for slot, tensor in enumerate(inputs):
        if tensor is not None:
            graph.add_edge(tensor.node, tensor.slot, node, slot)
    graph.add_control_edges(_control_sources(scope, node), node)
    set_context(graph, node, scope.context)
    return node


def unmake(graph: Graph, node: Node) -> None:
    """Take a node away again that nothing reads yet."""
    context = graph.context_of.pop(node.id, None)
    if context is not None:
        context.members.remove(node)
    graph.remove_node(node)


def set_context(graph: Graph, node: Node, context: Context | None) -> None:
    """Say where the outputs of ``node`` are at home."""
    if context is None:
        graph.context_of.pop(node.id, None)
    else:
        graph.context_of[node.id] = context
        context.members.append(node)


def _control_sources(scope: Scope, node: Node) -> Iterator[Node]:
    for block in scope.dependencies:
        if not _waits_already(node, block):
            yield from _missing(node, block)
        block.waiting.add(node.id)
    if scope.context is not None and all(
        _is_invariant(edge.src) for edge in node.inputs if edge is not None
    ):
        yield scope.context.pivot


def _waits_already(node: Node, block: Dependencies) -> bool:
    """Whether an input makes the node wait for all of a block's sources."""
    waits = [edge.src.id in block.waiting for edge in node.inputs if edge is not None]
    # A Merge waits for one input only, and nobody knows which.
    return bool(waits) and (all(waits) if node.role is Role.MERGE else any(waits))


def _missing(node: Node, block: Dependencies) -> Iterator[Node]:
    """Sources that the node does not take values from."""
    taken = {edge.src.id for edge in node.inputs if edge is not None}
    for source in block.sources:
        if source.id not in taken or node.role is Role.MERGE:
            yield source


def _is_invariant(node: Node) -> bool:
    return node.role is Role.ENTER and bool(node.attrs["is_constant"])
