"""Write a region as a model of ONNX.

In:   the nodes of a region in order, and what is known of shapes.
Out:  ``RegionModel``: the model's bytes, and what reads what it is given.
Not:  decides nothing about regions; an ``Exporter`` says of one node whether there is a way.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import Role
from penstock.passes.graph_rewriter import value_of
from penstock.passes.offload import convolution_rules, elementwise_rules, shape_rules
from penstock.passes.offload.gates import is_gate
from penstock.passes.offload.model_writer import TYPES, ModelWriter, Tensor, UnsupportedError
from penstock.passes.offload.rules import RULES, Written
from penstock.shapes.infer import infer_shapes

assert convolution_rules, elementwise_rules  # their import has made the rules known
assert shape_rules

#: What reads a variable; and how the names of ops begin that write to one.
_READS: Final = frozenset({"ReadVariableOp"})
_WRITERS: Final = ("Assign", "ResourceApply", "ResourceScatter", "ResourceSparseApply")
#: Constants of more bytes are given to the model, which has the others in itself.
_LARGE: Final = 1024


@dataclass(frozen=True, slots=True)
class RegionModel:
    """A region, written."""

    model: bytes
    #: Nodes and slots of the region that read the model's inputs, in their order, and its large
    #: constants, in theirs.  What they read may change its name while other regions are replaced.
    inputs: tuple[tuple[Node, int], ...]
    weights: tuple[tuple[Node, int], ...]
    #: What its outputs are, as nodes and slots, in their order.
    outputs: tuple[tuple[Node, int], ...]
    #: Constants that stand in the model, too.
    constants: tuple[Node, ...]


class Exporter:
    """What is known of a graph whose regions are written."""

    def __init__(self, graph: Graph) -> None:
        self.shapes: Final = infer_shapes(graph)
        #: Whether nobody in this graph changes a variable: then what is read stays the same, until
        #: another request changes it.
        self.keeps_variables: Final = not any(map(_writes, graph))

    def can_write(self, node: Node) -> bool:
        """Whether there is a way to write a node, and all that is read of it."""
        if node.op.name not in RULES or not set(TYPES).issuperset(node.output_types):
            return False
        try:
            made = _RegionWriter(self, ()).write(node)
        except UnsupportedError:
            return False
        return all(edge.is_control or edge.src_slot < len(made) for edge in node.out_edges)

    def model_of(self, nodes: Sequence[Node]) -> RegionModel:
        """The model of a region; every node of it can be written."""
        writer = _RegionWriter(self, nodes)
        for node in nodes:
            writer.write(node)
        return writer.finished(nodes)

    def is_fixed(self, edge: Edge) -> bool:
        """Whether an edge brings a constant, or a variable that nobody changes here."""
        if edge.src.role is Role.CONSTANT:
            return True
        if not self.keeps_variables or edge.src.op.name not in _READS:
            return False
        return self.shapes.shape(edge.src, edge.src_slot).is_fully_defined


def _writes(node: Node) -> bool:
    """Whether a node may change a variable."""
    return node.op.name.startswith(_WRITERS)


class _RegionWriter:
    """A region that is being written."""

    def __init__(self, exporter: Exporter, nodes: Iterable[Node]) -> None:
        self._exporter: Final = exporter
        self._shapes: Final = exporter.shapes
        self._inside: Final = frozenset(nodes)
        self._writer: Final = ModelWriter()
        #: What is known inside, by node and slot.
        self._tensors: Final[dict[tuple[Node, int], Tensor]] = {}
        self._inputs: Final[list[tuple[Node, int]]] = []
        self._weights: Final[list[tuple[Node, int]]] = []
        self._constants: Final[dict[Node, None]] = {}

    def write(self, node: Node) -> Sequence[Tensor]:
        """Write one node; returns its outputs."""
        edges = [node.input(slot) for slot in range(len(node.inputs))]
        facts = self._shapes.facts(node)
        written = Written(
            self._writer,
            node.op.name,
            node.attrs,
            [self._tensor(edge) for edge in edges],
            [value_of(edge.src) for edge in edges],
            [self._exporter.is_fixed(edge) for edge in edges],
            facts.shapes,
            node.output_types,
            functools.partial(is_gate, node),
        )
        made = RULES[node.op.name](written)
        tensors = [made] if isinstance(made, Tensor) else list(made)
        self._tensors.update({(node, slot): tensor for slot, tensor in enumerate(tensors)})
        return tensors

    def finished(self, nodes: Sequence[Node]) -> RegionModel:
        """The model, with what is read outside of the region as its outputs."""
        read = {
            (node, edge.src_slot): None
            for node in nodes
            for edge in node.out_edges
            if edge.dst not in self._inside
        }
        for endpoint in read:
            self._writer.output(self._tensors[endpoint])
        ends = tuple(self._inputs), tuple(self._weights), tuple(read), tuple(self._constants)
        return RegionModel(self._writer.to_bytes(), *ends)

    def _tensor(self, edge: Edge) -> Tensor:
        key = edge.src, edge.src_slot
        found = self._tensors.get(key)
        if found is None:
            found = self._tensors[key] = self._brought(edge, value_of(edge.src))
        return found

    def _brought(self, edge: Edge, value: Value | None) -> Tensor:
        """A constant, or what comes from outside."""
        dtype = edge.src.output_types[edge.src_slot]
        if dtype not in TYPES:
            raise UnsupportedError
        if value is None and self._exporter.is_fixed(edge):
            shape = self._shapes.shape(edge.src, edge.src_slot)
            return self._weight(edge, shape.as_tuple())
        if value is None:
            self._inputs.append((edge.dst, edge.dst_slot))
            shape = self._shapes.shape(edge.src, edge.src_slot)
            return self._writer.input(f"input{len(self._inputs) - 1}", dtype, shape)
        if value.nbytes > _LARGE:
            return self._weight(edge, np.shape(value))
        self._constants[edge.src] = None
        return self._writer.constant(value)

    def _weight(self, edge: Edge, shape: tuple[int, ...]) -> Tensor:
        self._weights.append((edge.dst, edge.dst_slot))
        dtype = edge.src.output_types[edge.src_slot]
        return self._writer.weight(f"weight{len(self._weights) - 1}", dtype, shape)
