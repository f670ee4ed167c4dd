"""What the tests of the builder ask of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import penstock as ps
from penstock.builder import Graph
from penstock.graph.frames import build_control_flow_info


def ops_in(graph: Graph) -> Counter[str]:
    """How many nodes of each op there are."""
    return Counter(node.op.name for node in graph)


def waits_for(graph: Graph, name: str) -> list[str]:
    """The names of what a node waits for without taking its value."""
    return [edge.src.name for edge in graph.node(name).control_inputs]


def frames_of(graph: Graph) -> dict[str, str]:
    """The frame of every node by name; raises if an edge crosses a frame."""
    info = build_control_flow_info(graph)
    return {node.name: info.frame_of[node.id].name for node in graph if node.id in info.frame_of}


def run(graph: Graph, fetches: Any, feeds: Mapping[Any, Any] | None = None) -> Any:
    """One step in a session of its own, after the initializers of all variables."""
    with ps.Session(graph) as session:
        for variable in graph.variables:
            session.run(variable.initializer)
        return session.run(fetches, feeds)
