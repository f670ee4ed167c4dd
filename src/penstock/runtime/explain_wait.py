"""Say what a node waits for, and which nodes could end the wait.

In:   the graph, and what a kernel says that it waits for.
Out:  a clause for people.
Not:  looks at no step: who ends the wait may be run by another one, or by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.graph.graph import Graph, Node
from penstock.graph.roles import HANDS_REFERENCES_ON
from penstock.kernels.api.context import Waiting
from penstock.state.resources import DEFAULT_CONTAINER

_MAX_NAMED: Final = 3


def explain_wait(graph: Graph, waiting: Waiting) -> str:
    """What is waited for, and the nodes that could end that."""
    text = waiting.describe()
    if not waiting.ended_by:
        return text
    names = [f"{node.name} ({node.op.name})" for node in enders(graph, waiting)]
    names += [f"the function {name}" for name in _functions_with(graph, waiting.ended_by)]
    if not names:
        return f"{text}; no node of the graph could end that"
    shown = ", ".join(names[:_MAX_NAMED])
    rest = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"{text}; what could end that: {shown}{rest}"


def enders(graph: Graph, waiting: Waiting) -> Iterator[Node]:
    """The nodes that can end a wait: of the right op, on the same resource."""
    container, name = waiting.resource
    wanted = (container or DEFAULT_CONTAINER, name)
    for node in list(graph):
        if node.op.name in waiting.ended_by and _place_of(node) == wanted:
            yield node


def _place_of(node: Node) -> tuple[str, str] | None:
    """Container and name of the resource that a node works on; None if nobody knows."""
    source, seen = node, {node}
    while "shared_name" not in source.attrs:
        if (source is not node and not _hands_on(source)) or not source.inputs:
            return None
        edge = source.inputs[0]
        if edge is None or edge.src in seen:
            return None
        source = edge.src
        seen.add(source)
    container, name = source.attrs["container"].decode(), source.attrs["shared_name"].decode()
    return container or DEFAULT_CONTAINER, name or source.name


def _hands_on(node: Node) -> bool:
    """Whether a node hands on a handle, or the right to what a handle means."""
    return node.role in HANDS_REFERENCES_ON or node.op.traits.stands_for_input


def _functions_with(graph: Graph, ops: frozenset[str]) -> Iterator[str]:
    """The functions whose bodies have nodes of some ops; on which resource, the callers know."""
    for name in graph.library:
        if any(node.op in ops for node in graph.library.get(name).node_def):
            yield name
