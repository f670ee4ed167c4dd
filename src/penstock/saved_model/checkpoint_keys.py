"""Where in the checkpoint the values of a model's objects are.

In:   the objects of the model, and the TrackableObjectGraph of its checkpoint.
Out:  keys of the checkpoint by the objects' numbers.
Not:  reads no value; never asks what a variable is called.

The two graphs are walked in step, by the names of edges, from their roots.  Names of variables
repeat (Keras calls many ``kernel``), and one that a program gave may differ from the one that its
graph uses; the way to an object is what both graphs agree on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError

from penstock.defs.bundle_reader import BundleReader
from penstock.defs.schema import message_class
from penstock.errors import DataLossError
from penstock.saved_model.object_graph import SavedObjects

_OBJECT_GRAPH: Final = b"_CHECKPOINTABLE_OBJECT_GRAPH"
#: The attribute of a variable that is its value.
VALUE: Final = "VARIABLE_VALUE"


def keys_of_objects(
    objects: SavedObjects, checkpoint: BundleReader
) -> dict[int, Mapping[str, str]]:
    """Keys by attribute, by the number of the object in the model.

    Raises:
        DataLossError: the checkpoint's own graph of objects is damaged.

    """
    saved = _trackables(checkpoint)
    matched = _in_step(objects, saved)
    found: dict[int, Mapping[str, str]] = {}
    for number, other in matched.items():
        keys = {attr.name: attr.checkpoint_key for attr in saved[other].attributes}
        if keys:
            found[number] = keys
    return found


def _trackables(checkpoint: BundleReader) -> list[Any]:
    proto = message_class("TrackableObjectGraph")()
    try:
        proto.ParseFromString(checkpoint.read(_OBJECT_GRAPH))
    except (DecodeError, ValueError) as cause:  # bad UTF-8 may be either
        raise DataLossError(f"the checkpoint's graph of objects is damaged: {cause}") from None
    nodes = list(proto.nodes)
    for node in nodes:
        ends = [child.node_id for child in node.children]
        ends += [slot.original_variable_node_id for slot in node.slot_variables]
        ends += [slot.slot_variable_node_id for slot in node.slot_variables]
        if not all(0 <= end < len(nodes) for end in ends):
            raise DataLossError("the checkpoint's graph of objects has an edge to nowhere")
    if not nodes:
        raise DataLossError("the checkpoint's graph of objects is empty")
    return nodes


def _in_step(objects: SavedObjects, saved: list[Any]) -> dict[int, int]:
    """The checkpoint's numbers of objects by the model's."""
    matched = {0: 0}
    waiting = deque([0])
    while waiting:
        number = waiting.popleft()
        other = saved[matched[number]]
        edges = {child.local_name: child.node_id for child in other.children}
        ends = [(end, edges[name]) for name, end in objects.children(number) if name in edges]
        # An optimizer's slots hang on pairs: the variable that they are for, and their name.
        slots = {(s.original_variable_node_id, s.slot_name): s for s in other.slot_variables}
        for slot in objects.nodes[number].slot_variables:
            original = matched.get(slot.original_variable_node_id, -1)
            theirs = slots.get((original, slot.slot_name))
            if theirs is not None:
                ends.append((slot.slot_variable_node_id, theirs.slot_variable_node_id))
        for end, theirs_end in ends:
            if end not in matched:
                matched[end] = theirs_end
                waiting.append(end)
    return matched
