"""Restoring a graph of TensorFlow 1 without running it.

In:   the graph, the node that restores it, a checkpoint.
Out:  the variables that it would assign, with their values; None if it does anything else.
Not:  guesses nothing: what is not plainly an assignment of a restored tensor is left to a step.

What a Saver writes is nothing but assignments of what RestoreV2 reads.  Taken straight from the
checkpoint, values are views of its files, which are mapped: nothing is copied, and sessions that
may use no files are restored as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from penstock.checkpoint import Checkpoint
from penstock.core.dtypes import DType
from penstock.core.values import Ref, Value, dtype_of, shape_of
from penstock.defs.tensor_slices import parse_shape_and_slice
from penstock.errors import DataLossError, NotFoundError, OpError
from penstock.graph.graph import Edge, Graph, Node
from penstock.kernels.state.variables import (
    REFERENCE_VARIABLE,
    RESOURCE_VARIABLE,
    ReferenceVariable,
)
from penstock.state.resources import ResourceManager

_ASSIGNS: Final = frozenset({"Assign", "AssignVariableOp"})
_HANDLES: Final = frozenset({"VarHandleOp"})
_REFERENCES: Final = frozenset({"Variable", "VariableV2"})
#: Nodes that only order others, or hand on what they get.
_ORDER: Final = "NoOp"
_SAME: Final = "Identity"


class Restored(NamedTuple):
    """A variable, and where its value is in the checkpoint."""

    variable: Node
    key: str
    #: The shape of the whole and the part that is meant, as RestoreV2 has them; may be empty.
    part: str


def planned(graph: Graph, restore: str, filename: str) -> list[Restored] | None:
    """What a node restores from the checkpoint that a node ``filename`` names.

    None if it does more than that, or otherwise.
    """
    start = graph.find(restore)
    if start is None:
        return None
    found, waiting, seen = [], [start], {start}
    while waiting:
        node = waiting.pop()
        if node.op.name in _ASSIGNS:
            one = _assignment(node, filename)
            if one is None:
                return None
            found.append(one)
        elif node.op.name != _ORDER:
            return None
        for edge in node.control_inputs:
            if edge.src not in seen:
                seen.add(edge.src)
                waiting.append(edge.src)
    # Whoever assigns twice to one variable means an order, which is for a step to keep.
    is_plain = len({one.variable for one in found}) == len(found)
    return found if is_plain else None


def _assignment(node: Node, filename: str) -> Restored | None:
    """What an Assign restores; None if its value is no restored tensor."""
    target, source = node.input(0).src, _origin(node.input(1))
    restore, slot = source.src, source.src_slot
    is_variable = target.op.name in _HANDLES | _REFERENCES
    if not is_variable or restore.op.name != "RestoreV2":
        return None
    if _origin(restore.input(0)).src.name != filename:
        return None
    keys, parts = (_texts(restore.input(place).src) for place in (1, 2))
    if keys is None or parts is None or not slot < min(len(keys), len(parts)):
        return None
    return Restored(target, keys[slot], parts[slot])


def _origin(edge: Edge) -> Edge:
    """Where a value comes from that is handed on as it is."""
    while edge.src.op.name == _SAME and not edge.src.control_inputs:
        edge = edge.src.input(0)
    return edge


def _texts(node: Node) -> list[str] | None:
    """The elements of a constant vector of strings."""
    if node.op.name != "Const":
        return None
    try:
        value = node.attrs["value"].value
    except OpError:  # whoever runs it, hears of it
        return None
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not value.dtype.hasobject:
        return None
    items = value.tolist()
    if not all(isinstance(item, bytes) for item in items):
        return None
    return [item.decode("utf-8", "surrogateescape") for item in items]


def restore_all(
    plan: list[Restored],
    checkpoint: Checkpoint,
    resources_of: Callable[[Node], ResourceManager],
) -> None:
    """Give variables their values.

    Args:
        plan: what is restored.
        checkpoint: where the values are.
        resources_of: the resources among which a node keeps its variable.

    Raises:
        NotFoundError: the checkpoint lacks a tensor.
        DataLossError: a value is damaged, or of another type or shape than its variable.

    """
    for one in plan:
        _restore(one, _value(one, checkpoint), resources_of(one.variable))


def _value(one: Restored, checkpoint: Checkpoint) -> Value:
    if one.key not in checkpoint:
        raise NotFoundError(f"Key {one.key} not found in checkpoint {checkpoint.prefix}")
    part = parse_shape_and_slice(one.part)[1] if one.part else None
    return checkpoint.read(one.key, None if part is None else part.places)


def _restore(one: Restored, value: Value, resources: ResourceManager) -> None:
    node = one.variable
    dtype: DType = node.attrs["dtype"]
    shape = node.attrs["shape"]
    if dtype_of(value) is not dtype or not shape.accepts(shape_of(value)):
        raise DataLossError(
            f"the variable {node.name} is {dtype} of shape {shape}, and the checkpoint has "
            f"{dtype_of(value)} of shape {list(shape_of(value))} for it"
        )
    container, shared = (node.attrs[key].decode() for key in ("container", "shared_name"))
    name = shared or node.name
    if node.op.name in _HANDLES:
        ref, kind = Ref(name, dtype), RESOURCE_VARIABLE
    else:
        ref, kind = ReferenceVariable(name, dtype, shape_of(value)), REFERENCE_VARIABLE
    ref.assign(value)
    resources.create(container, name, kind, ref)
