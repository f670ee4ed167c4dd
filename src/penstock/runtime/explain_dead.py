"""Say why a fetched tensor is dead.

In:   the graph and the fetched endpoint.
Out:  an error that names the Switches and predicates that can have killed it.
Not:  does not run the step again; it reasons from the graph.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from penstock.core.names import Endpoint, parse_endpoint
from penstock.errors import InvalidArgumentError, Where
from penstock.graph.graph import Edge, Graph
from penstock.graph.roles import Role

_MAX_NAMED: Final = 3


def dead_fetch_error(graph: Graph, index: int, text: str) -> InvalidArgumentError:
    """The error for fetch number ``index``, which was dead."""
    endpoint = parse_endpoint(text)
    node = graph.node(endpoint.node)
    causes = [_explain(edge) for edge in _killers(graph, endpoint)]
    reason = f"Retval[{index}] does not have value: {text} is dead"
    if causes:
        reason += ", since it depends on " + ", or on ".join(causes[:_MAX_NAMED])
        if len(causes) > _MAX_NAMED:
            reason += f", or on one of {len(causes) - _MAX_NAMED} other Switch outputs"
    return InvalidArgumentError(
        reason,
        where=Where(node.name, node.op.name),
        next_step="fetch the Merge behind the branch, or feed the predicate the other way",
    )


def _killers(graph: Graph, endpoint: Endpoint) -> list[Edge]:
    """Edges out of the nearest Switches that the endpoint depends on, nearest first."""
    start = graph.node(endpoint.node)
    if start.role is Role.SWITCH:
        return [Edge(start, endpoint.slot, start, 0)]
    seen, killers = {start.id}, []
    waiting = deque([start])
    while waiting:
        for edge in waiting.popleft().in_edges():
            if edge.src.role is Role.SWITCH and not edge.is_control:
                killers.append(edge)
            elif edge.src.id not in seen:
                seen.add(edge.src.id)
                waiting.append(edge.src)
    return killers


def _explain(edge: Edge) -> str:
    """Which side of a Switch an edge leaves, and what its predicate must have been."""
    switch = edge.src
    predicate = switch.inputs[1]
    name = str(Endpoint(predicate.src.name, predicate.src_slot)) if predicate else "its predicate"
    value = {0: "true", 1: "false"}.get(edge.src_slot, "another index")
    return f"output {edge.src_slot} of Switch '{switch.name}', whose predicate '{name}' was {value}"
