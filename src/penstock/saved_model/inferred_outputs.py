"""What a graph tells of the shapes of a signature's outputs, where the signature leaves them open.

In:   a graph; specifications of outputs, and the tensors that they mean.
Out:  the specifications, with the sizes that follow from the graph.
Not:  runs nothing, and fails for no graph: what cannot be inferred stays as the model says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from penstock.core.names import parse_endpoint
from penstock.core.shapes import TensorShape
from penstock.errors import OpError
from penstock.graph.graph import Graph
from penstock.saved_model.structured import Spec, TensorSpec
from penstock.shapes.infer import Shapes, infer_shapes


def with_inferred_shapes(
    graph: Graph, outputs: Mapping[str, tuple[Spec, Sequence[str]]]
) -> dict[str, Spec]:
    """Specifications by name; values of several tensors stay as they are."""
    with graph.lock:
        shapes = infer_shapes(graph)
        return {name: _completed(shapes, *output) for name, output in outputs.items()}


def _completed(shapes: Shapes, spec: Spec, endpoints: Sequence[str]) -> Spec:
    if not isinstance(spec, TensorSpec) or spec.shape.is_fully_defined:
        return spec
    found = _inferred(shapes, endpoints[0])
    if not spec.shape.is_compatible_with(found):
        return spec
    return dataclasses.replace(spec, shape=spec.shape.merge_with(found))


def _inferred(shapes: Shapes, endpoint: str) -> TensorShape:
    try:
        return shapes.shape(*shapes.graph.endpoint(parse_endpoint(endpoint)))
    except OpError:  # the graph has no such tensor, which a call will say
        return TensorShape(None)
