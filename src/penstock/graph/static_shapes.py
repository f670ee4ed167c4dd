"""The shapes that a graph states.

In:   a node.
Out:  the shape of one of its outputs, as far as an attribute says it.
Not:  infers nothing: what follows from other nodes is unknown here.
"""

from __future__ import annotations

from typing import Final

from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.defs.attrs import TensorAttr
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role

#: Before this version, a placeholder's empty shape meant an unknown one.
_EMPTY_SHAPE_IS_SCALAR: Final = 24
#: Where TensorFlow notes the shapes that it inferred, if it was asked to.
_NOTED: Final = "_output_shapes"
#: Ops of one output whose attribute ``shape`` is its shape.
_SHAPED: Final = frozenset(
    {"EnsureShape", "ImmutableConst", "PlaceholderWithDefault", "Variable", "VariableV2"}
)


def declared_shape(graph: Graph, node: Node) -> TensorShape:
    """The shape that a placeholder promises; unknown for every other node."""
    shape = node.attrs.get("shape")
    if node.role is not Role.PLACEHOLDER or not isinstance(shape, TensorShape):
        return UNKNOWN
    if shape.dims == () and graph.versions.producer < _EMPTY_SHAPE_IS_SCALAR:
        return UNKNOWN
    return shape


def noted_shape(graph: Graph, node: Node) -> dict[str, object]:
    """The attribute that says elsewhere what a placeholder promises; none if that is nothing."""
    shape = declared_shape(graph, node)
    return {} if shape.dims is None else {_NOTED: (shape,)}


def noted_shapes(node: Node) -> tuple[TensorShape, ...]:
    """What the attribute says in which TensorFlow notes the shapes of all outputs; or nothing."""
    noted = node.attrs.get(_NOTED)
    if not isinstance(noted, tuple):
        return ()
    return tuple(known if isinstance(known, TensorShape) else UNKNOWN for known in noted)


def shape_of_output(graph: Graph, node: Node, slot: int) -> TensorShape:
    """What attributes say about the shape of an output; often nothing."""
    noted = node.attrs.get(_NOTED)
    if isinstance(noted, tuple) and slot < len(noted):
        known = noted[slot]
        return known if isinstance(known, TensorShape) else UNKNOWN
    if node.role is Role.PLACEHOLDER:
        return declared_shape(graph, node)
    value, shape = node.attrs.get("value"), node.attrs.get("shape")
    if node.role is Role.CONSTANT and isinstance(value, TensorAttr):
        return value.shape
    if node.op.name in _SHAPED and isinstance(shape, TensorShape):
        return shape
    if node.op.name == "VarHandleOp":
        return SCALAR
    if node.op.name == "ReadVariableOp" and node.inputs[0] is not None:
        handle = node.inputs[0].src
        stated = handle.attrs.get("shape") if handle.op.name == "VarHandleOp" else None
        return stated if isinstance(stated, TensorShape) else UNKNOWN
    return UNKNOWN
