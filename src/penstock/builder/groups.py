"""Many operations as one, and values that wait for operations.

In:   tensors and operations.
Out:  one operation after all of them, or the same tensors, held back.
"""

from __future__ import annotations

from typing import Any

from penstock.builder import structure
from penstock.builder.blocks import control_dependencies
from penstock.builder.graph import apply, default_graph, graph_of
from penstock.builder.operators import Operators
from penstock.builder.structure import Structure
from penstock.builder.tensor import Operation, Tensor


def group(*inputs: Any, name: str = "group_deps") -> Operation:
    """An operation that is done when all ``inputs`` are: tensors, operations, lists of them."""
    sources = structure.flatten(inputs)
    graph = next((s.graph for s in sources if isinstance(s, (Operation, Operators))), None)
    graph = graph if graph is not None else default_graph()
    with graph.as_default(), control_dependencies(sources):
        result: Operation = apply("NoOp", name=name)
    return result


def tuple_(tensors: Structure, control_inputs: Any = (), name: str = "tuple") -> Structure:
    """The same tensors, none of which is there before all of them are.

    ``control_inputs`` are operations that must be done as well.
    """
    leaves = structure.flatten(tensors)
    with graph_of(leaves).as_default():
        gate = group(leaves, structure.flatten(control_inputs), name=f"{name}/gate")
        with control_dependencies([gate]):
            gated = [apply("Identity", leaf, name=f"{name}/item") for leaf in leaves]
    return structure.pack(tensors, gated)


def with_dependencies(sources: Any, value: Any, name: str = "control_dependency") -> Tensor:
    """``value``, not there before ``sources`` are done."""
    with graph_of([value]).as_default(), control_dependencies(structure.flatten(sources)):
        result: Tensor = apply("Identity", value, name=name)
    return result
