"""The shapes that a graph states.

In:   a node.
Out:  what its attributes promise.
Not:  infers nothing: what follows from other nodes is unknown here; ``penstock.shapes`` does.
"""

from __future__ import annotations

from typing import Final

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role

#: Before this version, a placeholder's empty shape meant an unknown one.
_EMPTY_SHAPE_IS_SCALAR: Final = 24
#: Where TensorFlow notes the shapes that it inferred, if it was asked to.
_NOTED: Final = "_output_shapes"


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
