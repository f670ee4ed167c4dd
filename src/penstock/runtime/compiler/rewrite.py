"""Put region nodes where their units were.

In:   a graph, and the groups that were compiled.
Out:  a new graph: what is outside of all groups, and one node per group.
Not:  compiles nothing, and leaves the old graph as it was.

A control edge has no value, so that a region could not see whether its source was dead.
Where that matters, the edge goes through a Const that is live only if the source is.  The
other way round, an Identity of one of the region's results stands for a node inside.

A region has constants in its text.  It waits for them all the same where a Merge outside takes
the first of several values, and one of them is such a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from penstock.catalogue.op_def import ArgDef, AttrDef, OpDef
from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.dataclass import dataclass
from penstock.defs.attrs import TensorAttr
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.references import References
from penstock.graph.roles import Role
from penstock.runtime.compiler.loops import LoopOrNode, LoopTree, RegularLoop, is_free
from penstock.runtime.compiler.region import Region

#: What an op of TensorFlow would be that is a compiled region.
REGION: Final = OpDef(
    "_Region",
    (ArgDef("inputs", list_attr="Tin"),),
    (ArgDef("outputs", list_attr="Tout"),),
    {"Tin": AttrDef("Tin", "list(type)"), "Tout": AttrDef("Tout", "list(type)")},
    allows_uninitialized_input=True,
)
#: Stands for a node in control edges: a slot that no output has.
_CONTROL: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class RegionGroup:
    """Units that became one region."""

    members: Sequence[LoopOrNode]
    region: Region
    #: What the region's parameters stand for.
    inputs: Sequence[Edge]
    #: What its results stand for: (node, slot), or slot -1 for "the node is done".
    outputs: Sequence[tuple[Node, int]]
    #: The nodes that may be dead among those that are only to be done.
    unsure: frozenset[Node]


def outputs_of(
    members: Iterable[LoopOrNode], is_inside: Callable[[Node], bool]
) -> list[tuple[Node, int]]:
    """What the nodes around a group need of it: (node, slot), each once."""
    found: dict[tuple[Node, int], None] = {}
    for unit in members:
        for node in unit.exits if isinstance(unit, RegularLoop) else (unit,):
            for edge in node.out_edges:
                if not is_inside(edge.dst):
                    found[node, edge.src_slot] = None
    return list(found)


class SurelyLive:
    """Which nodes are live in every step: a cautious guess that asks no predicate."""

    def __init__(self, levels: LoopTree) -> None:
        self._levels = levels
        self._sure: set[LoopOrNode] = set()
        for frame, units in levels.units.items():
            if frame.parent is None:
                for unit in units:
                    if self._is_sure(unit):
                        self._sure.add(unit)

    def __contains__(self, node: Node) -> bool:
        return self._levels.unit_of(node) in self._sure

    def _is_sure(self, unit: LoopOrNode) -> bool:
        if isinstance(unit, RegularLoop):
            return all(edge.src in self for enter in unit.enters for edge in enter.in_edges())
        if unit.role in {Role.SWITCH, Role.RECV}:
            return False
        if unit.role is Role.MERGE:
            return any(edge.src in self for edge in unit.inputs if edge is not None)
        # An Exit of the executor's is in no level's root, and so never sure.
        return all(edge.src in self for edge in unit.in_edges())


def rewrite(
    graph: Graph, groups: Sequence[RegionGroup], references: References, levels: LoopTree
) -> tuple[Graph, dict[Node, Region]]:
    """A graph with region nodes; and the region of each."""
    return _RegionRewriter(graph, groups, references, levels).run()


class _RegionRewriter:
    """One new graph under construction."""

    def __init__(
        self, graph: Graph, groups: Sequence[RegionGroup], references: References, levels: LoopTree
    ) -> None:
        self._old = graph
        self._new = Graph(graph.library, function=graph.function)
        self._new.versions = graph.versions
        self._groups = groups
        self._references = references
        self._levels = levels
        self._group_of = {unit: group for group in groups for unit in group.members}
        #: Constants that Merges of the executor's take.
        self._raced = {
            edge.src
            for node in graph
            if node.role is Role.MERGE and self._group(node) is None
            for edge in node.in_edges()
            if is_free(edge.src)
        }
        self._copies: dict[Node, Node] = {}
        self._regions: dict[RegionGroup, Node] = {}
        self._slots: dict[RegionGroup, dict[tuple[Node, int], int]] = {}
        #: Nodes that carry liveness along control edges, by the node that they stand for.
        self._tokens: dict[Node, Node] = {}

    def run(self) -> tuple[Graph, dict[Node, Region]]:
        """Copy, add regions, join."""
        for node in self._old:
            if self._group(node) is None and not self._is_absorbed(node):
                self._copies[node] = self._new.add_copy(node)
        for group in self._groups:
            self._add_region(group)
        for node, copy in self._copies.items():
            self._join(node, copy)
        for group in self._groups:
            self._join_region(group)
        return self._new, {node: group.region for group, node in self._regions.items()}

    def _is_absorbed(self, node: Node) -> bool:
        """Whether a node is a constant that only regions use: they have it in their texts."""
        if not is_free(node) or not node.out_edges:
            return False
        return all(self._group(edge.dst) is not None for edge in node.out_edges)

    def _group(self, node: Node) -> RegionGroup | None:
        return self._group_of.get(self._levels.unit_of(node))

    def _add_region(self, group: RegionGroup) -> None:
        self._slots[group] = {output: slot for slot, output in enumerate(group.outputs)}
        types_in = tuple(self._input_type(edge) for edge in group.inputs)
        types_out = tuple(self._output_type(node, slot) for node, slot in group.outputs)
        name = self._free_name(f"region_{len(self._regions)}")
        attrs = {"Tin": types_in, "Tout": types_out}
        self._regions[group] = self._new.add_node(name, REGION, attrs)

    def _input_type(self, edge: Edge) -> DType:
        if edge.is_control:
            return dtypes.bool_
        if self._group(edge.src) is not None:
            return self._output_type(edge.src, edge.src_slot)
        return edge.src.output_types[edge.src_slot]

    def _output_type(self, node: Node, slot: int) -> DType:
        if slot == _CONTROL:
            return dtypes.bool_
        dtype = node.output_types[slot]
        # Others must see that what comes is a reference, so that they read it.
        return dtype.ref if self._references.is_read(node) else dtype

    def _free_name(self, name: str) -> str:
        while name in self._old or name in self._new:
            name = f"_{name}"
        return name

    # -- edges ---------------------------------------------------------------------------

    def _join(self, node: Node, copy: Node) -> None:
        for edge in node.inputs:
            if edge is not None:
                src, slot = self._source(edge)
                self._new.add_edge(src, slot, copy, edge.dst_slot)
        self._new.add_control_edges([self._done(e.src) for e in node.control_inputs], copy)

    def _join_region(self, group: RegionGroup) -> None:
        region = self._regions[group]
        for slot, edge in enumerate(group.inputs):
            if edge.is_control:
                self._new.add_edge(self._token(edge.src), 0, region, slot)
            else:
                src, src_slot = self._source(edge)
                self._new.add_edge(src, src_slot, region, slot)
        awaited = dict.fromkeys(map(self._done, self._awaited_by(group)))
        self._new.add_control_edges(awaited, region)

    def _awaited_by(self, group: RegionGroup) -> Iterable[Node]:
        """What a region waits for, and need not ask whether it is live."""
        asked = {edge.src for edge in group.inputs if edge.is_control}
        for unit in group.members:
            for node in unit.enters if isinstance(unit, RegularLoop) else (unit,):
                for edge in node.in_edges():
                    src = edge.src
                    if not edge.is_control:
                        if src in self._raced:
                            yield src
                    elif not (self._is_absorbed(src) or src in asked or self._group(src) is group):
                        yield src

    def _source(self, edge: Edge) -> tuple[Node, int]:
        """Where the value of an edge comes from now."""
        group = self._group(edge.src)
        if group is None:
            return self._copies[edge.src], edge.src_slot
        return self._regions[group], self._slots[group][edge.src, edge.src_slot]

    def _done(self, node: Node) -> Node:
        """What is done, and live, when a node is."""
        group = self._group(node)
        if group is None:
            return self._copies[node]
        if node not in group.unsure:
            return self._regions[group]
        return self._token(node)

    def _token(self, node: Node) -> Node:
        """A node with a value that is live if ``node`` is."""
        known = self._tokens.get(node)
        if known is not None:
            return known
        name = self._free_name(f"{node.name}/done")
        group = self._group(node)
        if group is None:
            value = TensorAttr(value=np.True_)
            token = self._new.add_node(
                name, get_op("Const"), {"value": value, "dtype": dtypes.bool_}
            )
            self._new.add_control_edge(self._copies[node], token)
        else:
            token = self._new.add_node(name, get_op("Identity"), {"T": dtypes.bool_})
            slot = self._slots[group][node, _CONTROL]
            self._new.add_edge(self._regions[group], slot, token, 0)
        self._tokens[node] = token
        return token
