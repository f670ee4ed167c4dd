"""Graph → GraphDef.

In:   a graph, and optionally the device of each node.
Out:  a GraphDef that reads back as the same graph.
Not:  leaves nothing out; default attributes are written like any others.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.names import Endpoint
from penstock.defs import attrs as attr_codec
from penstock.defs.schema import GraphDef, Message, NodeDef
from penstock.graph.graph import Graph, Node


def graph_to_def(graph: Graph, device_of: Mapping[int, str] | None = None) -> Message:
    """The definition of a graph: nodes by id, data inputs by slot, control inputs by name."""
    graph_def = GraphDef()
    for node in graph:
        device = (device_of or {}).get(node.id) or node.assigned_device or node.requested_device
        graph_def.node.append(node_to_def(node, device))
    versions = graph.versions
    graph_def.versions.producer = versions.producer
    graph_def.versions.min_consumer = versions.min_consumer
    graph_def.versions.bad_consumers.extend(versions.bad_consumers)
    if len(graph.library):
        graph_def.library.CopyFrom(graph.library.to_proto())
    return graph_def


def node_to_def(node: Node, device: str) -> Message:
    """The definition of one node."""
    proto = NodeDef(name=node.name, op=node.op.name, device=device)
    for slot, edge in enumerate(node.inputs):
        if edge is not None:
            proto.input.append(str(Endpoint(edge.src.name, edge.src_slot)))
        else:  # An incomplete graph keeps the text it came from.
            known = slot < len(node.requested_inputs)
            proto.input.append(node.requested_inputs[slot] if known else "")
    proto.input.extend(f"^{edge.src.name}" for edge in node.control_inputs)
    for name, value in sorted(node.attrs.items()):
        if value is not None:
            declared = node.op.attrs.get(name)
            kind = declared.kind if declared is not None else attr_codec.kind_of(value)
            proto.attr[name].CopyFrom(attr_codec.to_proto(kind, value))
    return proto
