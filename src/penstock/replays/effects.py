"""Which nodes of a graph may notice, or cause, an order: those that do more than compute.

In:   a GraphDef message.
Out:  the names of such nodes, those in its functions included.
Not:  knows no order; says not what two nodes have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.catalogue.op_def import OpDef
from penstock.catalogue.registry import find_op
from penstock.defs.schema import Message


def with_effects(graph_def: Message) -> frozenset[str]:
    """The names of nodes that read or change something, or call what may."""
    bodies = [graph_def.node, *(function.node_def for function in graph_def.library.function)]
    return frozenset(name for body in bodies for name in _in_body(body))


def _in_body(nodes: Iterable[Message]) -> Iterator[str]:
    ops = {node.name: find_op(node.op) for node in nodes}
    for node in nodes:
        sources = [text.partition(":")[0] for text in node.input if not text.startswith("^")]
        if _has_effects(ops[node.name]) or any(_gives_refs(ops.get(name)) for name in sources):
            yield node.name


def _has_effects(op: OpDef | None) -> bool:
    """What is in no catalogue is a function of the graph, or unknown."""
    return op is None or not (op.only_computes or op.traits.makes_handle)


def _gives_refs(op: OpDef | None) -> bool:
    return op is not None and any(output.is_ref for output in op.outputs)
